//! Rows of steps: the trace of a run.

use crate::schema::flow_steps;
use diesel::prelude::*;
use model::{FlowRunId, JsonText, StepId, Timestamp, WorkspaceId, text_enum};

text_enum! {
    /// The state of a step.
    pub enum FlowStepStatus {
        /// It is tried again later.
        Pending = "pending",
        /// The node acts.
        Running = "running",
        /// The node waits.
        Waiting = "waiting",
        /// The node has done its work.
        Completed = "completed",
        /// The node failed.
        Failed = "failed",
        /// The node was passed over.
        Skipped = "skipped",
        /// The run ended before the node did.
        Cancelled = "cancelled",
        /// Nobody knows whether the node has had its effect.
        Unknown = "unknown",
    }
}

impl FlowStepStatus {
    /// The states of steps that have not ended.
    pub(crate) const OPEN: [Self; 3] = [Self::Pending, Self::Running, Self::Waiting];
}

/// A row of `flow_steps`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = flow_steps)]
pub(crate) struct StepRow {
    pub(crate) run_id: FlowRunId,
    pub(crate) position: i64,
    pub(crate) id: StepId,
    pub(crate) workspace_id: WorkspaceId,
    /// The token of the machine. 0 for a step that only computed.
    pub(crate) token: i64,
    pub(crate) node_id: String,
    pub(crate) node_type: String,
    /// The iterations of loops to which it belongs.
    pub(crate) path: String,
    pub(crate) attempt: i64,
    pub(crate) status: FlowStepStatus,
    /// The settings, with the values of their templates.
    pub(crate) input: Option<JsonText>,
    pub(crate) output: Option<JsonText>,
    pub(crate) error: Option<JsonText>,
    pub(crate) port: Option<String>,
    pub(crate) energy: i64,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
}
