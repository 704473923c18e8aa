//! Concurrency control of conversations: what a busy one does with a new run.

use crate::engine::RunEngine;
use crate::queries::runs;
use crate::run::{OnBusy, RunRow};
use model::{Code, Error, Result, Timestamp, WorkspaceId};
use store::Tx;

/// The maximum number of queued runs of a conversation.
const LONGEST_QUEUE: usize = 10;

/// The moment under which the next run of a locked conversation is entered: after all earlier ones, also where they
/// came in the same millisecond or from a replica whose clock is ahead, because their order is that of their ids.
pub(crate) fn next_moment(tx: &mut Tx, workspace: WorkspaceId, conversation: &str) -> Result<Timestamp> {
    let now = tx.now();
    let last = runs::last_queued_at(tx, workspace, conversation)?;
    Ok(last.map_or(now, |last| now.max(Timestamp::from_millis(last.millis() + 1))))
}

impl RunEngine {
    /// Applies `on_busy` to the other runs of a locked conversation, and returns whether the new run must wait for its turn.
    pub(crate) fn must_wait(&self, tx: &mut Tx, on_busy: OnBusy, row: &RunRow) -> Result<bool> {
        let active = runs::active_in_conversation(tx, row)?;
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
            self.cancel(tx, &other, reason)?;
        }
        Ok(false)
    }
}
