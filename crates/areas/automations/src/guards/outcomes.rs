//! How what firings started has ended: the events of runs say it.

use super::errors;
use super::outcome::Outcome;
use crate::firings::row::FiringStatus;
use crate::schema::automation_firings as table;
use crate::timer_rows::TimerRow;
use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::Bool;
use events::{EventConsumer, LoggedEvent};
use model::{AutomationId, FlowRunId, JsonText, Result, RunId};
use serde::Deserialize;
use std::collections::BTreeSet;
use store::{Read, Tx};

/// The firings whose runs have not ended, as the partial index has them.
const RUNNING: &str = "automation_firings.status = 'dispatched' AND automation_firings.outcome IS NULL";

/// How long an outcome is kept for a firing that is being dispatched, in seconds.
const EARLY_SECONDS: i64 = 3_600;

/// Notes the ends of runs that firings have started.
pub(crate) struct Outcomes;

#[derive(Deserialize)]
struct Ended {
    run_id: String,
}

impl EventConsumer for Outcomes {
    fn name(&self) -> &'static str {
        "automations.outcomes"
    }

    fn wants(&self, kind: &str) -> bool {
        outcome_of(kind).is_some()
    }

    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        let mut failed = BTreeSet::new();
        for event in events {
            let Some(outcome) = outcome_of(&event.kind) else { continue };
            // What an automation started names it in its chain of causes.
            if event.chain().is_none_or(|chain| chain.automations.is_empty()) {
                continue;
            }
            let Ok(Ended { run_id }) = event.data.parse() else { continue };
            let noted = note(tx, &run_id, outcome)?;
            if noted.is_none() {
                note_early(tx, event, &run_id, outcome)?;
            }
            failed.extend(noted.filter(|_| outcome == Outcome::Failed));
        }
        failed.into_iter().try_for_each(|automation| errors::watch(tx, automation))
    }
}

fn outcome_of(kind: &str) -> Option<Outcome> {
    match kind.strip_prefix("flow_run.").or_else(|| kind.strip_prefix("run."))? {
        "completed" | "incomplete" => Some(Outcome::Completed),
        "failed" | "expired" => Some(Outcome::Failed),
        "cancelled" => Some(Outcome::Cancelled),
        _ => None,
    }
}

/// Notes how the run with this id has ended. Returns the automation that started it, unless it was noted before.
fn note(tx: &mut Tx, run: &str, outcome: Outcome) -> Result<Option<AutomationId>> {
    let now = tx.now();
    let set = (table::outcome.eq(outcome.as_str()), table::ended_at.eq(now));
    let open = table::table.filter(table::outcome.is_null());
    if let Some(flow) = FlowRunId::parse(run) {
        let firing = open.filter(table::flow_run_id.eq(flow));
        let update = diesel::update(firing).set(set).returning(table::automation_id);
        return Ok(update.get_result(tx.connection()).optional()?);
    }
    let Some(run) = RunId::parse(run) else { return Ok(None) };
    let firing = open.filter(table::run_id.eq(run));
    let update = diesel::update(firing).set(set).returning(table::automation_id);
    Ok(update.get_result(tx.connection()).optional()?)
}

/// Keeps the outcome of a run that may belong to a firing which is still being dispatched: a run of an agent can end before the
/// firing has its id.
fn note_early(tx: &mut Tx, event: &LoggedEvent, run: &str, outcome: Outcome) -> Result<()> {
    let automation = event.chain().and_then(|chain| chain.automations.last().copied());
    let Some(automation) = automation else { return Ok(()) };
    if RunId::parse(run).is_none() || !has_pending(tx, automation)? {
        return Ok(());
    }
    let now = tx.now();
    let row = TimerRow {
        automation_id: automation,
        key: early_key(run),
        workspace_id: event.workspace_id,
        contact_id: None,
        since: now,
        due_at: now.plus_seconds(EARLY_SECONDS),
        details: JsonText::of(&outcome),
        chain: None,
    };
    row.add(tx)?;
    Ok(())
}

/// Takes the outcome of a run that ended before the firing had its id.
pub(crate) fn early(tx: &mut Tx, automation: AutomationId, run: &RunId) -> Result<Option<Outcome>> {
    let row = TimerRow::take(tx, automation, &early_key(&run.to_string()))?;
    Ok(row.and_then(|row| row.details.parse().ok()))
}

fn early_key(run: &str) -> String {
    format!("outcome:{run}")
}

/// Returns whether a firing of an automation waits, or has started something that has not ended.
pub(crate) fn has_open_run(read: &mut Read, automation: AutomationId) -> Result<bool> {
    // Runs of agents end within a day, even if nobody saw it.
    let day_ago = read.now().plus_seconds(-24 * 3_600);
    let of = table::table
        .filter(table::automation_id.eq(automation))
        .filter(table::flow_run_id.is_not_null().or(table::created_at.gt(day_ago)));
    let running =
        diesel::select(exists(of.filter(sql::<Bool>(RUNNING)))).get_result::<bool>(read.connection())?;
    if running {
        return Ok(true);
    }
    has_pending(read, automation)
}

fn has_pending(read: &mut Read, automation: AutomationId) -> Result<bool> {
    let pending = table::table
        .filter(table::automation_id.eq(automation))
        .filter(sql::<Bool>("automation_firings.status IN ('pending', 'held')"))
        .filter(table::status.eq(FiringStatus::Pending));
    Ok(diesel::select(exists(pending)).get_result(read.connection())?)
}
