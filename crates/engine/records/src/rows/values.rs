//! The values of an item as a caller writes them: checked, completed, and refused all at once.

use super::row::creator;
use crate::shape::Shape;
use fields::Data;
use fields::Problem;
use fields::value::{self, Mode};
use fields::{Field, FieldType};
use model::{FieldError, JsonText, Result, Timestamp};
use serde_json::Value;

/// What a write does with the fields that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A new item: they get their defaults.
    Default,
    /// A replacement: they are emptied.
    Clear,
    /// A patch: they stay.
    Keep,
}

/// The values of an item after `input` was written over `old`, in the order of the fields. What the service sets by
/// itself (numbers, computed fields, times) is kept from `old`; whoever writes the row brings it up to date.
///
/// # Errors
/// 400 `validation_error`, all mistakes listed, each under the [`param`](Shape::param) of its field (below `path`, such
/// as `rows[3].`).
pub fn merge(
    shape: &Shape,
    old: Option<&Data>,
    input: &Data,
    missing: Missing,
    mode: Mode,
    path: &str,
) -> Result<Data> {
    let mut errors: Vec<FieldError> =
        input.keys().filter(|key| shape.field(key).is_none()).map(|key| unknown(shape, key, path)).collect();
    let mut data = Data::new();
    for field in &shape.fields {
        let stored = old.and_then(|old| old.get(&field.key));
        let written = match (input.get(&field.key), missing) {
            // What was read may be written back: a value that is set by the service and did not change is no mistake.
            (Some(given), _) if field.is_read_only() && stored == Some(given) => stored.cloned(),
            (Some(given), _) if stored == Some(given) && !is_empty(given) => stored.cloned(),
            (Some(given), _) => match checked(field, given, stored, mode) {
                Ok(value) => value,
                Err(problem) => {
                    errors.push(problem.at(format!("{path}{}", shape.param(&field.key))));
                    continue;
                }
            },
            (None, Missing::Keep) => stored.cloned(),
            (None, Missing::Clear) if field.is_read_only() => stored.cloned(),
            (None, Missing::Clear) => None,
            (None, Missing::Default) => field.default.clone(),
        };
        match written {
            Some(value) => {
                data.insert(field.key.clone(), value);
            }
            None if field.is_demanded() => {
                errors.push(
                    Problem::new("required", "is required").at(format!("{path}{}", shape.param(&field.key))),
                );
            }
            None => {}
        }
    }
    model::Error::all_invalid(errors).map_or(Ok(data), Err)
}

/// The form in which a field of an item keeps `given`; `None` for an empty one.
///
/// # Errors
/// Why it does not fit.
pub fn checked(
    field: &Field,
    given: &Value,
    stored: Option<&Value>,
    mode: Mode,
) -> Result<Option<Value>, Problem> {
    match value::check(field, given, mode)? {
        Some(value) if field.is_demanded() && value::is_blank(field.kind, &value) => {
            Err(Problem::new("required", "must not be blank"))
        }
        value => allowed(field, value, stored),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// A choice that is kept for old items only is not given to others.
fn allowed(field: &Field, value: Option<Value>, stored: Option<&Value>) -> Result<Option<Value>, Problem> {
    let had = |key: &str| match stored {
        Some(Value::String(old)) => old == key,
        Some(Value::Array(old)) => old.iter().any(|old| old == key),
        _ => false,
    };
    let keys: Vec<&str> = match &value {
        Some(Value::String(key)) if field.kind == FieldType::Select => vec![key],
        Some(Value::Array(keys)) if field.kind == FieldType::MultiSelect => {
            keys.iter().filter_map(Value::as_str).collect()
        }
        _ => return Ok(value),
    };
    let archived = |key: &&&str| field.options.choice(key).is_some_and(|(_, choice)| choice.archived);
    match keys.iter().filter(archived).find(|key| !had(key)) {
        Some(key) => Err(Problem::new(
            "unknown_option",
            format!("has the archived choice `{key}`, which new values cannot use"),
        )),
        None => Ok(value),
    }
}

fn unknown(shape: &Shape, key: &str, path: &str) -> FieldError {
    let hint = shape.nearest(key).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let shown: String = key.chars().take(63).collect();
    Problem::new("unknown_field", format!("is not a field of this {}{hint}", shape.noun()))
        .at(format!("{path}{}", shape.param(&shown)))
}

/// Sets the system fields that a collection shows among its own: when an item was created and changed, and who
/// (JSON of an [`Actor`](model::Actor)) created it.
pub(crate) fn stamp(
    shape: &Shape,
    data: &mut Data,
    created_at: Timestamp,
    updated_at: Timestamp,
    created_by: &JsonText,
) {
    for field in &shape.fields {
        let value = match field.kind {
            FieldType::CreatedAt => created_at.rfc3339(),
            FieldType::UpdatedAt => updated_at.rfc3339(),
            FieldType::CreatedBy => creator(created_by).unwrap_or_default(),
            _ => continue,
        };
        data.insert(field.key.clone(), value.into());
    }
}

/// The title of an item: the value of the primary field as text, at most 200 characters.
pub fn title(shape: &Shape, data: &Data) -> String {
    let Some(field) = shape.primary() else { return String::new() };
    let text = match data.get(&field.key) {
        None => String::new(),
        Some(Value::String(key)) if field.kind == FieldType::Select => {
            field.options.choice(key).map_or_else(|| key.clone(), |(_, choice)| choice.label.clone())
        }
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    text.chars().take(200).collect()
}
