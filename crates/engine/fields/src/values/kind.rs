//! The types that a field can have, and how values of each compare.

use model::string_enum;

string_enum! {
    /// The type of a field.
    #[derive(Hash)]
    pub enum FieldType {
        /// One line of text.
        Text = "text",
        /// Text of any length.
        LongText = "long_text",
        /// An e-mail address.
        Email = "email",
        /// An `http` or `https` URL.
        Url = "url",
        /// A telephone number, stored as `+` and digits.
        Phone = "phone",
        /// A decimal number of at most 15 significant digits.
        Number = "number",
        /// An amount of money.
        Currency = "currency",
        /// A percentage: 12.5 is 12.5%.
        Percent = "percent",
        /// A whole number of stars, from 0.
        Rating = "rating",
        /// A duration in seconds.
        Duration = "duration",
        /// An integer between -2^53 and 2^53.
        Integer = "integer",
        /// A number that the service assigns to each new item, in ascending order.
        AutoNumber = "auto_number",
        /// True or false.
        Boolean = "boolean",
        /// A calendar day.
        Date = "date",
        /// A date and time.
        Datetime = "datetime",
        /// A time of day.
        Time = "time",
        /// One of a list of choices.
        Select = "select",
        /// Any of a list of choices.
        MultiSelect = "multi_select",
        /// Words of any number, stored in lower case.
        Tags = "tags",
        /// Items of another collection.
        Relation = "relation",
        /// Contacts.
        Contact = "contact",
        /// Members of the team.
        User = "user",
        /// Files.
        File = "file",
        /// Any JSON.
        Json = "json",
        /// Computed from other fields of the item.
        Formula = "formula",
        /// An aggregate of the items that a relation field refers to.
        Rollup = "rollup",
        /// A field of the items that a relation field refers to.
        Lookup = "lookup",
        /// When the item was created.
        CreatedAt = "created_at",
        /// When the item was last changed.
        UpdatedAt = "updated_at",
        /// Who created the item.
        CreatedBy = "created_by",
    }
}

/// How values compare, sort and are filtered (data-crm.md C.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// By letters, then by accents, then by code points.
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
    /// What people call it: `Long text`.
    pub fn label(self) -> String {
        let words = self.as_str().replace('_', " ");
        let mut letters = words.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
    }

    /// How values compare. The result of a computed field has a type of its own ([`crate::Field::family`]).
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
