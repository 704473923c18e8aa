//! Operations on API keys.

use super::model::{CreatedKey, KeyRotation, NewWorkspaceKey, RotatedKey, WorkspaceKey, WorkspaceKeyPatch};
use accounts::Actor;
use accounts::audit::{self, Entry};
use auth::Directory;
use auth::keys::{self, KeyChange, NewKey, StoredKey};
use billing::ledger::budget_changed;
use model::{Caller, Error, KeyId, KeyOwner, Patch, Result, Scope, Timestamp};
use operation::{Body, Created, Json, Path, Rows, State, operation};
use serde_json::json;
use store::{Read, Tx};

/// The API keys of the workspace
///
/// Lists the keys that have a secret, oldest first, also those that are revoked or have expired. The keys of members and apps
/// have no secret and are not listed.
#[operation(get "/dashboard/keys", session = "keys:manage")]
pub fn list_keys(read: &mut Read, caller: &Caller) -> Result<Rows<WorkspaceKey>> {
    let stored = keys::list(read, Some(caller.workspace_id()))?;
    stored.into_iter().map(|key| WorkspaceKey::of(read, key)).collect::<Result<_>>().map(Rows)
}

/// Create an API key
///
/// The response has the secret, which is not stored and cannot be shown again. Needs a recent sign-in.
#[operation(post "/dashboard/keys", session = "keys:manage", recent_sign_in = always)]
pub fn create_key(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewWorkspaceKey>,
) -> Result<Created<CreatedKey>> {
    expect_future(new.expires_at, tx.now())?;
    let new = NewKey {
        name: new.name.trim().to_owned(),
        owner: KeyOwner::Workspace(caller.workspace_id()),
        env: new.env,
        scopes: parsed(&new.scopes)?,
        rate_limit_rpm: new.rate_limit_rpm,
        monthly_quota: new.monthly_quota,
        budget_cents: new.budget_cents,
        budget_cutoff: new.budget_cutoff,
        default_workspace: None,
        expires_at: new.expires_at,
    };
    let (stored, secret) = keys::create(tx, new)?;
    budget_changed(tx, &stored)?;
    let details = json!({ "name": stored.name, "env": stored.key.env, "scopes": stored.key.scopes });
    record(tx, caller, "key.created", &stored, details)?;
    CreatedKey::of(tx, stored, &secret).map(Created)
}

/// One API key
///
/// Returns the key with the spending of this month, without its secret.
#[operation(get "/dashboard/keys/{keyId}", session = "keys:manage")]
pub fn get_key(read: &mut Read, caller: &Caller, Path(key_id): Path<KeyId>) -> Result<Json<WorkspaceKey>> {
    let stored = keys::in_workspace(read, caller.workspace_id(), &key_id)?;
    WorkspaceKey::of(read, stored).map(Json)
}

/// Change an API key
///
/// Changes the name, the limits, the budget and the end of a key. Its scopes and environment stay: create another key for
/// others. The service notices within 10 seconds. Needs a recent sign-in.
#[operation(patch "/dashboard/keys/{keyId}", session = "keys:manage", recent_sign_in = always, when_blocked)]
pub fn update_key(
    tx: &mut Tx,
    caller: &Caller,
    Path(key_id): Path<KeyId>,
    Body(patch): Body<WorkspaceKeyPatch>,
    directory: State<Directory>,
) -> Result<Json<WorkspaceKey>> {
    let before = keys::in_workspace(tx, caller.workspace_id(), &key_id)?;
    if let Patch::Set(end) = patch.expires_at {
        expect_future(Some(end), tx.now())?;
    }
    let change = KeyChange {
        name: patch.name,
        rate_limit_rpm: patch.rate_limit_rpm.given(),
        monthly_quota: patch.monthly_quota.given(),
        expires_at: patch.expires_at.given(),
    };
    let mut stored = keys::change(tx, &key_id, &change)?;
    let budget = (patch.budget_cents.given(), patch.budget_cutoff);
    if budget != (None, None) {
        let cents = budget.0.unwrap_or(stored.key.budget_cents);
        stored = keys::set_budget(tx, &key_id, cents, budget.1.unwrap_or(stored.key.budget_cutoff))?;
        budget_changed(tx, &stored)?;
    }
    let details = json!({ "before": facts(&before), "after": facts(&stored) });
    record(tx, caller, "key.changed", &stored, details)?;
    directory.0.forget();
    WorkspaceKey::of(tx, stored).map(Json)
}

