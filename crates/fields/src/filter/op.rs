//! The nine operators, and which of them each kind of value takes (data-crm.md C.4).

use crate::Family;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A filter operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Equal. For lists: contains the element. An empty operand asks for items without a value.
    Eq,
    /// Not equal, or without a value. For lists: does not contain the element.
    Neq,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Gte,
    /// Less than.
    Lt,
    /// Less than or equal.
    Lte,
    /// Fits a pattern in which `%` is any text, `_` any character, and `\` takes the next character as it is.
    Like,
    /// The same without regard to case.
    Ilike,
    /// Equal to one of several. For lists: contains any of the elements.
    In,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 9] =
        [Self::Eq, Self::Neq, Self::Gt, Self::Gte, Self::Lt, Self::Lte, Self::Like, Self::Ilike, Self::In];

    /// The word of the wire format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Like => "like",
            Self::Ilike => "ilike",
            Self::In => "in",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == text)
    }

    /// Whether values of this kind can be compared so.
    pub fn fits(self, family: Family) -> bool {
        match self {
            Self::Eq | Self::Neq => true,
            Self::Gt | Self::Gte | Self::Lt | Self::Lte => family.is_ordered() && family != Family::Boolean,
            Self::Like | Self::Ilike => matches!(family, Family::Text | Family::Date | Family::Select),
            Self::In => family != Family::Json,
        }
    }

    /// The operators of a kind of value, as a sentence names them.
    pub fn names(family: Family) -> String {
        let names: Vec<&str> = Self::ALL.into_iter().filter(|op| op.fits(family)).map(Self::as_str).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for op in Op::ALL {
            assert_eq!(Op::parse(op.as_str()), Some(op));
            assert_eq!(serde_json::to_value(op).unwrap(), op.as_str());
        }
        assert_eq!(Op::parse("EQ"), None);
    }
}
