//! Rules for JSON Schemas that callers write (structured output, arguments of tools, fields of records).

use input::sentence;
use model::{Error, Result};
use serde_json::Value;
use std::sync::OnceLock;

/// The largest schema, as JSON text.
const LARGEST: usize = 64 * 1024;
const DEEPEST: usize = 10;

/// Checks that `schema` is a JSON Schema that we can enforce: valid 2020-12, within the limits, with no reference
/// to anywhere else.
///
/// # Errors
/// `validation_error` with `param`.
pub fn check(schema: &Value, param: &str) -> Result<()> {
    if !schema.is_object() {
        return Err(Error::invalid(param, "must be a JSON Schema object"));
    }
    if schema.to_string().len() > LARGEST {
        return Err(Error::invalid(param, format_args!("must not be larger than {LARGEST} bytes")));
    }
    if depth(schema) > DEEPEST * 2 {
        return Err(Error::invalid(param, format_args!("must not be nested deeper than {DEEPEST} levels")));
    }
    if has_remote_reference(schema) {
        return Err(Error::invalid(param, "must not refer to external schemas: `$ref` must start with `#`"));
    }
    jsonschema::draft202012::new(schema).map(drop).map_err(|error| {
        Error::invalid(param, format_args!("is not a valid JSON Schema: {}", sentence(&error)))
    })
}

/// A schema that was checked, compiled when it is first asked.
pub struct Schema {
    schema: Value,
    compiled: OnceLock<Option<jsonschema::Validator>>,
}

impl Schema {
    /// A schema that [`check`] took.
    pub fn new(schema: Value) -> Self {
        Self { schema, compiled: OnceLock::new() }
    }

    /// Why `value` does not fit; `None` where it fits.
    pub fn mismatch(&self, value: &Value) -> Option<String> {
        let compiled = self.compiled.get_or_init(|| jsonschema::draft202012::new(&self.schema).ok());
        let errors: Vec<String> = compiled
            .as_ref()?
            .iter_errors(value)
            .take(5)
            .map(|error| sentence(&error).chars().take(300).collect())
            .collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    }
}

/// A property adds two levels of JSON: `properties` and the name.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_remote_reference(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let names_reference = matches!(name.as_str(), "$ref" | "$dynamicRef");
            names_reference && value.as_str().is_some_and(|target| !target.starts_with('#'))
                || has_remote_reference(value)
        }),
        Value::Array(items) => items.iter().any(has_remote_reference),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_schemas_that_can_be_enforced_are_taken() {
        assert!(
            check(&json!({ "type": "object", "properties": { "a": { "type": "string" } } }), "p").is_ok()
        );
        let mut deep = json!({ "type": "string" });
        for _ in 0..12 {
            deep = json!({ "type": "object", "properties": { "a": deep } });
        }
        for bad in [
            json!("string"),
            json!({ "type": "strin" }),
            json!({ "$ref": "https://example.com/schema" }),
            json!({ "description": "x".repeat(LARGEST) }),
            deep,
        ] {
            assert_eq!(check(&bad, "p").unwrap_err().param_name(), Some("p"));
        }
    }

    #[test]
    fn mismatches_are_reported() {
        let schema = Schema::new(json!({ "type": "object", "required": ["a"] }));
        assert!(schema.mismatch(&json!({ "a": 1 })).is_none());
        assert!(schema.mismatch(&json!({})).unwrap().contains("`a` is required"));
    }
}
