//! `GET /billing/budgets`.

use crate::ledger::{MICROS_PER_CENT, month_of, percent};
use auth::keys::StoredKey;
use model::{Caller, Env, KeyId, Result, Timestamp};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// The Energy budget of a key in the current calendar month.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "key_name": "Website", "limit_cents": 5000, "cutoff_enabled": true, "cutoff": "all", "spent_cents": 1250,
    "reserved_cents": 10, "percent": 25, "period_start": "2026-11-01T00:00:00.000Z",
    "period_end": "2026-12-01T00:00:00.000Z", "cap_version": 1,
}))]
pub struct KeyBudget {
    /// Always `budget`.
    object: &'static str,
    /// The id of the key.
    key_id: KeyId,
    /// The name of the key.
    key_name: String,
    /// `live` or `test`.
    env: Env,
    /// The maximum spending per month in cents.
    limit_cents: i64,
    /// Whether requests of the key are rejected until the next month when the limit is reached.
    cutoff_enabled: bool,
    /// Which requests are rejected then: always `all`.
    cutoff: &'static str,
    /// The amount spent, in whole cents.
    spent_cents: i64,
    /// The amount reserved by work in progress, in whole cents. Counted only for budgets with cut-off.
    reserved_cents: i64,
    /// The share of the budget that is spent, in whole percent.
    percent: i64,
    /// When the month started (UTC).
    period_start: Timestamp,
    /// When the month ends.
    period_end: Timestamp,
    /// Incremented whenever the budget's amount is changed.
    cap_version: i64,
}

/// Each key's Energy budget and how far it is used
///
/// Lists the keys of the workspace that have a budget and are neither revoked nor expired, oldest first, with the
/// amount spent this month.
#[operation(get "/billing/budgets", scope = "billing:read")]
pub fn list_budgets(read: &mut Read, caller: &Caller) -> Result<Rows<KeyBudget>> {
    let keys = auth::keys::with_budget(read, caller.workspace_id())?;
    keys.into_iter().map(|key| budget(read, key)).collect::<Result<_>>().map(Rows)
}

fn budget(read: &mut Read, stored: StoredKey) -> Result<KeyBudget> {
    let now = read.now();
    let key = stored.key;
    let month = month_of(read, &key.lineage, &now.month())?;
    let limit_cents = key.budget_cents.unwrap_or(0);
    Ok(KeyBudget {
        object: "budget",
        key_id: key.id,
        key_name: stored.name,
        env: key.env,
        limit_cents,
        cutoff_enabled: key.budget_cutoff,
        cutoff: "all",
        spent_cents: month.spent / MICROS_PER_CENT,
        reserved_cents: month.reserved / MICROS_PER_CENT,
        percent: percent(month.spent, limit_cents),
        period_start: now.month_start(),
        period_end: now.next_month_start(),
        cap_version: stored.budget_version,
    })
}
