//! `GET /billing/access`.

use super::BillingSettings;
use crate::ledger::{EnergyState, find_account};
use model::{Caller, Result, SubscriptionStatus};
use operation::{Json, State, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// Whether a workspace may operate.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BillingAccess {
    /// Always `billing_access`.
    object: &'static str,
    /// Whether the account is cut. A workspace without Energy is not: only what spends Energy is refused then.
    blocked: bool,
    /// Where the subscription stands; `energy_depleted` where it is `active`, `trialing` or `sponsored` and there is no
    /// Energy.
    subscription_status: SubscriptionStatus,
    /// Why something is refused, for people; `null` when nothing is.
    reason: Option<String>,
    /// How the workspace stands with Energy.
    energy: EnergyStanding,
    /// Where Energy is bought.
    recharge_url: String,
}

/// How a workspace stands with Energy.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct EnergyStanding {
    /// What new work may take.
    available: i64,
    /// What running work has set aside.
    reserved: i64,
    /// Whether it is enough.
    state: EnergyState,
}

/// Whether the workspace may operate, and why not
#[operation(get "/billing/access", scope = "billing:read")]
pub fn get_billing_access(
    read: &mut Read,
    caller: &Caller,
    State(settings): State<BillingSettings>,
) -> Result<Json<BillingAccess>> {
    let account = find_account(read, caller.workspace_id())?;
    let workspace = &caller.workspace;
    let state = account.state();
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
        energy: EnergyStanding { available: account.available(), reserved: account.reserved, state },
        recharge_url: settings.recharge_url(),
    }))
}