/// Rotate an API key
///
/// Creates a key with another secret and everything else as before, and ends the old one after `overlap_seconds`. Both share
/// limits, budget and usage. Needs a recent sign-in.
#[operation(post "/dashboard/keys/{keyId}/rotate", session = "keys:manage", recent_sign_in = always)]
pub fn rotate_key(
    tx: &mut Tx,
    caller: &Caller,
    Path(key_id): Path<KeyId>,
    Body(rotation): Body<KeyRotation>,
) -> Result<Created<RotatedKey>> {
    keys::in_workspace(tx, caller.workspace_id(), &key_id)?;
    let (old, new, secret) = keys::rotate(tx, &key_id, rotation.overlap_seconds)?;
    let details = json!({ "new_key": new.key.id, "overlap_seconds": rotation.overlap_seconds });
    record(tx, caller, "key.rotated", &old, details)?;
    Ok(Created(RotatedKey {
        object: "key_rotation",
        key: WorkspaceKey::of(tx, new)?,
        secret: secret.reveal().to_owned(),
        previous: WorkspaceKey::of(tx, old)?,
    }))
}

/// Revoke an API key
///
/// Ends a key: it stops working within 10 seconds and cannot be restored. Revoking it again changes nothing. Needs a recent sign-in.
#[operation(post "/dashboard/keys/{keyId}/revoke", session = "keys:manage", recent_sign_in = always, when_blocked)]
pub fn revoke_key(tx: &mut Tx, caller: &Caller, Path(key_id): Path<KeyId>) -> Result<Json<WorkspaceKey>> {
    let before = keys::in_workspace(tx, caller.workspace_id(), &key_id)?;
    let stored = keys::revoke(tx, &key_id)?;
    if before.revoked_at.is_none() {
        record(tx, caller, "key.revoked", &stored, json!({ "name": stored.name }))?;
    }
    WorkspaceKey::of(tx, stored).map(Json)
}

/// Writes a change of a key into the audit log.
fn record(
    tx: &mut Tx,
    caller: &Caller,
    action: &'static str,
    stored: &StoredKey,
    details: serde_json::Value,
) -> Result<()> {
    let entry = Entry::new(Actor::of(caller)?, action, stored.key.id.as_str());
    audit::record(tx, entry.workspace(caller.workspace_id()).details(details))
}

/// What can be changed of a key.
fn facts(stored: &StoredKey) -> serde_json::Value {
    json!({
        "name": stored.name, "rate_limit_rpm": stored.key.rate_limit_rpm, "monthly_quota": stored.key.monthly_quota,
        "budget_cents": stored.key.budget_cents, "budget_cutoff": stored.key.budget_cutoff,
        "expires_at": stored.expires_at,
    })
}

/// # Errors
/// `validation_error` for the first text that is no scope.
fn parsed(scopes: &[String]) -> Result<Vec<Scope>> {
    let scope = |(place, text): (usize, &String)| {
        let param = format!("scopes[{place}]");
        Scope::parse(text).ok_or_else(|| Error::invalid(param, format_args!("`{text}` is no scope")))
    };
    scopes.iter().enumerate().map(scope).collect()
}

/// # Errors
/// `validation_error` for an end that has passed: the key would never work.
fn expect_future(end: Option<Timestamp>, now: Timestamp) -> Result<()> {
    if end.is_some_and(|end| end <= now) {
        return Err(Error::invalid("expires_at", "must be in the future"));
    }
    Ok(())
}
