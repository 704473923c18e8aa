//! What became of a dispatch, as the row of the firing keeps it.

use crate::firings::once;
use crate::firings::row::{FiringReason, FiringRow, FiringStatus};
use crate::guards::errors;
use crate::guards::outcome::Outcome;
use crate::guards::outcomes;
use crate::rules::row::{AutomationRow, SuspendedReason};
use crate::rules::suspend::suspend;
use model::{Code, Error, FiringId, FlowRunId, InvocationId, JsonText, Result, RunId};
use serde_json::{Value, json};
use store::Tx;

/// What a firing has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Started {
    Flow(FlowRunId),
    Agent(RunId),
    /// A call of a function, which has ended; with its error if it failed.
    Function(InvocationId, Option<Failed>),
}

/// An error of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) param: Option<String>,
}

impl Failed {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            code: error.code().as_str().to_owned(),
            message: error.message().to_owned(),
            param: error.param_name().map(str::to_owned),
        }
    }

    fn json(&self) -> JsonText {
        JsonText::of(&json!({ "code": self.code, "message": self.message, "param": self.param }))
    }
}

/// Marks a firing that has started its target.
pub(super) fn note_started(tx: &mut Tx, before: &FiringRow, started: Started) -> Result<()> {
    let mut row = before.clone();
    row.status = FiringStatus::Dispatched;
    row.reason = None;
    row.due_at = None;
    row.ended_at = Some(tx.now());
    match started {
        Started::Flow(run) => row.flow_run_id = Some(run),
        Started::Agent(run) => {
            let early = outcomes::early(tx, row.automation_id, &run)?;
            row.outcome = early.map(|outcome| outcome.as_str().to_owned());
            row.run_id = Some(run);
        }
        Started::Function(call, failed) => {
            row.invocation_id = Some(call);
            let outcome = if failed.is_some() { Outcome::Failed } else { Outcome::Completed };
            row.outcome = Some(outcome.as_str().to_owned());
            row.error = failed.as_ref().map(Failed::json);
        }
    }
    row.store(before, tx)?;
    if row.outcome.as_deref() == Some(Outcome::Failed.as_str()) {
        errors::watch(tx, row.automation_id)?;
    }
    AutomationRow::note_fired(tx, row.automation_id)
}

/// Ends a firing that starts nothing.
pub(super) fn note_stopped(
    tx: &mut Tx,
    before: &FiringRow,
    reason: FiringReason,
    failed: Option<&Failed>,
) -> Result<()> {
    let mut row = before.clone();
    let status = match reason {
        FiringReason::SwitchedOff => FiringStatus::Discarded,
        FiringReason::Overlap => FiringStatus::Skipped,
        _ => FiringStatus::Failed,
    };
    row.end(status, reason, tx.now());
    row.error = failed.map(Failed::json);
    row.store(before, tx)?;
    once::forget(tx, &row)?;
    let suspended = match reason {
        FiringReason::KeyLost => SuspendedReason::KeyLost,
        FiringReason::TargetInactive => SuspendedReason::TargetInactive,
        _ => return Ok(()),
    };
    let details: Value = json!({ "firing_id": row.id, "message": failed.map(|failed| &failed.message) });
    suspend(tx, row.workspace_id, row.automation_id, suspended, Some(&JsonText::of(&details)))?;
    Ok(())
}

/// Ends a firing whose target refused to start, if it still waits.
pub(super) fn note_refused(tx: &mut Tx, id: &FiringId, error: &Error) -> Result<()> {
    let Some(row) = FiringRow::locked(tx, id)?.filter(|row| row.status == FiringStatus::Pending) else {
        return Ok(());
    };
    let reason = match error.code() {
        Code::EnergyDepleted => FiringReason::EnergyDepleted,
        Code::MissingScope => FiringReason::KeyLost,
        Code::NotFound | Code::InvalidState | Code::AgentInactive => FiringReason::TargetInactive,
        _ => FiringReason::TargetRefused,
    };
    note_stopped(tx, &row, reason, Some(&Failed::of(error)))
}
