//! Filters of endpoints: conditions on events.
//!
//! A filter maps paths into the event (`data.status`, `livemode`) to a value or to operators; all must hold:
//!
//! ```json
//! { "data.status": "completed", "data.energy": { "$gte": 10 }, "data.agent_id": { "$in": [1, 2] } }
//! ```

use fields::equality;
use model::{Error, FieldError, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;

const MOST_PATHS: usize = 10;
const MOST_VALUES: usize = 50;
const LONGEST_PATH: usize = 120;
const OPERATORS: [&str; 9] = ["$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$exists"];

/// Paths into an event (`data.status`) and what must stand there: a value, or operators (`$eq`, `$ne`, `$in`, `$nin`,
/// `$gt`, `$gte`, `$lt`, `$lte`, `$exists`). At most 10 paths; all must hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Filter(Map<String, Value>);

impl Filter {
    /// Refuses what cannot be a filter.
    ///
    /// # Errors
    /// `validation_error` at `filter…`.
    pub fn check(&self) -> Result<()> {
        if self.0.len() > MOST_PATHS {
            return Err(Error::invalid("filter", format_args!("must have at most {MOST_PATHS} paths")));
        }
        let mut errors = Vec::new();
        let mut wrong = |path: &str, message: &str| {
            errors.push(FieldError::new(format!("filter.{path}"), message));
        };
        for (path, condition) in &self.0 {
            let root = path.split('.').next().unwrap_or_default();
            if path.len() > LONGEST_PATH || !["data", "type", "livemode"].contains(&root) {
                wrong(path, "must begin with `data.`, or be `type` or `livemode`, in at most 120 characters");
                continue;
            }
            match condition {
                Value::Object(operators) => {
                    if operators.is_empty() {
                        wrong(path, "must have an operator");
                    }
                    for (operator, operand) in operators {
                        if let Err(message) = check_operator(operator, operand) {
                            wrong(path, &message);
                        }
                    }
                }
                Value::Array(_) => {
                    wrong(path, "must be a value or operators; for one of several write `$in`");
                }
                _ => {}
            }
        }
        Error::all_invalid(errors).map_or(Ok(()), Err)
    }

    /// Whether an event passes. `event` gives the value at a path's first word.
    pub fn passes(&self, event: &Value) -> bool {
        self.0.iter().all(|(path, condition)| {
            let found = path.split('.').try_fold(event, |value, word| match value {
                Value::Array(items) => items.get(word.parse::<usize>().ok()?),
                other => other.get(word),
            });
            match condition {
                Value::Object(operators) => {
                    operators.iter().all(|(operator, operand)| holds(operator, found, operand))
                }
                wanted => holds("$eq", found, wanted),
            }
        })
    }
}

fn check_operator(operator: &str, operand: &Value) -> std::result::Result<(), String> {
    let is_plain = |value: &Value| !value.is_object() && !value.is_array();
    match operator {
        "$in" | "$nin" => match operand {
            Value::Array(values) if values.len() <= MOST_VALUES && values.iter().all(is_plain) => Ok(()),
            _ => Err(format!("`{operator}` takes a list of up to {MOST_VALUES} values")),
        },
        "$gt" | "$gte" | "$lt" | "$lte" if !operand.is_number() && !operand.is_string() => {
            Err(format!("`{operator}` takes a number or a text"))
        }
        "$exists" if !operand.is_boolean() => Err("`$exists` takes true or false".to_owned()),
        _ if !OPERATORS.contains(&operator) => {
            Err(format!("has no operator `{operator}`; there are {}", OPERATORS.join(", ")))
        }
        _ if !is_plain(operand) => Err(format!("`{operator}` takes a plain value")),
        _ => Ok(()),
    }
}

fn holds(operator: &str, found: Option<&Value>, operand: &Value) -> bool {
    let equal = |value: &Value| equality::same(found.unwrap_or(&Value::Null), value);
    let any = || operand.as_array().is_some_and(|values| values.iter().any(equal));
    let order = || compare(found?, operand);
    match operator {
        "$eq" => equal(operand),
        "$ne" => !equal(operand),
        "$in" => any(),
        "$nin" => !any(),
        "$gt" => order() == Some(Ordering::Greater),
        "$gte" => order().is_some_and(Ordering::is_ge),
        "$lt" => order() == Some(Ordering::Less),
        "$lte" => order().is_some_and(Ordering::is_le),
        "$exists" => found.is_some_and(|value| !value.is_null()) == operand.as_bool().unwrap_or(true),
        _ => false,
    }
}

/// Numbers by value, texts by characters (RFC 3339 times are in order so). Different kinds have no order.
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(equality::compare(a, b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filter(value: Value) -> Filter {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn all_conditions_must_hold() {
        let event = json!({
            "type": "item.updated", "livemode": true,
            "data": { "status": "done", "price": 12.5, "tags": ["a"], "owner": null, "at": "2026-01-02T00:00:00Z" },
        });
        for (text, passes) in [
            (json!({}), true),
            (json!({ "data.status": "done" }), true),
            (json!({ "data.status": "done", "livemode": false }), false),
            (json!({ "data.price": { "$gt": 12, "$lte": 12.5 } }), true),
            (json!({ "data.price": { "$lt": 12 } }), false),
            (json!({ "data.price": { "$gt": "12" } }), false),
            (json!({ "data.status": { "$in": ["open", "done"] } }), true),
            (json!({ "data.status": { "$nin": ["open", "done"] } }), false),
            (json!({ "data.status": { "$ne": "open" } }), true),
            (json!({ "data.owner": { "$exists": false } }), true),
            (json!({ "data.tags.0": "a" }), true),
            (json!({ "data.tags.7": { "$exists": true } }), false),
            (json!({ "data.missing": null }), true),
            (json!({ "data.at": { "$gte": "2026-01-01T00:00:00Z" } }), true),
        ] {
            filter(text.clone()).check().unwrap();
            assert_eq!(filter(text.clone()).passes(&event), passes, "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let event: Value = serde_json::from_str(
            r#"{ "data": { "one": 1, "float": 1.0, "rate": 0.10, "big": 9007199254740993, "id": 18446744073709551615,
                 "list": [1.0, {"n": 2.0}] } }"#,
        )
        .unwrap();
        for (text, passes) in [
            (r#"{ "data.one": 1.0 }"#, true),
            (r#"{ "data.float": 1 }"#, true),
            (r#"{ "data.one": { "$eq": 1e0 } }"#, true),
            (r#"{ "data.one": { "$in": [2, 1.0] } }"#, true),
            (r#"{ "data.one": { "$ne": 1.0 } }"#, false),
            (r#"{ "data.one": { "$nin": [1.0] } }"#, false),
            (r#"{ "data.one": { "$gte": 1.0, "$lte": 1.0 } }"#, true),
            (r#"{ "data.one": "1" }"#, false),
            (r#"{ "data.rate": 0.1 }"#, true),
            (r#"{ "data.big": 9007199254740992 }"#, false),
            (r#"{ "data.big": { "$gt": 9007199254740992.0 } }"#, true),
            (r#"{ "data.id": { "$gt": 18446744073709551614 } }"#, true),
            (r#"{ "data.id": { "$nin": [18446744073709551614] } }"#, true),
            (r#"{ "data.list.1.n": 2 }"#, true),
        ] {
            let filter: Filter = serde_json::from_str(text).unwrap();
            assert_eq!(filter.passes(&event), passes, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            json!({ "status": 1 }),
            json!({ "data.a": { "$like": "x" } }),
            json!({ "data.a": {} }),
            json!({ "data.a": [1] }),
            json!({ "data.a": { "$in": 1 } }),
            json!({ "data.a": { "$eq": { "b": 1 } } }),
            json!({ "data.a": { "$exists": 1 } }),
            json!({ "data.a": { "$gt": true } }),
        ] {
            assert!(filter(text.clone()).check().is_err(), "{text}");
        }
    }
}
