//! A client refreshes its tokens.

use super::answer::{SEALED, TokenReply, issue, new_refresh_token, place};
use super::families::{family_of, used_token};
use super::revoke::end_family;
use super::rows::{FamilyRow, UsedRow};
use super::{REFRESH, grant_row, key_in_force};
use crate::events::RevocationReason;
use crate::machine::{self, FamilyState, RefreshDecision, RefreshRequest, Rotation, TokenState};
use crate::refusal::Refusal;
use crate::schema::{oauth_families, oauth_used_refresh_tokens};
use auth::{Seal, SecretText};
use diesel::prelude::*;
use model::{Error, Result};
use store::{Tx, for_update};

/// A request with `grant_type=refresh_token`.
#[derive(Debug, Clone)]
pub struct Refresh {
    /// The authenticated client.
    pub client_id: String,
    /// The refresh token.
    pub refresh_token: String,
    /// The scopes of the new access token, separated by spaces. `None` asks for all.
    pub scope: Option<String>,
    /// What the access token is to be for, if the request names it.
    pub resource: Option<crate::Resource>,
}

/// Exchanges a refresh token for its successor and an access token. The same client gets the identical answer for 30
/// seconds. Later the family ends.
pub fn refresh(tx: &mut Tx, seal: &Seal, request: &Refresh) -> Result<TokenReply> {
    let unknown = || Ok(TokenReply::Refused(Refusal::grant("the refresh token is not valid")));
    let Some(token) = SecretText::parse(REFRESH, &request.refresh_token) else { return unknown() };
    let hash = token.hash().0.to_vec();
    let Some(id) = family_of(tx, &hash)? else { return unknown() };
    // Of two refreshes at once, the second one waits here and then finds the token used. It must read that in a statement
    // of its own: PostgreSQL returns the newest version of a locked row, but of other rows those from before the wait.
    let family: Option<FamilyRow> =
        for_update(oauth_families::table.find(&id)).get_result(tx.connection()).optional()?;
    let Some(family) = family else { return unknown() };
    let used = used_token(tx, &hash)?;
    let state = match &used {
        Some(used) => TokenState::Superseded(used.used_at),
        None if family.refresh_hash == hash => TokenState::Active,
        None => return unknown(),
    };
    let grant = grant_row(tx, &family.key_id)?;
    let key = key_in_force(tx, &grant)?;
    let stands = FamilyState {
        client_id: &family.client_id,
        resource: family.resource,
        idle_end_at: family.idle_end_at,
        ends_at: family.ends_at,
        revoked: family.revoked_at.is_some(),
        scopes: key.map(|key| key.key.scopes).unwrap_or_default(),
    };
    let asked = RefreshRequest {
        client_id: &request.client_id,
        scope: request.scope.as_deref(),
        resource: request.resource,
    };
    match machine::decide_refresh(tx.now(), &stands, state, &asked) {
        RefreshDecision::Rotate(rotation) => rotate(tx, seal, family, rotation),
        RefreshDecision::Repeat => match used.and_then(|used| used.answer) {
            Some(sealed) => Ok(TokenReply::Issued(seal.open(&place(&hash), &sealed)?)),
            None => Err(Error::internal("the answer of a refresh token was purged too early")),
        },
        RefreshDecision::Refuse(refusal) => Ok(TokenReply::Refused(refusal)),
        RefreshDecision::EndFamily(refusal) => {
            end_family(tx, &grant, &family.id, RevocationReason::RefreshTokenReused)?;
            Ok(TokenReply::Refused(refusal))
        }
    }
}

fn rotate(tx: &mut Tx, seal: &Seal, family: FamilyRow, rotation: Rotation) -> Result<TokenReply> {
    let Rotation { scopes, resource, idle_end_at } = rotation;
    let (now, next) = (tx.now(), new_refresh_token(tx));
    let answer = issue(tx, &family, &next, scopes, resource)?;
    let sealed = seal.seal(&SEALED, &place(&family.refresh_hash), &answer, &*tx.random())?;
    diesel::update(oauth_families::table.find(&family.id))
        .set((
            oauth_families::refresh_hash.eq(next.hash().0.to_vec()),
            oauth_families::generation.eq(family.generation + 1),
            oauth_families::refreshed_at.eq(now),
            oauth_families::idle_end_at.eq(idle_end_at),
        ))
        .execute(tx.connection())?;
    let used = UsedRow {
        refresh_hash: family.refresh_hash,
        family_id: family.id,
        used_at: now,
        answer: Some(sealed),
    };
    diesel::insert_into(oauth_used_refresh_tokens::table).values(used).execute(tx.connection())?;
    Ok(TokenReply::Issued(answer))
}
