//! The state machine of authorization codes and refresh tokens: decisions over what is stored and what is asked, without
//! I/O. `docs/internals/oauth.md` explains it.

use crate::refusal::{Refusal, RefusalCode};
use crate::resource::Resource;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Scope, ScopeSet, Timestamp};
use ring::digest::{SHA256, digest};

/// The lifetime of an authorization code, in seconds.
pub const CODE_SECONDS: i64 = 60;
/// The lifetime of an access token, in seconds.
pub const ACCESS_SECONDS: i64 = 3600;
/// A refresh token that is not used for this long ends, in seconds: 60 days.
pub const IDLE_SECONDS: i64 = 60 * 24 * 3600;
/// The longest life of a family, however often it is refreshed, in seconds: a year.
pub const FAMILY_SECONDS: i64 = 365 * 24 * 3600;
/// How long a used refresh token gets the answer that it got first, in seconds.
pub const REPEAT_SECONDS: i64 = 30;

/// Whether an authorization code can still be exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeUse {
    /// Nobody has presented it.
    Unused,
    /// It was presented, and refused or exchanged.
    Used,
}

/// What is known of an authorization code.
#[derive(Debug, Clone, Copy)]
pub struct CodeState<'a> {
    /// The client that asked for it.
    pub client_id: &'a str,
    /// The redirect address that it was sent to.
    pub redirect_uri: &'a str,
    /// The S256 challenge.
    pub challenge: &'a str,
    /// What tokens of it are for.
    pub resource: Resource,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Whether it was presented before.
    pub state: CodeUse,
    /// Whether its grant is in force.
    pub granted: bool,
}

/// A request to exchange a code.
#[derive(Debug, Clone, Copy)]
pub struct CodeRequest<'a> {
    /// The authenticated client.
    pub client_id: &'a str,
    /// The redirect address, as in the authorization request.
    pub redirect_uri: &'a str,
    /// The PKCE verifier.
    pub verifier: &'a str,
    /// What the token is to be for, if the request names it.
    pub resource: Option<Resource>,
}

/// What becomes of a code that a client presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeDecision {
    /// It begins a family, whose first access token is for this resource.
    Exchange(Resource),
    /// It is used up without tokens.
    Burn(Refusal),
    /// It is presented again: the family that it began ends.
    EndFamily(Refusal),
}

/// Decides on a code. Any mistake burns it: whoever has made it either does not have what the code is bound to, or can ask
/// for another code.
pub fn decide_code(now: Timestamp, code: &CodeState<'_>, request: &CodeRequest<'_>) -> CodeDecision {
    let burn = |description| CodeDecision::Burn(Refusal::grant(description));
    if code.state == CodeUse::Used {
        return CodeDecision::EndFamily(Refusal::grant("the code was used before"));
    }
    if !code.granted {
        return burn("the authorization was revoked");
    }
    if now >= code.expires_at {
        return burn("the code has expired");
    }
    if code.client_id != request.client_id {
        return burn("the code was issued to another client");
    }
    if code.redirect_uri != request.redirect_uri {
        return burn("`redirect_uri` differs from that of the authorization request");
    }
    if !verifies(code.challenge, request.verifier) {
        return burn("`code_verifier` does not fit the code challenge");
    }
    match narrowed_resource(code.resource, request.resource) {
        Ok(resource) => CodeDecision::Exchange(resource),
        Err(refusal) => CodeDecision::Burn(refusal),
    }
}

/// What is known of a family.
#[derive(Debug, Clone, Copy)]
pub struct FamilyState<'a> {
    /// The client that it belongs to.
    pub client_id: &'a str,
    /// What its tokens are for.
    pub resource: Resource,
    /// When it ends unless it is refreshed.
    pub idle_end_at: Timestamp,
    /// When it ends in any case.
    pub ends_at: Timestamp,
    /// Whether it was revoked.
    pub revoked: bool,
    /// The scopes of its grant, which are empty if the grant is not in force.
    pub scopes: ScopeSet,
}

/// The place of a refresh token in its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenState {
    /// The newest.
    Active,
    /// It was used at this time.
    Superseded(Timestamp),
}

/// A request to refresh.
#[derive(Debug, Clone, Copy)]
pub struct RefreshRequest<'a> {
    /// The authenticated client.
    pub client_id: &'a str,
    /// The scopes of the new access token, separated by spaces. `None` asks for all.
    pub scope: Option<&'a str>,
    /// What the new access token is to be for, if the request names it.
    pub resource: Option<Resource>,
}

