//! Schemas that every client can read.
//!
//! One tool with a schema that a host cannot read makes some hosts drop all tools without a word. Published schemas are
//! therefore rewritten: references are inlined, `type` is one word, `oneOf` becomes `anyOf`, `allOf` is merged, and a type
//! that refers to itself is cut to a free object. The pipeline still validates arguments against the published schema.

use serde_json::{Map, Value, json};

/// The deepest nesting that is kept. Deeper parts become free.
const DEEPEST: usize = 12;
/// The longest schema of one argument as JSON. Longer ones, such as the graph of a flow, lose their depth.
const LONGEST: usize = 16_000;

/// The words of a schema that are copied as they are.
const KEPT: [&str; 8] =
    ["description", "format", "minimum", "maximum", "minItems", "maxItems", "default", "enum"];

/// Rewrites a schema. `components` has the schemas that it refers to, by name.
pub(super) fn portable(schema: &Value, components: &Map<String, Value>) -> Value {
    let mut depth = DEEPEST;
    loop {
        let written = Rewriter { components, deepest: depth }.schema(schema, &mut Vec::new());
        if depth <= 2 || written.to_string().len() <= LONGEST {
            return written;
        }
        depth -= 1;
    }
}

/// Returns the schema of an object's members, or `None` for a schema that does not describe an object.
pub(super) fn object(schema: &Value, components: &Map<String, Value>) -> Option<Value> {
    let written = portable(schema, components);
    let is_object = written.get("type").is_some_and(|kind| kind == "object");
    is_object.then_some(written)
}

struct Rewriter<'a> {
    components: &'a Map<String, Value>,
    deepest: usize,
}

impl<'a> Rewriter<'a> {
    fn schema(&self, schema: &'a Value, names: &mut Vec<&'a str>) -> Value {
        let Some(parts) = schema.as_object() else { return anything(None) };
        let description = parts.get("description");
        if names.len() >= self.deepest {
            return free(schema);
        }
        if let Some(name) = parts.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next())
        {
            let target = self.components.get(name).filter(|_| !names.contains(&name));
            let Some(target) = target else { return described(json!({ "type": "object" }), description) };
            names.push(name);
            let written = self.schema(target, names);
            names.pop();
            return described(written, description);
        }
        if let Some(all) = parts.get("allOf").and_then(Value::as_array) {
            let written = all.iter().map(|part| self.schema(part, names)).fold(json!({}), merged);
            return described(written, description);
        }
        if let Some(choices) = parts.get("oneOf").or_else(|| parts.get("anyOf")).and_then(Value::as_array) {
            return self.choice(parts, choices, names);
        }
        match parts.get("type") {
            Some(Value::String(kind)) => self.single(kind, parts, names),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
                let written = kinds.iter().map(|kind| {
                    let mut one = self.single(kind, parts, names);
                    if let Some(one) = one.as_object_mut() {
                        one.remove("description");
                    }
                    one
                });
                any_of(written.collect(), description)
            }
            _ if parts.contains_key("const") || parts.contains_key("enum") => {
                self.single("string", parts, names)
            }
            _ => anything(description),
        }
    }

    /// A schema with alternatives. They become a flat `anyOf`.
    fn choice(&self, parts: &'a Map<String, Value>, choices: &'a [Value], names: &mut Vec<&'a str>) -> Value {
        let mut flat = Vec::new();
        names.push("");
        for choice in choices {
            let written = self.schema(choice, names);
            match written.get("anyOf").and_then(Value::as_array) {
                Some(inner) => flat.extend(inner.iter().cloned()),
                None => flat.push(written),
            }
        }
        names.pop();
        let mut distinct: Vec<Value> = Vec::new();
        for choice in flat {
            if !distinct.contains(&choice) {
                distinct.push(choice);
            }
        }
        // Alternatives beside members of their own: the members are what matters to a caller.
        let written = any_of(distinct, parts.get("description"));
        match parts.get("properties") {
            Some(_) => self.single("object", parts, names),
            None => written,
        }
    }

    fn single(&self, kind: &str, parts: &'a Map<String, Value>, names: &mut Vec<&'a str>) -> Value {
        let mut written = Map::new();
        written.insert("type".to_owned(), kind.into());
        for (word, value) in parts.iter().filter(|(word, _)| KEPT.contains(&word.as_str())) {
            let is_number = matches!(kind, "integer" | "number");
            let fits = match word.as_str() {
                // `int64` and `double` say nothing to a model, and hosts refuse unknown formats.
                "format" => matches!(value.as_str(), Some("date-time" | "date" | "uri" | "email")),
                "minimum" | "maximum" => is_number,
                "minItems" | "maxItems" => kind == "array",
                "default" => !value.is_null(),
                _ => kind != "null",
            };
            if fits {
                written.insert(word.clone(), value.clone());
            }
        }
        if let Some(value) = parts.get("const") {
            written.insert("enum".to_owned(), json!([value]));
        }
        if let Some(Value::Array(values)) = written.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        names.push("");
        if kind == "object" {
            self.members(parts, &mut written, names);
        } else if kind == "array" {
            let items = parts.get("items").map_or_else(|| anything(None), |items| self.schema(items, names));
            written.insert("items".to_owned(), items);
        }
        names.pop();
        Value::Object(written)
    }

    fn members(
        &self,
        parts: &'a Map<String, Value>,
        written: &mut Map<String, Value>,
        names: &mut Vec<&'a str>,
    ) {
        if let Some(properties) = parts.get("properties").and_then(Value::as_object) {
            let members = properties.iter().map(|(name, member)| (name.clone(), self.schema(member, names)));
            written.insert("properties".to_owned(), Value::Object(members.collect()));
            if let Some(required) = parts.get("required").filter(|names| *names != &json!([])) {
                written.insert("required".to_owned(), required.clone());
            }
        }
        match parts.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                written.insert("additionalProperties".to_owned(), false.into());
            }
            Some(values @ Value::Object(_)) => {
                written.insert("additionalProperties".to_owned(), self.schema(values, names));
            }
            _ => {}
        }
    }
}

