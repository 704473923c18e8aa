//! The request to authorize, checked: RFC 6749, 4.1.1, with PKCE (RFC 7636), `resource` (RFC 8707) and `iss` (RFC 9207).

use super::Inner;
use super::answers::describable;
use super::parameters::{Parameters, append};
use ::oauth::clients::{Client, ClientError, Clients, RemoteError};
use ::oauth::machine::is_challenge;
use ::oauth::{Resource, Resources, everyday};
use model::{Error, Scope, ScopeSet};
use std::sync::Arc;

/// The maximum length of `state`, which is echoed in a URL.
const LONGEST_STATE: usize = 8 * 1024;

/// A request of a known client that may be shown to a person.
#[derive(Debug)]
pub(super) struct AuthorizationRequest {
    /// The client.
    pub(super) client: Arc<Client>,
    /// Where the answer goes.
    pub(super) target: Target,
    /// The scopes that the client asks for.
    pub(super) scopes: ScopeSet,
    /// The `code_challenge`.
    pub(super) challenge: String,
    /// What the tokens are for.
    pub(super) resource: Resource,
}

/// Where the answer to a request goes: the client's redirect address, with its `state`.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) redirect_uri: String,
    state: Option<Vec<u8>>,
    issuer: String,
}

/// Why a request is not shown to a person.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The client or the redirect address is not trustworthy, so only the person is told.
    Page(&'static str, String),
    /// The client is told.
    Redirect(Target, &'static str, String),
    /// The service failed.
    Internal(Error),
}

impl Target {
    /// Returns the URL that hands a code to the client.
    pub(super) fn with_code(&self, code: &str) -> String {
        self.url(&[("code", code.as_bytes())])
    }

    /// Returns the URL that tells the client about an error.
    pub(super) fn with_error(&self, error: &str, description: &str) -> String {
        let description = describable(description);
        self.url(&[("error", error.as_bytes()), ("error_description", description.as_bytes())])
    }

    fn url(&self, parameters: &[(&str, &[u8])]) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let parameters: Vec<(&str, &[u8])> =
            parameters.iter().copied().chain(state).chain([("iss", self.issuer.as_bytes())]).collect();
        append(&self.redirect_uri, &parameters)
    }
}

/// Checks a request. The client and the redirect address come first, because everything else is reported to them.
pub(super) async fn check(inner: &Inner, parameters: &Parameters) -> Result<AuthorizationRequest, Refusal> {
    let (client, redirect_uri) = client(&inner.clients, parameters).await?;
    let state = parameters.bytes("state").map(<[u8]>::to_vec);
    let target = Target { redirect_uri, state, issuer: inner.base_url.clone() };
    match details(&inner.resources, parameters) {
        Ok((scopes, challenge, resource)) => {
            Ok(AuthorizationRequest { client, target, scopes, challenge, resource })
        }
        Err((error, description)) => Err(Refusal::Redirect(target, error, description)),
    }
}

/// Returns the client and the redirect address, which is one of the client's.
async fn client(clients: &Clients, parameters: &Parameters) -> Result<(Arc<Client>, String), Refusal> {
    let page = |title, text: &str| Err(Refusal::Page(title, text.to_owned()));
    for name in ["client_id", "redirect_uri"] {
        if parameters.is_repeated(name) {
            return page("This link is broken", &format!("It has the parameter {name} twice."));
        }
    }
    let Some(id) = parameters.get("client_id") else {
        return page("This link is broken", "It does not name an app: the parameter client_id is missing.");
    };
    let client = match clients.find(id).await {
        Ok(client) => client,
        Err(ClientError::Internal(error)) => return Err(Refusal::Internal(error)),
        Err(ClientError::Document(error)) => {
            return page("The app cannot be verified", &format!("{}.", document_error(&error)));
        }
        Err(_) => {
            let text = "No app has this client_id. It may have been removed. Connect the app again from its own pages.";
            return page("Unknown app", text);
        }
    };
    let Some(requested) = parameters.get("redirect_uri") else {
        return page(
            "This link is broken",
            "It does not say where to return: the parameter redirect_uri is missing.",
        );
    };
    if !client.accepts_redirect(requested) {
        let text =
            "It wants to return to an address that the app has not registered, so nothing is sent there.";
        return page("This link is not safe", text);
    }
    let redirect_uri = requested.to_owned();
    Ok((client, redirect_uri))
}

