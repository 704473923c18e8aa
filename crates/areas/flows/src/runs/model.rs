//! Runs and steps as the interface shows them.

use super::row::{
    FlowPauseReason, FlowRunMode, FlowRunStatus, FlowTriggerType, RunContent, RunError, RunRow,
};
use super::steps::{FlowStepStatus, StepRow};
use super::waits::{FlowWaitType, WaitRow};
use crate::engine::secrets::shown;
use flow_graphs::NodeType;
use model::{AutomationId, Chain, ContactId, FlowId, FlowRunId, JsonText, Result, StepId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A run of a flow.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = FlowRun, example = json!({
    "version": 2, "mode": "live", "status": "waiting", "input": { "order": "4711" }, "output": null, "error": null,
    "attempt": 1, "step_count": 4, "energy": 0,
}))]
pub struct Run {
    /// The id of the run.
    id: FlowRunId,
    /// Always `flow_run`.
    object: &'static str,
    /// The id of the flow.
    flow_id: FlowId,
    /// The version that it executes. `null` for a test run of the draft.
    version: Option<i64>,
    /// Whether a live key has published the version and started the run.
    livemode: bool,
    /// Whether effects are real.
    mode: FlowRunMode,
    /// The state.
    status: FlowRunStatus,
    /// Why it pauses.
    pause_reason: Option<FlowPauseReason>,
    /// What it waits for.
    waiting_for: Vec<FlowRunWait>,
    /// The contact whom it is about.
    contact_id: Option<ContactId>,
    /// `$input`.
    input: Value,
    /// The output of a run that was completed.
    #[schema(value_type = Value)]
    output: Option<JsonText>,
    /// The variables of the flow: `$flow`. `null` before the run begins.
    #[schema(value_type = Option<Object>)]
    variables: Option<Map<String, Value>>,
    /// Why it failed or pauses.
    error: Option<RunError>,
    /// What started it.
    trigger: FlowRunTrigger,
    /// The run that started it, if it is part of another one.
    parent_run_id: Option<FlowRunId>,
    /// The outermost run that it is part of.
    root_run_id: FlowRunId,
    /// The run that it repeats from the start.
    retry_of: Option<FlowRunId>,
    /// The number of the attempt, from 1.
    attempt: i64,
    /// The number of its steps.
    step_count: i64,
    /// The Energy that its nodes spent.
    energy: i64,
    /// When it expires; after its end, when it is deleted.
    expires_at: Timestamp,
    /// When the object was created.
    created_at: Timestamp,
    /// When it began.
    started_at: Option<Timestamp>,
    /// When it ended.
    ended_at: Option<Timestamp>,
}

/// What a run waits for.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "reply", "step_position": 3, "until": null }))]
pub struct FlowRunWait {
    /// What it is.
    #[serde(rename = "type")]
    kind: FlowWaitType,
    /// The position of the step that waits. `-1` for an event that cancels the run.
    step_position: i64,
    /// When it stops waiting.
    until: Option<Timestamp>,
}

/// What started a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "api", "id": null, "automation_id": null, "event_id": null, "depth": 0 }))]
pub struct FlowRunTrigger {
    /// What it is.
    #[serde(rename = "type")]
    kind: FlowTriggerType,
    /// Its id.
    id: Option<String>,
    /// The automation.
    automation_id: Option<AutomationId>,
    /// The event that led to the run.
    event_id: Option<String>,
    /// The number of steps from the first event of the chain of causes.
    depth: u32,
}

impl Run {
    /// The response. `waits` are those of the run.
    pub(crate) fn of(row: RunRow, waits: &[WaitRow]) -> Result<Self> {
        let content: RunContent = row.content.parse()?;
        let state: Option<flow_machine::State> = row.state.as_ref().map(JsonText::parse).transpose()?;
        Ok(Self {
            id: row.id,
            object: "flow_run",
            flow_id: row.flow_id,
            version: row.version,
            livemode: row.livemode,
            mode: row.mode,
            status: row.status,
            pause_reason: row.pause_reason,
            waiting_for: waits.iter().map(FlowRunWait::of).collect(),
            contact_id: row.contact_id,
            input: content.input,
            output: row.output,
            variables: state.map(|state| state.variables),
            error: row.error.as_ref().map(JsonText::parse).transpose()?,
            trigger: FlowRunTrigger {
                kind: content.trigger,
                id: content.trigger_id,
                automation_id: row.automation_id,
                event_id: content.event_id,
                depth: Chain::stored(row.chain.as_ref()).map_or(0, |chain| chain.depth),
            },
            parent_run_id: row.parent_run_id,
            root_run_id: row.root_run_id,
            retry_of: content.retry_of,
            attempt: row.attempt,
            step_count: row.step_count,
            energy: row.energy,
            expires_at: row.expires_at,
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
        })
    }

