//! Completion of a run: the last step, the price, the run, its event and the outcome of its request, in one transaction.

use crate::engine::{Completion, RunEngine, superseded};
use crate::execution::{Execution, drop_pending, write_absorbed, write_finished};
use crate::queries::runs;
use crate::run::{Ended, Ending, RunRow, RunStatus, failure_of, refusal_of, response};
use auth::idempotency::{self, Claim};
use model::{Code, Error, Result, Timestamp};
use ports::{Closing, Settlement, TestExecution};
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    /// Writes the end of a run. `energy` is what its last step cost.
    pub(crate) async fn finish(
        &self,
        execution: Arc<Execution>,
        ending: Ending,
        energy: i64,
        claim: Option<Claim>,
    ) -> Result<Ended> {
        let completion = Completion { execution: execution.clone(), ending, energy, claim };
        let ended = self.db().write_batched(&self.0.completions, self.clone(), completion).await?;
        self.0.parts.spending.forget(&execution.plan.caller.key.lineage);
        Ok(ended)
    }

    /// Writes the end of a run in a transaction.
    pub(crate) fn finish_in(&self, tx: &mut Tx, completion: &Completion) -> Result<Ended> {
        let Completion { execution, ending, energy, claim } = completion;
        let (mut row, is_ours) = write_end(tx, execution, ending)?;
        let refund = row.status == RunStatus::Failed;
        let absorbed = self.close(tx, execution, &row, *energy, refund)?;
        if absorbed > 0 && !refund {
            row.energy -= absorbed;
            runs::note_energy(tx, &row)?;
        }
        if is_ours {
            self.emit_end(tx, &row)?;
        }
        let stored = self.keep_outcome(tx, &row, claim.as_ref())?;
        Ok(Ended { row, stored })
    }

    /// Keeps the end of a run that somebody else than its worker wrote as the outcome of its request.
    pub(crate) async fn keep_end(&self, row: RunRow, claim: Option<Claim>) -> Result<Ended> {
        let engine = self.clone();
        self.db()
            .write(move |tx| {
                let stored = engine.keep_outcome(tx, &row, claim.as_ref())?;
                Ok(Ended { row: row.clone(), stored })
            })
            .await
    }

    /// Stores the end of a run as the outcome of its request. For a failed run it deletes the outcome instead, so that the same
    /// request starts a new attempt. Without a claim, it uses the one of a request that was answered before the end.
    fn keep_outcome(&self, tx: &mut Tx, row: &RunRow, claim: Option<&Claim>) -> Result<bool> {
        let left = match (claim, row.options()?.idempotency_key) {
            (None, Some(key)) => {
                idempotency::left_open(tx, &row.key_lineage, &key, row.id.as_str(), &self.0.parts.seal)?
            }
            _ => None,
        };
        let Some(claim) = claim.or(left.as_ref()) else { return Ok(false) };
        if row.status == RunStatus::Failed {
            idempotency::reopen(tx, claim)?;
            return Ok(false);
        }
        self.store_outcome(tx, claim, row, false)
    }

    /// Settles the last step, releases the hold, and records the execution. Returns the Energy that the step cost beyond its
    /// hold.
    fn close(
        &self,
        tx: &mut Tx,
        execution: &Execution,
        row: &RunRow,
        energy: i64,
        refund: bool,
    ) -> Result<i64> {
        drop_pending(tx, execution)?;
        let charge = execution.charge();
        let last_step = Some(execution.last_position()).filter(|last| *last > 0);
        if !row.livemode {
            write_finished(tx, execution)?;
            let execution = TestExecution {
                status: row.status.as_str(),
                model: row.model.as_str(),
                first_step: row.options()?.attempt_from.unwrap_or(0),
                last_step,
            };
            self.0.parts.meter.record_test(tx, &charge, &execution)?;
            return Ok(0);
        }
        let (step, model) = execution.charged_step();
        let close = Some(Closing { status: row.status.as_str(), refund, last_step });
        let settlement = Settlement { step, energy, model: model.as_str(), close };
        // First what only this run changes: all runs of the workspace wait for what settling locks.
        write_finished(tx, execution)?;
        let absorbed = energy - self.0.parts.meter.settle(tx, &charge, &settlement)?;
        write_absorbed(tx, execution, absorbed)?;
        Ok(absorbed)
    }

    /// Stores a run as the outcome of its request. `false`: the request was taken over by another, which finds the run.
    pub(crate) fn store_outcome(
        &self,
        tx: &mut Tx,
        claim: &Claim,
        row: &RunRow,
        still_running: bool,
    ) -> Result<bool> {
        // A key that can create runs can also approve calls, so the response contains the link.
        let reply = response::reply(self.shown(tx, row.clone(), true)?, still_running)?;
        match idempotency::finish(tx, claim, reply.status, reply.text()?, &reply.headers) {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Code::IdempotencyInProgress => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Writes the end into the row of the run. Returns the row, and whether this worker ended the run.
fn write_end(tx: &mut Tx, execution: &Execution, ending: &Ending) -> Result<(RunRow, bool)> {
    let Some(row) = ended_row(execution, ending, tx.now()) else {
        return Ok((stopped(tx, execution)?, false));
    };
    if !runs::finish(tx, &row)? {
        return Ok((stopped(tx, execution)?, false));
    }
    Ok((row, true))
}

/// The row of a run that ends so; `None` where another has ended it.
pub(crate) fn ended_row(execution: &Execution, ending: &Ending, now: Timestamp) -> Option<RunRow> {
    let mut row = execution.row.clone();
    // A busy conversation may have moved the run's acceptance on by some milliseconds.
    row.completed_at = Some(now.max(row.queued_at));
    row.lease_until = None;
    let status = match ending {
        Ending::Completed(text) => {
            row.output = Some(text.clone());
            RunStatus::Completed
        }
        Ending::Incomplete(reason, text) => {
            row.output.clone_from(text);
            row.incomplete_reason = Some((*reason).to_owned());
            RunStatus::Incomplete
        }
        Ending::Failed(code, message) => {
            row.error = Some(failure_of(&Error::new(*code, message)));
            row.energy = 0;
            RunStatus::Failed
        }
        Ending::Unanswered => {
            row.incomplete_reason = Some("unanswered".to_owned());
            RunStatus::Expired
        }
        Ending::Stopped => return None,
    };
    row.status = status;
    Some(row)
}

/// Closes a run that somebody cancelled, which stays so.
///
/// # Errors
/// `internal_error` where it was taken over: then nothing of this worker counts.
fn stopped(tx: &mut Tx, execution: &Execution) -> Result<RunRow> {
    runs::note_usage(tx, &execution.row)?.ok_or_else(superseded)
}

/// The run, or for a failed one the error for its caller.
pub(crate) fn outcome(row: RunRow) -> Result<RunRow> {
    if row.status != RunStatus::Failed {
        return Ok(row);
    }
    Err(refusal_of(row.error.as_ref()).with("run_id", row.id.as_str()))
}
