//! The token endpoint, and its siblings for revoking (RFC 7009) and introspecting (RFC 7662) tokens.

use super::Inner;
use super::answers::{OauthError, json_answer, object};
use super::parameters::Parameters;
use super::request::document_error;
use ::oauth::clients::{Client, ClientError, Credentials, CredentialsError, Proof, RemoteError};
use ::oauth::{
    CodeExchange, Refresh, Refusal, Resource, TokenKind, TokenReply, exchange, introspect, refresh,
    revoke_token,
};
use operation::{RawAnswer, RawRequest};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request whose client has proven who it is.
struct Authenticated {
    parameters: Parameters,
    client: Arc<Client>,
}

impl Authenticated {
    /// Reads a request and authenticates its client.
    async fn read(inner: &Inner, request: &RawRequest) -> Result<Self, OauthError> {
        let parameters = form(request)?;
        let headers: Vec<&[u8]> = header_values(request, "authorization").collect();
        let credentials =
            Credentials::read(&headers, |name| parameters.get(name)).map_err(|error| match error {
                CredentialsError::Request(rule) => OauthError::request(rule),
                CredentialsError::Client(rule) => OauthError::client(rule, true),
            })?;
        let challenge = matches!(credentials.proof, Proof::Basic(_));
        let client =
            inner.clients.authenticate(&credentials).await.map_err(|error| refused(error, challenge))?;
        Ok(Self { parameters, client })
    }

    fn required(&self, name: &str) -> Result<String, OauthError> {
        let value = self.parameters.get(name).map(str::to_owned);
        value.ok_or_else(|| OauthError::request(format!("{name} is missing")))
    }

    fn resource(&self, inner: &Inner) -> Result<Option<Resource>, OauthError> {
        super::request::resource(&inner.resources, &self.parameters)
            .map_err(|(code, description)| OauthError::new(code, description))
    }
}

/// Reads the body of a request. Headers that are sent twice are ambiguous.
fn form(request: &RawRequest) -> Result<Parameters, OauthError> {
    let kinds: Vec<&[u8]> = header_values(request, "content-type").collect();
    let [kind] = kinds.as_slice() else {
        return Err(OauthError::request("the header Content-Type must be sent once"));
    };
    let kind = String::from_utf8_lossy(kind);
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(OauthError::request("send application/x-www-form-urlencoded"));
    }
    let parameters = Parameters::parse(&request.body);
    match parameters.repeated(&["resource"]) {
        Some(name) => Err(OauthError::request(format!("{name} was sent twice"))),
        None => Ok(parameters),
    }
}

fn header_values<'a>(request: &'a RawRequest, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    request.headers.iter().filter(move |(other, _)| other == name).map(|(_, value)| &value[..])
}

fn refused(error: ClientError, challenge: bool) -> OauthError {
    let passing = |text: String| OauthError::new("temporarily_unavailable", text).with_status(503);
    match error {
        ClientError::Unknown => OauthError::client("no client has this client_id", challenge),
        ClientError::Unauthenticated(reason) => OauthError::client(reason, challenge),
        // The client keeps its tokens and asks again.
        ClientError::Document(error @ RemoteError::Fetch(_)) => passing(document_error(&error)),
        ClientError::Document(error) => OauthError::client(document_error(&error), challenge),
        ClientError::Keys(RemoteError::Fetch(reason)) => {
            passing(format!("the client's key set cannot be fetched: {reason}"))
        }
        ClientError::Keys(RemoteError::Content(reason)) => {
            OauthError::client(format!("the client's key set is not acceptable: {reason}"), challenge)
        }
        ClientError::Keys(RemoteError::Url(reason)) => {
            OauthError::client(format!("the URL of the client's key set: {reason}"), challenge)
        }
        ClientError::Internal(error) => error.into(),
    }
}

impl From<Refusal> for OauthError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code.as_str(), refusal.description)
    }
}

/// Answers `POST /oauth/token`.
pub(super) async fn token(inner: &Inner, request: &RawRequest) -> Result<RawAnswer, OauthError> {
    let asked = Authenticated::read(inner, request).await?;
    let client_id = asked.client.id.clone();
    let resource = asked.resource(inner)?;
    let reply = match asked.required("grant_type")?.as_str() {
        "authorization_code" => {
            let asked = CodeExchange {
                client_id,
                code: asked.required("code")?,
                redirect_uri: asked.required("redirect_uri")?,
                verifier: asked.required("code_verifier")?,
                resource,
            };
            inner.db.write(move |tx| exchange(tx, &asked)).await?
        }
        "refresh_token" => {
            let refresh_token = asked.required("refresh_token")?;
            let scope = asked.parameters.get("scope").map(str::to_owned);
            let asked = Refresh { client_id, refresh_token, scope, resource };
            let seal = inner.seal.clone();
            inner.db.write(move |tx| refresh(tx, &seal, &asked)).await?
        }
        _ => {
            let text = "grant_type must be authorization_code or refresh_token";
            return Err(OauthError::new("unsupported_grant_type", text));
        }
    };
    match reply {
        TokenReply::Issued(body) => Ok(json_answer(200, body)),
        TokenReply::Refused(refusal) => Err(refusal.into()),
    }
}

/// Answers `POST /oauth/revoke`. Tokens that are unknown, or another client's, are answered like others.
pub(super) async fn revoke(inner: &Inner, request: &RawRequest) -> Result<RawAnswer, OauthError> {
    let asked = Authenticated::read(inner, request).await?;
    let (client_id, token) = (asked.client.id.clone(), asked.required("token")?);
    inner.db.write(move |tx| revoke_token(tx, &client_id, &token)).await?;
    Ok(json_answer(200, "{}".to_owned()))
}

/// Answers `POST /oauth/introspect`. A client sees its own tokens only.
pub(super) async fn inspect(inner: &Inner, request: &RawRequest) -> Result<RawAnswer, OauthError> {
    let asked = Authenticated::read(inner, request).await?;
    let (client_id, token) = (asked.client.id.clone(), asked.required("token")?);
    let found = inner.db.read(move |read| introspect(read, &client_id, &token)).await?;
    let body: Value = match found {
        None => json!({ "active": false }),
        Some(token) => object([
            ("active", Some(json!(true))),
            ("scope", Some(json!(token.scopes.to_string().replace(',', " ")))),
            ("client_id", Some(json!(token.client_id))),
            ("token_type", (token.kind == TokenKind::Access).then(|| json!("Bearer"))),
            ("exp", Some(json!(token.expires_at.seconds()))),
            ("iat", Some(json!(token.issued_at.seconds()))),
            ("sub", Some(json!(token.account))),
            ("aud", Some(json!(inner.resources.url(token.resource)))),
            ("iss", Some(json!(inner.base_url))),
            ("workspace_id", Some(json!(token.workspace))),
        ]),
    };
    Ok(json_answer(200, body.to_string()))
}
