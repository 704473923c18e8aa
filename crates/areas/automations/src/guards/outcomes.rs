//! How what firings started has ended: the events of runs say it.

use super::errors;
use crate::firings::row::FiringStatus;
use crate::schema::automation_firings as table;
use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::Bool;
use events::{EventConsumer, LoggedEvent};
use model::{AutomationId, FlowRunId, Result, RunId, text_enum};
use serde::Deserialize;
use std::collections::BTreeSet;
use store::{Read, Tx};

/// The firings whose runs have not ended, as the partial index has them.
const RUNNING: &str = "automation_firings.status = 'dispatched' AND automation_firings.outcome IS NULL";

text_enum! {
    /// How a run has ended, as guards count it.
    pub enum Outcome {
        /// It did what it was to do, at least in part.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

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
            let firing = note(tx, &run_id, outcome)?;
            failed.extend(firing.filter(|_| outcome == Outcome::Failed));
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

/// Returns whether a firing of an automation waits, or has started something that has not ended.
pub(crate) fn has_open_run(read: &mut Read, automation: AutomationId) -> Result<bool> {
    let of = || table::table.filter(table::automation_id.eq(automation));
    let running =
        diesel::select(exists(of().filter(sql::<Bool>(RUNNING)))).get_result::<bool>(read.connection())?;
    if running {
        return Ok(true);
    }
    let pending = of()
        .filter(sql::<Bool>("automation_firings.status IN ('pending', 'held')"))
        .filter(table::status.eq(FiringStatus::Pending));
    Ok(diesel::select(exists(pending)).get_result(read.connection())?)
}
