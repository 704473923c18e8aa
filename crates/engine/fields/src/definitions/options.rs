//! What a field's type can be told: limits, choices, targets.

use crate::values::computed_error::ComputedError;
use crate::values::kind::FieldType;
use model::{CollectionId, FieldId, OptionId, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

/// The options of a field. Each option states the types that it applies to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FieldOptions {
    /// Text types: the maximum number of characters, up to 1,000 for `text`, `email`, `url` and `phone`, and 100,000
    /// for `long_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_length: Option<i64>,
    /// Text types: a regular expression that the whole value must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 500)]
    pub pattern: Option<String>,
    /// For `phone`: the country of numbers without `+`, as a two-letter ISO 3166 code. The country of the business if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Z]{2}$")]
    pub default_country: Option<String>,
    /// Decimal numbers: the maximum number of decimal places, 0 to 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 8)]
    pub precision: Option<i64>,
    /// Numbers: the minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub min: Option<Number>,
    /// Numbers: the maximum. For `rating`, the number of stars, 1 to 10; 5 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub max: Option<Number>,
    /// For `currency`: the ISO 4217 code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Z]{3}$")]
    pub currency: Option<String>,
    /// For `datetime`: the time zone of input without an offset, such as `Europe/Madrid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64)]
    pub time_zone: Option<String>,
    /// For `select` and `multi_select`: the choices, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 200)]
    pub choices: Option<Vec<Choice>>,
    /// For `relation`: the id of the collection that the field refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_collection_id: Option<CollectionId>,
    /// For `relation`: how many items a value can contain; `many` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cardinality: Option<Cardinality>,
    /// For `relation`: the id of the reverse field in the target collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse_field_id: Option<FieldId>,
    /// For `relation`, on creation: the key of a reverse field to create in the target collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(write_only, pattern = "^[a-z][a-z0-9_]{0,62}$")]
    pub reverse_field_key: Option<String>,
    /// For `relation`: what happens to items that refer to a deleted item; `detach` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// For `contact`, `user` and `file`: the maximum number of ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub max_items: Option<i64>,
    /// For `json`: a JSON Schema that values must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub json_schema: Option<Value>,
    /// For `formula`: the expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 2000)]
    pub expression: Option<String>,
    /// For `rollup` and `lookup`: the key of the relation field in this collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 63)]
    pub relation: Option<String>,
    /// For `rollup` and `lookup`: the key of the field in the target collection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 63)]
    pub field: Option<String>,
    /// For `rollup`: how the values are aggregated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<RollupAggregate>,
    /// Computed fields: the type of the result, determined by the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    pub result_type: Option<FieldType>,
    /// Computed fields: why no item has a value, determined by the service. Absent as long as the field can be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    pub result_error: Option<ComputedError>,
}

/// A choice of a select field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The id of the choice, assigned by the service.
    #[serde(default = "unnumbered")]
    pub id: OptionId,
    /// The key that items store. It never changes. Derived from the label if not given.
    #[serde(default)]
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,62}$")]
    pub key: String,
    /// The label for people.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub label: String,
    /// A colour for the label, such as `#ff8800` or `green`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(#[0-9a-fA-F]{6}|[a-z]{2,20})$")]
    pub color: Option<String>,
    /// Whether the choice is archived: items keep it, but new values cannot use it.
    #[serde(default)]
    pub archived: bool,
}

/// The id of a choice that has none yet.
fn unnumbered() -> OptionId {
    OptionId(0)
}

string_enum! {
    /// How many items a relation field can contain.
    pub enum Cardinality {
        /// At most one item.
        One = "one",
        /// Any number of items.
        Many = "many",
    }
}

string_enum! {
    /// What happens to an item that refers to a deleted item.
    pub enum OnDelete {
        /// The reference is removed from the item.
        Detach = "detach",
        /// The referenced item cannot be deleted.
        Restrict = "restrict",
        /// The item is deleted too.
        Cascade = "cascade",
    }
}

string_enum! {
    /// How the values of a rollup are aggregated.
    pub enum RollupAggregate {
        /// The number of items.
        Count = "count",
        /// The sum of the numbers.
        Sum = "sum",
        /// The average of the numbers.
        Avg = "avg",
        /// The lowest value.
        Min = "min",
        /// The highest value.
        Max = "max",
        /// The number of different values.
        CountDistinct = "count_distinct",
        /// Whether all booleans are true.
        All = "all",
        /// Whether any boolean is true.
        Any = "any",
        /// The texts, separated by `, `.
        Join = "join",
    }
}

impl FieldOptions {
    /// The choices of a select field; none for others.
    pub fn choices(&self) -> &[Choice] {
        self.choices.as_deref().unwrap_or_default()
    }

    /// The choice with this key, and its place.
    pub fn choice(&self, key: &str) -> Option<(usize, &Choice)> {
        self.choices().iter().enumerate().find(|(_, choice)| choice.key == key)
    }

    /// The collection that gets a field which points back, where a new relation field asks for one.
    pub fn mirrored_in(&self) -> Option<CollectionId> {
        self.reverse_field_key.as_ref().and(self.target_collection_id)
    }

    /// How many items a relation field can contain.
    pub fn cardinality(&self) -> Cardinality {
        self.cardinality.unwrap_or(Cardinality::Many)
    }
}
