//! What keys spend in a month, their budgets and the warnings on the way there (platform-billing.md C.7).

use super::money;
use crate::schema::{budget_thresholds, key_months};
use auth::keys::{self, Budget, StoredKey};
use diesel::prelude::*;
use model::{Cause, Error, KeyId, KeyOwner, Result, Timestamp, WorkspaceId};
use operation::Event;
use serde::Serialize;
use store::Cached;
use store::{Read, Tx, each};
use utoipa::ToSchema;

/// The steps that are published, in per cent.
const THRESHOLDS: [i64; 3] = [50, 80, 100];

/// A key's month: money spent, and money set aside for running work, both in micros.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyMonth {
    pub(crate) spent: i64,
    pub(crate) reserved: i64,
}

#[derive(Insertable)]
#[diesel(table_name = key_months)]
struct BudgetRow<'a> {
    lineage_id: &'a KeyId,
    month: &'a str,
    spent_micros: i64,
    reserved_micros: i64,
}

/// Adds to a key's month and gives it as it then stands. Adding nothing locks it. A month that would count
/// more than [`money::MOST_MICROS`] fails the transaction, long before SQLite would go on with a float.
pub(super) fn add(tx: &mut Tx, lineage: &KeyId, month: &str, spent: i64, reserved: i64) -> Result<KeyMonth> {
    use key_months as k;
    // A month that does not exist has nothing to give back.
    let row = BudgetRow {
        lineage_id: lineage,
        month,
        spent_micros: spent.max(0),
        reserved_micros: reserved.max(0),
    };
    let (spent, reserved) = each!(tx.connection(), |connection| {
        let upsert = diesel::insert_into(k::table)
            .values(&row)
            .on_conflict((k::lineage_id, k::month))
            .do_update()
            .set((
                k::spent_micros.eq(k::spent_micros + spent),
                k::reserved_micros.eq(k::reserved_micros + reserved),
            ))
            .returning((k::spent_micros, k::reserved_micros));
        Cached(upsert).get_result(connection)
    })?;
    check_range(lineage, month, spent, reserved)?;
    Ok(KeyMonth { spent, reserved })
}

/// Fails where a key's month counts more than can be.
pub(super) fn check_range(lineage: &KeyId, month: &str, spent: i64, reserved: i64) -> Result<()> {
    if spent > money::MOST_MICROS || reserved > money::MOST_MICROS {
        return Err(Error::internal(format!("the spending of key {lineage} in {month} leaves its range")));
    }
    Ok(())
}

/// An event of a key's budget.
#[derive(Event)]
#[event(scope = "billing:read", subject = "key", id = "key_id")]
pub(crate) enum BudgetEvent<'a> {
    /// A key's spending reached 50, 80 or 100 percent of its Energy budget.
    #[event(name = "billing.threshold")]
    Threshold(Threshold<'a>),
}

/// A budget was reached by some per cent.
#[derive(Serialize, ToSchema)]
pub(crate) struct Threshold<'a> {
    /// The id of the key.
    key_id: &'a KeyId,
    /// The threshold that was reached: 50, 80 or 100 percent.
    threshold: i64,
    /// The share of the budget that is spent, in percent.
    percent: i64,
    /// The amount spent in this month, in cents.
    spent_cents: i64,
    /// The budget in cents.
    cap_cents: i64,
    /// The month, such as `2026-11`.
    period: &'a str,
    /// Whether requests of the key are rejected when the budget is used up.
    cutoff_enabled: bool,
    /// The workspace of the last spending.
    workspace_id: WorkspaceId,
}

/// The money at which a budget cuts off, in micros. `None` where it only warns.
pub(super) fn limit(budget: Budget) -> Option<i64> {
    budget.cutoff.then(|| budget.cents.saturating_mul(money::MICROS_PER_CENT))
}

/// Whose month, for telling thresholds.
pub(super) struct Spender<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) cause: &'a Cause,
    pub(super) key: &'a KeyId,
    pub(super) lineage: &'a KeyId,
    pub(super) month: &'a str,
}