/// Returns why a metadata document is not accepted, as a sentence without its full stop.
pub(super) fn document_error(error: &RemoteError) -> String {
    match error {
        RemoteError::Url(reason) => {
            format!("Its client_id cannot be the URL of a metadata document: {reason}")
        }
        RemoteError::Fetch(reason) => format!("Its metadata document cannot be fetched: {reason}"),
        RemoteError::Content(reason) => format!("Its metadata document is not acceptable: {reason}"),
    }
}

type Details = (ScopeSet, String, Resource);

/// Checks everything that is reported to the client.
fn details(resources: &Resources, parameters: &Parameters) -> Result<Details, (&'static str, String)> {
    let malformed = |text: String| Err(("invalid_request", text));
    if let Some(name) = parameters.repeated(&["resource"]) {
        return malformed(format!("the parameter {name} was sent twice"));
    }
    if parameters.bytes("state").is_some_and(|state| state.len() > LONGEST_STATE) {
        return malformed("state is longer than 8 KiB".to_owned());
    }
    match parameters.get("response_type") {
        Some("code") => {}
        None => return malformed("response_type is missing".to_owned()),
        Some(_) => return Err(("unsupported_response_type", "response_type must be code".to_owned())),
    }
    if parameters.get("response_mode").is_some_and(|mode| mode != "query") {
        return malformed("response_mode must be query".to_owned());
    }
    if parameters.get("request").is_some() {
        return Err(("request_not_supported", "request objects are not supported".to_owned()));
    }
    if parameters.get("request_uri").is_some() {
        return Err(("request_uri_not_supported", "request objects are not supported".to_owned()));
    }
    let Some(challenge) = parameters.get("code_challenge") else {
        return malformed("code_challenge is missing: PKCE with S256 is required".to_owned());
    };
    if parameters.get("code_challenge_method") != Some("S256") {
        return malformed("code_challenge_method must be S256".to_owned());
    }
    if !is_challenge(challenge) {
        return malformed("code_challenge must be a SHA-256 digest in base64url without padding".to_owned());
    }
    let scopes = match parameters.get("scope") {
        Some(text) => scopes(text).map_err(|text| ("invalid_scope", text))?,
        None => everyday(),
    };
    Ok((scopes, challenge.to_owned(), resource(resources, parameters)?.unwrap_or(Resource::Service)))
}

/// Reads scopes that are separated by spaces.
///
/// # Errors
/// The name of one that an app cannot have.
pub(super) fn scopes(text: &str) -> Result<ScopeSet, String> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    let scopes = words.map(|word| match Scope::parse(word) {
        None => Err(format!("there is no scope {word}")),
        Some(scope) if scope.is_retired() => Err(format!("the scope {word} is no longer offered")),
        Some(scope) if scope.is_partner_only() => Err(format!("the scope {word} is for partner keys only")),
        Some(scope) => Ok(scope),
    });
    let scopes = scopes.collect::<Result<ScopeSet, String>>()?;
    if scopes.is_empty() { Err("scope is empty".to_owned()) } else { Ok(scopes) }
}

/// Reads `resource`, which may be missing.
pub(super) fn resource(
    resources: &Resources,
    parameters: &Parameters,
) -> Result<Option<Resource>, (&'static str, String)> {
    if parameters.is_repeated("resource") {
        return Err(("invalid_target", "a token can be for one resource only".to_owned()));
    }
    let Some(value) = parameters.bytes("resource").filter(|value| !value.is_empty()) else { return Ok(None) };
    let read = resources.read(&String::from_utf8_lossy(value));
    read.map(Some).map_err(|refusal| (refusal.code.as_str(), refusal.description.to_owned()))
}
