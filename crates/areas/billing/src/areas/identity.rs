//! `GET /me`.

use model::{
    AuthorizedApp, Caller, Env, KeyId, KeyOwner, MemberId, PartnerId, Principal, Result, ScopeSet,
    WorkspaceId, text_enum,
};
use operation::{Json, operation};
use serde::Serialize;
use utoipa::ToSchema;

/// Identity and permissions of an API key. The secret is never included.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "livemode": true }))]
pub struct KeyIdentity {
    /// Always `identity`.
    object: &'static str,
    /// Whether actions have real effects.
    livemode: bool,
    /// The key of the request.
    api_key: IdentityKey,
    /// The workspace of the request.
    workspace: IdentityWorkspace,
    /// The partner that owns the key, or `null`.
    partner: Option<IdentityPartner>,
    /// The OAuth app that acts through the key, or `null`.
    app: Option<IdentityApp>,
}

/// The key of the request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "scopes": ["items:read", "runs:execute"], "rate_limit_rpm": 300, "monthly_quota": 50000 }))]
pub struct IdentityKey {
    /// Identifies the key in logs and in the dashboard. It is not a secret.
    id: KeyId,
    /// Always `api_key`.
    object: &'static str,
    /// The type of owner.
    owner_type: OwnerType,
    /// `live` or `test`.
    env: Env,
    /// The effective scopes, sorted.
    scopes: ScopeSet,
    /// The maximum number of requests per minute: the lower limit of key and plan. `null` means no limit.
    rate_limit_rpm: Option<i64>,
    /// The maximum number of requests per month: the lower limit of key and plan. `null` means no limit.
    monthly_quota: Option<i64>,
}

text_enum! {
    /// The type of owner.
    pub enum OwnerType {
        /// A workspace.
        Workspace = "workspace",
        /// A partner.
        Partner = "partner",
    }
}

/// The workspace of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "slug": "demo" }))]
pub struct IdentityWorkspace {
    /// Always `workspace`.
    object: &'static str,
    /// The id.
    id: WorkspaceId,
    /// The name used in URLs.
    slug: String,
}

/// The partner that owns a key.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IdentityPartner {
    /// The id.
    id: PartnerId,
}

/// The OAuth app that acts through a key.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "client_id": "https://assistant.example/client.json", "name": "Assistant" }))]
pub struct IdentityApp {
    /// The `client_id` of the app.
    client_id: String,
    /// The name that the app gives itself.
    name: String,
    /// The id of the member of the team who authorized the app.
    authorized_by: MemberId,
}

impl IdentityApp {
    fn of(principal: &Principal) -> Option<Self> {
        match principal {
            Principal::App(AuthorizedApp { client_id, name, member }) => {
                Some(Self { client_id: client_id.clone(), name: name.clone(), authorized_by: *member })
            }
            Principal::Key | Principal::Member(_) => None,
        }
    }
}

/// Who this key is, what it may do and whether its actions are real
///
/// Returns the key, its workspace and its partner, and the app if an OAuth app acts through the key. `livemode` is `false`
/// for a test key. The secret is never returned.
/// A useful first request: it shows which scopes and limits apply.
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
        app: IdentityApp::of(&caller.principal),
    }))
}
