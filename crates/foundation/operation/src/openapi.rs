//! The published contract: OpenAPI 3.1 documents that are made from the registry.

use crate::BASE;
use crate::declaration::describe::{Describe, Success, as_json};
use crate::declaration::examples;
use crate::declaration::generators::complete;
use crate::declaration::meta::{Meta, Paging};
use crate::registry::{Registered, Registry};
use model::{Code, Error, ErrorType, LONGEST_RETRY_AFTER, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use utoipa::PartialSchema;
use utoipa::openapi::path::Parameter;

/// The name of the only security scheme. In OpenAPI 3.1, a requirement can list scopes for any type of scheme.
const SECURITY_SCHEME: &str = "bearerAuth";

const DESCRIPTION: &str = "Every response is a JSON object with `success`, and with `data` or `error`. Clients must ignore unknown response fields and tolerate unknown enum values, because new ones can be added at any time. An unknown query parameter or body field is an error.\n\nLists come in pages. `x-svc-pagination` states the mode of a list:\n\n- `cursor`: send `limit`, and the `next_cursor` of the previous page as `starting_after`.\n- `offset`: send `limit` and `offset`; `pagination` has the total.\n- `page`: send `limit` and `page`; `pagination` has the total.\n- `opt_in`: send `paginate=true` for pages as in the mode `cursor`. Without it, `data` has all rows up to a ceiling.\n\nLists without `x-svc-pagination` return all rows at once.";

const DASHBOARD_DESCRIPTION: &str = "The operations of the dashboard. They may change with any version and are no part of the public API: programs use that one, with an API key.\n\nThe credential is the token of a session, which the pages of the service exchange their cookie for. An API key or an app gets 401 `session_required`.";

/// One of the documents of the contract. The first two are published; the third is for the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contract {
    /// The document for everyone: paths outside `/partner`.
    Public,
    /// The document for partners: paths under `/partner`.
    Partner,
    /// The document of the dashboard's own operations: paths under `/dashboard`.
    Dashboard,
}

impl Contract {
    fn holds(self, meta: &Meta) -> bool {
        let own = match meta.path {
            path if path.starts_with("/partner/") => Self::Partner,
            path if path.starts_with("/dashboard/") => Self::Dashboard,
            _ => Self::Public,
        };
        own == self
    }

    fn title(self) -> &'static str {
        match self {
            Self::Public => "Agent automation service",
            Self::Partner => "Agent automation service: partner API",
            Self::Dashboard => "Agent automation service: dashboard",
        }
    }

    fn description(self) -> String {
        match self {
            Self::Public | Self::Partner => DESCRIPTION.to_owned(),
            Self::Dashboard => format!("{DASHBOARD_DESCRIPTION}\n\n{DESCRIPTION}"),
        }
    }

    fn security_scheme(self) -> Value {
        let description = match self {
            Self::Public | Self::Partner => {
                "A secret API key: `svc_live_…` or `svc_test_…`. The names in the security requirement of an operation are the scopes that the key needs."
            }
            Self::Dashboard => {
                "The token of a session. The name in the security requirement of an operation is the permission that the member needs."
            }
        };
        json!({ "type": "http", "scheme": "bearer", "description": description })
    }
}

/// Returns the document of `contract` in `version` (such as `v0.1.0`), pretty-printed.
///
/// # Errors
/// `internal_error` when two types have schemas of the same name: one would silently replace the other.
pub fn document(registry: &Registry, contract: Contract, version: &str) -> Result<String> {
    let (document, _) = build(registry, contract, version)?;
    let mut text = serde_json::to_string_pretty(&document).map_err(Error::internal)?;
    text.push('\n');
    Ok(text)
}

/// Returns the fields that an example in `contract` needs and for which no type states a value.
///
/// # Errors
/// Those of [`document`].
pub fn lacking_examples(registry: &Registry, contract: Contract) -> Result<Vec<String>> {
    Ok(build(registry, contract, "")?.1)
}

