//! Rows of runs.

use crate::schema::flow_runs;
use diesel::prelude::*;
use flow_graphs::Graph;
use flow_machine::Fault;
use model::{
    AutomationId, Chain, ContactId, FlowId, FlowRunId, JsonText, KeyId, RequestId, Result, Timestamp,
    WorkspaceId, text_enum,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{OneRow, Read};

text_enum! {
    /// The state of a run.
    pub enum FlowRunStatus {
        /// It has not begun.
        Queued = "queued",
        /// It is being executed.
        Running = "running",
        /// It waits for a reply, an event, a person, a moment, or another run.
        Waiting = "waiting",
        /// It cannot go on until `pause_reason` is removed.
        Paused = "paused",
        /// It has done its work.
        Completed = "completed",
        /// A node failed, or an `end` node said so.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
        /// It took longer than the flow allows.
        Expired = "expired",
    }
}

impl FlowRunStatus {
    /// Returns whether the run has ended.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Expired)
    }
}

text_enum! {
    /// Why a run pauses.
    pub enum FlowPauseReason {
        /// The workspace has no Energy. A recharge continues the run.
        EnergyDepleted = "energy_depleted",
        /// The key that published the version was revoked, or lacks a scope that the run needs.
        KeyLost = "key_lost",
        /// A node failed that lets a person decide.
        NodeFailed = "node_failed",
        /// Nobody knows whether a node has had its effect.
        OutcomeUnknown = "outcome_unknown",
        /// The row of the run could not be read.
        Damaged = "damaged",
    }
}

text_enum! {
    /// Whether the effects of a run are real.
    pub enum FlowRunMode {
        /// They are.
        Live = "live",
        /// Nodes that act are simulated.
        Test = "test",
    }
}

text_enum! {
    /// What started a run.
    pub enum FlowTriggerType {
        /// A request.
        Api = "api",
        /// An automation.
        Automation = "automation",
        /// A reminder.
        Reminder = "reminder",
        /// A request to an inbound webhook.
        InboundWebhook = "inbound_webhook",
        /// A tool of an agent.
        Agent = "agent",
        /// Another flow.
        Flow = "flow",
        /// The failure of a run of another flow.
        Error = "error",
    }
}

/// What a run was started with. It does not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunContent {
    /// `$input`.
    pub(crate) input: Value,
    /// `$trigger`: what happened. `null` for the input.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) payload: Value,
    /// What started it.
    pub(crate) trigger: FlowTriggerType,
    /// The id of what started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger_id: Option<String>,
    /// The event that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) event_id: Option<String>,
    /// The request that started it.
    pub(crate) request_id: RequestId,
    /// The draft that a test run executes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) draft: Option<Graph>,
    /// The answers of the contact in a test run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) replies: Vec<String>,
    /// The run that this one repeats from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_of: Option<FlowRunId>,
}

/// Why a run failed, or what the fault of a step was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = FlowRunError, example = json!({
    "node_id": "price", "code": "not_found", "message": "There is no such item.",
}))]
pub(crate) struct RunError {
    /// The node. `null` for what is not the fault of one.
    #[serde(default)]
    pub(crate) node_id: Option<String>,
    /// The reason as a word.
    pub(crate) code: String,
    /// A sentence for people.
    pub(crate) message: String,
}

/// A row of `flow_runs`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = flow_runs)]
pub(crate) struct RunRow {
    pub(crate) id: FlowRunId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) flow_id: FlowId,
    /// `None` for a test run of the draft.
    pub(crate) version: Option<i64>,
    pub(crate) livemode: bool,
    pub(crate) mode: FlowRunMode,
    pub(crate) status: FlowRunStatus,
    pub(crate) pause_reason: Option<FlowPauseReason>,
    pub(crate) contact_id: Option<ContactId>,
    pub(crate) automation_id: Option<AutomationId>,
    /// The key for which it acts: the one that published the version, or that of the request of a test run.
    pub(crate) key_id: KeyId,
    pub(crate) lineage_id: KeyId,
    /// JSON of [`RunContent`].
    pub(crate) content: JsonText,
    /// JSON of [`flow_machine::State`]. `None` before it began.
    pub(crate) state: Option<JsonText>,
    pub(crate) output: Option<JsonText>,
    /// JSON of [`RunError`].
    pub(crate) error: Option<JsonText>,
    /// The answer of its `respond` node.
    pub(crate) response: Option<JsonText>,
    /// JSON of [`Chain`]: the place of what led to the run. What the run causes is one step further.
    pub(crate) chain: Option<JsonText>,
    pub(crate) parent_run_id: Option<FlowRunId>,
    pub(crate) root_run_id: FlowRunId,
    /// How many flows are around it.
    pub(crate) nesting: i64,
    /// What names the start among all of the flow.
    pub(crate) once_key: Option<String>,
    pub(crate) attempt: i64,
    /// The number of its steps, which is the position of the next one.
    pub(crate) step_count: i64,
    pub(crate) energy: i64,
    pub(crate) epoch: i64,
    /// From when on it has work. `None` while it waits for something without a time.
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) expires_at: Timestamp,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
}

impl RunError {
    /// The fault of a node.
    pub(crate) fn of(fault: &Fault) -> Self {
        let Fault { node_id, code, message } = fault.clone();
        Self { node_id: Some(node_id), code, message }
    }
}

impl RunRow {
    /// Returns the end of the run as JSON, for those who wait for it.
    pub(crate) fn end(&self) -> Value {
        json!({ "status": self.status, "output": self.output, "error": self.error })
    }

    /// Finds a run of the workspace.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn find(read: &mut Read, workspace: WorkspaceId, id: &FlowRunId) -> Result<Self> {
        flow_runs::table
            .filter(flow_runs::id.eq(id))
            .filter(flow_runs::workspace_id.eq(workspace))
            .select(Self::as_select())
            .first(read.connection())
            .or_not_found("flow run")
    }

    /// The place in the chain of causes of what the run causes.
    pub(crate) fn leads_to(&self) -> Option<Chain> {
        Chain::stored(self.chain.as_ref()).map(|chain| chain.next())
    }
}
