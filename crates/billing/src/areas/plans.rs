//! `GET /billing/plans`.

use auth::plans::{self, PlanRecord};
use model::{Caller, Result};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A plan of the catalogue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Plan {
    /// Always `plan`.
    object: &'static str,
    /// Its name in requests.
    id: String,
    /// Its name for people.
    name: String,
    /// One sentence about it.
    description: String,
    /// The fixed fee of a month, in cents.
    price_cents: i64,
    /// ISO 4217.
    currency: String,
    /// What it allows.
    limits: PlanLimits,
    /// Energy that each period brings.
    included_energy: i64,
    /// What 1,000 Energy cost, in millionths of a dollar.
    usd_micros_per_1000_energy: i64,
    /// Whether only the service gives it.
    restricted: bool,
}

/// What a plan allows. `null` is no cap.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PlanLimits {
    /// Requests per minute of each key.
    rate_limit_rpm: Option<i64>,
    /// Requests per month of each key.
    monthly_quota: Option<i64>,
    /// Test runs per workspace and day.
    test_runs_per_day: i64,
    /// Contacts of the workspace.
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
            restricted: plan.restricted,
        }
    }
}

/// The plans and their limits
///
/// A restricted plan is shown to the workspaces that have it.
#[operation(get "/billing/plans", scope = any_key)]
pub fn list_plans(read: &mut Read, caller: &Caller) -> Result<Rows<Plan>> {
    let plans = plans::list(read, Some(caller.workspace_id()))?;
    Ok(Rows(plans.into_iter().map(Plan::from).collect()))
}
