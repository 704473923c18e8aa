//! Runs that reminders start: one for each firing.

use super::model::{ReminderActionType, ReminderError, ReminderRow, ReminderStatus};
use super::operations::Agents;
use super::queries;
use jobs::{JobContext, JobError};
use model::{AgentId, Code, Error, KeyId, ReminderId, Result, Timestamp, WorkspaceId};
use operation::ports::{StartRun, StartedBy};
use serde::{Deserialize, Serialize};
use store::{Db, Tx};

/// The job that starts a run.
pub(super) const JOB: &str = "reminders.run";

/// The run that a firing starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Wanted {
    workspace: WorkspaceId,
    reminder: ReminderId,
    slot: Timestamp,
    key: KeyId,
    agent: Option<AgentId>,
    input: String,
}

impl Wanted {
    /// What no other firing has.
    fn name(&self) -> String {
        format!("reminder:{}:{}", self.reminder, self.slot.millis())
    }
}

/// Starts, after this transaction, the run of a reminder that fired for `slot`.
pub(super) fn enqueue(tx: &mut Tx, row: &ReminderRow, slot: Timestamp) -> Result<()> {
    let action = row.action()?;
    if action.kind != ReminderActionType::RunAgent {
        return Ok(());
    }
    let about = || row.note.iter().fold(row.title.clone(), |text, note| format!("{text}\n\n{note}"));
    let wanted = Wanted {
        workspace: row.workspace_id,
        reminder: row.id,
        slot,
        key: row.key_id.clone(),
        agent: action.config.agent_id,
        input: action.config.input.unwrap_or_else(about),
    };
    let now = tx.now();
    tx.enqueue(row.workspace_id, JOB, Some(&wanted.name()), &wanted, now)
}

/// Starts a run. It is done once, however often this is tried.
pub(super) async fn start(agents: Agents, job: JobContext) -> Result<(), JobError> {
    let wanted: Wanted = job.payload.parse()?;
    let run = StartRun {
        workspace: wanted.workspace,
        key: wanted.key.clone(),
        agent: wanted.agent,
        input: wanted.input.clone(),
        trigger: StartedBy::Reminder(wanted.reminder),
        contact: None,
        conversation: None,
        supersedes: false,
        once: wanted.name(),
    };
    match agents.0.start(run).await {
        Ok(_) => Ok(()),
        Err(error) if is_passing(&error) => Err(error.into()),
        Err(error) => Ok(note(&job.db, wanted, error).await?),
    }
}

/// Whether another attempt may succeed.
fn is_passing(error: &Error) -> bool {
    error.code().status() >= 500 || error.code() == Code::IdempotencyInProgress
}

/// Writes down why a run could not be started.
async fn note(db: &Db, wanted: Wanted, error: Error) -> Result<()> {
    db.write(move |tx| {
        let mut row = match queries::locked(tx, wanted.workspace, wanted.reminder) {
            // It was deleted meanwhile.
            Err(gone) if gone.code() == Code::NotFound => return Ok(()),
            row => row?,
        };
        row.last_error = Some(ReminderError::of(&error, tx.now()));
        if row.status == ReminderStatus::Fired {
            row.status = ReminderStatus::Failed;
        }
        queries::store(tx, &mut row)
    })
    .await
}