/// A schema of which only the type is kept.
fn free(schema: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str);
    let written = match kind {
        Some("array") => json!({ "type": "array", "items": anything(None) }),
        Some(kind) => json!({ "type": kind }),
        None => anything(None),
    };
    described(written, schema.get("description"))
}

/// Any JSON value. A schema without a type is refused by some hosts.
fn anything(description: Option<&Value>) -> Value {
    let kinds = ["string", "number", "boolean", "object", "null"];
    let mut choices: Vec<Value> = kinds.iter().map(|kind| json!({ "type": kind })).collect();
    choices.push(json!({ "type": "array", "items": { "type": "string" } }));
    choices.push(json!({ "type": "array", "items": { "type": "object" } }));
    any_of(choices, description)
}

fn any_of(mut choices: Vec<Value>, description: Option<&Value>) -> Value {
    let written = match choices.as_slice() {
        [_] => choices.remove(0),
        _ => json!({ "anyOf": choices }),
    };
    described(written, description)
}

/// The description of a use comes before that of the type.
fn described(mut schema: Value, description: Option<&Value>) -> Value {
    if let (Some(parts), Some(description)) = (schema.as_object_mut(), description) {
        parts.insert("description".to_owned(), description.clone());
    }
    schema
}

/// Merges the schemas of two objects. If one describes no object, the other is kept.
fn merged(first: Value, second: Value) -> Value {
    let (Value::Object(mut first), Value::Object(second)) = (first, second) else { return Value::Null };
    if first.is_empty() {
        return Value::Object(second);
    }
    for (word, value) in second {
        match (first.get_mut(&word), value) {
            (Some(Value::Object(own)), Value::Object(others)) => own.extend(others),
            (Some(Value::Array(own)), Value::Array(others)) => {
                own.extend(others.into_iter().filter(|value| !own.contains(value)).collect::<Vec<_>>());
            }
            (Some(own), value) if word == "additionalProperties" && value == json!(false) => *own = value,
            (Some(_), _) => {}
            (None, value) => {
                first.insert(word, value);
            }
        }
    }
    Value::Object(first)
}

