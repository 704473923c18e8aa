//! The tree of conditions as the contract shows it. [`super::Node::from_api`] reads it, with exact messages.

use super::op::Op;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{Object, ObjectBuilder, Type};

/// A filter: one condition, or conditions joined by `and`, `or` and `not`. At most 5 levels deep, with at most 100
/// conditions in total.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum FilterTree {
    /// One condition.
    Condition(FilterCondition),
    /// All must hold.
    And(FilterAnd),
    /// At least one must hold.
    Or(FilterOr),
    /// Must not hold.
    Not(FilterNot),
}

/// A condition on one field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterCondition {
    /// The key of the field, or a system field such as `created_at`. `supplier.city` is a field of the records that the
    /// field `supplier` of type `relation` or `contact` points to; one of them must meet the condition.
    pub field: String,
    /// The operator.
    pub op: Op,
    /// The value to compare with: a string, number or boolean, or a list of them for `in`. A missing or `null` value stands
    /// for "no value".
    pub value: Option<Value>,
}

/// Conditions that must all hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterAnd {
    /// The conditions.
    #[schema(no_recursion, min_items = 1, max_items = 100)]
    pub and: Vec<FilterTree>,
}

/// Conditions of which at least one must hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterOr {
    /// The conditions.
    #[schema(no_recursion, min_items = 1, max_items = 100)]
    pub or: Vec<FilterTree>,
}

/// A condition that must not hold.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterNot {
    /// The condition.
    #[schema(no_recursion)]
    pub not: Box<FilterTree>,
}

/// The schema of a query parameter that holds a [`FilterTree`] as JSON text. Generators of clients cannot send a
/// parameter whose `content` is JSON, but every one of them can send a string.
pub fn filter_tree_text() -> Object {
    let tree = json!({ "$ref": "#/components/schemas/FilterTree" });
    ObjectBuilder::new()
        .schema_type(Type::String)
        .content_media_type("application/json")
        .extensions(Some(Extensions::from_iter([("contentSchema", tree)])))
        .build()
}

#[cfg(test)]
mod tests {
    use super::super::tree::{MOST_CONDITIONS, MOST_LEVELS};
    use super::*;
    use utoipa::PartialSchema;

    #[test]
    fn the_limits_are_those_of_the_reader() {
        let tree = serde_json::to_string(&FilterTree::schema()).unwrap();
        assert!(tree.contains(&format!("At most {MOST_LEVELS} levels")), "{tree}");
        assert!(tree.contains(&format!("at most {MOST_CONDITIONS}")), "{tree}");
        for schema in [FilterAnd::schema(), FilterOr::schema()] {
            let schema = serde_json::to_value(schema).unwrap();
            let (_, list) = schema["properties"].as_object().unwrap().iter().next().unwrap();
            assert_eq!(list["maxItems"], MOST_CONDITIONS);
        }
    }
}
