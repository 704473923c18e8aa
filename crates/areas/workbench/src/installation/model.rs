//! Request bodies and responses about the workspaces of the installation.

use auth::workspaces::WorkspaceRecord;
use billing::ledger::GrantKind;
use model::{GrantId, SubscriptionStatus, Timestamp, WorkspaceId, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A workspace of the installation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "slug": "cafe-luna", "name": "Café Luna", "plan": "starter", "subscription": "active" }))]
pub struct Tenant {
    /// The id of the workspace.
    pub id: WorkspaceId,
    /// Always `workspace`.
    pub object: &'static str,
    /// The name for people.
    pub name: String,
    /// The name in addresses.
    pub slug: String,
    /// The id of the plan.
    pub plan: Option<String>,
    /// The state of the subscription.
    pub subscription: SubscriptionStatus,
    /// When the period of the plan ends.
    pub period_end: Option<Timestamp>,
    /// Whether the plan ends with this period.
    pub cancel_at_period_end: bool,
    /// Why an operator blocked the workspace.
    pub blocked_reason: Option<String>,
    /// When the object was created.
    pub created_at: Timestamp,
}

impl From<WorkspaceRecord> for Tenant {
    fn from(record: WorkspaceRecord) -> Self {
        Self {
            id: record.id,
            object: "workspace",
            name: record.name,
            slug: record.slug,
            plan: record.plan,
            subscription: record.subscription,
            period_end: record.period_end,
            cancel_at_period_end: record.cancel_at_period_end,
            blocked_reason: record.blocked_reason,
            created_at: record.created_at,
        }
    }
}

/// The data of a new workspace.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Panadería Sol", "plan": "starter", "owner_email": "sol@example.com" }))]
pub struct NewTenant {
    /// The name for people.
    #[schema(min_length = 1, max_length = 80)]
    pub name: String,
    /// The name in addresses: 3 to 40 lower-case letters and digits, with single hyphens between them. Made from the name if
    /// not given. A name that another workspace has is a 409 `duplicate_value`.
    #[schema(min_length = 3, max_length = 60, nullable = false)]
    pub slug: Option<String>,
    /// The id of the plan. Without one the workspace cannot be used until it gets a plan.
    #[schema(max_length = 60, nullable = false)]
    pub plan: Option<String>,
    /// The e-mail address of the owner, who gets an invitation.
    #[schema(format = "email", max_length = 254, nullable = false)]
    pub owner_email: Option<String>,
    /// The name of the owner; the e-mail address if not given.
    #[schema(min_length = 1, max_length = 120, nullable = false)]
    pub owner_name: Option<String>,
}

/// A new workspace, with the invitation of its owner.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "invitation_url": "https://svc.example/invite/7c1f0e9d8b6a5f4e3d2c1b0a7c1f0e9d8b6a5f4e3d2c1b0a" }))]
pub struct CreatedTenant {
    /// The workspace.
    #[serde(flatten)]
    pub workspace: Tenant,
    /// The link with which the owner signs in for the first time. It works once, within 7 days, and cannot be shown again.
    pub invitation_url: Option<String>,
}

/// Why a workspace is blocked.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "Unpaid since October." }))]
pub struct TenantBlock {
    /// The reason that its refused requests state.
    #[schema(min_length = 1, max_length = 200)]
    pub reason: String,
}

text_enum! {
    /// A status that a subscription can be given.
    #[derive(Default)]
    pub enum TenantSubscription {
        /// Paid.
        #[default]
        Active = "active",
        /// In a trial period, until `until`.
        Trialing = "trialing",
        /// Paid by a sponsor.
        Sponsored = "sponsored",
        /// A payment is overdue since `until`.
        PastDue = "past_due",
        /// Cancelled, at `until` or now.
        Canceled = "canceled",
        /// No plan.
        Inactive = "inactive",
    }
}

impl From<TenantSubscription> for SubscriptionStatus {
    fn from(status: TenantSubscription) -> Self {
        match status {
            TenantSubscription::Active => Self::Active,
            TenantSubscription::Trialing => Self::Trialing,
            TenantSubscription::Sponsored => Self::Sponsored,
            TenantSubscription::PastDue => Self::PastDue,
            TenantSubscription::Canceled => Self::Canceled,
            TenantSubscription::Inactive => Self::Inactive,
        }
    }
}

/// The plan to put a workspace on.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "plan": "starter" }))]
pub struct TenantPlan {
    /// The id of a plan in the catalogue.
    #[schema(max_length = 60)]
    pub plan: String,
    /// The status of the subscription.
    #[serde(default)]
    pub status: TenantSubscription,
    /// When the period ends, in the future; a month after it began if not given. `trialing` and `past_due` need it.
    #[schema(nullable = false)]
    pub until: Option<Timestamp>,
}

/// Energy to give to a workspace.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "amount": 100000, "kind": "promo", "note": "Welcome" }))]
pub struct TenantEnergy {
    /// The amount.
    #[schema(minimum = 1, maximum = 1000000000)]
    pub amount: i64,
    /// Where it comes from.
    pub kind: GrantKind,
    /// When what is left of it ends: a time in the future.
    #[schema(nullable = false)]
    pub expires_at: Option<Timestamp>,
    /// A note for people.
    #[schema(max_length = 500, nullable = false)]
    pub note: Option<String>,
}

/// Energy that was given.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "amount": 100000 }))]
pub struct TenantGrant {
    /// The id of the grant.
    pub id: GrantId,
    /// Always `energy_grant`.
    pub object: &'static str,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The amount.
    pub amount: i64,
}
