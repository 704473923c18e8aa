//! Rows of steps, and the JSON stored in them.

use super::model::RunStep;
use crate::schema::run_steps;
use diesel::prelude::*;
use model::{JsonText, RunId, StepId, Timestamp, WorkspaceId, text_enum};
use providers::json;
use providers::{FailedAttempt, Finish, Tier, ToolCall, Usage};
use serde::{Deserialize, Serialize};

text_enum! {
    /// Where a step stands.
    pub(super) enum StepStatus {
        /// Executing or interrupted.
        Running = "running",
        /// Succeeded.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// A call that was interrupted and may have had side effects.
        Unknown = "unknown",
        /// A call that waits for approval.
        RequiresAction = "requires_action",
        /// A call that was approved and has not started.
        Approved = "approved",
        /// A call that was refused.
        Refused = "refused",
        /// A call that was not executed, because its run ended first.
        Cancelled = "cancelled",
    }
}

/// A step as it is stored.
#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = run_steps, treat_none_as_default_value = false)]
pub(super) struct StepRow {
    pub(super) run_id: RunId,
    pub(super) position: i64,
    pub(super) workspace_id: WorkspaceId,
    pub(super) id: StepId,
    pub(super) kind: StepKind,
    pub(super) status: StepStatus,
    pub(super) name: String,
    pub(super) input: Option<JsonText>,
    pub(super) output: Option<JsonText>,
    pub(super) effect_key: Option<String>,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) energy: i64,
    pub(super) started_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
}

impl StepRow {
    /// As callers see it. `tier` is that of the run.
    pub(super) fn step(self, tier: Tier) -> RunStep {
        RunStep {
            tier: self.tier(tier),
            id: self.id,
            object: "run_step",
            position: self.position,
            kind: self.kind.as_str(),
            status: self.status.as_str(),
            name: self.name,
            effect_key: self.effect_key,
            input: self.input,
            output: self.output,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            energy: self.energy,
            started_at: self.started_at,
            completed_at: self.completed_at,
        }
    }

    /// The tier by whose prices the step is charged; `of_run` answers.
    pub(super) fn tier(&self, of_run: Tier) -> Option<Tier> {
        match self.kind {
            StepKind::Model => Some(of_run),
            StepKind::Memory => Some(Tier::Fast),
            StepKind::Tool | StepKind::Guardrail => None,
        }
    }

    pub(super) fn is_tool(&self) -> bool {
        self.kind == StepKind::Tool
    }

    /// Whether it is a call that was held back for a person, and nothing has become of it yet.
    pub(super) fn is_held_back(&self) -> bool {
        self.completed_at.is_none()
            && matches!(self.status, StepStatus::RequiresAction | StepStatus::Approved | StepStatus::Refused)
    }

    /// What went into a tool's call; `None` where it is none, and once forgotten.
    pub(super) fn tool_input(&self) -> Option<ToolInput> {
        self.input.as_ref().and_then(|input| input.parse().ok())
    }
}

text_enum! {
    /// What a step is.
    pub(super) enum StepKind {
        /// A model call.
        Model = "model",
        /// A tool call.
        Tool = "tool",
        /// A summary of older messages.
        Memory = "memory",
        /// A guardrail finding.
        Guardrail = "guardrail",
    }
}

impl StepKind {
    /// Whether steps of this kind cost Energy.
    pub(super) fn is_priced(self) -> bool {
        matches!(self, Self::Model | Self::Memory)
    }
}

/// The output of a memory step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MemoryOutput {
    pub(super) summary: String,
    #[serde(default)]
    pub(super) usage: Usage,
    /// Whether that is a guess, because the provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_estimated: bool,
}

/// The output of a model step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelOutput {
    pub(super) text: String,
    #[serde(default)]
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) finish_reason: Finish,
    #[serde(default)]
    pub(super) usage: Usage,
    /// Whether that is a guess, because the provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_estimated: bool,
    /// Attempts that failed before this answer came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failed_attempts: Vec<FailedAttempt>,
    /// The message for the model when its answer did not fit the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) correction: Option<String>,
}

/// The input of a tool step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ToolInput {
    pub(super) call_id: String,
    /// As the model wrote them, with all digits of their numbers; a text where they are not JSON.
    #[serde(deserialize_with = "json::raw")]
    pub(super) arguments: JsonText,
    /// What a person decided about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<Approval>,
}

/// What a person decided about a call. Who it was is not known: the link that asks needs no login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Approval {
    pub(super) decision: Verdict,
    pub(super) note: Option<String>,
    pub(super) decided_at: Timestamp,
}

text_enum! {
    /// Whether a call may be made.
    pub(super) enum Verdict {
        Approved = "approved",
        Refused = "refused",
    }
}

impl From<Verdict> for StepStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approved => Self::Approved,
            Verdict::Refused => Self::Refused,
        }
    }
}

/// How an error about wrong arguments begins. Resumed runs recognize such results by it.
const BAD_ARGUMENTS: &str = "the arguments";

/// The output of a tool step, as stored and as the model gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolOutput {
    pub(super) ok: bool,
    /// As the tool wrote it, with all digits of its numbers.
    #[serde(deserialize_with = "json::raw")]
    pub(super) result: JsonText,
}

impl ToolOutput {
    pub(super) fn new(ok: bool, result: &impl Serialize) -> Self {
        Self { ok, result: JsonText::of(result) }
    }

    pub(super) fn error(why: impl Into<String>) -> Self {
        Self::new(false, &why.into())
    }

    /// Arguments that the tool was not called with.
    pub(super) fn bad_arguments(why: impl std::fmt::Display) -> Self {
        Self::error(format!("{BAD_ARGUMENTS} {why}"))
    }

    pub(super) fn is_bad_arguments(&self) -> bool {
        !self.ok && json::plain(&self.result).starts_with(BAD_ARGUMENTS)
    }
}
