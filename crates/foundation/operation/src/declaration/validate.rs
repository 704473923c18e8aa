//! Validation of input against its schema. A rule is stated once, on the type, and is published and enforced from
//! there.

use crate::declaration::describe::{Describe, as_json};
use crate::declaration::meta::{Method, Paging};
use ::input::{field_errors, parse_json, read_json};
use jsonschema::Validator;
use model::{Error, FieldError, Result, whole_number};
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value, json};
use std::sync::Arc;
use utoipa::openapi::path::{Parameter, ParameterIn, ParameterStyle};

/// The checks of an operation's input.
pub(crate) struct Checks {
    body: Option<Arc<Validator>>,
    /// The media type of a body that is read while it arrives. `None` for JSON.
    pub(crate) streamed: Option<&'static str>,
    /// The schema of the body. `components` has the schemas that it refers to.
    body_schema: Value,
    components: Value,
    takes_empty_object: bool,
    /// The schemas of the query parameters, by name.
    parameters: Map<String, Value>,
    /// All query parameters that are accepted, and whether each has parts in brackets (`deepObject`).
    known: Vec<(String, bool)>,
    paging: Option<Paging>,
    query: Option<Validator>,
    has_all: bool,
}

/// The name of the body itself in errors.
const WHOLE: &str = "body";

/// The query parameters of all paging modes.
const PAGING: [&str; 5] = ["limit", "offset", "page", "paginate", "starting_after"];

/// The maximum number of field errors in a response.
const MOST_ERRORS: usize = 20;

