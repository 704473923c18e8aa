//! Examples of requests and responses, composed from the examples on the types.
//!
//! A type states in `#[schema(example = …)]` only what its schema cannot say: names, amounts, and the optional fields
//! worth showing. The rest follows from the schema: constants, the first value of an enum, defaults, times, `null`
//! and `false`.

use serde_json::{Map, Value, json};

/// The maximum depth of a schema. A deeper one refers to itself.
const DEEPEST: usize = 16;

/// Composes a value that `schema` accepts, for tests and samples. `root` is the document that its references point
/// into. Where no type states an example, the value has a placeholder.
pub fn sample(root: &Value, schema: &Value) -> Value {
    Composer { root, lacking: Vec::new() }.compose(schema, None, "", 0)
}

/// Adds an example to the body and to the successful responses of each operation in an OpenAPI document. Returns the
/// values that no type states, each with its operation, part and field. The existing example of a response has the
/// values in which it differs from the examples of the types.
pub(crate) fn add(document: &mut Value) -> Vec<String> {
    let mut lacking = Vec::new();
    let mut shared = Map::new();
    let mut paths = document.get("paths").cloned().unwrap_or_default();
    for operation in members(&mut paths).flat_map(members) {
        let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(media) = operation.pointer_mut("/requestBody/content/application~1json")
            && let Some(example) = example_of(document, media, &format!("{id} request"), &mut lacking)
        {
            media["example"] = example;
        }
        let answers = operation.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten();
        for (status, answer) in answers.filter(|(status, _)| status.starts_with('2')) {
            if let Some(media) = answer.pointer_mut("/content/application~1json")
                && let Some(example) = example_of(document, media, &format!("{id} {status}"), &mut lacking)
            {
                let suffix = if status == "202" { "Accepted" } else { "" };
                let name = share(&mut shared, &media["schema"], &id, suffix, example);
                media["examples"] = json!({ "success": { "$ref": format!("#/components/examples/{name}") } });
            }
        }
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            raise(parameter);
        }
    }
    document["paths"] = paths;
    if let Some(Value::Object(components)) = document.get_mut("components") {
        components.insert("examples".to_owned(), Value::Object(shared));
        components.get_mut("schemas").into_iter().flat_map(members).for_each(tidy);
    }
    lacking
}

fn members(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.as_object_mut().into_iter().flat_map(Map::values_mut)
}

/// Composes the example of a media type. Returns `None` if a value is missing.
fn example_of(root: &Value, media: &mut Value, what: &str, lacking: &mut Vec<String>) -> Option<Value> {
    let differs = media.as_object_mut()?.remove("example");
    let mut composer = Composer { root, lacking: Vec::new() };
    let example = composer.compose(media.get("schema")?, differs.as_ref(), "", 0);
    if example == json!({}) {
        composer.lacking.push("any field".to_owned());
    }
    let is_whole = composer.lacking.is_empty();
    lacking.extend(composer.lacking.iter().map(|field| format!("{what}: {field}")));
    is_whole.then_some(example)
}

/// Stores the example of a response under the name of its data's schema, so that operations with the same response
/// share it. Returns the name.
fn share(shared: &mut Map<String, Value>, schema: &Value, id: &str, suffix: &str, example: Value) -> String {
    let data = schema.pointer("/properties/data");
    let one = data.and_then(|data| Some((name(data)?.to_owned(), "")));
    let rows = data.and_then(|data| Some((name(data.get("items")?)?.to_owned(), "List")));
    let own = || format!("{id}{suffix}");
    let wanted = one.or(rows).map_or_else(own, |(name, kind)| format!("{name}{kind}{suffix}"));
    let example = json!({ "value": example });
    let is_taken = shared.get(&wanted).is_some_and(|other| *other != example);
    let name = if is_taken { own() } else { wanted };
    shared.insert(name.clone(), example);
    name
}

/// Returns the name of the component that a schema refers to.
fn name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Moves the example of a parameter from its schema to the parameter.
fn raise(parameter: &mut Value) {
    let own = parameter.get("example").or_else(|| stated(parameter.get("schema")?)).cloned();
    if let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) {
        schema.remove("example");
        schema.remove("examples");
    }
    if let Some(example) = own {
        parameter["example"] = example;
    }
}

/// Removes the examples of objects and unions, which only serve to compose other examples. Moves the example of a
/// single value to `examples`.
pub fn tidy(schema: &mut Value) {
    let Some(parts) = schema.as_object_mut() else { return };
    let is_composed = ["properties", "allOf", "oneOf"].iter().any(|part| parts.contains_key(*part));
    let example = parts.remove("example");
    if is_composed {
        parts.remove("examples");
    } else if let Some(example) = example {
        parts.insert("examples".to_owned(), json!([example]));
    }
    for (name, part) in parts {
        match name.as_str() {
            "properties" | "$defs" => members(part).for_each(tidy),
            "items" | "additionalProperties" => tidy(part),
            "allOf" | "oneOf" | "anyOf" => part.as_array_mut().into_iter().flatten().for_each(tidy),
            _ => {}
        }
    }
}

