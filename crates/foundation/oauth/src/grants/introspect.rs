//! What a client may know of its own tokens (RFC 7662).

use super::families::family_of;
use super::rows::{AccessRow, FamilyRow};
use super::{ACCESS, REFRESH, grant_row, key_in_force};
use crate::Resource;
use crate::schema::{oauth_access_tokens, oauth_families};
use auth::SecretText;
use diesel::prelude::*;
use model::{AccountId, Result, ScopeSet, Timestamp, WorkspaceId};
use store::Read;

/// The kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An access token.
    Access,
    /// A refresh token.
    Refresh,
}

/// A token that is valid now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introspection {
    /// The kind of token.
    pub kind: TokenKind,
    /// The scopes. Those of a refresh token are those of its grant.
    pub scopes: ScopeSet,
    /// The `client_id` of the client that has the token.
    pub client_id: String,
    /// The account that authorized the client.
    pub account: AccountId,
    /// The workspace that the client operates.
    pub workspace: WorkspaceId,
    /// What the token is for.
    pub resource: Resource,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it expires, unless a refresh token is used before.
    pub expires_at: Timestamp,
}

/// Returns a token of a client. Returns `None` if the token is not valid now or is another client's.
pub fn introspect(read: &mut Read, client_id: &str, token: &str) -> Result<Option<Introspection>> {
    let access = SecretText::parse(ACCESS, token).map(|token| token.hash().0);
    let refresh = SecretText::parse(REFRESH, token).map(|token| token.hash().0);
    let now = read.now();
    let access: Option<AccessRow> = match access {
        Some(hash) => oauth_access_tokens::table.find(&hash[..]).first(read.connection()).optional()?,
        None => None,
    };
    let family = match (&access, refresh) {
        (Some(token), _) => Some(token.family_id.clone()),
        (None, Some(hash)) => family_of(read, &hash)?,
        (None, None) => None,
    };
    let Some(family) = family else { return Ok(None) };
    let family: Option<FamilyRow> = oauth_families::table
        .find(family)
        .filter(oauth_families::client_id.eq(client_id))
        .filter(oauth_families::revoked_at.is_null())
        .filter(oauth_families::idle_end_at.gt(now))
        .first(read.connection())
        .optional()?;
    let Some(family) = family else { return Ok(None) };
    let grant = grant_row(read, &family.key_id)?;
    let Some(key) = key_in_force(read, &grant)? else { return Ok(None) };
    let held = key.key.scopes;
    let found = |kind, scopes, resource, issued_at, expires_at| Introspection {
        kind,
        scopes,
        client_id: family.client_id.clone(),
        account: grant.account_id.clone(),
        workspace: grant.workspace_id,
        resource,
        issued_at,
        expires_at,
    };
    Ok(match (access, refresh) {
        (Some(token), _) => {
            let scopes = ScopeSet::parse_stored(&token.scopes).without(|scope| !held.contains(scope));
            let is_valid = token.revoked_at.is_none() && now < token.expires_at;
            is_valid
                .then(|| found(TokenKind::Access, scopes, token.resource, token.created_at, token.expires_at))
        }
        // A refresh token that was used is not valid, even while its answer is repeated.
        (None, Some(hash)) if family.refresh_hash == hash => {
            Some(found(TokenKind::Refresh, held, family.resource, family.refreshed_at, family.idle_end_at))
        }
        (None, _) => None,
    })
}