/// What becomes of a refresh token that a client presents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshDecision {
    /// A successor replaces it.
    Rotate(Rotation),
    /// The client gets the answer that the token got first.
    Repeat,
    /// Nothing changes.
    Refuse(Refusal),
    /// It is used again too late: its family ends.
    EndFamily(Refusal),
}

/// The next generation of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The scopes of the access token.
    pub scopes: ScopeSet,
    /// What the access token is for.
    pub resource: Resource,
    /// When the family ends unless it is refreshed again.
    pub idle_end_at: Timestamp,
}

/// Decides on a refresh token.
pub fn decide_refresh(
    now: Timestamp,
    family: &FamilyState<'_>,
    token: TokenState,
    request: &RefreshRequest<'_>,
) -> RefreshDecision {
    let refuse = |description| RefreshDecision::Refuse(Refusal::grant(description));
    if family.client_id != request.client_id {
        return refuse("the refresh token was issued to another client");
    }
    if family.revoked || family.scopes.is_empty() {
        return refuse("the authorization was revoked");
    }
    if now >= family.idle_end_at || now >= family.ends_at {
        return refuse("the refresh token has expired");
    }
    if let TokenState::Superseded(at) = token {
        return match now < at.plus_seconds(REPEAT_SECONDS) {
            true => RefreshDecision::Repeat,
            false => RefreshDecision::EndFamily(Refusal::grant("the refresh token was used before")),
        };
    }
    let scopes = narrowed_scopes(family.scopes, request.scope);
    let resource = narrowed_resource(family.resource, request.resource);
    match scopes.and_then(|scopes| Ok((scopes, resource?))) {
        Ok((scopes, resource)) => {
            let idle_end_at = idle_end(now, family.ends_at);
            RefreshDecision::Rotate(Rotation { scopes, resource, idle_end_at })
        }
        Err(refusal) => RefreshDecision::Refuse(refusal),
    }
}

/// Returns when a family ends that is refreshed now.
pub fn idle_end(now: Timestamp, ends_at: Timestamp) -> Timestamp {
    now.plus_seconds(IDLE_SECONDS).min(ends_at)
}

/// Returns when an access token of a family ends that is issued now.
pub fn access_end(now: Timestamp, family_ends_at: Timestamp) -> Timestamp {
    now.plus_seconds(ACCESS_SECONDS).min(family_ends_at)
}

/// Returns whether a text can be the S256 challenge of a PKCE verifier: 32 bytes in base64url.
pub fn is_challenge(text: &str) -> bool {
    text.len() == 43 && URL_SAFE_NO_PAD.decode(text).is_ok()
}

/// Returns whether a verifier is well-formed (RFC 7636, 4.1) and belongs to a challenge.
fn verifies(challenge: &str, verifier: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    (43..=128).contains(&verifier.len())
        && verifier.bytes().all(is_unreserved)
        // Digests are compared. How far they agree says nothing about the verifier.
        && URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())) == challenge
}

/// Reads scopes that must all be granted.
fn narrowed_scopes(granted: ScopeSet, asked: Option<&str>) -> Result<ScopeSet, Refusal> {
    let Some(asked) = asked.map(str::trim).filter(|asked| !asked.is_empty()) else { return Ok(granted) };
    let scope = |word: &str| {
        Scope::parse(word).filter(|scope| granted.contains(*scope)).ok_or_else(|| {
            Refusal::new(RefusalCode::InvalidScope, "`scope` has a scope that was not granted")
        })
    };
    asked.split_ascii_whitespace().map(scope).collect()
}

/// A token for the service can be narrowed to the MCP server, and never the other way.
fn narrowed_resource(granted: Resource, asked: Option<Resource>) -> Result<Resource, Refusal> {
    match (granted, asked) {
        (granted, None) => Ok(granted),
        (Resource::Service, Some(asked)) => Ok(asked),
        (Resource::Mcp, Some(Resource::Mcp)) => Ok(Resource::Mcp),
        (Resource::Mcp, Some(Resource::Service)) => {
            let description = "`resource` is wider than that of the authorization";
            Err(Refusal::new(RefusalCode::InvalidTarget, description))
        }
    }
}
