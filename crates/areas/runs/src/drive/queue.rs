//! Queue of a conversation: a run waits for its turn.

use crate::engine::{RunEngine, superseded};
use crate::execution::{Execution, FirstStep};
use crate::memory;
use crate::queries::runs;
use crate::run::{RunRow, RunStatus, conversation, failure_of};
use agents::AgentStatus;
use model::{Code, Error, Result};
use operation::Resource;
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};
use tokio::time::Instant;

/// The longest time in the queue.
const QUEUE_SECONDS: i64 = 600;
/// Poll interval of queued runs. Only runs that end in this process send a notification.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of the heartbeat of queued runs.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Outcome of waiting in the queue.
pub(crate) enum QueueOutcome {
    /// Its turn came, and its first step is begun.
    Begun(FirstStep),
    /// It will never have a turn.
    Ended(Box<RunRow>),
}

enum TurnAttempt {
    Begun(Box<Execution>, FirstStep),
    Ended(Box<RunRow>),
    Wait,
}

impl RunEngine {
    /// Waits for the turn of a queued run, then begins its first step.
    pub(crate) async fn await_turn(&self, execution: &mut Arc<Execution>) -> Result<QueueOutcome> {
        let seat = self.active().wait_for_turn(conversation::key(&execution.row));
        let mut renewed = Instant::now();
        loop {
            let turn = seat.turn.notified();
            let row = execution.row.clone();
            let due = self.db().read(move |read| {
                let expired_before = read.now().plus_seconds(-QUEUE_SECONDS);
                runs::is_due(read, &row, expired_before)
            });
            // Looking costs a read, and only what has to be written is written.
            if due.await? || renewed.elapsed() >= HEARTBEAT {
                renewed = Instant::now();
                match self.write_with(execution, Self::try_turn).await? {
                    TurnAttempt::Begun(begun, start) => {
                        *execution = Arc::new(*begun);
                        return Ok(QueueOutcome::Begun(start));
                    }
                    TurnAttempt::Ended(row) => return Ok(QueueOutcome::Ended(row)),
                    TurnAttempt::Wait => {}
                }
            }
            tokio::select! {
                () = turn => {}
                () = execution.active.cancel.cancelled() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    fn try_turn(&self, tx: &mut Tx, execution: &Execution) -> Result<TurnAttempt> {
        conversation::lock(tx, conversation::key(&execution.row))?;
        let mut row = runs::by_id(tx, execution.row.workspace_id, &execution.row.id)?;
        if row.epoch != execution.row.epoch {
            return Err(superseded());
        }
        if row.status != RunStatus::Queued {
            return Ok(TurnAttempt::Ended(Box::new(row)));
        }
        let now = tx.now();
        if row.queued_at.plus_seconds(QUEUE_SECONDS) <= now {
            row.incomplete_reason = Some("queue_timeout".to_owned());
            return self.end(tx, row, RunStatus::Expired, None);
        }
        if !is_active(tx, &row)? {
            let message = "The agent was deactivated while the run was queued.";
            return self.end(tx, row, RunStatus::Failed, Some(&Error::new(Code::AgentInactive, message)));
        }
        let active = runs::active_in_conversation(tx, &row)?;
        if active.first().is_some_and(|first| first.id < row.id) {
            runs::renew(tx, &row)?;
            return Ok(TurnAttempt::Wait);
        }
        if !runs::start(tx, &row)? {
            return Ok(TurnAttempt::Wait);
        }
        let mut begun = execution.clone();
        begun.start(now);
        // The turns before this one have ended by now, so memory is read only here.
        begun.memory =
            memory::read(self.turns(), tx, &begun.row, &execution.plan.settings, &execution.plan.guardrails)?;
        match self.begin(tx, &mut begun) {
            Ok(start) => Ok(TurnAttempt::Begun(Box::new(begun), start)),
            Err(error) if matches!(error.code().status(), 402 | 429) => {
                self.end(tx, begun.row, RunStatus::Failed, Some(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a run that has not begun.
    fn end(
        &self,
        tx: &mut Tx,
        mut row: RunRow,
        status: RunStatus,
        error: Option<&Error>,
    ) -> Result<TurnAttempt> {
        row.status = status;
        row.error = error.map(failure_of);
        row.completed_at = Some(tx.now().max(row.queued_at));
        row.lease_until = None;
        runs::finish(tx, &row)?;
        self.emit_end(tx, &row)?;
        Ok(TurnAttempt::Ended(Box::new(row)))
    }
}

/// Returns whether the agent of a run is active, or the run is a draft run.
fn is_active(read: &mut Read, row: &RunRow) -> Result<bool> {
    match agents::AgentRow::find(read, row.workspace_id, &row.agent_id) {
        Ok(agent) => Ok(agent.status == AgentStatus::Active || row.options()?.draft),
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
