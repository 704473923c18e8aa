//! The guard against automations whose runs nearly always fail. It warns a day before it suspends.

use super::outcome::Outcome;
use crate::rules::events::{AutomationEvent, AutomationWarning};
use crate::rules::row::{AutomationRow, AutomationStatus, SuspendedReason};
use crate::rules::suspend::suspend;
use crate::schema::{automation_firings as firings, automations};
use crate::timer_rows::TimerRow;
use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{AutomationId, Cause, Env, JsonText, Result};
use serde_json::{Value, json};
use store::{Read, Tx};

/// The key of the row that says when an automation was warned of.
pub(crate) const KEY: &str = "errors";
/// The days whose runs count.
const DAYS: i64 = 7;
/// The fewest runs.
const RUNS: i64 = 20;
/// The least share of failures, in percent.
const PERCENT: i64 = 95;
/// How long it warns before it suspends, in seconds.
const WARNING_SECONDS: i64 = 24 * 3_600;

/// Warns of an automation of which a run has failed, if nearly all have.
pub(crate) fn watch(tx: &mut Tx, id: AutomationId) -> Result<()> {
    let row: Option<AutomationRow> = automations::table
        .find(id)
        .filter(automations::status.eq(AutomationStatus::On))
        .select(AutomationRow::as_select())
        .get_result(tx.connection())
        .optional()?;
    let Some(row) = row else { return Ok(()) };
    let Some(seen) = seen(tx, &row)? else { return Ok(()) };
    let now = tx.now();
    let suspends_at = now.plus_seconds(WARNING_SECONDS);
    let details = JsonText::of(&seen);
    let timer = TimerRow {
        automation_id: id,
        key: KEY.to_owned(),
        workspace_id: row.workspace_id,
        contact_id: None,
        since: now,
        due_at: suspends_at,
        details: details.clone(),
        chain: None,
    };
    if !timer.add(tx)? {
        return Ok(());
    }
    let (name, reason) = (row.name, SuspendedReason::Errors);
    let warning = AutomationWarning { automation_id: id, name, reason, suspends_at, details: &details };
    let is_live = row.env == Env::Live;
    tx.emit(row.workspace_id, &Cause::system("automations"), is_live, &AutomationEvent::Warning(warning))?;
    Ok(())
}

/// Decides about an automation a day after the warning: it is suspended if its runs still fail.
pub(crate) fn decide(tx: &mut Tx, row: Option<&AutomationRow>, timer: &TimerRow) -> Result<()> {
    timer.delete(tx)?;
    // It was switched off and on again since, by somebody who knew.
    let row = row.filter(|row| row.enabled_at.is_none_or(|at| at <= timer.since));
    if let Some(row) = row
        && let Some(seen) = seen(tx, row)?
    {
        suspend(tx, row.workspace_id, row.id, SuspendedReason::Errors, Some(&JsonText::of(&seen)))?;
    }
    Ok(())
}

/// Returns what the guard sees, if nearly all runs have failed.
fn seen(read: &mut Read, row: &AutomationRow) -> Result<Option<Value>> {
    let since = read.now().plus_seconds(-DAYS * 24 * 3_600);
    let since = row.enabled_at.map_or(since, |enabled| since.max(enabled));
    let counts: Vec<(Option<String>, i64)> = firings::table
        .filter(firings::automation_id.eq(row.id))
        .filter(firings::ended_at.ge(since))
        .filter(sql::<Bool>("automation_firings.outcome IS NOT NULL"))
        .group_by(firings::outcome)
        .select((firings::outcome, count_star()))
        .load(read.connection())?;
    let of = |outcome: Outcome| {
        let found = counts.iter().find(|(word, _)| word.as_deref() == Some(outcome.as_str()));
        found.map_or(0, |(_, count)| *count)
    };
    let failed = of(Outcome::Failed);
    let runs = failed + of(Outcome::Completed);
    let is_bad = runs >= RUNS && failed * 100 >= runs * PERCENT;
    Ok(is_bad.then(|| json!({ "guard": "errors", "runs": runs, "failed": failed, "days": DAYS })))
}
