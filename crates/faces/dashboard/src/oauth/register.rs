//! `POST /oauth/register`: dynamic registration (RFC 7591).

use super::answers::{OauthError, json_answer, object};
use ::oauth::clients::{Client, Clients, MetadataError, Registration};
use operation::{RawAnswer, RawRequest};
use serde_json::json;

/// Registers the client that the body describes.
pub(super) fn register(clients: &Clients, request: &RawRequest) -> Result<RawAnswer, OauthError> {
    if !clients.has_registration() {
        let text = "dynamic registration is off here: use a client id metadata document, or ask the operator for an app";
        return Err(OauthError::new("access_denied", text).with_status(403));
    }
    let kinds: Vec<_> = request.headers.iter().filter(|(name, _)| name == "content-type").collect();
    let kind = request.header("content-type").unwrap_or_default();
    let is_json = kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    if kinds.len() != 1 || !is_json {
        return Err(OauthError::new("invalid_client_metadata", "send application/json"));
    }
    let Registration { client, secret } = clients.register(&request.body).map_err(|error| match error {
        MetadataError::Redirect(rule) => OauthError::new("invalid_redirect_uri", rule),
        MetadataError::Other(rule) => OauthError::new("invalid_client_metadata", rule),
    })?;
    let Client { id, name, redirect_uris, method, .. } = client;
    let body = object([
        ("client_id", Some(json!(id))),
        ("client_secret", secret.as_ref().map(|secret| json!(secret))),
        // It does not expire.
        ("client_secret_expires_at", secret.is_some().then(|| json!(0))),
        ("client_name", Some(json!(name))),
        ("redirect_uris", Some(json!(redirect_uris))),
        ("token_endpoint_auth_method", Some(json!(method.as_str()))),
        ("grant_types", Some(json!(["authorization_code", "refresh_token"]))),
        ("response_types", Some(json!(["code"]))),
    ]);
    Ok(json_answer(201, body.to_string()))
}
