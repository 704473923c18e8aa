//! The answers of the token endpoint, and their sealed copies for clients that did not receive them.

use super::rows::{AccessRow, FamilyRow};
use super::{ACCESS, REFRESH};
use crate::refusal::Refusal;
use crate::schema::{oauth_access_tokens, oauth_used_refresh_tokens};
use crate::{Resource, machine};
use auth::reseal::{PIECE, position};
use auth::{Piece, Seal, SealedTable, SecretText};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel::prelude::*;
use model::{Error, Result, ScopeSet};
use serde::Serialize;
use store::Tx;

/// The answer of the token endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenReply {
    /// The body of the answer, as JSON.
    Issued(String),
    /// Why there are no tokens.
    Refused(Refusal),
}

/// The body of an answer (RFC 6749, 5.1).
#[derive(Serialize)]
struct Body<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    refresh_token: &'a str,
    scope: String,
}

/// Returns scopes as OAuth writes them, separated by spaces.
pub(super) fn spaced(scopes: ScopeSet) -> String {
    scopes.to_string().replace(',', " ")
}

/// Returns a new refresh token.
pub(super) fn new_refresh_token(tx: &Tx) -> SecretText {
    SecretText::generate(REFRESH, &*tx.random())
}

/// Issues an access token of a family, and returns the answer with it and the family's refresh token.
pub(super) fn issue(
    tx: &mut Tx,
    family: &FamilyRow,
    refresh_token: &SecretText,
    scopes: ScopeSet,
    resource: Resource,
) -> Result<String> {
    let token = SecretText::generate(ACCESS, &*tx.random());
    let now = tx.now();
    let row = AccessRow {
        token_hash: token.hash().0.to_vec(),
        family_id: family.id.clone(),
        key_id: family.key_id.clone(),
        resource,
        scopes: scopes.to_string(),
        created_at: now,
        expires_at: machine::access_end(now, family.ends_at),
        revoked_at: None,
    };
    let body = Body {
        access_token: token.reveal(),
        token_type: "Bearer",
        expires_in: row.expires_at.seconds() - now.seconds(),
        refresh_token: refresh_token.reveal(),
        scope: spaced(scopes),
    };
    let answer = serde_json::to_string(&body).map_err(Error::internal)?;
    diesel::insert_into(oauth_access_tokens::table).values(row).execute(tx.connection())?;
    Ok(answer)
}

/// The table of sealed answers.
pub const SEALED: SealedTable =
    SealedTable { table: "oauth_used_refresh_tokens", columns: &["answer"], reseal };

/// Returns what the sealed answer of a refresh token is bound to.
pub(super) fn place(refresh_hash: &[u8]) -> String {
    format!("oauth_answer:{}", URL_SAFE_NO_PAD.encode(refresh_hash))
}

fn reseal(tx: &mut Tx, seal: &Seal, after: Option<&str>) -> Result<Option<Piece>> {
    use oauth_used_refresh_tokens::{answer, refresh_hash};
    let mut rows = oauth_used_refresh_tokens::table
        .filter(answer.is_not_null())
        .select((refresh_hash, answer.assume_not_null()))
        .order(refresh_hash.asc())
        .limit(PIECE)
        .into_boxed();
    if let Some(last) = position::<Vec<u8>>(after)? {
        rows = rows.filter(refresh_hash.gt(last));
    }
    let rows: Vec<(Vec<u8>, String)> = rows.load(tx.connection())?;
    let Some((last, _)) = rows.last() else { return Ok(None) };
    let mut piece = Piece::ending(last)?;
    for (hash, old) in &rows {
        if let Some(new) = piece.count(seal.reseal(&SEALED, &place(hash), old, &*tx.random())) {
            let row = oauth_used_refresh_tokens::table.find(hash).filter(answer.eq(old));
            diesel::update(row).set(answer.eq(new)).execute(tx.connection())?;
        }
    }
    Ok(Some(piece))
}
