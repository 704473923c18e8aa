//! The end of tokens, families and grants.

use super::families::family_of;
use super::rows::{FamilyRow, GrantRow};
use super::{ACCESS, REFRESH, grant_row, key_in_force, lock_grant};
use crate::events::{AppEvent, AuthorizationRevoked, RevocationReason};
use crate::schema::{oauth_access_tokens, oauth_codes, oauth_families, oauth_grants};
use accounts::audit::{self, Actor, Entry};
use auth::SecretText;
use auth::keys;
use diesel::prelude::*;
use model::{Cause, Env, Error, FamilyId, KeyId, Result, WorkspaceId};
use serde_json::json;
use store::{Tx, for_update};

/// How long the row of a family stays that was revoked, in seconds: until its last access token has expired, and longer.
const REVOKED_ROWS_SECONDS: i64 = 24 * 3600;

/// Revokes a token for the client to which it was issued (RFC 7009): an access token alone, and a refresh token with its
/// family. A grant without another family ends with it. Other tokens are ignored.
pub fn revoke_token(tx: &mut Tx, client_id: &str, token: &str) -> Result<()> {
    if let Some(token) = SecretText::parse(ACCESS, token) {
        return revoke_access_token(tx, client_id, &token.hash().0);
    }
    let Some(token) = SecretText::parse(REFRESH, token) else { return Ok(()) };
    let Some(id) = family_of(tx, &token.hash().0)? else { return Ok(()) };
    let of_client = oauth_families::table.find(&id).filter(oauth_families::client_id.eq(client_id));
    let family: Option<FamilyRow> = for_update(of_client).get_result(tx.connection()).optional()?;
    let now = tx.now();
    let is_open = |family: &FamilyRow| family.revoked_at.is_none() && family.idle_end_at > now;
    let Some(family) = family.filter(is_open) else { return Ok(()) };
    let grant = grant_row(tx, &family.key_id)?;
    if key_in_force(tx, &grant)?.is_none() {
        return Ok(());
    }
    mark_ended(tx, &family.id)?;
    lock_grant(tx, &grant.account_id, grant.workspace_id, grant.env, &grant.client_key)?;
    let cause = Cause::system("oauth");
    match is_in_use(tx, &grant.key_id)? {
        true => emit(tx, &grant, &cause, RevocationReason::SignedOut, false),
        false => end_grant(tx, &grant, &cause, RevocationReason::SignedOut).map(|_| ()),
    }
}

fn revoke_access_token(tx: &mut Tx, client_id: &str, hash: &[u8]) -> Result<()> {
    let now = tx.now();
    let families =
        oauth_families::table.filter(oauth_families::client_id.eq(client_id)).select(oauth_families::id);
    let token = oauth_access_tokens::table
        .find(hash)
        .filter(oauth_access_tokens::revoked_at.is_null())
        .filter(oauth_access_tokens::family_id.eq_any(families));
    diesel::update(token).set(oauth_access_tokens::revoked_at.eq(now)).execute(tx.connection())?;
    Ok(())
}

/// Returns whether a grant has a family, or a code that can begin one.
fn is_in_use(tx: &mut Tx, key: &KeyId) -> Result<bool> {
    let now = tx.now();
    let families: i64 = oauth_families::table
        .filter(oauth_families::key_id.eq(key))
        .filter(oauth_families::revoked_at.is_null())
        .filter(oauth_families::idle_end_at.gt(now))
        .count()
        .get_result(tx.connection())?;
    let codes: i64 = oauth_codes::table
        .filter(oauth_codes::key_id.eq(key))
        .filter(oauth_codes::used_at.is_null())
        .filter(oauth_codes::expires_at.gt(now))
        .count()
        .get_result(tx.connection())?;
    Ok(families + codes > 0)
}

