//! Events of runs.

use crate::run::{RunFailure, RunRow, RunStatus, StepRow};
use model::{AgentId, JsonText, Metadata, Result, RunId, StepId, Timestamp};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of a run.
#[derive(Event)]
#[event(scope = "runs:read", subject = "run", id = "run_id")]
pub(crate) enum RunEvent<'a> {
    /// A run completed.
    #[event(name = "run.completed")]
    Completed(RunEnded<'a>),
    /// A run ended before its answer was complete. `incomplete_reason` has the reason.
    #[event(name = "run.incomplete")]
    Incomplete(RunEnded<'a>),
    /// A run failed. `error` has the reason. Its Energy was refunded.
    #[event(name = "run.failed")]
    Failed(RunEnded<'a>),
    /// A run was cancelled.
    #[event(name = "run.cancelled")]
    Cancelled(RunEnded<'a>),
    /// A run expired while waiting. `incomplete_reason` has the reason.
    #[event(name = "run.expired")]
    Expired(RunEnded<'a>),
    /// A run is waiting for the approval of tool calls.
    #[event(name = "run.requires_action")]
    RequiresAction(RunWaits<'a>),
}

impl<'a> RunEvent<'a> {
    /// The end of a run; `None` for one that has not ended.
    pub(crate) fn of_end(row: &'a RunRow) -> Result<Option<Self>> {
        let event = match row.status {
            RunStatus::Completed => Self::Completed,
            RunStatus::Incomplete => Self::Incomplete,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Expired => Self::Expired,
            RunStatus::Queued | RunStatus::InProgress | RunStatus::RequiresAction => return Ok(None),
        };
        Ok(Some(event(RunEnded {
            run_id: &row.id,
            status: row.status.as_str(),
            agent_id: row.agent_id,
            agent_version: row.agent_version,
            conversation_id: &row.conversation_id,
            energy: row.energy,
            incomplete_reason: row.incomplete_reason.as_deref(),
            error: row.failure(),
            metadata: &row.metadata,
        })))
    }

    /// A run that waits for a person to decide on these calls until `expires_at`.
    pub(crate) fn of_waiting(
        row: &'a RunRow,
        calls: impl Iterator<Item = &'a StepRow>,
        expires_at: Timestamp,
    ) -> Self {
        Self::RequiresAction(RunWaits {
            run_id: &row.id,
            status: row.status.as_str(),
            agent_id: row.agent_id,
            agent_version: row.agent_version,
            conversation_id: &row.conversation_id,
            calls: calls.map(|step| WaitingCall { step_id: &step.id, tool: &step.name }).collect(),
            expires_at,
            metadata: &row.metadata,
        })
    }
}

/// A run has ended. Its texts are left out: events outlive ephemeral conversations.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunEnded<'a> {
    /// The id of the run.
    run_id: &'a RunId,
    /// The final status.
    status: &'a str,
    /// The agent's id.
    agent_id: AgentId,
    /// The version of the agent.
    agent_version: i64,
    /// The id of the conversation.
    conversation_id: &'a str,
    /// The Energy spent, after refunds.
    energy: i64,
    /// Why the run is incomplete, cancelled or expired.
    incomplete_reason: Option<&'a str>,
    /// Why it failed.
    error: Option<RunFailure>,
    /// Your own key-value data.
    #[schema(value_type = Metadata)]
    metadata: &'a JsonText,
}

/// A run waits for a person. Arguments are left out as texts are, and so is the link for the answer, because anyone who has
/// it can answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunWaits<'a> {
    /// The id of the run.
    run_id: &'a RunId,
    /// Always `requires_action`.
    status: &'a str,
    /// The agent's id.
    agent_id: AgentId,
    /// The version of the agent.
    agent_version: i64,
    /// The id of the conversation.
    conversation_id: &'a str,
    /// The calls that wait for approval.
    calls: Vec<WaitingCall<'a>>,
    /// When the approval request expires.
    expires_at: Timestamp,
    /// Your own key-value data.
    #[schema(value_type = Metadata)]
    metadata: &'a JsonText,
}

/// A tool call that needs approval.
#[derive(Serialize, ToSchema)]
struct WaitingCall<'a> {
    /// The id of the step.
    step_id: &'a StepId,
    /// The tool.
    tool: &'a str,
}
