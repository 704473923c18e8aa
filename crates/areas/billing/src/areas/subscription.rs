//! `GET /billing/subscription`.

use super::plans::PlanLimits;
use auth::plans::{self, base_price};
use auth::workspaces;
use model::{Caller, Result, SubscriptionStatus, Timestamp};
use operation::{Json, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A workspace's subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "plan": { "id": "starter", "name": "Starter" }, "period_start": "2026-11-01T00:00:00.000Z",
    "period_end": "2026-12-01T00:00:00.000Z", "usd_micros_per_1000_energy": 1000000,
}))]
pub struct BillingSubscription {
    /// Always `subscription`.
    object: &'static str,
    /// The plan, or `null`.
    plan: Option<SubscriptionPlan>,
    /// The status.
    status: SubscriptionStatus,
    /// When the period started.
    period_start: Option<Timestamp>,
    /// When the period ends. The next period then starts, unless this is the last one. `null` without a plan.
    period_end: Option<Timestamp>,
    /// Whether the subscription ends with this period.
    cancel_at_period_end: bool,
    /// Whether Energy is billed at a higher rate than the lowest rate of the public plans.
    premium_rate: bool,
    /// The price of 1,000 Energy in millionths of a US dollar. `null` without a plan.
    usd_micros_per_1000_energy: Option<i64>,
    /// The limits of the plan. `null` without a plan.
    limits: Option<PlanLimits>,
}

/// The plan of a subscription.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SubscriptionPlan {
    /// The plan's id in requests.
    id: String,
    /// The name for people.
    name: String,
}

/// The current plan, its period and limits
///
/// Returns the workspace's plan, the billing period and the plan's limits. `plan`, the period and `limits` are `null`
/// if the workspace has no plan.
#[operation(get "/billing/subscription", scope = "billing:read")]
pub fn get_subscription(read: &mut Read, caller: &Caller) -> Result<Json<BillingSubscription>> {
    let workspace = caller.workspace_id();
    let record = workspaces::by_id(read, workspace)?;
    let plan =
        plans::list(read, Some(workspace))?.into_iter().find(|plan| Some(&plan.id) == record.plan.as_ref());
    let base = base_price(read)?;
    let price = plan.as_ref().map(|plan| plan.usd_micros_per_1000_energy);
    Ok(Json(BillingSubscription {
        object: "subscription",
        status: record.subscription,
        period_start: record.period_start,
        period_end: record.period_end,
        cancel_at_period_end: record.cancel_at_period_end,
        premium_rate: price.is_some_and(|price| price > base),
        usd_micros_per_1000_energy: price,
        limits: plan.as_ref().map(PlanLimits::of),
        plan: plan.map(|plan| SubscriptionPlan { id: plan.id, name: plan.name }),
    }))
}
