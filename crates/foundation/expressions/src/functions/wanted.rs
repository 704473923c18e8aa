//! What functions take.

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Number,
    /// A number, or outside formulas a list of them.
    Numbers,
    Text,
    /// A text, or outside formulas a list.
    TextOrList,
    /// A regular expression.
    Pattern,
    Boolean,
    /// A day or a moment.
    Time,
    List,
    Object,
    Anything,
    /// Anything, of the same type as the others that are marked so.
    Alike,
}

impl Wanted {
    pub(crate) fn word(self, is_formula: bool) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Numbers if is_formula => "number",
            Self::Numbers => "number or list",
            Self::Text => "text",
            Self::TextOrList if is_formula => "text",
            Self::TextOrList => "text or list",
            Self::Pattern => "pattern",
            Self::Boolean => "boolean",
            Self::Time => "date or time",
            Self::List => "list",
            Self::Object => "object",
            Self::Anything => "any",
            Self::Alike => "value",
        }
    }
}
