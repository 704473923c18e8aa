//! The events that runs tell.

use super::model::RunFailure;
use model::{AgentId, Metadata, RunId};
use operation::EventType;
use utoipa::ToSchema;

/// A run has ended. Its texts are left out: events outlive ephemeral conversations.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; `emit_end` writes the same fields from the row")]
struct RunEnded {
    /// The run.
    run_id: RunId,
    /// How it ended.
    status: String,
    /// The agent.
    agent_id: AgentId,
    /// The agent's version.
    agent_version: i64,
    /// The conversation.
    conversation_id: String,
    /// Energy that it cost.
    energy: i64,
    /// Why it is incomplete.
    incomplete_reason: Option<String>,
    /// Why it failed.
    error: Option<RunFailure>,
    /// The caller's own notes.
    metadata: Metadata,
}

pub(super) fn event_types() -> Vec<EventType> {
    let of =
        |name, description| EventType::of::<RunEnded>(name, description, "runs:read").about("run", "run_id");
    vec![
        of("run.completed", "A run ended with an answer."),
        of("run.incomplete", "A run ended before its answer was complete; `incomplete_reason` says why."),
        of("run.failed", "A run failed; `error` says why. What it cost was given back."),
        of("run.cancelled", "A run was cancelled."),
    ]
}
