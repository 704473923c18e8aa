//! Changes to schemas that generators of API clients need and Rust types do not express.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Completes an OpenAPI document for generators.
pub(crate) fn complete(document: &mut Value) {
    open_free_objects(document);
    fix_constants(document);
    require_sent_fields(document);
    unwrap_descriptions(document);
    document.pointer_mut("/components/schemas").into_iter().for_each(describe_defaults);
    drop_unused_components(document);
}

/// Completes the schema of an event's data and its `$defs` by the rules of responses.
pub(crate) fn complete_event(schema: &mut Value) {
    open_free_objects(schema);
    fix_constants(schema);
    each_object(schema, &mut |parts| {
        // A schema that requests also use refuses unknown fields. It stays as requests need it.
        if parts.get("additionalProperties") != Some(&Value::Bool(false)) {
            require_sent(parts);
        }
    });
    unwrap_descriptions(schema);
    describe_defaults(schema);
}

/// Allows any field in an object whose fields the contract does not know: generators read a bare `object` as an empty
/// one.
fn open_free_objects(value: &mut Value) {
    const FIELDS: [&str; 6] =
        ["properties", "additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf"];
    each_object(value, &mut |parts| {
        let is_object = parts.get("type").is_some_and(|kind| {
            kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
        });
        if is_object && !FIELDS.iter().any(|name| parts.contains_key(*name)) {
            parts.insert("additionalProperties".into(), true.into());
        }
    });
}

/// Turns a string that is described as "Always `word`" into a `const`, by which clients tell the members of a union
/// apart.
fn fix_constants(value: &mut Value) {
    each_object(value, &mut |parts| {
        let word = parts.get("description").and_then(Value::as_str).and_then(|text| {
            let (word, _) = text.strip_prefix("Always `")?.split_once('`')?;
            Some(Value::from(word))
        });
        if let Some(word) = word
            && parts.get("type").is_some_and(|kind| kind == "string")
        {
            parts.remove("enum");
            parts.insert("const".into(), word);
        }
    });
}

