//! Approval requests: the run, its event and the outcome of its request are one transaction, which releases the worker.

use super::queries;
use crate::engine::{RunEngine, cause_of};
use crate::events::RunEvent;
use crate::execution::{Execution, write_finished};
use crate::run::{ApprovalRequest, Ended, Ending, RunRow, StepStatus};
use auth::idempotency::Claim;
use model::{Error, Result};
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    /// Requests the approval of the pending calls of a run, and releases it.
    pub(crate) async fn request_approval(
        &self,
        execution: Arc<Execution>,
        claim: Option<Claim>,
    ) -> Result<Ended> {
        let outcome_of = claim.clone();
        let waiting = self.write_with(&execution, move |engine, tx, execution| {
            let Some(row) = request(tx, execution)? else { return Ok(None) };
            let stored = match &outcome_of {
                Some(claim) => engine.store_outcome(tx, claim, &row, false)?,
                None => false,
            };
            Ok(Some(Ended { row, stored }))
        });
        match waiting.await? {
            Some(waiting) => Ok(waiting),
            None => self.finish(execution, Ending::Stopped, 0, claim).await,
        }
    }
}

/// Writes the request. Returns `None` if the run was cancelled or taken over.
fn request(tx: &mut Tx, execution: &Execution) -> Result<Option<RunRow>> {
    let first = execution.pending.iter().find(|step| step.status == StepStatus::RequiresAction);
    let first = first.ok_or_else(|| Error::internal("a run waits for people and asks nothing"))?;
    let question = ApprovalRequest { from: first.position, asked_at: tx.now() };
    let mut options = execution.row.options()?;
    options.questions.open = Some(question);
    let row = queries::wait_for_people(tx, &execution.row, &options, question.expires_at())?;
    let Some(row) = row else { return Ok(None) };
    write_finished(tx, execution)?;
    for step in execution.pending.iter().filter(|step| step.status == StepStatus::Approved) {
        queries::decide_step(tx, step)?;
    }
    let open = execution.pending.iter().filter(|step| step.status == StepStatus::RequiresAction);
    let event = RunEvent::of_waiting(&row, open, question.expires_at());
    tx.emit(row.workspace_id, &cause_of(&row)?, row.livemode, &event)?;
    Ok(Some(row))
}
