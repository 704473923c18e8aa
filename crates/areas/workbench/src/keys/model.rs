//! Request bodies and responses about API keys.

use auth::KeySecret;
use auth::keys::StoredKey;
use billing::ledger::spent_cents;
use model::{Env, KeyId, KeyOwner, Patch, Result, Scope, Timestamp, text_enum};
use operation::request_hours;
use serde::{Deserialize, Serialize};
use store::Read;
use utoipa::ToSchema;

text_enum! {
    /// Whether a key can be used.
    pub enum KeyStatus {
        /// It can be used.
        Active = "active",
        /// Its time is over.
        Expired = "expired",
        /// It was revoked, and stays so.
        Revoked = "revoked",
    }
}

/// An API key of the workspace. Its secret is shown once, when it is created.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Shop", "env": "live", "status": "active", "scopes": ["contacts:read", "runs:execute"], "rate_limit_rpm": 120,
    "monthly_quota": 20000, "budget": { "cents": 5000, "cutoff": true, "spent_cents": 1250 },
}))]
pub struct WorkspaceKey {
    /// The id of the key. It cannot be used to authenticate.
    pub id: KeyId,
    /// Always `api_key`.
    pub object: &'static str,
    /// The name for people.
    pub name: String,
    /// Whether actions of the key have real effects.
    pub env: Env,
    /// Whether the key can be used.
    pub status: KeyStatus,
    /// What the key may do.
    pub scopes: Vec<String>,
    /// Requests per minute, if the key has a limit of its own. The plan's limit applies too.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month, if the key has a limit of its own. The plan's limit applies too.
    pub monthly_quota: Option<i64>,
    /// The monthly budget for Energy, if there is one.
    pub budget: Option<WorkspaceKeyBudget>,
    /// The first key of the rotations that led to this one. Limits, budget and usage are shared by all of them.
    pub lineage_id: KeyId,
    /// When the hour of the last request of the key began, if that is in the last 90 days.
    pub last_used_at: Option<Timestamp>,
    /// When the key stops working.
    pub expires_at: Option<Timestamp>,
    /// When the key was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// The monthly budget of a key for Energy.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "cents": 5000, "cutoff": true, "spent_cents": 1250 }))]
pub struct WorkspaceKeyBudget {
    /// The amount, in cents.
    pub cents: i64,
    /// Whether the key's requests are refused once the budget is used up.
    pub cutoff: bool,
    /// The amount spent this month, in whole cents.
    pub spent_cents: i64,
}

/// A key that was just created, with its secret.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "secret": "svc_live_0a1b2c3d4e5f6g7h8j9k0m1n2p3q4r5s6t7v8w" }))]
pub struct CreatedKey {
    /// The key.
    #[serde(flatten)]
    pub key: WorkspaceKey,
    /// The secret. It is not stored and cannot be shown again.
    pub secret: String,
}

/// A rotated key: the new one with its secret, and the old one.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "secret": "svc_live_0a1b2c3d4e5f6g7h8j9k0m1n2p3q4r5s6t7v8w" }))]
pub struct RotatedKey {
    /// Always `key_rotation`.
    pub object: &'static str,
    /// The new key.
    pub key: WorkspaceKey,
    /// The secret of the new key. It is not stored and cannot be shown again.
    pub secret: String,
    /// The old key. It works until `expires_at`, or not any more if it was revoked.
    pub previous: WorkspaceKey,
}

/// The data of a new key.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Shop", "env": "live", "scopes": ["contacts:read", "runs:execute"], "budget_cents": 5000, "budget_cutoff": true,
}))]
pub struct NewWorkspaceKey {
    /// The name for people.
    #[schema(min_length = 1, max_length = 80)]
    pub name: String,
    /// Whether actions of the key have real effects. It cannot be changed later.
    pub env: Env,
    /// What the key may do, as `GET /dashboard/key-scopes` lists it. `:write` does not include `:read`.
    #[schema(min_items = 1, max_items = 64)]
    pub scopes: Vec<String>,
    /// Requests per minute. The plan's limit applies too.
    #[schema(minimum = 1, maximum = 1000000, nullable = false)]
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month. The plan's limit applies too.
    #[schema(minimum = 0, maximum = 1000000000, nullable = false)]
    pub monthly_quota: Option<i64>,
    /// The monthly budget for Energy, in cents.
    #[schema(minimum = 0, maximum = 10000000, nullable = false)]
    pub budget_cents: Option<i64>,
    /// Whether the key's requests are refused once the budget is used up.
    #[serde(default)]
    pub budget_cutoff: bool,
    /// When the key stops working: a time in the future.
    #[schema(nullable = false)]
    pub expires_at: Option<Timestamp>,
}

