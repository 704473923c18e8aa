//! The plans that the service comes with.

use diesel::prelude::*;
use model::{Result, WorkspaceId};
use store::schema::{plans, workspaces};
use store::{Read, Tx, each};

/// A plan with everything the catalogue says of it.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = plans)]
pub struct CatalogueEntry {
    /// Its name in requests, such as `starter`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The fixed fee of a month, in cents.
    pub price_cents: i64,
    /// ISO 4217.
    pub currency: String,
    /// Requests per minute of each key; `None` is no cap.
    pub rate_limit_rpm: Option<i64>,
    /// Requests per month of each key; `None` is no cap.
    pub monthly_quota: Option<i64>,
    /// Test runs per workspace and day.
    pub test_runs_per_day: i64,
    /// Contacts of the workspace; `None` is no cap.
    pub contacts_limit: Option<i64>,
    /// Energy that a period brings.
    pub included_energy: i64,
    /// What 1,000 Energy cost, in millionths of a dollar.
    pub usd_micros_per_1000_energy: i64,
    /// Given by the service only.
    pub restricted: bool,
    /// Its place in the list.
    pub position: i64,
}

#[derive(Insertable, AsChangeset)]
#[diesel(table_name = plans, treat_none_as_null = true, treat_none_as_default_value = false)]
struct Row {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    price_cents: i64,
    currency: &'static str,
    rate_limit_rpm: Option<i64>,
    monthly_quota: Option<i64>,
    test_runs_per_day: i64,
    contacts_limit: Option<i64>,
    included_energy: i64,
    usd_micros_per_1000_energy: i64,
    restricted: bool,
    position: i64,
}

/// A dollar for 1,000 Energy.
const BASE_PRICE: i64 = 1_000_000;

const CATALOGUE: [Row; 5] = [
    Row {
        id: "trial",
        name: "Trial",
        description: "To try everything for a while.",
        price_cents: 0,
        currency: "USD",
        rate_limit_rpm: Some(60),
        monthly_quota: Some(5_000),
        test_runs_per_day: 20,
        contacts_limit: Some(100),
        included_energy: 5_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 1,
    },
    Row {
        id: "starter",
        name: "Starter",
        description: "For a business with one or two agents.",
        price_cents: 2_900,
        currency: "USD",
        rate_limit_rpm: Some(300),
        monthly_quota: Some(50_000),
        test_runs_per_day: 100,
        contacts_limit: Some(2_000),
        included_energy: 20_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 2,
    },
    Row {
        id: "pro",
        name: "Pro",
        description: "For teams that work with agents all day.",
        price_cents: 9_900,
        currency: "USD",
        rate_limit_rpm: Some(1_000),
        monthly_quota: Some(500_000),
        test_runs_per_day: 500,
        contacts_limit: Some(20_000),
        included_energy: 80_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 3,
    },
    Row {
        id: "scale",
        name: "Scale",
        description: "For products built on the service.",
        price_cents: 49_900,
        currency: "USD",
        rate_limit_rpm: Some(3_000),
        monthly_quota: None,
        test_runs_per_day: 5_000,
        contacts_limit: None,
        included_energy: 450_000,
        usd_micros_per_1000_energy: BASE_PRICE,
        restricted: false,
        position: 4,
    },
    Row {
        id: "partner_zero",
        name: "Partner Zero",
        description: "No fixed fee, Energy at the premium rate. For approved partners.",
        price_cents: 0,
        currency: "USD",
        rate_limit_rpm: Some(300),
        monthly_quota: Some(50_000),
        test_runs_per_day: 100,
        contacts_limit: Some(2_000),
        included_energy: 0,
        usd_micros_per_1000_energy: BASE_PRICE / 2 * 3,
        restricted: true,
        position: 5,
    },
];

/// Writes the built-in plans as this version of the program knows them. Plans that it does not know stay.
///
/// # Errors
/// When the database fails.
pub fn seed_catalogue(tx: &mut Tx) -> Result<()> {
    for plan in &CATALOGUE {
        each!(tx.connection(), |connection| diesel::insert_into(plans::table)
            .values(plan)
            .on_conflict(plans::id)
            .do_update()
            .set(plan)
            .execute(connection))?;
    }
    Ok(())
}

/// The plans that a workspace may see: all but the restricted ones that are not its own. `None` sees all.
///
/// # Errors
/// When the database fails.
pub fn catalogue(read: &mut Read, workspace: Option<WorkspaceId>) -> Result<Vec<CatalogueEntry>> {
    let mut query = plans::table
        .order((plans::position.asc(), plans::id.asc()))
        .select(CatalogueEntry::as_select())
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

/// The lowest price of Energy among the plans that anybody may have: what costs more is the premium rate.
pub(crate) fn base_price(read: &mut Read) -> Result<i64> {
    let lowest: Option<i64> = plans::table
        .filter(plans::restricted.eq(false))
        .select(diesel::dsl::min(plans::usd_micros_per_1000_energy))
        .first(read.connection())?;
    Ok(lowest.unwrap_or(0))
}
