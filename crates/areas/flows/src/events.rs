//! Events of runs.

use crate::runs::row::{FlowRunStatus, RunError, RunRow};
use model::{ContactId, FlowId, FlowRunId, JsonText, MemberId, Result, StepId, Timestamp};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a run.
#[derive(Event)]
#[event(scope = "automations:read", subject = "flow_run", id = "run_id", contact = "contact_id")]
pub(crate) enum FlowRunEvent<'a> {
    /// A run of a flow completed.
    #[event(name = "flow_run.completed")]
    Completed(FlowRunEnded<'a>),
    /// A run of a flow failed. `error` has the reason.
    #[event(name = "flow_run.failed")]
    Failed(FlowRunEnded<'a>),
    /// A run of a flow was cancelled.
    #[event(name = "flow_run.cancelled")]
    Cancelled(FlowRunEnded<'a>),
    /// A run of a flow took longer than the flow allows.
    #[event(name = "flow_run.expired")]
    Expired(FlowRunEnded<'a>),
}

/// A run of a flow has ended. Its texts are left out.
#[derive(Serialize, ToSchema)]
pub(crate) struct FlowRunEnded<'a> {
    /// The id of the run.
    run_id: &'a FlowRunId,
    /// The id of the flow.
    flow_id: FlowId,
    /// The version. `null` for a test run of the draft.
    version: Option<i64>,
    /// The final status.
    status: &'a str,
    /// The contact whom the run was about.
    #[schema(value_type = Option<ContactId>, required = true)]
    contact_id: AboutContact,
    /// The run that started it, if it is part of another one.
    parent_run_id: Option<&'a FlowRunId>,
    /// Why it failed.
    error: Option<RunError>,
    /// The Energy that its nodes spent.
    energy: i64,
}

/// The contact of an event, if any.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(transparent)]
pub(crate) struct AboutContact(pub(crate) Option<ContactId>);

impl From<AboutContact> for Option<i64> {
    fn from(about: AboutContact) -> Self {
        about.0.map(|contact| contact.0)
    }
}

impl<'a> FlowRunEvent<'a> {
    /// The end of a run; `None` for one that has not ended.
    pub(crate) fn of_end(row: &'a RunRow) -> Result<Option<Self>> {
        let event = match row.status {
            FlowRunStatus::Completed => Self::Completed,
            FlowRunStatus::Failed => Self::Failed,
            FlowRunStatus::Cancelled => Self::Cancelled,
            FlowRunStatus::Expired => Self::Expired,
            FlowRunStatus::Queued
            | FlowRunStatus::Running
            | FlowRunStatus::Waiting
            | FlowRunStatus::Paused => {
                return Ok(None);
            }
        };
        Ok(Some(event(FlowRunEnded {
            run_id: &row.id,
            flow_id: row.flow_id,
            version: row.version,
            status: row.status.as_str(),
            contact_id: AboutContact(row.contact_id),
            parent_run_id: row.parent_run_id.as_ref(),
            error: row.error.as_ref().map(JsonText::parse).transpose()?,
            energy: row.energy,
        })))
    }
}

/// A flow waits for the decision of a person. Everyone with the link can decide.
#[derive(Serialize, ToSchema, Event)]
#[event(
    name = "flow_run.approval_requested",
    scope = "automations:execute",
    subject = "flow_run",
    id = "run_id"
)]
pub(crate) struct ApprovalRequested {
    /// The id of the run.
    pub(crate) run_id: FlowRunId,
    /// The id of the flow.
    pub(crate) flow_id: FlowId,
    /// The id of the step.
    pub(crate) step_id: StepId,
    /// The id of the node.
    pub(crate) node_id: String,
    /// What is to be decided.
    pub(crate) text: String,
    /// The members of the team who are asked.
    pub(crate) approver_ids: Vec<MemberId>,
    /// The page of the decision. It takes one decision.
    pub(crate) approval_url: String,
    /// When the run stops waiting.
    pub(crate) expires_at: Timestamp,
}
