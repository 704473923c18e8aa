//! The catalogue of plans as it is stored.

use crate::schema::{plans, workspaces};
use diesel::prelude::*;
use model::{Result, WorkspaceId};
use serde::Serialize;
use store::{Read, Tx, each};

/// A plan of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = plans, treat_none_as_null = true, treat_none_as_default_value = false)]
pub struct PlanRecord {
    /// The id used in requests, such as `starter`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The description, one sentence.
    pub description: String,
    /// The monthly fee in cents.
    pub price_cents: i64,
    /// The ISO 4217 currency code.
    pub currency: String,
    /// Requests per minute of each key; `None` is no limit.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month of each key; `None` is no limit.
    pub monthly_quota: Option<i64>,
    /// The maximum number of test runs per workspace and day.
    pub test_runs_per_day: i64,
    /// The maximum number of contacts in the workspace; `None` is no limit.
    pub contacts_limit: Option<i64>,
    /// Energy included in each period.
    pub included_energy: i64,
    /// The price of 1,000 Energy in millionths of a US dollar.
    pub usd_micros_per_1000_energy: i64,
    /// Whether only an operator can assign it.
    pub restricted: bool,
    /// The position in the list.
    pub position: i64,
    /// Whether work is paid from the balance of Energy. Otherwise its cost is only recorded.
    pub energy_metered: bool,
}

/// Adds a plan. Returns `false` and changes nothing if the id is taken.
pub fn add(tx: &mut Tx, plan: &PlanRecord) -> Result<bool> {
    let added = each!(tx.connection(), |connection| diesel::insert_into(plans::table)
        .values(plan)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(added == 1)
}

/// Inserts a plan or replaces the plan with its id.
pub fn put(tx: &mut Tx, plan: &PlanRecord) -> Result<()> {
    each!(tx.connection(), |connection| diesel::insert_into(plans::table)
        .values(plan)
        .on_conflict(plans::id)
        .do_update()
        .set(plan)
        .execute(connection))?;
    Ok(())
}

/// Returns the plan with this id.
pub fn by_id(read: &mut Read, id: &str) -> Result<Option<PlanRecord>> {
    Ok(plans::table.find(id).select(PlanRecord::as_select()).first(read.connection()).optional()?)
}

/// Returns the plans that a workspace can see: all public plans, and its own if that is restricted. `None` returns
/// all plans.
pub fn list(read: &mut Read, workspace: Option<WorkspaceId>) -> Result<Vec<PlanRecord>> {
    let mut query = plans::table
        .order((plans::position.asc(), plans::id.asc()))
        .select(PlanRecord::as_select())
        .into_boxed();
    if let Some(workspace) = workspace {
        let own: Option<Option<String>> = workspaces::table
            .find(workspace)
            .select(workspaces::plan_id)
            .first(read.connection())
            .optional()?;
        query = query.filter(plans::restricted.eq(false).or(plans::id.eq(own.flatten().unwrap_or_default())));
    }
    Ok(query.load(read.connection())?)
}

/// Returns the lowest price of Energy among the public plans. A price above it counts as the premium rate.
pub fn base_price(read: &mut Read) -> Result<i64> {
    let lowest: Option<i64> = plans::table
        .filter(plans::restricted.eq(false))
        .select(diesel::dsl::min(plans::usd_micros_per_1000_energy))
        .first(read.connection())?;
    Ok(lowest.unwrap_or(0))
}
