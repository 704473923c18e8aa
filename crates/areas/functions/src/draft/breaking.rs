//! Comparison of input schemas: which inputs a new schema refuses that the earlier one took.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Keywords whose larger value refuses more.
const LOWER_BOUNDS: [&str; 6] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
/// Keywords whose smaller value refuses more.
const UPPER_BOUNDS: [&str; 6] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];
/// The most changes that are listed.
const MOST: usize = 20;

/// Lists the changes from `old` to `new` that refuse what `old` took, as sentences with paths. Schemas that are combined with
/// `anyOf` or `$ref` are compared as a whole.
pub(super) fn breaking_changes(old: &Value, new: &Value) -> Vec<String> {
    let mut changes = Vec::new();
    compare(old, new, "input", &mut changes);
    changes.truncate(MOST);
    changes
}

fn compare(old: &Value, new: &Value, path: &str, changes: &mut Vec<String>) {
    if old == new {
        return;
    }
    let empty = Map::new();
    // `true` takes everything, as an empty object does.
    let (old, new) = match (old, new) {
        (Value::Bool(false), _) | (_, Value::Bool(true)) => return,
        (_, Value::Bool(false)) => {
            changes.push(format!("`{path}` is not allowed any more"));
            return;
        }
        (old, new) => (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty)),
    };
    compare_types(old, new, path, changes);
    compare_values(old, new, path, changes);
    compare_bounds(old, new, path, changes);
    compare_properties(old, new, path, changes);
    if let Some(items) = new.get("items") {
        compare(old.get("items").unwrap_or(&Value::Bool(true)), items, &format!("{path}[]"), changes);
    }
}

fn types(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some(BTreeSet::from([one.as_str()])),
        Value::Array(all) => Some(all.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn compare_types(old: &Map<String, Value>, new: &Map<String, Value>, path: &str, changes: &mut Vec<String>) {
    let Some(allowed) = types(new) else { return };
    let is_allowed = |one: &&str| allowed.contains(one) || (*one == "integer" && allowed.contains("number"));
    if !types(old).is_some_and(|before| before.iter().all(is_allowed)) {
        changes.push(format!("`{path}` has a narrower type"));
    }
}

fn compare_values(old: &Map<String, Value>, new: &Map<String, Value>, path: &str, changes: &mut Vec<String>) {
    let values = |schema: &Map<String, Value>| -> Option<Vec<Value>> {
        let listed = schema.get("enum").and_then(Value::as_array).cloned();
        listed.or_else(|| schema.get("const").map(|value| vec![value.clone()]))
    };
    if let Some(allowed) = values(new)
        && !values(old).is_some_and(|before| before.iter().all(|value| allowed.contains(value)))
    {
        changes.push(format!("`{path}` allows fewer values"));
    }
}

fn compare_bounds(old: &Map<String, Value>, new: &Map<String, Value>, path: &str, changes: &mut Vec<String>) {
    let bound = |schema: &Map<String, Value>, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let mut is_tighter = false;
    for (keywords, is_lower) in [(LOWER_BOUNDS, true), (UPPER_BOUNDS, false)] {
        for keyword in keywords {
            is_tighter |= match (bound(old, keyword), bound(new, keyword)) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(before), Some(after)) => {
                    if is_lower {
                        after > before
                    } else {
                        after < before
                    }
                }
            };
        }
    }
    for keyword in ["pattern", "format", "multipleOf", "anyOf", "allOf", "oneOf", "not", "$ref"] {
        is_tighter |= new.contains_key(keyword) && new.get(keyword) != old.get(keyword);
    }
    let is_unique = |schema: &Map<String, Value>| schema.get("uniqueItems") == Some(&Value::Bool(true));
    if is_tighter || (is_unique(new) && !is_unique(old)) {
        changes.push(format!("`{path}` has a narrower rule"));
    }
}

fn compare_properties(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    path: &str,
    changes: &mut Vec<String>,
) {
    let empty = Map::new();
    let properties =
        |schema: &'_ Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
    let (before, after) = (properties(old).unwrap_or_default(), properties(new).unwrap_or(empty));
    let required = |schema: &Map<String, Value>| -> BTreeSet<String> {
        let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    for name in required(new).difference(&required(old)) {
        changes.push(format!("`{path}.{name}` is required now"));
    }
    for (name, schema) in &before {
        let path = format!("{path}.{name}");
        match after.get(name) {
            Some(new) => compare(schema, new, &path, changes),
            None => changes.push(format!("`{path}` is removed")),
        }
    }
    let is_closed =
        |schema: &Map<String, Value>| schema.get("additionalProperties") == Some(&Value::Bool(false));
    if is_closed(new) && !is_closed(old) {
        changes.push(format!("`{path}` refuses further properties"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_that_refuse_inputs_are_found() {
        let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
        for (old, new, changes) in [
            (json!({}), json!({}), vec![]),
            (json!({ "type": "object" }), json!({}), vec![]),
            (json!({}), json!({ "type": "object" }), vec!["`input` has a narrower type"]),
            (json!({ "type": "integer" }), json!({ "type": "number" }), vec![]),
            (json!({ "type": "number" }), json!({ "type": "integer" }), vec!["`input` has a narrower type"]),
            (
                json!({ "type": ["string", "null"] }),
                json!({ "type": "string" }),
                vec!["`input` has a narrower type"],
            ),
            (json!({ "enum": [1, 2] }), json!({ "enum": [2, 1, 3] }), vec![]),
            (json!({ "enum": [1, 2] }), json!({ "enum": [1] }), vec!["`input` allows fewer values"]),
            (json!({ "enum": [1, 2] }), json!({ "const": 1 }), vec!["`input` allows fewer values"]),
            (json!({ "maxLength": 5 }), json!({ "maxLength": 6 }), vec![]),
            (json!({ "maxLength": 5 }), json!({ "maxLength": 4 }), vec!["`input` has a narrower rule"]),
            (json!({}), json!({ "minimum": 0 }), vec!["`input` has a narrower rule"]),
            (json!({ "pattern": "a" }), json!({ "description": "d", "pattern": "a" }), vec![]),
            (json!({ "pattern": "a" }), json!({ "pattern": "b" }), vec!["`input` has a narrower rule"]),
            (
                object(json!({ "a": { "type": "string" }, "b": {} }), json!(["a"])),
                object(json!({ "a": { "type": "string" }, "c": {} }), json!(["a", "c"])),
                vec!["`input.c` is required now", "`input.b` is removed"],
            ),
            (
                object(json!({ "a": { "items": { "enum": [1, 2] } } }), json!([])),
                object(json!({ "a": { "items": { "enum": [2] } } }), json!([])),
                vec!["`input.a[]` allows fewer values"],
            ),
            (
                json!({ "type": "object" }),
                json!({ "type": "object", "additionalProperties": false }),
                vec!["`input` refuses further properties"],
            ),
            (
                json!({ "properties": { "a": true } }),
                json!({ "properties": { "a": false } }),
                vec!["`input.a` is not allowed any more"],
            ),
            (
                json!({ "properties": { "a": { "type": "string" } } }),
                json!({ "properties": { "a": true } }),
                vec![],
            ),
        ] {
            assert_eq!(breaking_changes(&old, &new), changes, "{old} → {new}");
        }
    }
}
