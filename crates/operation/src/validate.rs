//! Input against its schema: the rule stands once, on the type, and is published and enforced from there.

use crate::describe::{Describe, as_json};
use crate::meta::Method;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use model::{Error, FieldError, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The checks of one operation's input.
pub(crate) struct Checks {
    body: Option<Validator>,
    takes_empty_object: bool,
    /// The schemas of the query's parameters, by name.
    parameters: Map<String, Value>,
    query: Option<Validator>,
}

/// At most this many mistakes are listed.
const MOST_ERRORS: usize = 20;

impl Checks {
    pub(crate) fn new(describe: &Describe) -> Self {
        let components = describe.components();
        let body = describe.body.as_ref().and_then(|schema| {
            // `allOf` lets a bare reference stand beside the components that it refers to.
            compile(&json!({ "allOf": [as_json(schema)], "components": components }))
        });
        let parameters: Map<String, Value> = describe
            .query
            .iter()
            .map(|parameter| (parameter.name.clone(), parameter.schema.as_ref().map_or(Value::Null, as_json)))
            .collect();
        let required: Vec<&str> = describe
            .query
            .iter()
            .filter(|parameter| matches!(parameter.required, utoipa::openapi::Required::True))
            .map(|parameter| parameter.name.as_str())
            .collect();
        let query = json!({ "type": "object", "properties": &parameters, "required": required, "components": components });
        Self { body, takes_empty_object: describe.takes_empty_object(), query: compile(&query), parameters }
    }

    /// Reads a JSON body. One of which nothing must be there may be left out.
    pub(crate) fn body<T: DeserializeOwned>(&self, bytes: &[u8], method: Method) -> Result<T> {
        let nothing_needed = self.takes_empty_object && method.may_go_without_body();
        let value = parse(if bytes.is_empty() && nothing_needed { b"{}" } else { bytes })?;
        check(self.body.as_ref(), &value)?;
        typed(value, "body")
    }

    /// Reads query parameters. Those that the operation does not know are ignored.
    pub(crate) fn query<T: DeserializeOwned>(&self, given: &[(String, String)]) -> Result<T> {
        let mut object = Map::new();
        for (name, text) in given {
            let Some(schema) = self.parameters.get(name) else { continue };
            object.insert(name.clone(), coerced(schema, text));
        }
        let value = Value::Object(object);
        check(self.query.as_ref(), &value)?;
        typed(value, "query")
    }
}

fn compile(schema: &Value) -> Option<Validator> {
    match jsonschema::options().should_validate_formats(true).build(schema) {
        Ok(validator) => Some(validator),
        Err(error) => {
            // A test compiles every schema; serde still refuses what does not fit.
            tracing::error!(%error, "an operation's schema does not compile");
            None
        }
    }
}

/// Parses JSON that must be an object without NUL characters, which PostgreSQL cannot store.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid("body", format_args!("is not valid JSON: {error}")))?;
    if !value.is_object() {
        return Err(Error::invalid("body", "must be a JSON object"));
    }
    if let Some(path) = find_nul(&value, &mut String::new()) {
        return Err(Error::invalid(path, "must not contain the NUL character"));
    }
    Ok(value)
}

fn find_nul(value: &Value, path: &mut String) -> Option<String> {
    let length = path.len();
    let found = match value {
        Value::String(text) => text.contains('\0').then(|| path.clone()),
        Value::Array(items) => items.iter().enumerate().find_map(|(place, item)| {
            path.push_str(&format!("[{place}]"));
            let found = find_nul(item, path);
            path.truncate(length);
            found
        }),
        Value::Object(fields) => fields.iter().find_map(|(name, item)| {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
            let found = if name.contains('\0') { Some(path.replace('\0', "")) } else { find_nul(item, path) };
            path.truncate(length);
            found
        }),
        _ => None,
    };
    found.map(|path| if path.is_empty() { "body".to_owned() } else { path })
}

