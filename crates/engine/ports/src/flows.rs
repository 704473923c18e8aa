//! Flows, for whoever starts their runs.

use model::{
    AutomationId, Chain, Code, ContactId, Error, EventId, FlowId, FlowRunId, ReminderId, Result, RunId,
    StepId, WorkspaceId,
};
use operation::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::{Read, Tx};

/// A flow that can be started: its published version.
#[derive(Debug, Clone, PartialEq)]
pub struct StartableFlow {
    /// The id.
    pub id: FlowId,
    /// The version that a run would execute.
    pub version: i64,
    /// The name.
    pub name: String,
    /// What the flow does.
    pub description: Option<String>,
    /// A JSON Schema of the input. An empty object where the flow states none.
    pub input_schema: Value,
    /// Whether its runs are test runs, because a test key published it.
    pub is_test_only: bool,
}

/// Why a flow cannot be started now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstartable {
    /// The workspace has no flow with this id.
    Missing,
    /// It was never published.
    NotPublished,
    /// It was switched off.
    Inactive,
}

impl Unstartable {
    /// The error of a request that names the flow: `not_found`, or `invalid_state` with `details.reason`.
    pub fn error(self) -> Error {
        let (reason, message) = match self {
            Self::Missing => return Error::not_found("flow"),
            Self::NotPublished => ("not_published", "The flow was never published. Publish it first."),
            Self::Inactive => ("inactive", "The flow is inactive. Activate it first."),
        };
        Error::new(Code::InvalidState, message).with("details", json!({ "reason": reason }))
    }
}

/// What starts a run of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowStarter {
    /// An automation.
    Automation {
        /// The automation.
        automation: AutomationId,
        /// The event that fired it, if it was one.
        event: Option<EventId>,
    },
    /// A reminder.
    Reminder(ReminderId),
    /// A request to an inbound webhook, with the id of the request.
    InboundWebhook(String),
    /// A tool of an agent.
    Agent {
        /// The run of the agent.
        run: RunId,
        /// The step.
        step: StepId,
    },
}

/// A run of a flow that is to start. It executes the published version and acts for the key that published it.
#[derive(Debug, Clone)]
pub struct StartFlow {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The flow.
    pub flow: FlowId,
    /// Whether its effects are real. A version that a test key published runs in test mode only.
    pub livemode: bool,
    /// The input: `$input`.
    pub input: Value,
    /// What happened: `$trigger`.
    pub payload: Value,
    /// The contact whom the run is about.
    pub contact: Option<ContactId>,
    /// What starts it.
    pub by: FlowStarter,
    /// Its place in the chain of causes. `None` for a run that starts a chain.
    pub chain: Option<Chain>,
    /// What names this start among all of the flow: of several attempts with one name, one makes a run.
    pub once: String,
}

/// What became of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowStart {
    /// The run. It was created by this attempt or by an earlier one.
    Run(FlowRunId),
    /// The flow allows one run for each contact, and this one is active.
    Active(FlowRunId),
}

/// The answer of a `respond` node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

/// What a caller that waited for a run gets.
#[derive(Debug, Clone, PartialEq)]
pub enum FlowAnswer {
    /// A `respond` node has answered. The run may still go on.
    Response(FlowRunId, FlowResponse),
    /// The run was completed without an answer, with this output.
    Completed(FlowRunId, Value),
    /// The run ended otherwise: the word for its status, and a sentence for people.
    Ended(FlowRunId, &'static str, String),
    /// The run goes on.
    Pending(FlowRunId),
}

/// The flows of all workspaces. The group that keeps them implements it.
pub trait Flows: Send + Sync {
    /// Finds the version of a flow that a start would execute.
    ///
    /// # Errors
    /// When the database fails.
    fn startable(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        flow: FlowId,
    ) -> Result<std::result::Result<StartableFlow, Unstartable>>;

    /// Starts a run, which is executed after the transaction has committed.
    ///
    /// # Errors
    /// `not_found`, `invalid_state` (not published, inactive), `validation_error` for the input.
    fn start(&self, tx: &mut Tx, start: &StartFlow) -> Result<FlowStart>;

    /// Starts a run, executes it in this process and waits for its answer, for at most `patience`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn answer(&self, start: StartFlow, patience: Duration) -> BoxFuture<Result<FlowAnswer>>;

    /// Cancels the runs of a contact that wait for its reply, because something interrupts them. Returns their number.
    ///
    /// # Errors
    /// When the database fails.
    fn interrupt(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<usize>;

    /// Cancels the runs that an automation has started and that have not ended. Returns their number.
    ///
    /// # Errors
    /// When the database fails.
    fn cancel_started_by(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<usize>;
}

/// The flows of all workspaces. A service that groups can be given before the group that keeps flows has started. Cheap to clone.
#[derive(Clone, Default)]
pub struct WorkspaceFlows(Arc<OnceLock<Arc<dyn Flows>>>);

impl WorkspaceFlows {
    /// These flows.
    pub fn new(flows: impl Flows + 'static) -> Self {
        let all = Self::default();
        all.connect(flows);
        all
    }

    /// Says whose flows they are. Only the first call counts.
    pub fn connect(&self, flows: impl Flows + 'static) {
        let _ = self.0.set(Arc::new(flows));
    }

    /// The flows.
    ///
    /// # Errors
    /// `internal_error` before the group that keeps them has started.
    pub fn get(&self) -> Result<&dyn Flows> {
        let flows = self.0.get().ok_or_else(|| Error::internal("the flows are not connected"))?;
        Ok(&**flows)
    }
}

impl fmt::Debug for WorkspaceFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkspaceFlows")
    }
}
