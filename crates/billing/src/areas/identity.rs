//! `GET /me`.

use model::{Caller, Env, KeyId, KeyOwner, PartnerId, Result, ScopeSet, WorkspaceId, text_enum};
use operation::{Json, operation};
use serde::Serialize;
use utoipa::ToSchema;

/// Who a key is and what it may do. Nothing of its secret.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeyIdentity {
    /// Always `identity`.
    object: &'static str,
    /// Whether actions have real effects.
    livemode: bool,
    /// The key.
    api_key: IdentityKey,
    /// The workspace that it operates.
    workspace: IdentityWorkspace,
    /// The partner that owns the key, or `null`.
    partner: Option<IdentityPartner>,
}

/// The key that asks.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IdentityKey {
    /// Names the key in logs and the dashboard. It authenticates nothing.
    id: KeyId,
    /// Always `api_key`.
    object: &'static str,
    /// Whose key it is.
    owner_type: OwnerType,
    /// Live or test.
    env: Env,
    /// The scopes that count, sorted.
    scopes: ScopeSet,
    /// Requests per minute: the stricter of key and plan. `null` is no cap.
    rate_limit_rpm: Option<i64>,
    /// Requests per month: the stricter of key and plan. `null` is no cap.
    monthly_quota: Option<i64>,
}

text_enum! {
    /// Whose key it is.
    pub enum OwnerType {
        /// A customer's.
        Workspace = "workspace",
        /// A partner's.
        Partner = "partner",
    }
}

/// The workspace that a key operates.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IdentityWorkspace {
    /// Always `workspace`.
    object: &'static str,
    /// Its id.
    id: WorkspaceId,
    /// Its name in addresses.
    slug: String,
}

/// The partner that owns a key.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IdentityPartner {
    /// Its id.
    id: PartnerId,
}

/// Who this key is, what it may do and whether its actions are real
#[operation(get "/me", scope = "runs:read")]
pub fn get_me(caller: &Caller) -> Result<Json<KeyIdentity>> {
    let key = &caller.key;
    let (owner_type, partner) = match key.owner {
        KeyOwner::Workspace(_) => (OwnerType::Workspace, None),
        KeyOwner::Partner(id) => (OwnerType::Partner, Some(IdentityPartner { id })),
    };
    Ok(Json(KeyIdentity {
        object: "identity",
        livemode: caller.livemode(),
        api_key: IdentityKey {
            id: key.id.clone(),
            object: "api_key",
            owner_type,
            env: key.env,
            scopes: key.scopes,
            rate_limit_rpm: caller.rate_limit_rpm(),
            monthly_quota: caller.monthly_quota(),
        },
        workspace: IdentityWorkspace {
            object: "workspace",
            id: caller.workspace_id(),
            slug: caller.workspace.slug.clone(),
        },
        partner,
    }))
}
