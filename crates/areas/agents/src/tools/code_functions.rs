//! Code functions as tools: their input schema in the form that models and their providers accept, and the input that calls send.

use super::code_function::CodeFunction;
use super::tool::ToolSettings;
use model::{Error, FunctionId, JsonText, Result, WorkspaceId};
use ports::{CallableFunction, Uncallable, WorkspaceFunctions};
use providers::json::Fields;
use serde_json::{Map, Value, json};
use store::Read;

/// The longest name of an argument that all providers accept.
const LONGEST_ARGUMENT: usize = 64;

/// Finds the function of a tool that is attached.
///
/// # Errors
/// `validation_error` for `ref` or `version`.
pub(crate) fn find(
    read: &mut Read,
    functions: &WorkspaceFunctions,
    workspace: WorkspaceId,
    id: FunctionId,
    version: Option<i64>,
) -> Result<CallableFunction> {
    let function = functions.callable(read, workspace, id, version)?.map_err(|why| match (why, version) {
        (Uncallable::Missing, _) => Error::invalid("ref", "is not a function of the workspace"),
        (Uncallable::NotPublished, None) => Error::invalid("ref", "is a function that was never published"),
        (Uncallable::NotPublished, Some(_)) => Error::invalid("version", "is not a version of the function"),
        (Uncallable::Inactive, _) => Error::invalid("ref", "is a function that is switched off"),
    })?;
    if function.input_schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(Error::invalid("ref", "is a function whose input is not an object"));
    }
    Ok(function)
}

/// Checks that fixed arguments are arguments of what is called: a `function` or a `flow`.
///
/// # Errors
/// `validation_error`.
pub(crate) fn check_fixed(fixed: &Map<String, Value>, schema: &Value, called: &str) -> Result<()> {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let knows = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    match fixed.keys().find(|name| is_closed && !knows(name)) {
        Some(name) => {
            let rule = format!("is not an argument of the {called}");
            Err(Error::invalid(format!("fixed_arguments.{name}"), rule))
        }
        None => Ok(()),
    }
}

impl ToolSettings {
    /// Builds the settings of a tool that calls a code function, with the defaults for everything else.
    pub(crate) fn of_function(
        function: CallableFunction,
        version: Option<i64>,
        description: String,
        fixed_arguments: Map<String, Value>,
    ) -> Self {
        Self {
            parameters: function.input_schema.clone(),
            grant: None,
            code: Some(CodeFunction::of(function, version)),
            ..Self::granted(super::Grant::default(), description, fixed_arguments)
        }
    }

    /// Takes over the version of the code function that a run calls.
    pub fn take_version(&mut self, function: CallableFunction) {
        self.parameters = function.input_schema.clone();
        let version = Some(function.version);
        self.code = Some(CodeFunction::of(function, version));
    }

    /// Returns the input of the code function: the arguments of the model by their real names, and the fixed ones. Numbers keep
    /// their digits.
    pub fn function_input(&self, arguments: &JsonText, fixed: Map<String, Value>) -> JsonText {
        let open = self.open(self.parameters.clone(), false);
        let names = shown_names(open.get("properties").and_then(Value::as_object));
        let mut input = Fields::default();
        for (name, value) in Fields::of(arguments).unwrap_or_default().iter() {
            let real = names.iter().find(|(shown, _)| shown == name).map_or(name, |(_, real)| real);
            input.set(real.to_owned(), value.clone());
        }
        for (name, value) in fixed {
            input.set(name, JsonText::of(&value));
        }
        JsonText::printed(input.text())
    }
}

