//! The types that values within expressions have.

use crate::values::kind::Family;

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    /// That of `null`, which fits everywhere.
    Nothing,
    Number,
    Text,
    Boolean,
    Date,
    Moment,
    List,
}

impl Type {
    pub(crate) fn of(family: Family) -> Self {
        match family {
            Family::Number => Self::Number,
            Family::Text | Family::Time | Family::Select => Self::Text,
            Family::Boolean => Self::Boolean,
            Family::Date => Self::Date,
            Family::Datetime => Self::Moment,
            Family::Choices | Family::Ids | Family::Json => Self::List,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Nothing => "null",
            Self::Number => "a number",
            Self::Text => "text",
            Self::Boolean => "true or false",
            Self::Date => "a date",
            Self::Moment => "a time",
            Self::List => "a list",
        }
    }

    /// The name of the type in the documentation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "null",
            Self::Number => "number",
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Moment => "time",
            Self::List => "list",
        }
    }

    pub(crate) fn fits(self, other: Self) -> bool {
        self == other || self == Self::Nothing || other == Self::Nothing
    }
}
