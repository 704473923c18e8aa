//! The types that a field can have, and how values of each compare.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// A line of text.
    Text,
    /// Text of any length.
    LongText,
    /// An e-mail address.
    Email,
    /// An `http` or `https` address.
    Url,
    /// A telephone number, kept as `+` and digits.
    Phone,
    /// A decimal number of at most 15 significant digits.
    Number,
    /// An amount of money.
    Currency,
    /// A percentage: 12.5 is 12.5 %.
    Percent,
    /// Whole stars, from 0.
    Rating,
    /// A length of time in seconds.
    Duration,
    /// A whole number between -2^53 and 2^53.
    Integer,
    /// A number that the service gives each new item, counting up.
    AutoNumber,
    /// True or false.
    Boolean,
    /// A calendar day.
    Date,
    /// A moment.
    Datetime,
    /// A time of day.
    Time,
    /// One of a list of choices.
    Select,
    /// Some of a list of choices.
    MultiSelect,
    /// Words of any number, kept in lower case.
    Tags,
    /// Items of another collection.
    Relation,
    /// Contacts.
    Contact,
    /// Members of the team.
    User,
    /// Files.
    File,
    /// Any JSON.
    Json,
    /// Computed from other fields of the item.
    Formula,
    /// Computed over the items that a relation field points to.
    Rollup,
    /// A field of the items that a relation field points to.
    Lookup,
    /// When the item was created.
    CreatedAt,
    /// When the item was last changed.
    UpdatedAt,
    /// Who created the item.
    CreatedBy,
}

/// How values compare, sort and are filtered (data-crm.md C.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// By folded form, then code points.
    Text,
    /// As decimal numbers.
    Number,
    /// False before true.
    Boolean,
    /// By the calendar.
    Date,
    /// As instants.
    Datetime,
    /// By the clock.
    Time,
    /// By the place of the choice.
    Select,
    /// As a set of choices or words, which has no order.
    Choices,
    /// As a set of ids, which has no order.
    Ids,
    /// Equal or not.
    Json,
}

impl FieldType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 30] = [
        Self::Text,
        Self::LongText,
        Self::Email,
        Self::Url,
        Self::Phone,
        Self::Number,
        Self::Currency,
        Self::Percent,
        Self::Rating,
        Self::Duration,
        Self::Integer,
        Self::AutoNumber,
        Self::Boolean,
        Self::Date,
        Self::Datetime,
        Self::Time,
        Self::Select,
        Self::MultiSelect,
        Self::Tags,
        Self::Relation,
        Self::Contact,
        Self::User,
        Self::File,
        Self::Json,
        Self::Formula,
        Self::Rollup,
        Self::Lookup,
        Self::CreatedAt,
        Self::UpdatedAt,
        Self::CreatedBy,
    ];

    /// The word of the wire format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::LongText => "long_text",
            Self::Email => "email",
            Self::Url => "url",
            Self::Phone => "phone",
            Self::Number => "number",
            Self::Currency => "currency",
            Self::Percent => "percent",
            Self::Rating => "rating",
            Self::Duration => "duration",
            Self::Integer => "integer",
            Self::AutoNumber => "auto_number",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Time => "time",
            Self::Select => "select",
            Self::MultiSelect => "multi_select",
            Self::Tags => "tags",
            Self::Relation => "relation",
            Self::Contact => "contact",
            Self::User => "user",
            Self::File => "file",
            Self::Json => "json",
            Self::Formula => "formula",
            Self::Rollup => "rollup",
            Self::Lookup => "lookup",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
            Self::CreatedBy => "created_by",
        }
    }

    /// What people call it: `Long text`.
    pub fn label(self) -> String {
        let words = self.as_str().replace('_', " ");
        let mut letters = words.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// How values compare. The result of a computed field has a type of its own ([`super::Field::family`]).
    pub fn own_family(self) -> Family {
        match self {
            Self::Text | Self::LongText | Self::Email | Self::Url | Self::Phone | Self::CreatedBy => {
                Family::Text
            }
            Self::Number
            | Self::Currency
            | Self::Percent
            | Self::Rating
            | Self::Duration
            | Self::Integer
            | Self::AutoNumber => Family::Number,
            Self::Boolean => Family::Boolean,
            Self::Date => Family::Date,
            Self::Datetime | Self::CreatedAt | Self::UpdatedAt => Family::Datetime,
            Self::Time => Family::Time,
            Self::Select => Family::Select,
            Self::MultiSelect | Self::Tags => Family::Choices,
            Self::Relation | Self::Contact | Self::User | Self::File => Family::Ids,
            Self::Json | Self::Formula | Self::Rollup | Self::Lookup => Family::Json,
        }
    }

    /// Whether the service computes the value from other values.
    pub fn is_computed(self) -> bool {
        matches!(self, Self::Formula | Self::Rollup | Self::Lookup)
    }

    /// Whether the service sets the value, so that callers may not.
    pub fn is_read_only(self) -> bool {
        self.is_computed()
            || matches!(self, Self::AutoNumber | Self::CreatedAt | Self::UpdatedAt | Self::CreatedBy)
    }

    /// Whether values are ids of other objects.
    pub fn is_reference(self) -> bool {
        matches!(self, Self::Relation | Self::Contact | Self::User | Self::File)
    }

    /// Whether full-text search finds the value.
    pub fn is_searchable(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::LongText
                | Self::Email
                | Self::Url
                | Self::Phone
                | Self::Select
                | Self::MultiSelect
                | Self::Tags
        )
    }
}

impl Family {
    /// Whether values have an order, so that they can be sorted and compared by size.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Self::Choices | Self::Ids | Self::Json)
    }

    /// Whether a value is a list of elements.
    pub fn is_set(self) -> bool {
        matches!(self, Self::Choices | Self::Ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back() {
        for kind in FieldType::ALL {
            assert_eq!(FieldType::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