impl Checks {
    /// Creates the checks from the description of an operation and its paging mode.
    pub(crate) fn new(describe: &Describe, paging: Option<Paging>) -> Self {
        let components = describe.components();
        let body_schema = describe.body.as_ref().map(as_json).unwrap_or_default();
        let body = describe.body.as_ref().and_then(|_| {
            // `allOf` allows `components` next to a bare reference.
            compile(&json!({ "allOf": [body_schema], "components": components })).map(Arc::new)
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
        let takes_empty_object = describe.takes_empty_object();
        let in_query = |parameter: &&Parameter| matches!(parameter.parameter_in, ParameterIn::Query);
        let described = describe.query.iter().chain(describe.documented.iter().filter(in_query));
        let is_deep = |parameter: &Parameter| matches!(parameter.style, Some(ParameterStyle::DeepObject));
        let described = described.map(|parameter| (parameter.name.clone(), is_deep(parameter)));
        // Offset lists accept `starting_after` and ignore it.
        let ignored = (paging == Some(Paging::Offset)).then(|| ("starting_after".to_owned(), false));
        let known = described.chain(ignored).collect();
        let query = compile(&query);
        Self {
            has_all: query.is_some() && body.is_some() == describe.body.is_some(),
            body,
            streamed: describe.streamed,
            body_schema,
            components,
            takes_empty_object,
            query,
            parameters,
            known,
            paging,
        }
    }

    /// Returns whether all schemas of the input can be checked.
    pub(crate) fn has_all(&self) -> bool {
        self.has_all
    }

    /// Refuses query parameters that the operation does not have. Otherwise a misspelt parameter would be ignored
    /// silently.
    ///
    /// # Errors
    /// `validation_error` with all of them.
    pub(crate) fn refuse_unknown(&self, given: &[(String, String)]) -> Result<()> {
        let mut unknown: Vec<FieldError> = Vec::new();
        for (name, _) in given {
            let base = name.split_once('[').map_or(name.as_str(), |(base, _)| base);
            let is_known =
                self.known.iter().any(|(known, is_deep)| known == if *is_deep { base } else { name });
            // A query such as `&=&` has parameters without a name.
            if is_known || name.is_empty() {
                continue;
            }
            // A long query can have so many unknown parameters that looking for a similar name for each would cost
            // too much.
            if unknown.len() == MOST_ERRORS {
                break;
            }
            let mut param: String = name.chars().filter(|letter| *letter != '\0').take(80).collect();
            if param.is_empty() {
                "query".clone_into(&mut param);
            }
            if unknown.iter().all(|other| other.param != param) {
                let hint = self.hint(base);
                unknown
                    .push(FieldError::new(param, format_args!("is not a parameter of this operation{hint}")));
            }
        }
        Error::all_invalid(unknown).map_or(Ok(()), Err)
    }

    /// Returns a hint for an unknown parameter: how the list is paged, or a parameter with a similar name.
    fn hint(&self, name: &str) -> String {
        match self.paging {
            Some(paging) if PAGING.contains(&name) => {
                format!("; this list is paged with {}", paging.parameters())
            }
            None if PAGING.contains(&name) => "; it has no pages".to_owned(),
            _ => {
                let known = self.known.iter().map(|(known, _)| known.as_str());
                let near = ::input::nearest(name, known);
                near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
            }
        }
    }

    /// Reads a JSON body. A missing body counts as `{}` if no field is required and the method allows it.
    pub(crate) fn body<T: DeserializeOwned>(&self, bytes: &[u8], method: Method) -> Result<T> {
        let nothing_needed = self.takes_empty_object && method.may_go_without_body();
        let mut value = parse(if bytes.is_empty() && nothing_needed { b"{}" } else { bytes })?;
        let mut wrong = mistakes(self.body.as_deref(), &value);
        if wrong.is_empty() {
            make_whole(&self.body_schema, &self.components, &mut value, &mut String::new(), &mut wrong);
        }
        if let Some(error) = Error::all_invalid(wrong) {
            return Err(error);
        }
        read_json(value, "", WHOLE)
    }

    /// Returns the checks of a form's fields.
    pub(crate) fn form(&self) -> FormChecks {
        let mut parts = vec![&self.body_schema];
        let named = self.body_schema.get("$ref").and_then(Value::as_str);
        let named = named.and_then(|target| target.rsplit('/').next());
        parts.extend(named.and_then(|name| self.components.get("schemas")?.get(name)));
        let properties = parts.into_iter().find_map(|part| part.get("properties")?.as_object()).cloned();
        FormChecks { body: self.body.clone(), properties: properties.unwrap_or_default() }
    }

    /// Reads the query parameters of `T`. Other parameters belong to other arguments.
    pub(crate) fn query<T: DeserializeOwned>(&self, given: &[(String, String)]) -> Result<T> {
        let mut object = Map::new();
        for (name, text) in given {
            let Some(schema) = self.parameters.get(name) else { continue };
            object.insert(name.clone(), coerced(schema, name, text)?);
        }
        let value = Value::Object(object);
        let mut wrong = mistakes(self.query.as_ref(), &value);
        for error in &mut wrong {
            // A list is one parameter, so the index is dropped.
            error.param.truncate(error.param.find('[').unwrap_or(error.param.len()));
        }
        if let Some(error) = Error::all_invalid(wrong) {
            return Err(error);
        }
        read_json(value, "", "query")
    }
}

/// The checks of the fields of a form, whose values are all text.
pub(crate) struct FormChecks {
    body: Option<Arc<Validator>>,
    properties: Map<String, Value>,
}

impl FormChecks {
    /// Reads the fields of a form. A list is separated by commas, and an object is JSON.
    ///
    /// # Errors
    /// `validation_error`.
    pub(crate) fn read<T: DeserializeOwned>(&self, given: &[(String, String)]) -> Result<T> {
        let mut object = Map::new();
        for (name, text) in given {
            let schema = self.properties.get(name).unwrap_or(&Value::Null);
            let value = if has_type(schema, "object") {
                parse_json(text.as_bytes(), name)?
            } else {
                coerced(schema, name, text)?
            };
            if object.insert(name.clone(), value).is_some() {
                return Err(Error::invalid(name, "must be sent once"));
            }
        }
        let value = Value::Object(object);
        if let Some(path) = find_nul(&value, &mut String::new()) {
            return Err(Error::invalid(path, "must not contain the NUL character"));
        }
        if let Some(error) = Error::all_invalid(mistakes(self.body.as_deref(), &value)) {
            return Err(error);
        }
        read_json(value, "", WHOLE)
    }
}

fn compile(schema: &Value) -> Option<Validator> {
    match jsonschema::options().should_validate_formats(true).build(schema) {
        Ok(validator) => Some(validator),
        Err(error) => {
            // A test compiles the schemas of all operations. Without a validator, serde still refuses values that do not fit.
            tracing::error!(%error, "an operation's schema does not compile");
            None
        }
    }
}

/// Parses a JSON object and refuses NUL characters, which PostgreSQL cannot store.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value> {
    let value: Value = parse_json(bytes, WHOLE)?;
    if !value.is_object() {
        return Err(Error::invalid(WHOLE, "must be a JSON object"));
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

fn coerced(schema: &Value, name: &str, text: &str) -> Result<Value> {
    if has_type(schema, "integer") {
        return Ok(whole_number(text).map_or_else(|| text.into(), Value::from));
    }
    if has_type(schema, "boolean") {
        return Ok(match text {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        });
    }
    if has_type(schema, "array") {
        return Ok(::input::comma_list(text, name)?.into());
    }
    Ok(text.into())
}

fn mistakes(validator: Option<&Validator>, value: &Value) -> Vec<FieldError> {
    let errors = validator.into_iter().flat_map(|validator| validator.iter_errors(value)).take(MOST_ERRORS);
    let mut errors: Vec<FieldError> = errors.flat_map(|error| field_errors(&error, WHOLE)).collect();
    // The error of a field is more specific than an error of the whole body, so it comes first.
    errors.sort_by_key(|error| error.param == WHOLE);
    errors
}

/// Converts numbers such as `5.0` and `1e2` to integers wherever `schema` asks for an integer: JSON has one kind of
/// number, but serde does not read a float into an integer. Adds an error for each number outside the range of `i64`.
fn make_whole(
    schema: &Value,
    components: &Value,
    value: &mut Value,
    path: &mut String,
    wrong: &mut Vec<FieldError>,
) {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.rsplit('/').next());
    let named = name.and_then(|name| components.get("schemas")?.get(name));
    let choices = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array());
    for part in named.into_iter().chain(choices.flatten()) {
        make_whole(part, components, value, path, wrong);
    }
    let length = path.len();
    match value {
        Value::Number(number) if has_type(schema, "integer") && number.as_i64().is_none() => {
            match whole(number) {
                Some(whole) => *number = whole.into(),
                None => wrong.push(FieldError::new(
                    path.clone(),
                    format_args!("must be between {} and {}", i64::MIN, i64::MAX),
                )),
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (place, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{place}]"));
                make_whole(schema, components, item, path, wrong);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let own = schema.get("properties").and_then(|properties| properties.get(name));
                let Some(schema) = own.or_else(|| schema.get("additionalProperties")) else { continue };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                make_whole(schema, components, field, path, wrong);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Converts a number without a fraction to an integer. Returns `None` for a number that is too large. A float is
/// printed with the digits that were sent, because [`parse_json`] refuses a number that loses digits as a float.
fn whole(number: &Number) -> Option<i64> {
    number.as_f64()?.to_string().parse().ok()
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_whole(schema: &Value, mut value: Value) -> (Value, Vec<String>) {
        let components = json!({ "schemas": { "Id": { "type": "integer" } } });
        let mut wrong = Vec::new();
        make_whole(schema, &components, &mut value, &mut String::new(), &mut wrong);
        (value, wrong.into_iter().map(|error| error.param).collect())
    }

    #[test]
    fn whole_numbers_have_many_spellings() {
        let schema = json!({ "properties": {
            "ids": { "type": "array", "items": { "$ref": "#/components/schemas/Id" } },
            "by_name": { "additionalProperties": { "type": ["integer", "null"] } },
            "either": { "oneOf": [{ "type": "string" }, { "type": "integer" }] },
            "number": { "type": "number" },
            "free": {},
        } });
        let value = json!({
            "ids": [5.0, 1e2, -0.0, 7], "by_name": { "a": 3.0, "b": null }, "either": 2.0, "number": 1.0, "free": [4.0],
        });
        let expected = json!({
            "ids": [5, 100, 0, 7], "by_name": { "a": 3, "b": null }, "either": 2, "number": 1.0, "free": [4.0],
        });
        assert_eq!(made_whole(&schema, value), (expected, Vec::new()));
    }

    #[test]
    fn whole_numbers_that_are_too_large_are_refused() {
        let schema = json!({ "properties": { "a": { "items": { "type": "integer" } } } });
        let exact = json!({ "a": [9_007_199_254_740_991.0, i64::MAX, i64::MIN] });
        assert_eq!(made_whole(&schema, exact).1, [""; 0]);
        // The nearest float is 1152921504606846976.
        let long = made_whole(&schema, json!({ "a": [1_152_921_504_606_847_000.0, -1e18] })).0;
        assert_eq!(long, json!({ "a": [1_152_921_504_606_847_000_i64, -1_000_000_000_000_000_000_i64] }));
        for number in [json!(9_223_372_036_854_775_808.0), json!(-1e19), json!(1e30), json!(u64::MAX)] {
            assert_eq!(made_whole(&schema, json!({ "a": [1, number] })).1, ["a[1]"], "{number}");
        }
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
