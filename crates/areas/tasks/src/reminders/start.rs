//! The action `run_agent`: one run for each firing.

use super::actions::Actions;
use super::model::{ReminderActionType, ReminderError, ReminderInput, ReminderRow, ReminderStatus};
use super::queries;
use jobs::{JobContext, JobError};
use model::{AgentId, Code, Error, KeyId, ReminderId, Result, Timestamp, WorkspaceId};
use ports::{StartRun, StartedBy};
use serde::{Deserialize, Serialize};
use store::{Db, Tx};

/// The name of the job that starts a run.
pub(super) const JOB: &str = "reminders.run";

/// The payload of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StartRunPayload {
    workspace: WorkspaceId,
    reminder: ReminderId,
    slot: Timestamp,
    key: KeyId,
    agent: Option<AgentId>,
    input: String,
}

/// Returns a unique name for a firing, under which its action happens once.
pub(super) fn name(reminder: ReminderId, slot: Timestamp) -> String {
    format!("reminder:{reminder}:{}", slot.millis())
}

/// Enqueues the run of a reminder that fired for `slot`.
pub(super) fn enqueue(tx: &mut Tx, row: &ReminderRow, slot: Timestamp) -> Result<()> {
    let action = row.action()?;
    if action.kind != ReminderActionType::RunAgent {
        return Ok(());
    }
    let about = || row.note.iter().fold(row.title.clone(), |text, note| format!("{text}\n\n{note}"));
    let payload = StartRunPayload {
        workspace: row.workspace_id,
        reminder: row.id,
        slot,
        key: row.key_id.clone(),
        agent: action.config.agent_id,
        input: match action.config.input {
            Some(ReminderInput::Text(text)) => text.0,
            Some(ReminderInput::Values(_)) | None => about(),
        },
    };
    let now = tx.now();
    tx.enqueue(row.workspace_id, JOB, Some(&name(row.id, slot)), &payload, now)
}

/// Starts a run exactly once, even if the job is retried.
pub(super) async fn start(actions: Actions, job: JobContext) -> Result<(), JobError> {
    let wanted: StartRunPayload = job.payload.parse()?;
    let run = StartRun {
        workspace: wanted.workspace,
        key: wanted.key.clone(),
        agent: wanted.agent,
        input: wanted.input.clone(),
        trigger: StartedBy::Reminder(wanted.reminder),
        answering: None,
        question: None,
        conversation: None,
        supersedes: false,
        chain: job.chain.clone(),
        once: name(wanted.reminder, wanted.slot),
        options: ports::StartOptions::default(),
    };
    match actions.agents.start(run).await {
        Ok(_) => Ok(()),
        Err(error) if is_passing(&error) => Err(error.into()),
        Err(error) => Ok(note(&job.db, wanted.workspace, wanted.reminder, error).await?),
    }
}

/// Returns whether the error is transient.
pub(super) fn is_passing(error: &Error) -> bool {
    error.code().status() >= 500 || error.code() == Code::IdempotencyInProgress
}

/// Stores the error of an action in the reminder.
pub(super) async fn note(db: &Db, workspace: WorkspaceId, reminder: ReminderId, error: Error) -> Result<()> {
    db.write(move |tx| {
        let mut row = match queries::locked(tx, workspace, reminder) {
            // The reminder was deleted meanwhile.
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
