//! Error messages about invalid input, written for its sender.
//!
//! Messages of libraries mention types of Rust and keywords of JSON Schema. This module translates them.

use crate::numbers;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use model::{Error, FieldError, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

/// The maximum length of a rule that repeats a part of the contract, such as the values of an enum.
const LONGEST: usize = 500;

/// The message about an unknown field.
const UNKNOWN: &str = "is not a field of this request";

/// Parses a client's JSON. `param` names it in errors; `body` stands for a whole request.
///
/// # Errors
/// 400 `validation_error`, also for a number that parsing would change.
pub fn parse_json<T: DeserializeOwned>(bytes: &[u8], param: &str) -> Result<T> {
    let root = if param == "body" { "" } else { param };
    if let Some(error) = Error::all_invalid(numbers::lossy(bytes, root).into_iter().collect()) {
        return Err(error);
    }
    serde_json::from_slice(bytes).map_err(|error| Error::invalid(param, not_json(&error)))
}

/// Returns why a text is not valid JSON.
fn not_json(error: &serde_json::Error) -> String {
    let said = error.to_string();
    if error.classify() == Category::Data {
        return "must be a JSON object".to_owned();
    }
    let place = format!("line {}, column {}", error.line(), error.column());
    if said.starts_with("recursion limit exceeded") {
        format!("is nested too deeply: see {place}")
    } else if error.classify() == Category::Eof {
        "is not valid JSON: it ends too early".to_owned()
    } else {
        format!("is not valid JSON: see {place}")
    }
}

/// Converts `value` to `T`. `path` is its place in the request, empty for the whole.
///
/// # Errors
/// 400 `validation_error` with the path of the invalid part, or with `whole` if that is the whole value.
pub fn read_json<T: DeserializeOwned>(value: Value, path: &str, whole: &str) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let below = error.path().to_string();
        let param = match (path, below.as_str()) {
            ("", ".") => whole.to_owned(),
            ("", below) => below.to_owned(),
            (path, ".") => path.to_owned(),
            (path, below) => format!("{path}.{below}"),
        };
        // Messages of this workspace's types begin with `must` and are written for clients. All others are for
        // programmers.
        let said = error.inner().to_string();
        let is_ours = said.starts_with("must ");
        Error::invalid(param, if is_ours { &said } else { "does not match the schema" })
    })
}

/// Converts an error of a schema to errors of fields. `whole` is the name of the value itself.
pub fn field_errors(error: &ValidationError<'_>, whole: &str) -> Vec<FieldError> {
    if let Kind::OneOfNotValid { context } | Kind::AnyOf { context } = error.kind()
        && let Some(errors) = errors_of_variant(context, error)
    {
        return errors.iter().flat_map(|error| field_errors(error, whole)).collect();
    }
    let path = dotted(&error.instance_path().to_string());
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|name| FieldError::new(below(name), UNKNOWN)).collect()
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![FieldError::new(below(name), "is required")]
        }
        _ => {
            let param = if path.is_empty() { whole.to_owned() } else { path };
            vec![FieldError::new(param, cut(&rule(error)))]
        }
    }
}

/// Converts an error of a client's own schema to a sentence about the value.
pub fn sentence(error: &ValidationError<'_>) -> String {
    let sentences = field_errors(error, "").into_iter().map(|FieldError { param, message, .. }| {
        let message = if message == UNKNOWN { "is not in the schema" } else { message.as_str() };
        if param.is_empty() { message.to_owned() } else { format!("`{param}` {message}") }
    });
    sentences.collect::<Vec<_>>().join("; ")
}

