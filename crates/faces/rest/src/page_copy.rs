//! A copy of the OpenAPI document for the reference page. The error responses of an operation become one table,
//! because a dozen of them would hide the description. Each description ends with the required scope. Optional
//! parameters are not sent unless the reader enables them.

use model::{Error, Result};
use operation::BASE;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Returns the page's copy of a published document with this name.
pub(crate) fn page_copy(published: &str, name: &str) -> Result<String> {
    let mut document: Value = serde_json::from_str(published).map_err(Error::internal)?;
    let errors = document.pointer("/components/responses").cloned().unwrap_or_default();
    append(
        document.pointer_mut("/info/description"),
        &format!("Generate clients from the published document, [{name}]({BASE}/{name})."),
    );
    let schemas = document.pointer("/components/schemas").cloned().unwrap_or_default();
    let shared = document.pointer_mut("/components/parameters").and_then(Value::as_object_mut);
    for parameter in shared.into_iter().flat_map(Map::values_mut) {
        switch_off(parameter, &schemas);
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let methods = paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    for operation in methods.flat_map(Map::values_mut) {
        describe_scopes(operation);
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            switch_off(parameter, &schemas);
        }
        if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
            fold(responses, &errors);
        }
    }
    serde_json::to_string(&document).map_err(Error::internal)
}

fn append(text: Option<&mut Value>, sentence: &str) {
    if let Some(Value::String(text)) = text {
        text.push_str("\n\n");
        text.push_str(sentence);
    }
}

fn describe_scopes(operation: &mut Value) {
    let schemes = operation.pointer("/security/0").and_then(Value::as_object);
    let scopes = schemes.into_iter().flat_map(Map::values).filter_map(Value::as_array).flatten();
    let scopes: Vec<String> = scopes.filter_map(Value::as_str).map(|scope| format!("`{scope}`")).collect();
    if !scopes.is_empty() {
        append(operation.get_mut("description"), &format!("Scope: {}.", scopes.join(", ")));
    }
}

/// Disables an optional parameter. The renderer would otherwise send each parameter with an example, a default or an
/// enum, so the example is moved.
fn switch_off(parameter: &mut Value, schemas: &Value) {
    if parameter["required"] == true || parameter.get("$ref").is_some() {
        return;
    }
    let schema = &parameter["schema"];
    let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/schemas/"));
    let schema = name.and_then(|name| schemas.get(name)).unwrap_or(schema);
    let known = [
        parameter.get("example"),
        schema.pointer("/examples/0"),
        schema.get("default"),
        schema.pointer("/enum/0"),
    ];
    let Some(value) = known.into_iter().flatten().next().cloned() else { return };
    if let Some(parameter) = parameter.as_object_mut() {
        parameter.remove("example");
        let example = json!({ "default": { "value": value, "x-disabled": true } });
        parameter.insert("examples".to_owned(), example);
    }
}

/// Replaces the responses of an operation that refer to `errors` by a single `default` response.
fn fold(responses: &mut Map<String, Value>, errors: &Value) {
    let mut table = String::new();
    let mut folded = None;
    responses.retain(|status, response| {
        let name =
            response["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/components/responses/"));
        let Some(error) = name.and_then(|name| errors.get(name)) else { return true };
        let description = error["description"].as_str().unwrap_or_default();
        let codes = description.split_once(": ").map_or(description, |(_, codes)| codes);
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {status} | {} |", codes.trim_end_matches('.'));
        folded = Some(error["content"].clone());
        false
    });
    if let Some(content) = folded {
        let description = format!("Any error.\n\n| Status | `error.code` |\n|---|---|\n{table}");
        responses.insert("default".to_owned(), json!({ "description": description, "content": content }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_become_one_table() {
        let error = |codes: &str| {
            json!({
                "description": format!("`error.code` is one of: {codes}."),
                "content": { "application/json": { "schema": {} } },
            })
        };
        let published = json!({
            "info": { "description": "About." },
            "paths": { "/a": {
                "parameters": [],
                "get": {
                    "description": "Does.",
                    "security": [{ "any_name": ["a:read"] }],
                    "responses": {
                        "200": { "description": "Done." },
                        "404": { "$ref": "#/components/responses/Error404" },
                        "409": { "$ref": "#/components/responses/Error409" },
                    },
                },
            } },
            "components": { "responses": {
                "Error404": error("not_found"), "Error409": error("locked, busy"),
            } },
        });
        let copy = page_copy(&published.to_string(), "a.json").unwrap();
        let copy: Value = serde_json::from_str(&copy).unwrap();
        assert_eq!(
            copy["info"]["description"],
            "About.\n\nGenerate clients from the published document, [a.json](/api/v1/a.json)."
        );
        let operation = &copy["paths"]["/a"]["get"];
        assert_eq!(operation["description"], "Does.\n\nScope: `a:read`.");
        assert_eq!(
            operation["responses"],
            json!({
                "200": { "description": "Done." },
                "default": {
                    "description": "Any error.\n\n| Status | `error.code` |\n|---|---|\n| 404 | not_found |\n| 409 | locked, busy |\n",
                    "content": { "application/json": { "schema": {} } },
                },
            })
        );
        assert_eq!(copy["components"], published["components"]);
    }

    #[test]
    fn optional_parameters_are_offered_and_not_sent() {
        let published = json!({
            "paths": { "/a/{id}": { "get": { "parameters": [
                { "name": "id", "required": true, "schema": {}, "example": 1 },
                { "name": "sort", "schema": {}, "example": "-price" },
                { "name": "limit", "schema": { "default": 20 } },
                { "name": "status", "schema": { "$ref": "#/components/schemas/Status" } },
                { "name": "q", "schema": {} },
                { "$ref": "#/components/parameters/Key" },
            ] } } },
            "components": {
                "parameters": { "Key": { "name": "Key", "schema": { "examples": ["k"] } } },
                "schemas": { "Status": { "enum": ["open", "closed"] } },
            },
        });
        let copy: Value = serde_json::from_str(&page_copy(&published.to_string(), "").unwrap()).unwrap();
        let off = |value: Value| json!({ "default": { "value": value, "x-disabled": true } });
        let parameters = &copy["paths"]["/a/{id}"]["get"]["parameters"];
        let offered: Vec<&Value> =
            parameters.as_array().unwrap().iter().map(|parameter| &parameter["examples"]).collect();
        let none = Value::Null;
        assert_eq!(
            offered,
            [&none, &off(json!("-price")), &off(json!(20)), &off(json!("open")), &none, &none]
        );
        assert_eq!(parameters[0]["example"], 1);
        assert!(parameters[1].get("example").is_none());
        assert_eq!(copy["components"]["parameters"]["Key"]["examples"], off(json!("k")));
        assert_eq!(copy["components"]["schemas"], published["components"]["schemas"]);
    }
}
