//! Collections, as other groups name them.

use fields::{Field, FieldType};
use model::{CollectionId, Result, WorkspaceId};
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;
use store::Read;

/// A field of items or contacts, as other groups see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    /// The key.
    pub key: String,
    /// The type.
    pub kind: FieldType,
    /// The collection that a relation refers to.
    pub target: Option<CollectionId>,
}

impl From<&Field> for RecordField {
    fn from(field: &Field) -> Self {
        let target = field.options.target_collection_id;
        Self { key: field.key.clone(), kind: field.kind, target }
    }
}

/// The collections of workspaces. The group that keeps them implements it.
pub trait Collections: Send + Sync {
    /// The name of a collection of the workspace that can be used; `None` where there is none.
    ///
    /// # Errors
    /// When the database fails.
    fn name(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Option<String>>;

    /// The fields of a collection, archived ones included; none where there is no such collection.
    ///
    /// # Errors
    /// When the database fails.
    fn fields(&self, read: &mut Read, workspace: WorkspaceId, id: CollectionId) -> Result<Vec<RecordField>>;
}

/// The collections of workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct CollectionDirectory(Arc<dyn Collections>);

impl CollectionDirectory {
    /// A directory of these collections.
    pub fn new(collections: impl Collections + 'static) -> Self {
        Self(Arc::new(collections))
    }
}

impl Deref for CollectionDirectory {
    type Target = dyn Collections;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Returns the parameters of a list of items that a query means: `{ filter: { price: { gt: 5 } }, limit: 10 }` is
/// `filter[price][gt]=5&limit=10`, a `filter_tree` is JSON, and an array in any other place is a list with commas. `null` is
/// nothing.
///
/// # Errors
/// A sentence that says what a query is.
pub fn item_query(query: Value) -> std::result::Result<Vec<(String, String)>, String> {
    let Value::Object(query) = query else {
        return Err("the query is an object".to_owned());
    };
    let mut pairs = Vec::new();
    for (name, value) in query {
        match value {
            Value::Object(filter) if name == "filter" => nested(&name, Value::Object(filter), &mut pairs),
            Value::Array(_) | Value::Object(_) if name == "filter_tree" => {
                pairs.push((name, value.to_string()));
            }
            Value::Array(values) if values.iter().all(is_plain) => {
                pairs.push((name, values.iter().map(plain).collect::<Vec<_>>().join(",")));
            }
            Value::Null => {}
            value if is_plain(&value) => pairs.push((name, plain(&value))),
            _ => {
                return Err(format!(
                    "`{name}` of the query is a string, a number, a boolean or an array of them"
                ));
            }
        }
    }
    Ok(pairs)
}

fn nested(name: &str, value: Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                nested(&format!("{name}[{field}]"), value, pairs);
            }
        }
        Value::Array(values) => {
            for value in values {
                nested(&format!("{name}[]"), value, pairs);
            }
        }
        value => pairs.push((name.to_owned(), plain(&value))),
    }
}

fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_query_becomes_parameters() {
        let query = json!({
            "filter": { "status": "open", "price": { "gt": 5 }, "tag": { "in": ["a", "b"] } },
            "filter_tree": { "field": "x", "op": "eq", "value": 1 },
            "fields": ["name", "price"], "limit": 3, "trashed": true, "sort": "-price", "starting_after": null,
        });
        let mut pairs = item_query(query).unwrap();
        pairs.sort();
        let expected = [
            ("fields", "name,price"),
            ("filter[price][gt]", "5"),
            ("filter[status]", "open"),
            ("filter[tag][in][]", "a"),
            ("filter[tag][in][]", "b"),
            ("filter_tree", r#"{"field":"x","op":"eq","value":1}"#),
            ("limit", "3"),
            ("sort", "-price"),
            ("trashed", "true"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(pairs, expected);
        for wrong in [json!([]), json!("a"), json!(null), json!({ "limit": {} }), json!({ "sort": [[]] })] {
            assert!(item_query(wrong).is_err());
        }
    }
}
