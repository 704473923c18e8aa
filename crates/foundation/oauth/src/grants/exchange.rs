//! A client exchanges a code for tokens.

use super::answer::{TokenReply, issue, new_refresh_token};
use super::revoke::end_family;
use super::rows::{CodeRow, FamilyRow};
use super::{CODE, grant_row, key_in_force};
use crate::events::RevocationReason;
use crate::machine::{self, CodeDecision, CodeRequest, CodeState, CodeUse};
use crate::refusal::Refusal;
use crate::schema::{oauth_codes, oauth_families};
use auth::SecretText;
use diesel::prelude::*;
use model::{FamilyId, Result, ScopeSet};
use store::{Tx, for_update};

/// A request with `grant_type=authorization_code`.
#[derive(Debug, Clone)]
pub struct CodeExchange {
    /// The authenticated client.
    pub client_id: String,
    /// The code.
    pub code: String,
    /// The redirect address.
    pub redirect_uri: String,
    /// The PKCE verifier.
    pub verifier: String,
    /// What the access token is to be for, if the request names it.
    pub resource: Option<crate::Resource>,
}

/// Exchanges a code for tokens. A second exchange revokes the tokens of the first.
pub fn exchange(tx: &mut Tx, request: &CodeExchange) -> Result<TokenReply> {
    let unknown = || Ok(TokenReply::Refused(Refusal::grant("the code is not valid")));
    let Some(code) = SecretText::parse(CODE, &request.code) else { return unknown() };
    let hash = code.hash().0.to_vec();
    // Locked, so that of two exchanges at once the second one sees the family that the first began.
    let row: Option<CodeRow> =
        for_update(oauth_codes::table.find(&hash)).get_result(tx.connection()).optional()?;
    let Some(row) = row else { return unknown() };
    let grant = grant_row(tx, &row.key_id)?;
    let key = key_in_force(tx, &grant)?;
    let state = CodeState {
        client_id: &row.client_id,
        redirect_uri: &row.redirect_uri,
        challenge: &row.challenge,
        resource: row.resource,
        expires_at: row.expires_at,
        state: if row.used_at.is_some() { CodeUse::Used } else { CodeUse::Unused },
        granted: key.is_some(),
    };
    let asked = CodeRequest {
        client_id: &request.client_id,
        redirect_uri: &request.redirect_uri,
        verifier: &request.verifier,
        resource: request.resource,
    };
    match machine::decide_code(tx.now(), &state, &asked) {
        CodeDecision::Exchange(resource) => {
            // Since the member agreed, a scope can have been retired.
            let held = key.map(|key| key.key.scopes).unwrap_or_default();
            let scopes = ScopeSet::parse_stored(&row.scopes).without(|scope| !held.contains(scope));
            let refresh_token = new_refresh_token(tx);
            let family = begin_family(tx, &row, &refresh_token)?;
            use_up(tx, &hash, Some(&family.id))?;
            Ok(TokenReply::Issued(issue(tx, &family, &refresh_token, scopes, resource)?))
        }
        CodeDecision::Burn(refusal) => {
            use_up(tx, &hash, None)?;
            Ok(TokenReply::Refused(refusal))
        }
        CodeDecision::EndFamily(refusal) => {
            if let Some(family) = row.family_id.as_ref().filter(|_| key.is_some()) {
                end_family(tx, &grant, family, RevocationReason::CodeReused)?;
            }
            Ok(TokenReply::Refused(refusal))
        }
    }
}

fn begin_family(tx: &mut Tx, code: &CodeRow, refresh_token: &SecretText) -> Result<FamilyRow> {
    let now = tx.now();
    let ends_at = now.plus_seconds(machine::FAMILY_SECONDS);
    let row = |id| FamilyRow {
        id,
        key_id: code.key_id.clone(),
        client_id: code.client_id.clone(),
        resource: code.resource,
        refresh_hash: refresh_token.hash().0.to_vec(),
        generation: 0,
        created_at: now,
        refreshed_at: now,
        idle_end_at: machine::idle_end(now, ends_at),
        ends_at,
        revoked_at: None,
    };
    let family = row(FamilyId::new(now, &*tx.random()));
    diesel::insert_into(oauth_families::table).values(&family).execute(tx.connection())?;
    Ok(family)
}

fn use_up(tx: &mut Tx, hash: &[u8], family: Option<&FamilyId>) -> Result<()> {
    let now = tx.now();
    diesel::update(oauth_codes::table.find(hash))
        .set((oauth_codes::used_at.eq(now), oauth_codes::family_id.eq(family)))
        .execute(tx.connection())?;
    Ok(())
}
