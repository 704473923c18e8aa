//! Validation of values.

use super::model::VariableType;
use model::{Error, JsonText, Result};
use serde_json::Value;

/// The most bytes of a value.
const LARGEST: usize = 64 * 1024;

/// A valid value: plain, or a secret that has to be sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Checked {
    Plain(JsonText),
    Secret(String),
}

/// Checks that a value has the type of the variable.
///
/// # Errors
/// `validation_error` at `value`.
pub(super) fn check(kind: VariableType, value: Value) -> Result<Checked> {
    let wrong = |rule: &str| Err(Error::invalid("value", rule));
    let text = JsonText::of(&value);
    let length = value.as_str().map_or(text.as_str().len(), str::len);
    if length > LARGEST {
        return wrong("must have at most 65,536 bytes");
    }
    match (kind, value) {
        (VariableType::String, Value::String(text)) if text.contains('\0') => {
            wrong("must not contain U+0000")
        }
        (VariableType::String, Value::String(_))
        | (VariableType::Number, Value::Number(_))
        | (VariableType::Boolean, Value::Bool(_))
        | (VariableType::Json, _) => Ok(Checked::Plain(text)),
        (VariableType::Secret, Value::String(secret)) if !secret.is_empty() => Ok(Checked::Secret(secret)),
        (VariableType::String, _) => wrong("must be a text"),
        (VariableType::Number, _) => wrong("must be a number"),
        (VariableType::Boolean, _) => wrong("must be true or false"),
        (VariableType::Secret, _) => wrong("must be a text that is not empty"),
    }
}
