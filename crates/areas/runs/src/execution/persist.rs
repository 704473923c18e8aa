//! Writes of finished steps.

use super::state::Execution;
use crate::memory;
use crate::queries::steps;
use crate::run::{StepKind, StepRow, StepStatus, ToolOutput};
use model::{JsonText, Result};
use store::Tx;

/// Writes the results of finished steps. A step without one has failed.
pub(crate) fn write_finished(tx: &mut Tx, execution: &Execution) -> Result<()> {
    let now = tx.now();
    let unwritten = execution.steps.iter().skip(execution.written);
    // Nothing is begun with findings of guardrails, so they are written only now.
    let (findings, begun): (Vec<&StepRow>, Vec<&StepRow>) =
        unwritten.partition(|step| step.kind == StepKind::Guardrail);
    steps::insert_all(tx, &findings)?;
    let ended: Vec<(&StepRow, StepStatus)> = begun.iter().map(|step| (*step, step.final_status())).collect();
    steps::finish_all(tx, &ended, now)?;
    begun.into_iter().try_for_each(|step| keep_summary(tx, execution, step))
}

/// Writes the last priced step without `absorbed`, which nobody pays.
pub(crate) fn write_absorbed(tx: &mut Tx, execution: &Execution, absorbed: i64) -> Result<()> {
    if absorbed == 0 {
        return Ok(());
    }
    match execution.steps.iter().rev().find(|step| step.kind.is_priced()) {
        Some(step) => steps::note_energy(tx, step, step.energy - absorbed),
        None => Ok(()),
    }
}

/// Cancels the calls that wait for an approval, because the run ends.
pub(crate) fn drop_pending(tx: &mut Tx, execution: &Execution) -> Result<()> {
    let now = tx.now();
    for step in &execution.pending {
        let (output, status) = match step.status {
            StepStatus::Unknown => {
                (ToolOutput::unknown("the service was interrupted during the call"), StepStatus::Unknown)
            }
            _ => (ToolOutput::error("the run ended before the call was made"), StepStatus::Cancelled),
        };
        let output = Some(JsonText::of(&output));
        steps::finish(tx, &StepRow { output, ..step.clone() }, status, now)?;
    }
    Ok(())
}

/// Keeps the summary of a memory step with its result.
fn keep_summary(tx: &mut Tx, execution: &Execution, step: &StepRow) -> Result<()> {
    match &execution.memory.summary {
        Some(summary) if step.kind == StepKind::Memory && step.status == StepStatus::Completed => {
            memory::keep_summary(tx, &execution.row, summary)
        }
        _ => Ok(()),
    }
}
