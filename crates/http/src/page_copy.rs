//! A contract as the reference page shows it: the error responses of an operation become one table, because a dozen of
//! them would hide what the operation does, and each description ends with the scope that a key needs.

use model::{Error, Result};
use operation::BASE;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The page's copy of a published document, which is served under `name`.
pub(crate) fn page_copy(published: &str, name: &str) -> Result<String> {
    let mut document: Value = serde_json::from_str(published).map_err(Error::internal)?;
    let errors = document.pointer("/components/responses").cloned().unwrap_or_default();
    append(
        document.pointer_mut("/info/description"),
        &format!("Generate clients from the published document, [{name}]({BASE}/{name})."),
    );
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let methods = paths.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut);
    for operation in methods.flat_map(Map::values_mut) {
        describe_scopes(operation);
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

/// Replaces the responses of an operation that refer to one of `errors` by one, `default`.
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
}
