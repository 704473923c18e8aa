//! The events that runs tell.

use super::model::RunFailure;
use model::{AgentId, Metadata, RunId, StepId, Timestamp};
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
    /// Why it is incomplete, cancelled or expired.
    incomplete_reason: Option<String>,
    /// Why it failed.
    error: Option<RunFailure>,
    /// The caller's own notes.
    metadata: Metadata,
}

/// A run waits for a person. Arguments are left out as texts are, and so is the link under which the person answers:
/// whoever has it may answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; `approvals` writes the same fields from the row")]
struct RunWaits {
    /// The run.
    run_id: RunId,
    /// Always `requires_action`.
    status: String,
    /// The agent.
    agent_id: AgentId,
    /// The agent's version.
    agent_version: i64,
    /// The conversation.
    conversation_id: String,
    /// The calls that it wants to make.
    calls: Vec<WaitingCall>,
    /// Until when a person can answer.
    expires_at: Timestamp,
    /// The caller's own notes.
    metadata: Metadata,
}

/// A call that a person must allow.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read; `approvals` writes the same fields from the row")]
struct WaitingCall {
    /// The step.
    step_id: StepId,
    /// The tool.
    tool: String,
}

pub(super) fn event_types() -> Vec<EventType> {
    let about = |kind: EventType| kind.about("run", "run_id");
    let of = |name, description| about(EventType::of::<RunEnded>(name, description, "runs:read"));
    let waits = "A run wants to make calls that a person must allow.";
    vec![
        of("run.completed", "A run ended with an answer."),
        of("run.incomplete", "A run ended before its answer was complete; `incomplete_reason` says why."),
        of("run.failed", "A run failed; `error` says why. What it cost was given back."),
        of("run.cancelled", "A run was cancelled."),
        of("run.expired", "A run waited too long; `incomplete_reason` says for what."),
        about(EventType::of::<RunWaits>("run.requires_action", waits, "runs:read")),
    ]
}