/// Builds the document. Also returns the fields that its examples lack.
fn build(registry: &Registry, contract: Contract, version: &str) -> Result<(Value, Vec<String>)> {
    let mut paths: Map<String, Value> = Map::new();
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    let mut tags: Vec<(&str, &str)> = Vec::new();
    let mut message = None;
    for registered in registry.operations().iter().filter(|registered| contract.holds(registered.meta())) {
        let meta = registered.meta();
        let describe = registered.describe();
        let tag = (registered.area, registered.area_description);
        // If groups share an area, the first one describes it.
        if !tags.iter().any(|(area, _)| *area == registered.area) {
            tags.push(tag);
        }
        for (name, schema) in &describe.schemas {
            let schema = as_json(schema);
            if schemas.get(name).is_some_and(|other| *other != schema) {
                return Err(Error::internal(format!("{} has another schema called {name}", meta.id)));
            }
            schemas.insert(name.clone(), schema);
        }
        if let Some(success) = describe.successes.first().filter(|_| meta.json_rpc) {
            message = Some(success.fields.clone());
        }
        let path = paths.entry(meta.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(meta.method.as_str().to_lowercase(), operation(registered, &describe));
        }
    }
    schemas.insert("ErrorResponse".to_owned(), error_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": info(contract, version),
        "servers": [{ "url": BASE }],
        "tags": tags.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": { SECURITY_SCHEME: contract.security_scheme() },
            "parameters": shared_parameters(contract),
            "headers": headers(),
            "responses": responses(message.as_ref()),
            "schemas": schemas,
        },
    });
    complete(&mut document);
    let lacking = examples::add(&mut document);
    Ok((document, lacking))
}

fn info(contract: Contract, version: &str) -> Value {
    json!({
        "title": contract.title(),
        "version": version,
        "description": contract.description(),
        "contact": { "name": "The operator of the service" },
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    })
}

fn operation(registered: &Registered, describe: &Describe) -> Value {
    let meta = registered.meta();
    let mut operation = Map::new();
    operation.insert("operationId".into(), meta.id.into());
    operation.insert("tags".into(), json!([registered.area]));
    operation.insert("summary".into(), meta.summary.into());
    if !meta.description.is_empty() {
        operation.insert("description".into(), meta.description.into());
    }
    let scopes: Vec<&str> = meta.needs().into_iter().collect();
    operation.insert("security".into(), json!([{ SECURITY_SCHEME: scopes }]));
    if let Some(paging) = meta.paging {
        operation.insert("x-svc-pagination".into(), paging.as_str().into());
    }
    for (name, applies) in [
        ("x-svc-energy", meta.energy),
        ("x-svc-json-rpc", meta.json_rpc),
        ("x-svc-partner-only", meta.is_partner_only()),
        ("x-svc-session", meta.session.is_some()),
        ("x-svc-when-blocked", meta.session.is_some() && meta.is_open_when_blocked()),
        ("x-svc-idempotent", meta.is_idempotent_by_key()),
    ] {
        if applies {
            operation.insert(name.into(), true.into());
        }
    }
    if let Some(deprecated) = &meta.deprecated {
        operation.insert("deprecated".into(), true.into());
        operation.insert("x-deprecated-at".into(), deprecated.since.into());
        operation.insert("x-sunset".into(), deprecated.sunset.into());
        operation.insert("x-alternative".into(), deprecated.alternative.into());
    }
    if let Some(recent) = meta.recent_sign_in {
        operation.insert("x-svc-recent-sign-in".into(), recent.as_str().into());
    }
    if meta.is_test_restricted() {
        operation.insert("x-svc-test-mode".into(), "restricted".into());
    }
    let parameters = parameters(meta, describe);
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    if let Some(body) = &describe.body {
        let media_type = describe.streamed.unwrap_or("application/json");
        let content = json!({ media_type: { "schema": as_json(body) } });
        let required = describe.streamed.is_some()
            || !(describe.takes_empty_object() && meta.method.may_go_without_body());
        operation.insert("requestBody".into(), json!({ "required": required, "content": content }));
        if meta.body_limit() != 1 << 20 {
            operation.insert("x-svc-max-body-bytes".into(), meta.body_limit().into());
        }
    }
    operation.insert("responses".into(), operation_responses(meta, describe));
    Value::Object(operation)
}