/// Returns a schema without fixed arguments as providers accept it: an object whose properties have plain names, closed if the
/// schema names any properties, and without titles.
pub(crate) fn presented(open: Value) -> Value {
    let Value::Object(mut schema) = without_titles(open) else {
        return json!({ "type": "object", "properties": {} });
    };
    schema.remove("$schema");
    schema.remove("$id");
    schema.insert("type".to_owned(), "object".into());
    let names = shown_names(schema.get("properties").and_then(Value::as_object));
    let shown = |real: &str| names.iter().find(|(_, known)| known == real).map(|(shown, _)| shown.clone());
    match schema.get_mut("properties").and_then(Value::as_object_mut) {
        Some(properties) => {
            let all = std::mem::take(properties).into_iter();
            properties.extend(all.map(|(real, value)| (shown(&real).unwrap_or(real), value)));
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        // A function that states no arguments takes any.
        None => drop(schema.insert("properties".to_owned(), json!({}))),
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        for name in required {
            if let Some(shown) = name.as_str().and_then(shown) {
                *name = shown.into();
            }
        }
    }
    Value::Object(schema)
}

/// Returns the names that the model sees, each with the real one.
fn shown_names(properties: Option<&Map<String, Value>>) -> Vec<(String, String)> {
    let Some(properties) = properties else { return Vec::new() };
    let mut names: Vec<(String, String)> = Vec::with_capacity(properties.len());
    for real in properties.keys() {
        let plain = plain_name(real);
        let is_taken = |name: &str| {
            name != real && properties.contains_key(name) || names.iter().any(|(shown, _)| shown == name)
        };
        let numbered = (2..).map(|number| {
            let suffix = format!("_{number}");
            let stem: String = plain.chars().take(LONGEST_ARGUMENT - suffix.len()).collect();
            stem + &suffix
        });
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        let shown = candidates.find(|name| !is_taken(name)).unwrap_or_else(|| plain.clone());
        names.push((shown, real.clone()));
    }
    names
}

/// Returns a name with `_` for all characters that providers refuse in names of arguments.
fn plain_name(real: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-');
    let letters = real.chars().map(|letter| if fits(letter) { letter } else { '_' });
    let name: String = letters.take(LONGEST_ARGUMENT).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Removes the titles of a schema and of all schemas within it. A property that is called `title` stays.
fn without_titles(schema: Value) -> Value {
    let Value::Object(members) = schema else { return schema };
    let of_each = |value: Value| match value {
        Value::Object(all) => all.into_iter().map(|(name, one)| (name, without_titles(one))).collect(),
        Value::Array(all) => all.into_iter().map(without_titles).collect(),
        other => other,
    };
    let kept = members.into_iter().filter(|(name, _)| name != "title").map(|(name, value)| {
        let value = match name.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "allOf"
            | "anyOf" | "oneOf" | "prefixItems" => of_each(value),
            "items" if value.is_array() => of_each(value),
            "items"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => without_titles(value),
            _ => value,
        };
        (name, value)
    });
    Value::Object(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_presented_as_providers_accept_them() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Price",
            "properties": {
                "title": { "type": "string", "title": "Title" },
                "größe": { "type": "array", "items": { "title": "One", "type": "integer" } },
                "gr__e": { "enum": [{ "title": "kept" }] },
            },
            "required": ["größe", "title"],
        });
        let shown = presented(schema.clone());
        assert_eq!(
            shown,
            json!({
                "type": "object", "additionalProperties": false,
                "properties": {
                    "title": { "type": "string" },
                    "gr__e": { "enum": [{ "title": "kept" }] },
                    "gr__e_2": { "type": "array", "items": { "type": "integer" } },
                },
                "required": ["gr__e_2", "title"],
            })
        );
        let names = shown_names(schema["properties"].as_object());
        assert!(names.contains(&("gr__e_2".to_owned(), "größe".to_owned())), "{names:?}");
        assert!(names.contains(&("gr__e".to_owned(), "gr__e".to_owned())), "{names:?}");
    }

    #[test]
    fn a_function_without_a_schema_takes_anything() {
        assert_eq!(presented(json!({})), json!({ "type": "object", "properties": {} }));
        assert_eq!(presented(json!(true)), json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn long_names_stay_different() {
        let properties = json!({ "x".repeat(70): {}, "x".repeat(71): {}, "": {} });
        let names = shown_names(properties.as_object());
        let shown: Vec<&str> = names.iter().map(|(shown, _)| shown.as_str()).collect();
        assert!(shown.iter().all(|name| (1..=LONGEST_ARGUMENT).contains(&name.len())), "{shown:?}");
        assert_eq!(shown.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    }
}
