//! Grants, codes and families in the database.
//!
//! Each function is one transaction, or a part of one. A refusal is a value and not an error, because it often comes with a
//! change that must stay: a burned code, or a family that ended.

mod answer;
mod authorize;
mod exchange;
mod families;
mod introspect;
mod list;
mod purge;
mod refresh;
mod revoke;
mod rows;

pub use answer::{SEALED, TokenReply};
pub use authorize::{Authorization, authorize, find_grant};
pub use exchange::{CodeExchange, exchange};
pub use introspect::{Introspection, TokenKind, introspect};
pub use list::{Grant, grants_of_account, grants_of_workspace};
pub use purge::jobs;
pub use refresh::{Refresh, refresh};
pub use revoke::{record_ended_grants, revoke_grant, revoke_grants_of_client, revoke_token};

use accounts::account;
use auth::keys::{self, StoredKey};
use diesel::prelude::*;
use model::{AccountId, Env, Error, KeyId, Result, WorkspaceId};
use rows::GrantRow;
use store::{Read, Tx};

/// The prefix of authorization codes.
pub(crate) const CODE: &str = "svc_ac_";
/// The prefix of refresh tokens.
pub(crate) const REFRESH: &str = "svc_rt_";
/// The prefix of access tokens.
pub(crate) const ACCESS: &str = "svc_at_";

/// Returns the grant of a key.
fn grant_row(read: &mut Read, key: &KeyId) -> Result<GrantRow> {
    let found = crate::schema::oauth_grants::table.find(key).first(read.connection()).optional()?;
    found.ok_or_else(|| Error::internal("a code or family has no grant"))
}

/// Returns the key of a grant that is in force: it is neither revoked nor expired, and the account that authorized the app
/// is not disabled.
fn key_in_force(read: &mut Read, grant: &GrantRow) -> Result<Option<StoredKey>> {
    let now = read.now();
    let key = keys::find(read, &grant.key_id)?.filter(|key| key.check_usable(now).is_ok());
    match key {
        Some(key) if account::find(read, &grant.account_id)?.disabled_at.is_none() => Ok(Some(key)),
        _ => Ok(None),
    }
}

/// Makes authorizations of an app by a member, and the end of the last one, wait for each other.
fn lock_grant(
    tx: &mut Tx,
    account: &AccountId,
    workspace: WorkspaceId,
    env: Env,
    client_key: &str,
) -> Result<()> {
    tx.lock(&format!("oauth_grant:{account}:{workspace}:{}:{client_key}", env.as_str()))
}
