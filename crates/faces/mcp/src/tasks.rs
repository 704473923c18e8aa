//! Tasks: handles of long work for clients that declare the extension. The id of a task names the work and is signed, so
//! that no table is needed. It holds for the key or grant that began the work.

use crate::long::Work;
use auth::Seal;
use model::{Caller, Timestamp};
use operation::Cursors;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How often clients should ask.
const POLL_INTERVAL_MS: u64 = 1_000;

/// A task that a client names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) work: String,
    created_at: Timestamp,
}

impl Task {
    /// Makes the task of work.
    pub(crate) fn of(work: &Work, caller: &Caller, seal: &Arc<Seal>, now: Timestamp) -> Self {
        let position = json!([work.kind, work.id, now.millis()]).to_string();
        Self {
            id: cursors(caller, seal).encode(&position),
            kind: work.kind.to_owned(),
            work: work.id.clone(),
            created_at: now,
        }
    }

    /// Reads the id of a task. Returns `None` for any text that is not the id of a task of this caller.
    pub(crate) fn read(id: &str, caller: &Caller, seal: &Arc<Seal>) -> Option<Self> {
        let position = cursors(caller, seal).decode(id).ok()?;
        let (kind, work, created): (String, String, i64) =
            serde_json::from_str(&position.read::<String>().ok()?).ok()?;
        Some(Self { id: id.to_owned(), kind, work, created_at: Timestamp::from_millis(created) })
    }

    /// Returns the members of a task.
    pub(crate) fn members(&self, status: &str, now: Timestamp) -> Map<String, Value> {
        let members = json!({
            "taskId": self.id,
            "status": status,
            "createdAt": self.created_at,
            "lastUpdatedAt": now,
            // The work stays readable by its own id.
            "ttlMs": null,
            "pollIntervalMs": POLL_INTERVAL_MS,
        });
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

fn cursors(caller: &Caller, seal: &Arc<Seal>) -> Cursors {
    Cursors::new(seal.clone(), "mcp.task", caller.workspace_id(), caller.key.lineage.as_str().to_owned())
}