fn parameters(meta: &Meta, describe: &Describe) -> Vec<Value> {
    let mut parameters: Vec<Value> = Vec::new();
    for name in meta.path_parameters() {
        let known = describe.path.iter().find(|parameter| parameter.name == name).map(as_json);
        parameters.push(known.unwrap_or_else(|| {
            // The pipeline itself reads the workspace, so no operation has it as an argument.
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "integer", "format": "int64" } })
        }));
    }
    parameters.extend(describe.query.iter().chain(&describe.documented).map(optional_parameter));
    let is_for_partners = meta.session.is_none() && !meta.path.starts_with("/partner/");
    if is_for_partners && !meta.path.contains("{workspaceId}") {
        parameters.push(json!({ "$ref": "#/components/parameters/Workspace" }));
    }
    if meta.is_idempotent_by_key() {
        parameters.push(json!({ "$ref": "#/components/parameters/IdempotencyKey" }));
    }
    parameters
}

/// Returns a parameter without `null`: an optional parameter is an `Option` in Rust, but a query cannot express
/// `null`.
fn optional_parameter(parameter: &Parameter) -> Value {
    let mut parameter = as_json(parameter);
    if let Some(schema) = parameter.get_mut("schema") {
        drop_null(schema);
    }
    parameter
}

fn drop_null(schema: &mut Value) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [only] = choices.as_slice() {
            *schema = only.clone();
        }
    }
}

/// Returns the headers that many operations accept.
fn shared_parameters(contract: Contract) -> Value {
    let idempotency = json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key", "in": "header", "required": false,
            "description": "A unique key of your choice. Resending the request with the same key returns the first result without executing it again.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        },
    });
    let workspace = json!({
        "Workspace": {
            "name": "X-Svc-Workspace", "in": "header", "required": false,
            "description": "For partner keys: the id or slug of the client workspace. Not needed if the key has a default client or the partner has only one.",
            "schema": { "type": "string", "maxLength": 64 },
        },
    });
    let workspace = (contract != Contract::Dashboard).then_some(workspace);
    let shared = [Some(idempotency), workspace];
    shared.into_iter().flatten().filter_map(|one| one.as_object().cloned()).flatten().collect()
}

fn operation_responses(meta: &Meta, describe: &Describe) -> Value {
    let mut responses = Map::new();
    for Success { status, fields, differs, is_bare } in &describe.successes {
        let mut content = Map::new();
        if !(*is_bare && fields.is_null()) {
            let schema = if *is_bare { fields.clone() } else { envelope_schema(fields) };
            let mut media = Map::from_iter([("schema".to_owned(), schema)]);
            media.extend(differs.clone().map(|differs| ("example".to_owned(), differs)));
            content.insert("application/json".into(), media.into());
        }
        if let (200, Some(events)) = (status, describe.events) {
            let events = json!({ "schema": { "type": "string", "description": events } });
            content.insert("text/event-stream".into(), events);
        }
        responses.insert(
            status.to_string(),
            json!({
                "description": match (status, meta.paging) {
                    (202, _) if *is_bare => "The message was a notification and has no answer.",
                    (201, _) => "Created.",
                    (202, _) => "Accepted. The work continues in the background.",
                    (_, Some(Paging::Cursor)) => "A page of the list. Continue with `next_cursor`.",
                    (_, Some(Paging::Offset | Paging::Page)) => "A page of the list.",
                    (_, Some(Paging::OptIn)) => "The list, or with `paginate=true` a page of it.",
                    _ => "Success.",
                },
                "headers": header_references(),
                "content": content,
            }),
        );
    }
    for status in error_statuses(meta, describe) {
        let is_message = meta.json_rpc && JSON_RPC_ERRORS.contains(&status);
        let kind = if is_message { "JsonRpcError" } else { "Error" };
        responses
            .insert(status.to_string(), json!({ "$ref": format!("#/components/responses/{kind}{status}") }));
    }
    Value::Object(responses)
}

/// The statuses of errors that can be JSON-RPC messages.
const JSON_RPC_ERRORS: [u16; 3] = [400, 403, 404];

/// Returns the schema of the envelope around an answer's own fields.
fn envelope_schema(own: &Value) -> Value {
    let mut fields = Map::new();
    fields.insert("success".into(), json!({ "type": "boolean", "const": true }));
    let mut required = vec![Value::from("success")];
    for (name, schema) in own.as_object().into_iter().flatten() {
        if let ("$optional", Value::Object(optional)) = (name.as_str(), schema) {
            fields.extend(optional.clone());
        } else {
            required.push(name.clone().into());
            fields.insert(name.clone(), schema.clone());
        }
    }
    json!({ "type": "object", "required": required, "properties": fields })
}