/// Returns the errors of the variant that a value is probably meant for: the only one besides `null`, as for an
/// optional field, or the only one whose errors are all inside the value.
fn errors_of_variant<'a>(
    choices: &'a [Vec<ValidationError<'static>>],
    error: &ValidationError<'_>,
) -> Option<&'a [ValidationError<'static>]> {
    let only = |fits: &dyn Fn(&[ValidationError<'static>]) -> bool| {
        let mut fitting = choices.iter().map(Vec::as_slice).filter(|errors| fits(errors));
        fitting.next().filter(|errors| !errors.is_empty() && fitting.next().is_none())
    };
    let is_inside = |inner: &ValidationError<'_>| inner.instance_path() != error.instance_path();
    only(&|errors| !wants_null(errors)).or_else(|| only(&|errors| errors.iter().all(is_inside)))
}

fn wants_null(errors: &[ValidationError<'_>]) -> bool {
    let [only] = errors else { return false };
    matches!(only.kind(), Kind::Type { kind: TypeKind::Single(JsonType::Null) })
}

/// Returns the rule that a value breaks, as the end of a sentence that begins with its name.
fn rule(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => format!("must be {}", type_name(*kind)),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => format!("must be {}", type_names(*kinds)),
        Kind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([only]) => format!("must be {}", quoted(only)),
            Some(options) => {
                format!("must be one of {}", options.iter().map(quoted).collect::<Vec<_>>().join(", "))
            }
            None => "has an unknown value".to_owned(),
        },
        Kind::Constant { expected_value } => format!("must be {}", quoted(expected_value)),
        Kind::Format { format } => format_rule(format),
        Kind::Pattern { pattern } if pattern == r"\S" => "must not be blank".to_owned(),
        Kind::Pattern { pattern } => format!("must match the pattern `{pattern}`"),
        Kind::MaxLength { limit } => {
            format!("must have at most {}", counted(*limit, "character", "characters"))
        }
        Kind::MinLength { limit } => {
            format!("must have at least {}", counted(*limit, "character", "characters"))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinItems { limit } => format!("must have at least {}", counted(*limit, "entry", "entries")),
        Kind::MaxItems { limit } => format!("must have at most {}", counted(*limit, "entry", "entries")),
        Kind::UniqueItems => "must not have the same entry twice".to_owned(),
        Kind::MinProperties { limit } => format!("must have at least {}", counted(*limit, "field", "fields")),
        Kind::MaxProperties { limit } => format!("must have at most {}", counted(*limit, "field", "fields")),
        Kind::PropertyNames { error } => format!("has a name that {}", rule(error)),
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => alternatives(context),
        _ => "does not match the schema".to_owned(),
    }
}

/// Returns a number with its noun: `1 entry`, `2 entries`.
fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns the rule of a value with several variants. Lists them if all are plain types or enums.
fn alternatives(choices: &[Vec<ValidationError<'static>>]) -> String {
    let rules = choices.iter().map(|errors| match errors.as_slice() {
        [only] => rule(only).strip_prefix("must be ").map(str::to_owned),
        _ => None,
    });
    match rules.collect::<Option<Vec<_>>>() {
        Some(rules) if !rules.is_empty() => format!("must be {}", rules.join(" or ")),
        _ => "does not match any form of the schema".to_owned(),
    }
}

fn type_name(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn type_names(kinds: JsonTypeSet) -> String {
    kinds.iter().map(type_name).collect::<Vec<_>>().join(" or ")
}

fn format_rule(format: &str) -> String {
    match format {
        "date" => "must be a date such as 2026-11-21".to_owned(),
        "date-time" => "must be a time in RFC 3339, such as 2026-11-21T09:30:00Z".to_owned(),
        "uri" => "must be a URL".to_owned(),
        "email" => "must be an e-mail address".to_owned(),
        other => format!("must have the format `{other}`"),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Converts the path `/nodes/3/config` to `nodes[3].config`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn pointers_become_dotted_paths() {
        assert_eq!(dotted("/nodes/3/config/url"), "nodes[3].config.url");
        assert_eq!(dotted("/a~1b"), "a/b");
        assert_eq!(dotted(""), "");
    }

    #[test]
    fn schemas_are_explained_in_plain_words() {
        for (schema, value, rule) in [
            (json!({ "type": "integer" }), json!("x"), "must be a whole number"),
            (json!({ "type": ["string", "null"] }), json!(5), "must be null or a string"),
            (json!({ "enum": ["a", "b"] }), json!("c"), "must be one of `a`, `b`"),
            (json!({ "const": "a" }), json!("c"), "must be `a`"),
            (json!({ "pattern": r"\S" }), json!(" "), "must not be blank"),
            (json!({ "minItems": 1 }), json!([]), "must have at least 1 entry"),
            (
                json!({ "propertyNames": { "maxLength": 1 } }),
                json!({ "ab": 1 }),
                "has a name that must have at most 1 character",
            ),
            (
                json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
                json!([]),
                "must be a whole number or a string",
            ),
            (json!({ "oneOf": [{ "type": "null" }, { "type": "string" }] }), json!([]), "must be a string"),
            (
                json!({ "oneOf": [{ "required": ["a", "b"] }, { "type": "string" }] }),
                json!({}),
                "does not match any form of the schema",
            ),
        ] {
            let schema = json!({ "properties": { "f": schema } });
            let validator = jsonschema::validator_for(&schema).unwrap();
            let value = json!({ "f": value });
            let errors: Vec<FieldError> =
                validator.iter_errors(&value).flat_map(|error| field_errors(&error, "body")).collect();
            assert_eq!(errors, [FieldError::new("f", rule)], "{schema}");
        }
    }

    #[test]
    fn what_serde_says_stays_inside() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "it is only read")]
        struct Of {
            number: i64,
        }
        let error = read_json::<Of>(json!({ "number": 1e300 }), "options", "body").unwrap_err();
        assert_eq!(error.param_name(), Some("options.number"));
        assert_eq!(error.message(), "`options.number` does not match the schema");
        let error = read_json::<Of>(json!({}), "", "body").unwrap_err();
        assert_eq!(error.param_name(), Some("body"));
    }

    #[test]
    fn json_that_cannot_be_read_is_placed() {
        for (text, rule) in [
            ("{", "`q` is not valid JSON: it ends too early"),
            ("{\"a\":\n x}", "`q` is not valid JSON: see line 2, column 2"),
            ("1e999", "`q` must be a number of a size between 1e-307 and 1.79e308"),
        ] {
            assert_eq!(parse_json::<Value>(text.as_bytes(), "q").unwrap_err().message(), rule);
        }
        let list = parse_json::<serde_json::Map<String, Value>>(b"[]", "q").unwrap_err();
        assert_eq!(list.message(), "`q` must be a JSON object");
    }
}