/// Ends a grant of a workspace. Returns `false` if it had ended before.
///
/// # Errors
/// `not_found`.
pub fn revoke_grant(tx: &mut Tx, workspace: WorkspaceId, key: &KeyId, cause: &Cause) -> Result<bool> {
    let row = oauth_grants::table.find(key).filter(oauth_grants::workspace_id.eq(workspace));
    let grant: Option<GrantRow> = for_update(row).get_result(tx.connection()).optional()?;
    let grant = grant.ok_or_else(|| Error::not_found("grant"))?;
    end_grant(tx, &grant, cause, RevocationReason::Revoked)
}

/// Ends all grants of an app, in all workspaces, and returns how many.
pub fn revoke_grants_of_client(tx: &mut Tx, client_key: &str, cause: &Cause) -> Result<usize> {
    let rows = oauth_grants::table.filter(oauth_grants::client_key.eq(client_key));
    let grants: Vec<GrantRow> = for_update(rows.order(oauth_grants::key_id.asc())).load(tx.connection())?;
    let mut ended = 0;
    for grant in &grants {
        ended += usize::from(end_grant(tx, grant, cause, RevocationReason::Revoked)?);
    }
    Ok(ended)
}

/// Records that grants ended with the access of the member who authorized the apps. Their keys are revoked already.
pub fn record_ended_grants(tx: &mut Tx, keys: &[KeyId], cause: &Cause) -> Result<()> {
    let rows = oauth_grants::table.filter(oauth_grants::key_id.eq_any(keys));
    let grants: Vec<GrantRow> = rows.order(oauth_grants::key_id.asc()).load(tx.connection())?;
    grants.iter().try_for_each(|grant| emit(tx, grant, cause, RevocationReason::MemberChanged, true))
}

/// Revokes the key of a grant, which ends its tokens. Returns `false` if it was revoked.
fn end_grant(tx: &mut Tx, grant: &GrantRow, cause: &Cause, reason: RevocationReason) -> Result<bool> {
    let key = keys::by_id(tx, &grant.key_id)?;
    if key.revoked_at.is_some() {
        return Ok(false);
    }
    keys::revoke(tx, &grant.key_id)?;
    emit(tx, grant, cause, reason, true)?;
    Ok(true)
}

/// Ends a family, if it has not ended.
pub(super) fn end_family(
    tx: &mut Tx,
    grant: &GrantRow,
    family: &FamilyId,
    reason: RevocationReason,
) -> Result<()> {
    match mark_ended(tx, family)? {
        true => emit(tx, grant, &Cause::system("oauth"), reason, false),
        false => Ok(()),
    }
}

/// Returns `false` if the family had ended before.
fn mark_ended(tx: &mut Tx, family: &FamilyId) -> Result<bool> {
    let now = tx.now();
    let open = oauth_families::table.find(family).filter(oauth_families::revoked_at.is_null());
    let ended = diesel::update(open)
        .set((
            oauth_families::revoked_at.eq(now),
            // The purge goes by this column.
            oauth_families::idle_end_at.eq(now.plus_seconds(REVOKED_ROWS_SECONDS)),
        ))
        .execute(tx.connection())?;
    Ok(ended == 1)
}

/// Tells the workspace and the audit log.
fn emit(
    tx: &mut Tx,
    grant: &GrantRow,
    cause: &Cause,
    reason: RevocationReason,
    authorization_ended: bool,
) -> Result<()> {
    let data = AuthorizationRevoked {
        key_id: &grant.key_id,
        client_id: &grant.client_id,
        name: &grant.client_name,
        authorized_by: grant.member_id,
        reason,
        authorization_ended,
    };
    let details = json!({ "reason": reason, "authorization_ended": authorization_ended, "by": cause.actor });
    let entry = Entry::new(Actor::Service, "app.revoked", grant.key_id.as_str());
    audit::record(tx, entry.workspace(grant.workspace_id).details(details))?;
    tx.emit(grant.workspace_id, cause, grant.env == Env::Live, &AppEvent::Revoked(data))?;
    Ok(())
}