    pub(super) fn id(&self) -> &FlowRunId {
        &self.id
    }
}

impl FlowRunWait {
    fn of(wait: &WaitRow) -> Self {
        let step_position = if wait.token < 0 { -1 } else { wait.position };
        Self { kind: wait.kind, step_position, until: wait.due_at }
    }
}

/// A step of a run: a node that was executed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = FlowStep, example = json!({
    "position": 1, "node_id": "price", "node_type": "condition", "path": "each[0]", "status": "completed", "attempt": 1,
    "input": { "if": "$flow.pieces > 3" }, "output": { "matched": true }, "port": "true", "error": null, "energy": 0,
}))]
pub struct Step {
    /// The id of the step.
    id: StepId,
    /// Always `flow_step`.
    object: &'static str,
    /// Its place in the run, from 0.
    position: i64,
    /// The id of the node.
    node_id: String,
    /// The type of the node.
    #[schema(value_type = NodeType)]
    node_type: String,
    /// The iterations of loops to which it belongs, such as `each[3]`. Empty outside loops.
    path: String,
    /// The state.
    status: FlowStepStatus,
    /// The number of the attempt, from 1.
    attempt: i64,
    /// The settings of the node, with the values of their templates. Secrets are shown by their keys.
    #[schema(value_type = Value)]
    input: Option<JsonText>,
    /// The output. `null` if there is none.
    #[schema(value_type = Value)]
    output: Option<JsonText>,
    /// The port by which the run went on.
    port: Option<String>,
    /// Why the node failed.
    error: Option<RunError>,
    /// The Energy that it spent.
    energy: i64,
    /// When the step began.
    started_at: Timestamp,
    /// When it ended.
    ended_at: Option<Timestamp>,
    /// The duration in milliseconds.
    duration_ms: Option<i64>,
}

impl Step {
    pub(super) fn of(row: StepRow) -> Result<Self> {
        Ok(Self {
            id: row.id,
            object: "flow_step",
            position: row.position,
            node_id: row.node_id,
            node_type: row.node_type,
            path: row.path,
            status: row.status,
            attempt: row.attempt,
            input: row.input.map(|input| JsonText::printed(shown(input.as_str()))),
            output: row.output,
            port: row.port,
            error: row.error.as_ref().map(JsonText::parse).transpose()?,
            energy: row.energy,
            duration_ms: row.ended_at.map(|ended| ended.millis() - row.started_at.millis()),
            started_at: row.started_at,
            ended_at: row.ended_at,
        })
    }

    pub(super) fn position(&self) -> i64 {
        self.position
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct RunQuery {
    /// Only runs of this flow.
    #[param(value_type = Option<i64>, minimum = 1)]
    #[serde(default)]
    pub(super) flow_id: Option<FlowId>,
    /// Only runs in this state.
    #[serde(default)]
    pub(super) status: Option<FlowRunStatus>,
    /// Only runs about this contact.
    #[param(value_type = Option<i64>, minimum = 1)]
    #[serde(default)]
    pub(super) contact_id: Option<ContactId>,
    /// Only runs that started each other: the id of the outermost.
    #[param(value_type = Option<String>)]
    #[serde(default)]
    pub(super) root_run_id: Option<FlowRunId>,
}

/// A run to start.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartFlowRun, example = json!({ "input": { "order": "4711" }, "contact_id": null, "wait_seconds": 10 }))]
pub struct StartRun {
    /// `$input`: an object that fits the input schema of the flow.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub(super) input: Map<String, Value>,
    /// The contact whom the run is about.
    #[serde(default)]
    pub(super) contact_id: Option<ContactId>,
    /// `live` executes the published version. `test` executes the draft: nodes that act are simulated, and nobody waits. If not
    /// given, `live`.
    #[serde(default)]
    pub(super) mode: Option<FlowRunMode>,
    /// Whether a test run executes the published version instead of the draft.
    #[serde(default)]
    pub(super) published: bool,
    /// What the contact answers in a test run, in order. A question without an answer runs into its timeout.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub(super) replies: Vec<String>,
    /// How long to wait for the end of the run, in seconds.
    #[schema(minimum = 0, maximum = 25)]
    #[serde(default)]
    pub(super) wait_seconds: i64,
}