/// Tells every threshold that `spent` has reached and that was not told before. The caller has locked the key's
/// month: a budget that is being set waits for it, and then tells what it finds spent.
pub(super) fn emit_thresholds(tx: &mut Tx, spender: &Spender<'_>, spent: i64) -> Result<()> {
    match keys::budget(tx, spender.key)? {
        Some(budget) => emit_reached(tx, spender, spent, budget),
        None => Ok(()),
    }
}

/// The same as [`emit_thresholds`] for a key whose budget was read since its month was locked.
pub(super) fn emit_reached(tx: &mut Tx, spender: &Spender<'_>, spent: i64, budget: Budget) -> Result<()> {
    let percent = money::percent(spent, budget.cents);
    if percent < THRESHOLDS.into_iter().min().unwrap_or(0) {
        return Ok(());
    }
    for threshold in THRESHOLDS.into_iter().filter(|threshold| *threshold <= percent) {
        if !claim(tx, spender, budget.version, threshold)? {
            continue;
        }
        let event = BudgetEvent::Threshold(Threshold {
            key_id: spender.key,
            threshold,
            percent,
            spent_cents: spent / money::MICROS_PER_CENT,
            cap_cents: budget.cents,
            period: spender.month,
            cutoff_enabled: budget.cutoff,
            workspace_id: spender.workspace,
        });
        tx.emit(spender.workspace, spender.cause, true, &event)?;
    }
    Ok(())
}

#[derive(Insertable)]
#[diesel(table_name = budget_thresholds)]
struct Fired<'a> {
    lineage_id: &'a KeyId,
    month: &'a str,
    budget_version: i64,
    percent: i64,
    fired_at: Timestamp,
}

fn claim(tx: &mut Tx, spender: &Spender<'_>, version: i64, percent: i64) -> Result<bool> {
    let row = Fired {
        lineage_id: spender.lineage,
        month: spender.month,
        budget_version: version,
        percent,
        fired_at: tx.now(),
    };
    let written = each!(tx.connection(), |connection| diesel::insert_into(budget_thresholds::table)
        .values(&row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(written == 1)
}

/// Tells what a new budget means for what the key has spent this month already. To be called in the transaction
/// of [`auth::keys::set_budget`], which re-arms the thresholds, or of [`auth::keys::create`].
///
/// # Errors
/// When the database fails.
pub fn budget_changed(tx: &mut Tx, stored: &StoredKey) -> Result<()> {
    let key = &stored.key;
    let workspace = match key.owner {
        KeyOwner::Workspace(id) => Some(id),
        KeyOwner::Partner(_) => key.default_workspace,
    };
    // An event belongs to a workspace; a partner key without one is told with its next spending.
    let Some(workspace) = workspace.filter(|_| key.budget_cents.is_some()) else { return Ok(()) };
    let month = tx.now().month();
    let spent = add(tx, &key.lineage, &month, 0, 0)?.spent;
    let spender = Spender {
        workspace,
        cause: &Cause::system("budgets"),
        key: &key.id,
        lineage: &key.lineage,
        month: &month,
    };
    emit_thresholds(tx, &spender, spent)
}

/// A key's month for reading.
pub(crate) fn month_of(read: &mut Read, lineage: &KeyId, month: &str) -> Result<KeyMonth> {
    let row: Option<(i64, i64)> = key_months::table
        .find((lineage, month))
        .select((key_months::spent_micros, key_months::reserved_micros))
        .first(read.connection())
        .optional()?;
    Ok(row.map(|(spent, reserved)| KeyMonth { spent, reserved }).unwrap_or_default())
}

/// What a key has spent in a month, in millionths of a dollar: for [`auth::Spending`].
///
/// # Errors
/// When the database fails.
pub fn spent_micros(read: &mut Read, lineage: &KeyId, month: &str) -> Result<i64> {
    Ok(month_of(read, lineage, month)?.spent)
}
