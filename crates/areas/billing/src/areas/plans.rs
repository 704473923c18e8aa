//! `GET /billing/plans`.

use auth::plans::{self, PlanRecord};
use model::{Caller, Result};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A plan.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "starter", "name": "Starter", "description": "For a business with one or two agents.",
    "price_cents": 2900, "currency": "USD", "included_energy": 20000, "usd_micros_per_1000_energy": 1000000,
    "energy_metered": true,
}))]
pub struct Plan {
    /// Always `plan`.
    object: &'static str,
    /// The plan's id in requests.
    id: String,
    /// The name for people.
    name: String,
    /// A short description.
    description: String,
    /// The monthly fee in cents.
    price_cents: i64,
    /// The ISO 4217 currency code.
    currency: String,
    /// The limits of the plan.
    limits: PlanLimits,
    /// The Energy included in each period.
    included_energy: i64,
    /// The price of 1,000 Energy in millionths of a US dollar.
    usd_micros_per_1000_energy: i64,
    /// Whether work is paid from the balance of Energy. Otherwise its cost is only recorded.
    energy_metered: bool,
    /// Whether only the operator of the service can assign the plan.
    restricted: bool,
}

/// The limits of a plan. `null` means no limit.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "rate_limit_rpm": 300, "monthly_quota": 50000, "test_runs_per_day": 100, "contacts": 2000 }))]
pub struct PlanLimits {
    /// The maximum number of requests per minute for each key.
    rate_limit_rpm: Option<i64>,
    /// The maximum number of requests per month for each key.
    monthly_quota: Option<i64>,
    /// The maximum number of test runs per workspace and day.
    test_runs_per_day: i64,
    /// The maximum number of contacts in the workspace.
    contacts: Option<i64>,
}

impl PlanLimits {
    pub(super) fn of(plan: &PlanRecord) -> Self {
        Self {
            rate_limit_rpm: plan.rate_limit_rpm,
            monthly_quota: plan.monthly_quota,
            test_runs_per_day: plan.test_runs_per_day,
            contacts: plan.contacts_limit,
        }
    }
}

impl From<PlanRecord> for Plan {
    fn from(plan: PlanRecord) -> Self {
        Self {
            object: "plan",
            limits: PlanLimits::of(&plan),
            id: plan.id,
            name: plan.name,
            description: plan.description,
            price_cents: plan.price_cents,
            currency: plan.currency,
            included_energy: plan.included_energy,
            usd_micros_per_1000_energy: plan.usd_micros_per_1000_energy,
            energy_metered: plan.energy_metered,
            restricted: plan.restricted,
        }
    }
}

/// The plans and their limits
///
/// Lists the plans of the catalogue with their prices and limits. Restricted plans are shown only to workspaces that
/// have them.
#[operation(get "/billing/plans", scope = any_key)]
pub fn list_plans(read: &mut Read, caller: &Caller) -> Result<Rows<Plan>> {
    let plans = plans::list(read, Some(caller.workspace_id()))?;
    Ok(Rows(plans.into_iter().map(Plan::from).collect()))
}