/// Returns the example that a schema itself states.
fn stated(schema: &Value) -> Option<&Value> {
    schema.get("example").or_else(|| schema.get("examples")?.get(0))
}

/// Returns whether a schema allows `null`.
fn is_nullable(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null" || kind.get("type").is_some_and(|kind| kind == "null");
    ["type", "oneOf", "anyOf"]
        .iter()
        .filter_map(|part| schema.get(*part)?.as_array())
        .any(|kinds| kinds.iter().any(is_null))
}

/// The fields of an object, collected from all parts of its schema.
#[derive(Default)]
struct Fields<'a> {
    properties: Vec<(&'a String, &'a Value)>,
    required: Vec<&'a str>,
    stated: Map<String, Value>,
}

struct Composer<'a> {
    root: &'a Value,
    /// The paths of the values for which no type states an example.
    lacking: Vec<String>,
}

impl<'a> Composer<'a> {
    /// Resolves a reference. Returns any other schema unchanged.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        target.and_then(|target| self.root.pointer(target)).unwrap_or(schema)
    }

    /// Composes a value for `schema`. `given` takes precedence over the schema's own example. Values that neither has
    /// are composed.
    fn compose(&mut self, schema: &'a Value, given: Option<&Value>, path: &str, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        let schema = self.resolved(schema);
        if given == Some(&Value::Null) {
            return Value::Null;
        }
        if let Some(choices) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
            return self.choice(schema, choices, given, path, depth);
        }
        let mut fields = Fields::default();
        self.gather(schema, &mut fields, depth);
        if !fields.properties.is_empty() {
            return self.object(fields, given, path, depth);
        }
        let own = given.or_else(|| stated(schema));
        match (schema.get("items"), own) {
            (Some(items), Some(Value::Array(rows))) => {
                rows.iter().map(|row| self.compose(items, Some(row), path, depth + 1)).collect()
            }
            (_, Some(own)) => own.clone(),
            (Some(items), None) if !is_nullable(schema) => {
                json!([self.compose(items, None, &format!("{path}[]"), depth + 1)])
            }
            _ => self.single(schema, path),
        }
    }

    /// Composes a value of a schema with alternatives.
    fn choice(
        &mut self,
        schema: &'a Value,
        choices: &'a [Value],
        given: Option<&Value>,
        path: &str,
        depth: usize,
    ) -> Value {
        let own = given.or_else(|| stated(schema));
        let mut real = choices.iter().filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        match (real.next(), real.next(), own) {
            // The alternative that the example belongs to is not known, so the example is used unchanged.
            (_, Some(_), Some(own)) => own.clone(),
            (_, _, None) if is_nullable(schema) => Value::Null,
            (Some(first), _, own) => self.compose(first, own, path, depth + 1),
            (None, _, _) => Value::Null,
        }
    }

    /// Collects the fields of an object.
    fn gather(&self, schema: &'a Value, fields: &mut Fields<'a>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let schema = self.resolved(schema);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.gather(part, fields, depth + 1);
        }
        fields.properties.extend(schema.get("properties").and_then(Value::as_object).into_iter().flatten());
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        fields.required.extend(required.filter_map(Value::as_str));
        if let Some(Value::Object(stated)) = stated(schema) {
            fields.stated.extend(stated.clone());
        }
    }

    fn object(&mut self, fields: Fields<'a>, given: Option<&Value>, path: &str, depth: usize) -> Value {
        let Fields { properties, required, mut stated } = fields;
        if let Some(Value::Object(given)) = given {
            stated.retain(|name, _| required.contains(&name.as_str()));
            stated.extend(given.clone());
        }
        let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let mut object = Map::new();
        for (name, property) in properties {
            let own = stated.remove(name);
            if own.is_some() || required.contains(&name.as_str()) {
                let value = self.compose(property, own.as_ref(), &at(name), depth + 1);
                object.insert(name.clone(), value);
            }
        }
        self.lacking.extend(stated.keys().map(|name| format!("{} is no field", at(name))));
        Value::Object(object)
    }

    /// Returns a value for a schema without parts and without an example.
    fn single(&mut self, schema: &Value, path: &str) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if is_nullable(schema) {
            return Value::Null;
        }
        let default = schema.get("default").filter(|value| !value.is_null());
        if let Some(value) = default.or_else(|| schema.get("enum")?.get(0)) {
            return value.clone();
        }
        let text = |name: &str| schema.get(name).and_then(Value::as_str);
        match (text("type"), text("format")) {
            (Some("boolean"), _) => return json!(false),
            (_, Some("date-time")) => return json!("2026-11-20T09:30:00.000Z"),
            (_, Some("date")) => return json!("2026-11-20"),
            (_, Some("uri")) => return json!("https://example.com/"),
            _ => self.lacking.push(path.to_owned()),
        }
        match text("type") {
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            Some("string") => json!("example"),
            Some("object") => json!({}),
            _ => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the example of `schema`, and the paths of missing values.
    fn composed(schema: Value) -> (Value, Vec<String>) {
        let root = json!({ "components": { "schemas": {
            "Id": { "type": "integer", "examples": [7] },
            "Part": {
                "required": ["id", "label", "on"], "example": { "label": "Lid", "color": "red" },
                "properties": {
                    "id": { "$ref": "#/components/schemas/Id" }, "label": { "type": "string" },
                    "color": { "type": "string" }, "on": { "type": "boolean" },
                },
            },
        } } });
        let mut composer = Composer { root: &root, lacking: Vec::new() };
        let example = composer.compose(&schema, None, "", 0);
        (example, composer.lacking)
    }

    #[test]
    fn what_a_schema_says_needs_no_example() {
        let required = ["const", "enum", "default", "null", "maybe", "at", "list"];
        let (example, lacking) = composed(json!({ "required": required, "properties": {
            "const": { "type": "string", "const": "box" },
            "enum": { "type": "string", "enum": ["open", "shut"] },
            "default": { "type": "integer", "default": 20, "minimum": 1 },
            "null": { "type": ["string", "null"] },
            "maybe": { "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/Id" }] },
            "at": { "type": "string", "format": "date-time" },
            "list": { "type": "array", "items": { "$ref": "#/components/schemas/Id" } },
            "optional": { "type": "string" },
        } }));
        assert_eq!(lacking, [""; 0]);
        assert_eq!(
            example,
            json!({
                "const": "box", "enum": "open", "default": 20, "null": null, "maybe": null,
                "at": "2026-11-20T09:30:00.000Z", "list": [7],
            })
        );
    }

    #[test]
    fn what_is_stated_is_completed() {
        let part = json!({ "$ref": "#/components/schemas/Part" });
        let (example, lacking) = composed(json!({
            "allOf": [part, { "required": ["parts"], "properties": { "parts": { "type": "array", "items": part } } }],
            "example": { "on": true, "parts": [{ "label": "Box" }, {}] },
        }));
        assert_eq!(lacking, [""; 0]);
        let whole = json!({ "id": 7, "label": "Lid", "color": "red", "on": true, "parts": [
            // Objects in a given example show only their required fields and the fields that are given.
            { "id": 7, "label": "Box", "on": false }, { "id": 7, "label": "Lid", "on": false },
        ] });
        assert_eq!(example, whole);
    }

    #[test]
    fn what_nobody_states_is_named() {
        let schema = json!({ "required": ["rows"], "example": { "gone": 1 }, "properties": { "rows": {
            "type": "array",
            "items": { "required": ["amount"], "properties": { "amount": { "type": "integer" } } },
        } } });
        assert_eq!(composed(schema).1, ["rows[].amount", "gone is no field"]);
    }

    #[test]
    fn responses_share_their_example_and_parts_leave_the_schemas() {
        let answer = json!({ "200": { "content": { "application/json": { "schema": {
            "required": ["data"], "properties": { "data": { "$ref": "#/components/schemas/Part" } },
        } } } } });
        let parameters = json!([{ "name": "id", "schema": { "type": "integer", "examples": [7] } }]);
        let mut document = json!({
            "paths": { "/parts/{id}": {
                "get": { "operationId": "getPart", "parameters": parameters, "responses": answer },
                "put": { "operationId": "setPart", "responses": answer },
            } },
            "components": { "schemas": { "Part": {
                "required": ["label"], "example": { "label": "Lid" },
                "properties": { "label": { "type": "string" }, "size": { "type": "string", "example": "XL" } },
            } } },
        });
        assert_eq!(add(&mut document), [""; 0]);
        let components = &document["components"];
        assert_eq!(components["examples"], json!({ "Part": { "value": { "data": { "label": "Lid" } } } }));
        for method in ["get", "put"] {
            let media = "/responses/200/content/application~1json/examples/success/$ref";
            let shared = document["paths"]["/parts/{id}"][method].pointer(media);
            assert_eq!(shared, Some(&json!("#/components/examples/Part")));
        }
        let parameter = json!({ "name": "id", "schema": { "type": "integer" }, "example": 7 });
        assert_eq!(document["paths"]["/parts/{id}"]["get"]["parameters"][0], parameter);
        let part = &components["schemas"]["Part"];
        assert_eq!((part.get("example"), &part["properties"]["size"]["examples"]), (None, &json!(["XL"])));
    }
}
