//! Conversations: what belongs to one, in what order its runs go, and what a busy one does with a new run.
//!
//! A conversation is a name that a caller gave, of one agent and one kind of key. At most one of its runs goes on at
//! a time, and they go in the order of their ids.

use super::engine::RunEngine;
use super::model::{OnBusy, RunRow, RunStatus};
use super::queries;
use model::{AgentId, Code, Error, Result, Timestamp, WorkspaceId};
use store::Tx;

/// Runs that may wait in a conversation, beside the one that goes on.
const LONGEST_QUEUE: usize = 10;

/// The number that stands for a conversation, among locks and among those who wait.
pub(super) fn key_of(workspace: WorkspaceId, livemode: bool, agent: AgentId, name: &str) -> i64 {
    let thing = format!("conversation {workspace} {livemode} {agent} {name}");
    let digest = ring::digest::digest(&ring::digest::SHA256, thing.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Lets no other transaction change which runs a conversation has, and which goes on, until this one ends.
pub(super) fn lock(tx: &mut Tx, key: i64) -> Result<()> {
    tx.lock(&format!("conversation {key}"))
}

/// The number that stands for a run's conversation.
pub(super) fn key(row: &RunRow) -> i64 {
    key_of(row.workspace_id, row.livemode, row.agent_id, &row.conversation_id)
}

/// The moment under which the next run of a locked conversation is entered: after all earlier ones, also where they
/// came in the same millisecond or from a replica whose clock is ahead, because their order is that of their ids.
pub(super) fn next_moment(tx: &mut Tx, workspace: WorkspaceId, conversation: &str) -> Result<Timestamp> {
    let now = tx.now();
    let last = queries::last_queued_at(tx, workspace, conversation)?;
    Ok(last.map_or(now, |last| now.max(Timestamp::from_millis(last.millis() + 1))))
}

impl RunEngine {
    /// Whether a run must wait for its turn, after doing what `on_busy` asks. The conversation is locked.
    pub(super) fn must_wait(&self, tx: &mut Tx, on_busy: OnBusy, row: &RunRow) -> Result<bool> {
        let active = queries::active_in_conversation(tx, row)?;
        let Some(holder) = active.first() else { return Ok(false) };
        let busy = || {
            let age = (row.queued_at.millis() - holder.queued_at.millis()).max(0) / 1000;
            let message =
                format!("The conversation is busy with {}, which started {age} seconds ago.", holder.id);
            Error::new(Code::ConversationBusy, message).with("run_id", holder.id.as_str()).retry_after(2)
        };
        let reason = match on_busy {
            OnBusy::Reject => return Err(busy()),
            // The first is the one that goes on, or whose turn it is.
            OnBusy::Enqueue if active.len() > LONGEST_QUEUE => return Err(busy()),
            OnBusy::Enqueue => return Ok(true),
            OnBusy::Interrupt => "interrupted",
            OnBusy::Rollback => "rolled_back",
        };
        for other in active {
            let waited_for_people = other.status == RunStatus::RequiresAction;
            let Some(other) = queries::cancel(tx, &other, reason)? else { continue };
            self.emit_end(tx, &other)?;
            let (engine, id) = (self.clone(), other.id);
            tx.after_commit(move || {
                engine.active().stop(&id);
                if waited_for_people {
                    engine.close_abandoned();
                }
            });
        }
        Ok(false)
    }
}
