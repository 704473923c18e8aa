//! A member authorizes an app.

use super::list::Grant;
use super::rows::{CodeRow, GrantRow};
use super::{CODE, key_in_force, lock_grant};
use crate::schema::{oauth_codes, oauth_grants};
use crate::{Resource, machine};
use auth::SecretText;
use auth::keys::{self, NewKey, StoredKey};
use diesel::prelude::*;
use model::{AccountId, Env, MemberId, Result, ScopeSet, WorkspaceId};
use store::{Read, Tx};

/// What a member allows an app.
#[derive(Debug, Clone)]
pub struct Authorization {
    /// The account that allows it.
    pub account: AccountId,
    /// Its member in the workspace. The caller has checked that the member may authorize apps.
    pub member: MemberId,
    /// The workspace that the app may operate.
    pub workspace: WorkspaceId,
    /// The environment of the app's requests.
    pub env: Env,
    /// The `client_id` of the app.
    pub client_id: String,
    /// What stays the same when the app registers again (see [`crate::clients::Client::key`]).
    pub client_key: String,
    /// The name that the app gives itself.
    pub client_name: String,
    /// The redirect address, which the caller has checked.
    pub redirect_uri: String,
    /// The S256 challenge, which the caller has checked by [`machine::is_challenge`].
    pub challenge: String,
    /// What the tokens are for.
    pub resource: Resource,
    /// The scopes that the app asked for.
    pub scopes: ScopeSet,
}

/// Returns what a member has allowed an app so far, for the page that asks for more.
pub fn find_grant(
    read: &mut Read,
    account: &AccountId,
    workspace: WorkspaceId,
    env: Env,
    client_key: &str,
) -> Result<Option<Grant>> {
    let found = in_force(read, account, workspace, env, client_key)?;
    found.map(|(row, key)| Grant::load(read, row, &key)).transpose()
}

/// Grants an app its scopes, and returns the code that it exchanges for tokens. An app that has a grant in this workspace
/// and environment keeps it and gets the scopes in addition.
///
/// # Errors
/// `validation_error` for scopes that the key of a workspace cannot have.
pub fn authorize(tx: &mut Tx, new: &Authorization) -> Result<SecretText> {
    // Otherwise two tabs that allow the app at once would make two grants.
    lock_grant(tx, &new.account, new.workspace, new.env, &new.client_key)?;
    let found = in_force(tx, &new.account, new.workspace, new.env, &new.client_key)?;
    let key = match found {
        Some((row, _)) => extend(tx, &row, new)?,
        None => create(tx, new)?,
    };
    let code = SecretText::generate(CODE, &*tx.random());
    let now = tx.now();
    let row = CodeRow {
        code_hash: code.hash().0.to_vec(),
        key_id: key.key.id,
        client_id: new.client_id.clone(),
        redirect_uri: new.redirect_uri.clone(),
        challenge: new.challenge.clone(),
        resource: new.resource,
        scopes: new.scopes.to_string(),
        created_at: now,
        expires_at: now.plus_seconds(machine::CODE_SECONDS),
        used_at: None,
        family_id: None,
    };
    diesel::insert_into(oauth_codes::table).values(row).execute(tx.connection())?;
    Ok(code)
}

fn extend(tx: &mut Tx, row: &GrantRow, new: &Authorization) -> Result<StoredKey> {
    let key = keys::extend_grant(tx, &row.key_id, new.scopes)?;
    let now = tx.now();
    diesel::update(oauth_grants::table.find(&row.key_id))
        .set((
            oauth_grants::client_id.eq(&new.client_id),
            oauth_grants::client_name.eq(&new.client_name),
            oauth_grants::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(key)
}

fn create(tx: &mut Tx, new: &Authorization) -> Result<StoredKey> {
    let name = key_name(&new.client_name);
    let scopes = new.scopes.iter().collect();
    let key = NewKey::of_workspace(name, new.workspace, new.env, scopes);
    let key = keys::create_for_grant(tx, key, new.member)?;
    let row = GrantRow {
        key_id: key.key.id.clone(),
        account_id: new.account.clone(),
        workspace_id: new.workspace,
        member_id: new.member,
        env: new.env,
        client_id: new.client_id.clone(),
        client_key: new.client_key.clone(),
        client_name: new.client_name.clone(),
        created_at: tx.now(),
        updated_at: tx.now(),
    };
    diesel::insert_into(oauth_grants::table).values(row).execute(tx.connection())?;
    Ok(key)
}

/// Returns the name of an app as that of a key: 1 to 80 characters.
fn key_name(client_name: &str) -> String {
    match client_name.trim() {
        "" => "OAuth app".to_owned(),
        name => name.chars().take(80).collect(),
    }
}

/// Returns the grant of an app that is in force, with its key. There is at most one: another is created only when it has
/// ended.
fn in_force(
    read: &mut Read,
    account: &AccountId,
    workspace: WorkspaceId,
    env: Env,
    client_key: &str,
) -> Result<Option<(GrantRow, StoredKey)>> {
    let rows: Vec<GrantRow> = oauth_grants::table
        .filter(oauth_grants::account_id.eq(account))
        .filter(oauth_grants::workspace_id.eq(workspace))
        .filter(oauth_grants::env.eq(env))
        .filter(oauth_grants::client_key.eq(client_key))
        .order(oauth_grants::key_id.desc())
        .load(read.connection())?;
    // Not the newest alone: ids of one millisecond have no order.
    for row in rows {
        if let Some(key) = key_in_force(read, &row)? {
            return Ok(Some((row, key)));
        }
    }
    Ok(None)
}
