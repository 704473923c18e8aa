//! `GET /billing/budgets`.

use crate::ledger::{MICROS_PER_CENT, month_of, percent};
use auth::keys::StoredKey;
use model::{Caller, Env, KeyId, Result, Timestamp};
use operation::{Rows, operation};
use serde::Serialize;
use store::Read;
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

/// Each key's Energy budget and how far it is used
///
/// The workspace's keys that have a budget and are neither revoked nor expired, oldest first.
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
