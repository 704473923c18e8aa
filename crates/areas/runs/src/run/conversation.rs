//! Keys and locks of conversations.
//!
//! A conversation is identified by a name of the caller's, an agent and an environment. At most one of its runs executes at a
//! time, in the order of their ids.

use super::row::RunRow;
use model::{AgentId, Result, WorkspaceId};
use store::Tx;

/// Returns the key of a conversation, for locks and for the queue.
pub(crate) fn key_of(workspace: WorkspaceId, livemode: bool, agent: AgentId, name: &str) -> i64 {
    let thing = format!("conversation {workspace} {livemode} {agent} {name}");
    let digest = ring::digest::digest(&ring::digest::SHA256, thing.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Locks a conversation until the transaction ends: no other transaction can add or start one of its runs.
pub(crate) fn lock(tx: &mut Tx, key: i64) -> Result<()> {
    tx.lock(&format!("conversation {key}"))
}

/// Returns the key of a run's conversation.
pub(crate) fn key(row: &RunRow) -> i64 {
    key_of(row.workspace_id, row.livemode, row.agent_id, &row.conversation_id)
}
