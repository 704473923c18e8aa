//! Conversations: what belongs to one, in what order its runs go, and what a busy one does with a new run.
//!
//! A conversation is a name that a caller gave, of one agent and one kind of key. At most one of its runs goes on at
//! a time, and they go in the order of their ids.

use super::row::RunRow;
use model::{AgentId, Result, WorkspaceId};
use store::Tx;

/// The number that stands for a conversation, among locks and among those who wait.
pub(crate) fn key_of(workspace: WorkspaceId, livemode: bool, agent: AgentId, name: &str) -> i64 {
    let thing = format!("conversation {workspace} {livemode} {agent} {name}");
    let digest = ring::digest::digest(&ring::digest::SHA256, thing.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Lets no other transaction change which runs a conversation has, and which goes on, until this one ends.
pub(crate) fn lock(tx: &mut Tx, key: i64) -> Result<()> {
    tx.lock(&format!("conversation {key}"))
}

/// The number that stands for a run's conversation.
pub(crate) fn key(row: &RunRow) -> i64 {
    key_of(row.workspace_id, row.livemode, row.agent_id, &row.conversation_id)
}
