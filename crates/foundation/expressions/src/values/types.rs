//! The types that values within expressions have.

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// That of `null`, which fits everywhere.
    Null,
    /// A number.
    Number,
    /// A text.
    Text,
    /// True or false.
    Boolean,
    /// A day.
    Date,
    /// A moment.
    Time,
    /// A list.
    List,
    /// An object.
    Object,
    /// Known only when it is evaluated.
    Any,
}

impl Type {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Number => "a number",
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Date => "a date",
            Self::Time => "a time",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Any => "any value",
        }
    }

    /// The name of the type in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Number => "number",
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Time => "time",
            Self::List => "list",
            Self::Object => "object",
            Self::Any => "any",
        }
    }

    pub(crate) fn fits(self, other: Self) -> bool {
        let is_open = |kind| matches!(kind, Self::Null | Self::Any);
        self == other || is_open(self) || is_open(other)
    }
}
