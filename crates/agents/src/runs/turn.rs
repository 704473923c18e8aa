//! Waiting for a turn in a conversation.

use super::conversation;
use super::engine::{RunEngine, emit_end, failure_text, superseded};
use super::model::{RunRow, RunStatus};
use super::work::{Start, Work};
use super::{memory, queries};
use crate::agents::queries as agents;
use crate::agents::{AgentStatus, Settings};
use model::{Code, Error, Result, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};
use tokio::time::Instant;

/// How long a run may wait for its turn.
const QUEUE_SECONDS: i64 = 600;
/// How often those who wait look by themselves: other processes end runs too.
const LOOK: Duration = Duration::from_millis(500);
/// How often those who wait say that they are alive.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What became of a queued run.
pub(super) enum Entered {
    /// Its turn came, and its first step is begun.
    Begun(Start),
    /// It will never have a turn.
    Over(Box<RunRow>),
}

enum Turn {
    Begun(Box<Work>, Start),
    Over(Box<RunRow>),
    Wait,
}

impl RunEngine {
    /// Waits for the turn of a queued run, then begins its first step.
    pub(super) async fn await_turn(&self, work: &mut Arc<Work>) -> Result<Entered> {
        let seat = self.desk().wait_in(conversation::key(&work.row));
        let mut renewed = Instant::now();
        loop {
            let turn = seat.turn.notified();
            let row = work.row.clone();
            let due = self.db().read(move |read| {
                let expired_before = read.now().plus_seconds(-QUEUE_SECONDS);
                queries::is_due(read, &row, expired_before)
            });
            // Looking costs a read, and only what has to be written is written.
            if due.await? || renewed.elapsed() >= HEARTBEAT {
                renewed = Instant::now();
                match self.write_with(work, Self::try_turn).await? {
                    Turn::Begun(begun, start) => {
                        *work = Arc::new(*begun);
                        return Ok(Entered::Begun(start));
                    }
                    Turn::Over(row) => return Ok(Entered::Over(row)),
                    Turn::Wait => {}
                }
            }
            tokio::select! {
                () = turn => {}
                () = work.working.cancel.cancelled() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn try_turn(&self, tx: &mut Tx, work: &Work) -> Result<Turn> {
        conversation::lock(tx, conversation::key(&work.row))?;
        let row = queries::by_id(tx, work.row.workspace_id, &work.row.id)?;
        if row.epoch != work.row.epoch {
            return Err(superseded());
        }
        if row.status()? != RunStatus::Queued {
            return Ok(Turn::Over(Box::new(row)));
        }
        let now = tx.now();
        if row.queued_at.plus_seconds(QUEUE_SECONDS) <= now {
            return end(tx, row, RunStatus::Expired, None);
        }
        let active = queries::active_in_conversation(tx, &row)?;
        if active.first().is_some_and(|first| first.id < row.id) {
            queries::renew(tx, &row)?;
            return Ok(Turn::Wait);
        }
        if !is_active(tx, &row)? {
            let message = "The agent was switched off while the run waited.";
            return end(tx, row, RunStatus::Failed, Some(&Error::new(Code::AgentInactive, message)));
        }
        if !queries::start(tx, &row)? {
            return Ok(Turn::Wait);
        }
        let mut begun = work.clone();
        begun.start(now);
        // The turns before this one have ended by now, so memory is read only here.
        begun.memory = memory::read(tx, &begun.row, &work.plan.settings)?;
        let limits = self.refuse_over_month(tx, &begun.row, &work.plan.settings);
        match limits.and_then(|()| self.begin(tx, &mut begun)) {
            Ok(start) => Ok(Turn::Begun(Box::new(begun), start)),
            Err(error) if matches!(error.code().status(), 402 | 429) => {
                end(tx, begun.row, RunStatus::Failed, Some(&error))
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a run of an agent whose month is used up, by what its runs have spent and by what those that go on have
    /// used and set aside.
    ///
    /// # Errors
    /// `energy_depleted` with `param` = `energy_limit_monthly`.
    pub(super) fn refuse_over_month(&self, tx: &mut Tx, row: &RunRow, settings: &Settings) -> Result<()> {
        let Some(limit) = settings.energy_limit_monthly.filter(|_| row.livemode) else { return Ok(()) };
        let (workspace, agent) = (row.workspace_id, row.agent_id);
        // So that of two runs at once the second sees what the first has set aside.
        tx.lock(&format!("month of agent {workspace} {agent}"))?;
        let month: Timestamp = tx.now().month_start();
        let spent = queries::energy_since(tx, workspace, agent, month)?;
        let going_on = queries::going_on(tx, workspace, agent)?;
        if spent.saturating_add(self.0.parts.meter.in_hand(tx, workspace, &going_on)?) < limit {
            return Ok(());
        }
        let message = format!("The agent has used its {limit} Energy of this month.");
        Err(Error::new(Code::EnergyDepleted, message).param("energy_limit_monthly"))
    }
}

/// Ends a run that has not begun.
fn end(tx: &mut Tx, mut row: RunRow, status: RunStatus, error: Option<&Error>) -> Result<Turn> {
    status.as_str().clone_into(&mut row.status);
    row.error = error.map(|error| failure_text(error.code(), error.message()));
    row.completed_at = Some(tx.now().max(row.queued_at));
    row.lease_until = None;
    queries::finish(tx, &row)?;
    emit_end(tx, &row)?;
    Ok(Turn::Over(Box::new(row)))
}

fn is_active(read: &mut Read, row: &RunRow) -> Result<bool> {
    match agents::live_agent(read, row.workspace_id, row.agent_id) {
        Ok(agent) => Ok(agent.status()? == AgentStatus::Active),
        Err(error) if error.code() == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
