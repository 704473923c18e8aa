//! Request bodies and responses about the own account.

use accounts::{Account, Session};
use auth::roles::Permission;
use model::{AccountId, Env, MemberId, MemberRole, SessionId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The account of the person who has signed in, as a member of the workspace of the request.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "email": "marta@example.com", "name": "Marta Ruiz", "locale": "es", "role": "owner", "permissions": ["account", "keys:manage"], "scopes": ["contacts:read"],
    "is_operator": false,
}))]
pub struct OwnAccount {
    /// The id of the account.
    pub id: AccountId,
    /// Always `account`.
    pub object: &'static str,
    /// The e-mail address with which the person signs in.
    pub email: String,
    /// The name.
    pub name: String,
    /// The language in which the dashboard speaks to the person, such as `en` or `pt-BR`.
    pub locale: String,
    /// Whether the account manages the installation.
    pub is_operator: bool,
    /// The member that the account is in this workspace.
    pub member_id: MemberId,
    /// The role of the member.
    pub role: MemberRole,
    /// What the member may do that no scope covers.
    pub permissions: Vec<Permission>,
    /// The scopes that the member has.
    pub scopes: Vec<&'static str>,
    /// The workspace of the request.
    pub workspace_id: WorkspaceId,
    /// Whether actions of this token have real effects.
    pub env: Env,
    /// Why the workspace is blocked, if it is.
    pub blocked_reason: Option<String>,
    /// The session of this browser.
    pub session_id: SessionId,
    /// Until when operations that reveal or change secrets are open, without signing in again.
    pub recent_until: Timestamp,
    /// The workspaces of which the account is a member.
    pub workspaces: Vec<OwnWorkspace>,
    /// When the password was last changed.
    pub password_changed_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
}

/// A workspace of which the account is a member.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "Café Luna", "slug": "cafe-luna", "role": "owner" }))]
pub struct OwnWorkspace {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its name in addresses.
    pub slug: String,
    /// The role of the account's member there.
    pub role: MemberRole,
}

/// Changes to the own account. What is not given stays.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Marta Ruiz", "locale": "es" }))]
pub struct OwnAccountPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, nullable = false)]
    pub name: Option<String>,
    /// The language in which the dashboard speaks to the person, such as `en` or `pt-BR`.
    #[schema(nullable = false)]
    pub locale: Option<String>,
}

/// A new password.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "current_password": "copper lantern on the quay", "new_password": "eleven quiet herons at dusk" }))]
pub struct PasswordChange {
    /// The current password. A wrong one is a 400 for `current_password`, and after five of them there are waits.
    #[schema(max_length = 256)]
    pub current_password: String,
    /// The new password: 10 to 256 bytes, not the e-mail address, and not one that is often used.
    #[schema(max_length = 256)]
    pub new_password: String,
}

/// A changed password.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "signed_out": true }))]
pub struct PasswordChanged {
    /// Always `password_change`.
    pub object: &'static str,
    /// Always true: all sessions of the account have ended, this one too.
    pub signed_out: bool,
}

/// A browser in which the account is signed in.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "is_current": true, "address": "203.0.113.7", "user_agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
}))]
pub struct OwnSession {
    /// The id of the session.
    pub id: SessionId,
    /// Always `session`.
    pub object: &'static str,
    /// Whether it is the session of this request.
    pub is_current: bool,
    /// The address from which the person signed in.
    pub address: String,
    /// The browser as it names itself.
    pub user_agent: String,
    /// When the session was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// When the session ends, unless it is not used for 12 hours before.
    pub ends_at: Timestamp,
    /// When the person signed in.
    pub created_at: Timestamp,
}

impl OwnSession {
    /// Returns a session as its owner sees it. `current` is the session of the request.
    pub(super) fn of(session: Session, current: &SessionId) -> Self {
        Self {
            is_current: session.id == *current,
            id: session.id,
            object: "session",
            address: session.address,
            user_agent: session.user_agent,
            last_seen_at: session.last_seen_at,
            ends_at: session.ends_at,
            created_at: session.created_at,
        }
    }
}

/// The fields of an account that do not depend on the workspace.
pub(super) struct Facts {
    /// The account.
    pub(super) account: Account,
    /// Its workspaces.
    pub(super) workspaces: Vec<OwnWorkspace>,
}
