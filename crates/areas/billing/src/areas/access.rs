//! `GET /billing/access`.

use super::BillingSettings;
use crate::ledger::{EnergyState, find_account};
use model::{Caller, Result, SubscriptionStatus};
use operation::{Json, State, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// Whether a workspace can use the service.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BillingAccess {
    /// Always `billing_access`.
    object: &'static str,
    /// Whether the workspace is blocked. A workspace without Energy is not blocked: only operations that consume Energy
    /// are rejected.
    blocked: bool,
    /// The status of the subscription. `energy_depleted` if it is `active`, `trialing` or `sponsored` and there is no
    /// Energy.
    subscription_status: SubscriptionStatus,
    /// Why requests are rejected, for people. `null` if they are not.
    reason: Option<String>,
    /// The workspace's Energy.
    energy: EnergyStanding,
    /// The page for buying Energy. `null` if there is none.
    recharge_url: Option<String>,
}

/// The Energy of a workspace.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({ "available": 119200, "reserved": 800, "metered": true }))]
pub struct EnergyStanding {
    /// The Energy available for new work.
    available: i64,
    /// The Energy reserved by work in progress.
    reserved: i64,
    /// Whether there is enough Energy: always `ok` if it is not metered.
    state: EnergyState,
    /// Whether work is paid from the balance. On a plan that does not meter Energy, its cost is only recorded.
    metered: bool,
}

/// Whether the workspace may operate, and why not
///
/// Returns whether the workspace is blocked, the status of its subscription, and how much Energy is available. A
/// workspace without Energy is not blocked: only operations that consume Energy are rejected, with 402
/// `energy_depleted`.
#[operation(get "/billing/access", scope = "billing:read")]
pub fn get_billing_access(
    read: &mut Read,
    caller: &Caller,
    State(settings): State<BillingSettings>,
) -> Result<Json<BillingAccess>> {
    let account = find_account(read, caller.workspace_id())?;
    let workspace = &caller.workspace;
    let metered = workspace.plan.energy_metered;
    let state = if metered { account.state() } else { EnergyState::Ok };
    let depleted = state == EnergyState::Depleted && workspace.blocked_reason.is_none();
    // What else is wrong with the subscription matters more.
    let is_healthy = matches!(
        workspace.subscription,
        SubscriptionStatus::Active | SubscriptionStatus::Trialing | SubscriptionStatus::Sponsored
    );
    Ok(Json(BillingAccess {
        object: "billing_access",
        blocked: workspace.blocked_reason.is_some(),
        subscription_status: if depleted && is_healthy {
            SubscriptionStatus::EnergyDepleted
        } else {
            workspace.subscription
        },
        reason: workspace
            .blocked_reason
            .clone()
            .or_else(|| depleted.then(|| "The workspace has no Energy left.".to_owned())),
        energy: EnergyStanding { available: account.available(), reserved: account.reserved, state, metered },
        recharge_url: settings.recharge_url.clone(),
    }))
}
