//! Rows of waits: what runs wait for.
//!
//! Whoever causes what is awaited writes it to `arrived` and sets the `wake_at` of the run, in its own transaction
//! ([`arrive`]). A wait holds no lease and no memory.

use crate::schema::{flow_runs, flow_waits};
use diesel::prelude::*;
use model::{ContactId, FlowRunId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use serde_json::Value;
use store::{Read, Tx};

text_enum! {
    /// What a run waits for.
    pub enum FlowWaitType {
        /// A moment.
        Timer = "timer",
        /// Another attempt of a node that failed.
        Retry = "retry",
        /// A message of the contact.
        Reply = "reply",
        /// An event of the workspace.
        Event = "event",
        /// The decision of a person.
        Approval = "approval",
        /// The end of an agent's run.
        AgentRun = "agent_run",
        /// The end of another run of a flow.
        FlowRun = "flow_run",
        /// That the conversation is handed back by people.
        Handback = "handback",
    }
}

/// A row of `flow_waits`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = flow_waits)]
pub(crate) struct WaitRow {
    pub(crate) run_id: FlowRunId,
    pub(crate) token: i64,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) livemode: bool,
    /// The position of the step.
    pub(crate) position: i64,
    pub(crate) kind: FlowWaitType,
    /// The type of the event.
    pub(crate) topic: Option<String>,
    /// What it is found by, besides its kind.
    pub(crate) key: Option<String>,
    /// The contact whose reply it is.
    pub(crate) contact_id: Option<ContactId>,
    /// What the handler of the node needs when it goes on.
    pub(crate) details: JsonText,
    /// What has arrived.
    pub(crate) arrived: Option<JsonText>,
    /// Only what happened since then counts.
    pub(crate) since: Timestamp,
    /// When it ends without anything.
    pub(crate) due_at: Option<Timestamp>,
}

impl WaitRow {
    /// Finds the waits of a kind with a key to which nothing has arrived.
    pub(crate) fn by_key(read: &mut Read, kind: FlowWaitType, key: &str) -> Result<Vec<Self>> {
        Ok(flow_waits::table
            .filter(flow_waits::kind.eq(kind))
            .filter(flow_waits::key.eq(key))
            .filter(flow_waits::arrived.is_null())
            .select(Self::as_select())
            .load(read.connection())?)
    }
}

/// Writes what has arrived for a wait, and wakes its run. Returns whether the wait was still open: of several arrivals the first
/// counts.
pub(crate) fn arrive(tx: &mut Tx, run: &FlowRunId, token: i64, what: &Value) -> Result<bool> {
    let now = tx.now();
    // The run is locked first, as by whoever executes it.
    let woken = diesel::update(flow_runs::table.find(run).filter(flow_runs::ended_at.is_null()))
        .set(flow_runs::wake_at.eq(now))
        .execute(tx.connection())?;
    let wait = flow_waits::table.find((run, token)).filter(flow_waits::arrived.is_null());
    let written =
        diesel::update(wait).set(flow_waits::arrived.eq(JsonText::of(what))).execute(tx.connection())?;
    Ok(woken == 1 && written == 1)
}

impl WaitRow {
    /// Returns whether what is awaited may have happened before the wait could be found.
    pub(crate) fn looks_back(&self) -> bool {
        matches!(
            self.kind,
            FlowWaitType::Event | FlowWaitType::AgentRun | FlowWaitType::FlowRun | FlowWaitType::Handback
        )
    }
}
