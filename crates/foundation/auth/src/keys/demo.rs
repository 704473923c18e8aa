//! The demo key: a published secret with which everybody can read a fictional workspace.

use super::{Holder, KeyKind, NewKey, by_hash, insert};
use crate::schema::api_keys;
use crate::secret::KeySecret;
use diesel::prelude::*;
use model::{Env, Error, Result, Scope, WorkspaceId};
use store::Tx;

/// The secret of the demo key. It is published, and it is the same in all installations.
pub const DEMO_SECRET: &str = "svc_test_demokeydemokeydemokeydemokey0000xwcscy";

/// The most requests in a minute with the demo key, from each address: whoever comes first must not use up what others have.
pub const DEMO_RATE_LIMIT_RPM: i64 = 60;

/// Makes the demo key usable, or unusable. `workspace` makes the fictional workspace when the key is offered for the first time.
///
/// # Errors
/// When the database fails.
pub fn offer_demo(
    tx: &mut Tx,
    is_offered: bool,
    workspace: impl FnOnce(&mut Tx) -> Result<WorkspaceId>,
) -> Result<()> {
    let secret = KeySecret::parse(DEMO_SECRET).ok_or_else(|| Error::internal("the demo key is no key"))?;
    // Replicas that start at once make one key and one workspace.
    tx.lock("demo key")?;
    let revoked_at = (!is_offered).then(|| tx.now());
    match by_hash(tx, secret.hash())? {
        Some(stored) if stored.revoked_at.is_none() != is_offered => {
            diesel::update(api_keys::table.find(&stored.key.id))
                .set(api_keys::revoked_at.eq(revoked_at))
                .execute(tx.connection())?;
        }
        None if is_offered => {
            let workspace = workspace(tx)?;
            let scopes = Scope::of_workspaces().filter(|scope| scope.as_str().ends_with(":read")).collect();
            let new = NewKey::of_workspace("Demo key".to_owned(), workspace, Env::Test, scopes);
            insert(tx, new, secret.hash(), Holder { kind: KeyKind::Demo, role: None, member: None })?;
        }
        Some(_) | None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_text_is_a_test_key() {
        assert_eq!(KeySecret::parse(DEMO_SECRET).unwrap().env(), Env::Test);
    }
}
