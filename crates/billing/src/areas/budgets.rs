//! `GET /billing/budgets`.

use crate::ledger::{MICROS_PER_CENT, month_of, percent};
use diesel::prelude::*;
use model::{Caller, Env, Error, KeyId, Result, Timestamp};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use store::schema::api_keys;
use utoipa::ToSchema;

/// A key's Energy budget in this calendar month.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct KeyBudget {
    /// Always `budget`.
    object: &'static str,
    /// The key.
    key_id: KeyId,
    /// What people call the key.
    key_name: String,
    /// Live or test.
    env: Env,
    /// The most that the key may spend in a month, in cents.
    limit_cents: i64,
    /// Whether reaching it refuses the key's requests until the next month.
    cutoff_enabled: bool,
    /// What is refused then: always `all`, every request of the key.
    cutoff: &'static str,
    /// What it has spent, in whole cents.
    spent_cents: i64,
    /// What its running work has set aside, in whole cents. Counted for budgets with cut-off only.
    reserved_cents: i64,
    /// How much of it is spent, in whole per cent.
    percent: i64,
    /// When the month began (UTC).
    period_start: Timestamp,
    /// When the month ends.
    period_end: Timestamp,
    /// Rises whenever the budget's amount is changed.
    cap_version: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct Row {
    id: KeyId,
    lineage_id: KeyId,
    name: String,
    env: String,
    budget_cents: Option<i64>,
    budget_cutoff: bool,
    budget_version: i64,
}

/// Each key's Energy budget and how far it is used
///
/// The workspace's keys that have a budget and are neither revoked nor expired, oldest first.
#[operation(get "/billing/budgets", scope = "billing:read")]
pub fn list_budgets(read: &mut Read, caller: &Caller) -> Result<Rows<KeyBudget>> {
    let now = read.now();
    let rows: Vec<Row> = api_keys::table
        .filter(api_keys::workspace_id.eq(caller.workspace_id()))
        .filter(api_keys::budget_cents.is_not_null())
        .filter(api_keys::revoked_at.is_null())
        .filter(api_keys::expires_at.is_null().or(api_keys::expires_at.gt(now)))
        .order(api_keys::id.asc())
        .select(Row::as_select())
        .load(read.connection())?;
    rows.into_iter().map(|row| budget(read, row)).collect::<Result<_>>().map(Rows)
}

fn budget(read: &mut Read, row: Row) -> Result<KeyBudget> {
    let now = read.now();
    let month = month_of(read, &row.lineage_id, &now.month())?;
    let limit_cents = row.budget_cents.unwrap_or(0);
    Ok(KeyBudget {
        object: "budget",
        key_id: row.id,
        key_name: row.name,
        env: Env::parse(&row.env).ok_or_else(|| Error::internal("a key is neither live nor test"))?,
        limit_cents,
        cutoff_enabled: row.budget_cutoff,
        cutoff: "all",
        spent_cents: month.spent / MICROS_PER_CENT,
        reserved_cents: month.reserved / MICROS_PER_CENT,
        percent: percent(month.spent, limit_cents),
        period_start: now.month_start(),
        period_end: now.next_month_start(),
        cap_version: row.budget_version,
    })
}