/// Requires every field that is nullable or has a default, in schemas that only responses use. A field of a response
/// is either always present and may be `null`, or may be absent and is never `null`. Schemas that requests also use
/// stay as requests need them.
fn require_sent_fields(document: &mut Value) {
    let (mut sent, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    for operation in paths.filter_map(|(_, path)| path.as_object()).flatten().map(|(_, operation)| operation)
    {
        references(operation.get("responses"), document, &mut sent);
        references(operation.get("requestBody"), document, &mut taken);
        references(operation.get("parameters"), document, &mut taken);
    }
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (name, schema) in schemas.into_iter().flatten() {
        let name = format!("#/components/schemas/{name}");
        if sent.contains(&name) && !taken.contains(&name) {
            each_object(schema, &mut require_sent);
        }
    }
}

fn require_sent(schema: &mut Map<String, Value>) {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let sent = fields.filter(|(_, field)| is_nullable(field) || field.get("default").is_some());
    let sent: Vec<Value> = sent.map(|(name, _)| name.clone().into()).collect();
    if sent.is_empty() {
        return;
    }
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        for name in sent {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

fn is_nullable(schema: &Value) -> bool {
    let has_null = |word: &str, null: &Value| {
        schema.get(word).and_then(Value::as_array).is_some_and(|parts| parts.contains(null))
    };
    has_null("type", &json!("null")) || has_null("oneOf", &json!({ "type": "null" }))
}

/// Collects everything that `value` refers to, directly or through others, as `#/components/schemas/Name`.
fn references(value: Option<&Value>, document: &Value, found: &mut BTreeSet<String>) {
    match value {
        Some(Value::Array(parts)) => parts.iter().for_each(|part| references(Some(part), document, found)),
        Some(Value::Object(parts)) => {
            if let Some(target) = parts.get("$ref").and_then(Value::as_str)
                && found.insert(target.to_owned())
            {
                let pointer = target.strip_prefix('#').unwrap_or(target);
                references(document.pointer(pointer), document, found);
            }
            parts.values().for_each(|part| references(Some(part), document, found));
        }
        _ => {}
    }
}

/// Removes the components that no operation refers to.
fn drop_unused_components(document: &mut Value) {
    let mut used = BTreeSet::new();
    references(document.get("paths"), document, &mut used);
    for kind in ["parameters", "headers", "responses", "schemas"] {
        let components = document.pointer_mut(&format!("/components/{kind}"));
        if let Some(Value::Object(components)) = components {
            components.retain(|name, _| used.contains(&format!("#/components/{kind}/{name}")));
        }
    }
}

/// Joins the lines of each paragraph, which break where the lines of the source break. Entries of lists keep their
/// lines.
fn unwrap_descriptions(value: &mut Value) {
    each_object(value, &mut |parts| {
        if let Some(Value::String(text)) = parts.get_mut("description") {
            let mut joined = String::with_capacity(text.len());
            for line in text.trim().split('\n') {
                let is_new = joined.is_empty() || joined.ends_with('\n') || line.is_empty();
                let starts_entry = line.starts_with("- ");
                joined.push_str(match (is_new, starts_entry) {
                    (true, _) if line.is_empty() => "\n\n",
                    (true, _) => "",
                    (false, true) => "\n",
                    (false, false) => " ",
                });
                joined.push_str(line);
            }
            *text = joined;
        }
    });
}

/// Moves the defaults of fields into their descriptions: generators take a field with a default for a required one.
/// Parameters keep their defaults.
fn describe_defaults(schemas: &mut Value) {
    each_object(schemas, &mut |parts| {
        let fields = parts.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
        for field in fields.filter_map(|(_, field)| field.as_object_mut()) {
            let Some(default) = field.remove("default").filter(|default| !default.is_null()) else {
                continue;
            };
            let shown = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            // A nullable reference has its description inside `oneOf`.
            let inner = field.get_mut("oneOf").and_then(Value::as_array_mut).and_then(|parts| {
                parts
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .find(|part| part.contains_key("description"))
            });
            let described = match inner {
                Some(part) => part,
                None => field,
            };
            let text = described.entry("description").or_insert_with(|| "".into());
            let joined = format!("{} Default: `{shown}`.", text.as_str().unwrap_or_default());
            *text = joined.trim_start().into();
        }
    });
}

/// Calls `change` with every JSON object in `value`, inner objects first.
fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(|part| each_object(part, change)),
        Value::Object(parts) => {
            parts.values_mut().for_each(|part| each_object(part, change));
            change(parts);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_come_from_their_description() {
        let mut schema = json!({ "properties": {
            "object": { "type": "string", "description": "Always `run`." },
            "type": { "type": "string", "enum": ["a"], "description": "Always `a`: the only kind." },
            "name": { "type": "string", "description": "Its name, always `x`." },
        } });
        fix_constants(&mut schema);
        let fields = &schema["properties"];
        assert_eq!((&fields["object"]["const"], &fields["type"]["const"]), (&json!("run"), &json!("a")));
        assert!(fields["type"].get("enum").is_none() && fields["name"].get("const").is_none(), "{schema}");
    }

    #[test]
    fn nullable_fields_are_required_where_only_the_service_sends_them() {
        let nullable = json!({ "type": ["string", "null"] });
        let schema = json!({ "type": "object", "properties": { "a": nullable, "b": { "type": "string" } } });
        let refers = |name: &str| json!({ "schema": { "$ref": format!("#/components/schemas/{name}") } });
        let mut document = json!({
            "paths": { "/x": { "post": {
                "requestBody": refers("Taken"), "responses": { "200": [refers("Sent"), refers("Taken")] },
            } } },
            "components": { "schemas": { "Sent": schema, "Taken": schema } },
        });
        require_sent_fields(&mut document);
        assert_eq!(document["components"]["schemas"]["Sent"]["required"], json!(["a"]));
        assert_eq!(document["components"]["schemas"]["Taken"].get("required"), None);
    }

    #[test]
    fn events_are_completed_but_for_what_requests_use_too() {
        let of = |more: Value| {
            let mut schema =
                json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } } });
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        let mut schema = of(
            json!({ "$defs": { "Sent": of(json!({})), "Shared": of(json!({ "additionalProperties": false })) } }),
        );
        complete_event(&mut schema);
        assert_eq!(schema["required"], json!(["a"]));
        assert_eq!(schema["$defs"]["Sent"]["required"], json!(["a"]));
        assert_eq!(schema["$defs"]["Shared"].get("required"), None);
    }

    #[test]
    fn defaults_move_into_descriptions() {
        let fields = json!({
            "default": { "type": "string", "description": "A field.", "default": "x" },
            "memory": { "oneOf": [{ "type": "null" }, { "$ref": "#/x", "description": "Two." }], "default": { "a": 1 } },
            "none": { "type": ["string", "null"], "default": null },
        });
        let mut schemas = json!({ "A": { "properties": fields } });
        describe_defaults(&mut schemas);
        let fields = &schemas["A"]["properties"];
        assert_eq!(fields["default"], json!({ "type": "string", "description": "A field. Default: `x`." }));
        assert_eq!(fields["memory"]["oneOf"][1]["description"], "Two. Default: `{\"a\":1}`.");
        assert!(fields["memory"].get("default").is_none());
        assert_eq!(fields["none"], json!({ "type": ["string", "null"] }));
    }

    #[test]
    fn components_that_nothing_refers_to_are_left_out() {
        let mut document = json!({
            "paths": { "/x": { "$ref": "#/components/responses/A" } },
            "components": {
                "responses": { "A": { "$ref": "#/components/schemas/B" }, "C": {} },
                "schemas": { "B": {}, "D": {} },
            },
        });
        drop_unused_components(&mut document);
        let expected =
            json!({ "responses": { "A": { "$ref": "#/components/schemas/B" } }, "schemas": { "B": {} } });
        assert_eq!(document["components"], expected);
    }

    #[test]
    fn paragraphs_are_joined_and_lists_kept() {
        let mut schema = json!({ "description": " One\ntwo.\n\nThree:\n- `a`: first\nline\n- `b`\n" });
        unwrap_descriptions(&mut schema);
        assert_eq!(schema["description"], "One two.\n\nThree:\n- `a`: first line\n- `b`");
    }
}