/// Changes to a key. What is not given stays.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Shop", "budget_cents": 8000, "budget_cutoff": true }))]
pub struct WorkspaceKeyPatch {
    /// The name for people.
    #[schema(min_length = 1, max_length = 80, nullable = false)]
    pub name: Option<String>,
    /// Requests per minute; `null` for the plan's limit only.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1000000)]
    pub rate_limit_rpm: Patch<i64>,
    /// Requests per month; `null` for the plan's limit only.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1000000000)]
    pub monthly_quota: Patch<i64>,
    /// The monthly budget for Energy, in cents; `null` for none.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 10000000)]
    pub budget_cents: Patch<i64>,
    /// Whether the key's requests are refused once the budget is used up.
    #[schema(nullable = false)]
    pub budget_cutoff: Option<bool>,
    /// When the key stops working: a time in the future, or `null` for never.
    #[serde(default)]
    #[schema(value_type = Option<Timestamp>)]
    pub expires_at: Patch<Timestamp>,
}

/// How a key is rotated.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "overlap_seconds": 86400 }))]
pub struct KeyRotation {
    /// For how long the old key works beside the new one, in seconds: at most 30 days. 0 revokes it at once.
    #[serde(default = "day")]
    #[schema(minimum = 0, maximum = 2592000, default = 86400)]
    pub overlap_seconds: i64,
}

fn day() -> i64 {
    86_400
}

impl WorkspaceKey {
    /// Returns a stored key as the dashboard shows it.
    pub(super) fn of(read: &mut Read, stored: StoredKey) -> Result<Self> {
        let now = read.now();
        let status = match stored.status(now) {
            "revoked" => KeyStatus::Revoked,
            "expired" => KeyStatus::Expired,
            _ => KeyStatus::Active,
        };
        let key = stored.key;
        let budget = match key.budget_cents {
            Some(cents) => Some(WorkspaceKeyBudget {
                cents,
                cutoff: key.budget_cutoff,
                spent_cents: spent_cents(read, &key.lineage)?,
            }),
            None => None,
        };
        let last_used_at = match key.owner {
            KeyOwner::Workspace(workspace) => request_hours::last_of_key(read, workspace, &key.id)?,
            KeyOwner::Partner(_) => None,
        };
        Ok(Self {
            last_used_at,
            id: key.id,
            object: "api_key",
            name: stored.name,
            env: key.env,
            status,
            scopes: key.scopes.iter().map(Scope::as_str).map(str::to_owned).collect(),
            rate_limit_rpm: key.rate_limit_rpm,
            monthly_quota: key.monthly_quota,
            budget,
            lineage_id: key.lineage,
            expires_at: stored.expires_at,
            revoked_at: stored.revoked_at,
            created_at: stored.created_at,
        })
    }
}

impl CreatedKey {
    /// Returns a new key with its secret.
    pub(super) fn of(read: &mut Read, stored: StoredKey, secret: &KeySecret) -> Result<Self> {
        Ok(Self { key: WorkspaceKey::of(read, stored)?, secret: secret.reveal().to_owned() })
    }
}
