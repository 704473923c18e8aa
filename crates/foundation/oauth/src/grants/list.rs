//! The grants that members see.

use super::key_in_force;
use super::rows::GrantRow;
use crate::schema::{oauth_families, oauth_grants};
use auth::keys::StoredKey;
use diesel::dsl::max;
use diesel::prelude::*;
use model::{AccountId, Env, KeyId, MemberId, Result, ScopeSet, Timestamp, WorkspaceId};
use serde::Serialize;
use store::Read;

/// What a member has allowed an app, while it is in force.
#[derive(Debug, Clone, Serialize)]
pub struct Grant {
    /// The key through which the app acts.
    pub key_id: KeyId,
    /// The account that authorized the app.
    pub account: AccountId,
    /// Its member in the workspace.
    pub member: MemberId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The environment of the app's requests.
    pub env: Env,
    /// The `client_id` of the app, as it named itself last.
    pub client_id: String,
    /// The name that the app gave itself last.
    pub client_name: String,
    /// The scopes.
    pub scopes: ScopeSet,
    /// When the app was authorized for the first time.
    pub created_at: Timestamp,
    /// When it was authorized for the last time.
    pub updated_at: Timestamp,
    /// When it last received tokens. An app with tokens receives new ones at least once an hour of use.
    pub last_tokens_at: Option<Timestamp>,
}

impl Grant {
    pub(super) fn load(read: &mut Read, row: GrantRow, key: &StoredKey) -> Result<Self> {
        let last_tokens_at: Option<Timestamp> = oauth_families::table
            .filter(oauth_families::key_id.eq(&row.key_id))
            .select(max(oauth_families::refreshed_at))
            .first(read.connection())?;
        Ok(Self {
            key_id: row.key_id,
            account: row.account_id,
            member: row.member_id,
            workspace: row.workspace_id,
            env: row.env,
            client_id: row.client_id,
            client_name: row.client_name,
            scopes: key.key.scopes,
            created_at: row.created_at,
            updated_at: row.updated_at,
            last_tokens_at,
        })
    }
}

/// Returns the grants that an account has given in all workspaces, oldest first. Those that have ended are left out.
pub fn grants_of_account(read: &mut Read, account: &AccountId) -> Result<Vec<Grant>> {
    let rows = oauth_grants::table
        .filter(oauth_grants::account_id.eq(account))
        .order(oauth_grants::key_id.asc())
        .load(read.connection())?;
    in_force(read, rows)
}

/// Returns the grants in a workspace, oldest first. Those that have ended are left out.
pub fn grants_of_workspace(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<Grant>> {
    let rows = oauth_grants::table
        .filter(oauth_grants::workspace_id.eq(workspace))
        .order(oauth_grants::key_id.asc())
        .load(read.connection())?;
    in_force(read, rows)
}

fn in_force(read: &mut Read, rows: Vec<GrantRow>) -> Result<Vec<Grant>> {
    let mut grants = Vec::new();
    for row in rows {
        if let Some(key) = key_in_force(read, &row)? {
            grants.push(Grant::load(read, row, &key)?);
        }
    }
    Ok(grants)
}