/// Returns the error statuses of an operation, which follow from its declaration and description.
fn error_statuses(meta: &Meta, describe: &Describe) -> Vec<u16> {
    let mut statuses = vec![400, 401, 403, 404, 429, 500];
    if meta.energy {
        statuses.extend([402, 502, 504]);
    }
    if meta.is_idempotent_by_key() {
        statuses.push(409);
    }
    if meta.deprecated.is_some() {
        statuses.push(410);
    }
    if describe.body.is_some() {
        statuses.extend([413, 415]);
    }
    statuses.extend(&describe.failures);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn header_references() -> Value {
    let names = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") })))
        .collect()
}

fn headers() -> Value {
    let integer = json!({ "type": "integer" });
    json!({
        "X-Request-Id": { "description": "The id of the request, for logs and support.", "schema": { "type": "string" } },
        "X-RateLimit-Limit": { "description": "The maximum number of requests in the current window. Absent without a limit.", "schema": integer },
        "X-RateLimit-Remaining": { "description": "The number of requests left in the window.", "schema": integer },
        "X-RateLimit-Reset": { "description": "The number of seconds until the window resets.", "schema": integer },
        "Retry-After": {
            "description": "The number of seconds to wait before a retry. Absent if the wait is longer than an hour, as for a monthly quota.",
            "schema": { "type": "integer", "minimum": 1, "maximum": LONGEST_RETRY_AFTER },
        },
    })
}

/// Returns one response for each error status, with the codes that it may carry. With the schema of JSON-RPC messages, also
/// those that are an envelope before the message was read, and a message after that.
fn responses(message: Option<&Value>) -> Value {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in Code::ALL {
        by_status.entry(code.status()).or_default().push(code.as_str());
    }
    let envelope = json!({ "$ref": "#/components/schemas/ErrorResponse" });
    let mut responses = Map::new();
    for (status, codes) in by_status {
        let about = format!("`error.code` is one of: {}.", codes.join(", "));
        if let Some(message) = message.filter(|_| JSON_RPC_ERRORS.contains(&status)) {
            let about = format!("A JSON-RPC error, or {about}");
            let schema = json!({ "anyOf": [envelope, message] });
            responses.insert(format!("JsonRpcError{status}"), error_response(status, &about, &schema));
        }
        responses.insert(format!("Error{status}"), error_response(status, &about, &envelope));
    }
    Value::Object(responses)
}

fn error_response(status: u16, about: &str, schema: &Value) -> Value {
    let mut headers = header_references();
    if let (429 | 409, Value::Object(headers)) = (status, &mut headers) {
        headers.insert("Retry-After".into(), json!({ "$ref": "#/components/headers/Retry-After" }));
    }
    json!({
        "description": about,
        "headers": headers,
        "content": { "application/json": { "schema": schema } },
    })
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "description": "The response to a request that failed.",
        "required": ["success", "error", "request_id"],
        "properties": {
            "success": { "type": "boolean", "const": false },
            "error": {
                "type": "object",
                "required": ["type", "code", "message"],
                "properties": {
                    "type": as_json(&ErrorType::schema()),
                    "code": { "type": "string", "x-extensible-enum": codes, "description": "The reason for the error. More codes can be added: handle unknown ones by `type`." },
                    "message": { "type": "string", "description": "An explanation for people. Its wording can change." },
                    "param": { "type": "string", "description": "The path of the invalid parameter or field, or the missing scope." },
                    "errors": {
                        "type": "array",
                        "description": "All invalid fields, if there are several.",
                        "items": {
                            "type": "object",
                            "required": ["param", "message"],
                            "properties": {
                                "param": text,
                                "message": text,
                                "code": { "type": "string", "description": "The reason as a code. More codes can be added." },
                            },
                        },
                    },
                    "recharge_url": { "type": "string", "format": "uri", "description": "With `energy_depleted`: the page for buying Energy, if there is one." },
                    "run_id": { "type": "string", "description": "The id of the run that the error is about." },
                    "details": {
                        "type": "object",
                        "additionalProperties": true,
                        "description": "More about the error, depending on its code.",
                        "properties": {
                            "current_version": {
                                "type": "integer",
                                "description": "With `version_conflict`: the current version of the object.",
                            },
                        },
                    },
                },
            },
            "request_id": { "type": "string", "description": "The id of the request, also in the header `X-Request-Id`." },
        },
    })
}
