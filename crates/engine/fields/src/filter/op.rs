//! The nine operators, and which of them each kind of value takes (data-crm.md C.4).

use crate::Family;
use model::string_enum;

string_enum! {
    /// A filter operator.
    #[derive(Hash)]
    pub enum Op {
        /// Equal. For lists: contains the element. An empty operand matches items without a value.
        Eq = "eq",
        /// Not equal, or without a value. For lists: does not contain the element.
        Neq = "neq",
        /// Greater than.
        Gt = "gt",
        /// Greater than or equal.
        Gte = "gte",
        /// Less than.
        Lt = "lt",
        /// Less than or equal.
        Lte = "lte",
        /// Matches a pattern. `%` matches any text, `_` any character, and `\` escapes the next character.
        Like = "like",
        /// Like `like`, but case-insensitive.
        Ilike = "ilike",
        /// Equal to one of several values. For lists: contains any of the elements.
        In = "in",
    }
}

impl Op {
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
