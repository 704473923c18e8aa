//! What keys spend in a month, their budgets and the warnings on the way there (platform-billing.md C.7).

use super::money;
use crate::schema::{budget_thresholds, key_months};
use auth::keys::{self, Budget, StoredKey};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{Cause, Error, KeyId, KeyOwner, Result, Timestamp, WorkspaceId};
use operation::Event;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use store::{OnConflict, Read, Rows, Tx, each};
use utoipa::ToSchema;

/// The steps that are published, in per cent.
const THRESHOLDS: [i64; 3] = [50, 80, 100];

/// A key's month: money spent, and money set aside for running work, both in micros.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyMonth {
    pub(crate) spent: i64,
    pub(crate) reserved: i64,
}

/// Months of keys, each with what is added to it (less, where negative), or as it then stands.
pub(super) type KeyMonths<'a> = BTreeMap<(&'a KeyId, &'a str), KeyMonth>;

#[derive(QueryableByName)]
struct Counted {
    #[diesel(sql_type = Text)]
    lineage_id: KeyId,
    #[diesel(sql_type = Text)]
    month: String,
    #[diesel(sql_type = BigInt)]
    spent_micros: i64,
    #[diesel(sql_type = BigInt)]
    reserved_micros: i64,
}

/// Adds to months of keys and returns them as they then stand. Adding nothing locks them. A month that would count more than
/// [`money::MOST_MICROS`] fails the transaction, long before SQLite would go on with a float.
pub(super) fn add_all<'a>(tx: &mut Tx, added: &KeyMonths<'a>) -> Result<KeyMonths<'a>> {
    // PostgreSQL refuses a new row of less than nothing before it finds the one that is there, so what is given back is taken off
    // months that are there.
    let gives_back = added.values().any(|added| added.spent < 0 || added.reserved < 0);
    let mut counted = if gives_back { add_to_present(tx, added)? } else { Vec::new() };
    let present: HashSet<(&str, &str)> =
        counted.iter().map(|one| (one.lineage_id.as_str(), one.month.as_str())).collect();
    let others: Vec<(&(&KeyId, &str), &KeyMonth)> =
        added.iter().filter(|((lineage, month), _)| !present.contains(&(lineage.as_str(), *month))).collect();
    let others = add_or_insert(tx, &others)?;
    counted.extend(others);
    let stands: HashMap<(&str, &str), KeyMonth> = counted
        .iter()
        .map(|one| {
            let month = KeyMonth { spent: one.spent_micros, reserved: one.reserved_micros };
            ((one.lineage_id.as_str(), one.month.as_str()), month)
        })
        .collect();
    let stand = |(lineage, month): &(&'a KeyId, &'a str)| {
        let stands = stands.get(&(lineage.as_str(), *month)).copied().unwrap_or_default();
        check_range(lineage, month, stands)?;
        Ok(((*lineage, *month), stands))
    };
    added.keys().map(stand).collect()
}

/// Adds to months that are there, and returns these.
fn add_to_present(tx: &mut Tx, added: &KeyMonths<'_>) -> Result<Vec<Counted>> {
    let rows: Vec<(&(&KeyId, &str), &KeyMonth)> = added.iter().collect();
    Rows::of(&rows)
        .text("lineage", |((lineage, _), _)| *lineage)
        .text("in_month", |((_, month), _)| *month)
        .big_int("spent", |(_, added)| added.spent)
        .big_int("reserved", |(_, added)| added.reserved)
        .load(
            tx,
            "WITH added AS (SELECT * FROM {listed}), locked (lineage, in_month) AS (
                SELECT k.lineage_id, k.month FROM key_months AS k JOIN added ON k.lineage_id = added.lineage
                    AND k.month = added.in_month
                ORDER BY k.lineage_id, k.month {for update of k}
            )
            UPDATE key_months AS k
            SET spent_micros = k.spent_micros + added.spent, reserved_micros = k.reserved_micros + added.reserved
            FROM added JOIN locked ON locked.lineage = added.lineage AND locked.in_month = added.in_month
            WHERE k.lineage_id = added.lineage AND k.month = added.in_month
            RETURNING lineage_id, month, spent_micros, reserved_micros",
        )
}

/// Adds to months, which begin with that if they are not there. A month that is not there has nothing to give back.
fn add_or_insert(tx: &mut Tx, added: &[(&(&KeyId, &str), &KeyMonth)]) -> Result<Vec<Counted>> {
    let rows = Rows::of(added)
        .text("lineage_id", |((lineage, _), _)| *lineage)
        .text("month", |((_, month), _)| *month)
        .big_int("spent_micros", |(_, added)| added.spent.max(0))
        .big_int("reserved_micros", |(_, added)| added.reserved.max(0));
    let sum = OnConflict::Update {
        key: &["lineage_id", "month"],
        set: "spent_micros = k.spent_micros + excluded.spent_micros,
            reserved_micros = k.reserved_micros + excluded.reserved_micros",
    };
    rows.insert_returning(tx, "key_months AS k", sum, "lineage_id, month, spent_micros, reserved_micros")
}

/// Adds to one month of a key.
pub(super) fn add(tx: &mut Tx, lineage: &KeyId, month: &str, spent: i64, reserved: i64) -> Result<KeyMonth> {
    let added = BTreeMap::from([((lineage, month), KeyMonth { spent, reserved })]);
    Ok(add_all(tx, &added)?.into_values().next().unwrap_or_default())
}

/// Fails where a key's month counts more than can be.
fn check_range(lineage: &KeyId, month: &str, stands: KeyMonth) -> Result<()> {
    if stands.spent > money::MOST_MICROS || stands.reserved > money::MOST_MICROS {
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

/// What a key has spent in this month, in whole cents, as its budget is stated.
///
/// # Errors
/// When the database fails.
pub fn spent_cents(read: &mut Read, lineage: &KeyId) -> Result<i64> {
    let month = read.now().month();
    Ok(spent_micros(read, lineage, &month)? / money::MICROS_PER_CENT)
}