/// Returns why a schema is not portable: the path of the first offending part.
pub(super) fn complaint(schema: &Value) -> Option<String> {
    let root = schema.as_object()?;
    if root.get("type") != Some(&json!("object")) || !root.get("properties").is_some_and(Value::is_object) {
        return Some("the root is not an object with properties".to_owned());
    }
    if ["oneOf", "anyOf", "allOf", "not", "if"].iter().any(|word| root.contains_key(*word)) {
        return Some("the root has alternatives".to_owned());
    }
    offence(schema, "")
}

fn offence(schema: &Value, path: &str) -> Option<String> {
    let Some(parts) = schema.as_object() else { return Some(format!("{path} is no object")) };
    for word in ["$ref", "$defs", "oneOf", "allOf", "not", "if", "const", "propertyNames"] {
        if parts.contains_key(word) {
            return Some(format!("{path} has {word}"));
        }
    }
    let is_typed = parts.get("type").is_some_and(Value::is_string);
    if is_typed == parts.contains_key("anyOf") {
        return Some(format!("{path} needs one type, or alternatives"));
    }
    if parts.get("type").is_some_and(|kind| kind == "array") && !parts.contains_key("items") {
        return Some(format!("{path} lacks items"));
    }
    let below = |name: &str| format!("{path}/{name}");
    let members = parts.get("properties").and_then(Value::as_object).into_iter().flatten();
    let choices = parts.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let nested = ["items", "additionalProperties"].iter().filter_map(|word| parts.get(*word));
    members
        .map(|(name, member)| offence(member, &below(name)))
        .chain(choices.map(|choice| offence(choice, &below("anyOf"))))
        .chain(nested.filter(|part| *part != &json!(false)).map(|part| offence(part, &below("items"))))
        .find_map(|offence| offence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(schema: &Value) -> Value {
        let components = json!({
            "Tree": { "type": "object", "properties": {
                "all": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } },
            } },
            "Base": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer", "format": "int64" } } },
        });
        portable(schema, components.as_object().unwrap())
    }

    #[test]
    fn nullable_types_become_alternatives_of_single_types() {
        let schema = json!({ "type": ["string", "null"], "enum": ["a", null], "description": "Text.", "maxLength": 5 });
        let expected = json!({
            "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }], "description": "Text.",
        });
        assert_eq!(rewritten(&schema), expected);
    }

    #[test]
    fn recursion_is_cut_to_a_free_object() {
        let schema = json!({ "$ref": "#/components/schemas/Tree", "description": "A tree." });
        let expected = json!({ "type": "object", "description": "A tree.", "properties": {
            "all": { "type": "array", "items": { "type": "object" } },
        } });
        assert_eq!(rewritten(&schema), expected);
    }

    #[test]
    fn parts_are_merged() {
        let schema = json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }, {
            "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "const": "x" } },
        }] });
        let expected = json!({ "type": "object", "required": ["id", "name"], "properties": {
            "id": { "type": "integer" }, "name": { "type": "string", "enum": ["x"] },
        } });
        assert_eq!(rewritten(&schema), expected);
    }

    #[test]
    fn unportable_schemas_are_named() {
        let member = |schema: Value| json!({ "type": "object", "properties": { "a": schema } });
        for (schema, expected) in [
            (json!({ "type": "string" }), "the root is not an object with properties"),
            (json!({ "type": "object", "properties": {}, "anyOf": [] }), "the root has alternatives"),
            (member(json!(true)), "/a is no object"),
            (member(json!({ "type": ["string", "null"] })), "/a needs one type, or alternatives"),
            (member(json!({ "$ref": "#/x" })), "/a has $ref"),
            (member(json!({ "type": "array" })), "/a lacks items"),
        ] {
            assert_eq!(complaint(&schema).as_deref(), Some(expected), "{schema}");
        }
        assert_eq!(complaint(&member(anything(None))), None);
    }
}
