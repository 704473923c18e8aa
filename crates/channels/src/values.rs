//! Values of contacts and variables, as people read them in messages.

use serde_json::Value;

/// A value as text. Objects have none.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => Some(values.iter().filter_map(text_of).collect::<Vec<_>>().join(", ")),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}