fn coerced(schema: &Value, text: &str) -> Value {
    let is = |kind: &str| match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    };
    if is("integer") {
        return text.parse::<i64>().map_or_else(|_| text.into(), Value::from);
    }
    if is("boolean") {
        return match text {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        };
    }
    if is("array") {
        return text.split(',').filter(|part| !part.is_empty()).map(Value::from).collect();
    }
    text.into()
}

fn typed<T: DeserializeOwned>(value: Value, whole: &str) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let param = if path == "." { whole.to_owned() } else { path };
        Error::invalid(param, format_args!("does not fit: {}", error.inner()))
    })
}

fn check(validator: Option<&Validator>, value: &Value) -> Result<()> {
    let Some(validator) = validator else { return Ok(()) };
    let errors =
        validator.iter_errors(value).take(MOST_ERRORS).flat_map(|error| field_errors(&error)).collect();
    Error::all_invalid(errors).map_or(Ok(()), Err)
}

/// What keeps a value from fitting the one choice beside `null`: an optional field is `oneOf` its type and `null`,
/// and callers should hear of the field inside it.
fn without_null<'a>(choices: &'a [Vec<ValidationError<'static>>]) -> Option<&'a [ValidationError<'static>]> {
    let mut others = choices.iter().filter(|errors| !wants_null(errors));
    others.next().filter(|errors| !errors.is_empty() && others.next().is_none()).map(Vec::as_slice)
}

fn wants_null(errors: &[ValidationError<'_>]) -> bool {
    let [only] = errors else { return false };
    matches!(only.kind(), Kind::Type { kind: TypeKind::Single(JsonType::Null) })
}

fn field_errors(error: &ValidationError<'_>) -> Vec<FieldError> {
    if let Kind::OneOfNotValid { context } | Kind::AnyOf { context } = error.kind()
        && let Some(errors) = without_null(context)
    {
        return errors.iter().flat_map(field_errors).collect();
    }
    let path = dotted(&error.instance_path().to_string());
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let whole = || if path.is_empty() { "body".to_owned() } else { path.clone() };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .map(|name| FieldError::new(below(name), "is not a field of this request"))
            .collect(),
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![FieldError::new(below(name), "is required")]
        }
        Kind::Pattern { pattern } if pattern == r"\S" => {
            vec![FieldError::new(whole(), "must not be blank")]
        }
        Kind::MaxLength { limit } => {
            vec![FieldError::new(whole(), format_args!("must have at most {limit} characters"))]
        }
        Kind::MinLength { limit } => {
            vec![FieldError::new(whole(), format_args!("must have at least {limit} characters"))]
        }
        Kind::Minimum { limit } => {
            vec![FieldError::new(whole(), format_args!("must be at least {limit}"))]
        }
        Kind::Maximum { limit } => {
            vec![FieldError::new(whole(), format_args!("must be at most {limit}"))]
        }
        _ => {
            let text: String = error.to_string().chars().take(300).collect();
            vec![FieldError::new(whole(), format_args!("is not valid: {text}"))]
        }
    }
}

/// `/nodes/3/config` as `nodes[3].config`.
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

    #[test]
    fn pointers_become_dotted_paths() {
        assert_eq!(dotted("/nodes/3/config/url"), "nodes[3].config.url");
        assert_eq!(dotted("/a~1b"), "a/b");
        assert_eq!(dotted(""), "");
    }

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        let deep = "[".repeat(200);
        for (bytes, param) in [
            (&b""[..], "body"),
            (b"{", "body"),
            (b"[]", "body"),
            (b"1e999", "body"),
            (b"{\"a\":\"\\ud800\"}", "body"),
            (b"\xff", "body"),
            (deep.as_bytes(), "body"),
            (b"{\"a\":[{\"b\":\"\\u0000\"}]}", "a[0].b"),
            (b"{\"a\\u0000\":1}", "a"),
        ] {
            assert_eq!(
                parse(bytes).unwrap_err().param_name(),
                Some(param),
                "{}",
                String::from_utf8_lossy(bytes)
            );
        }
    }
}
