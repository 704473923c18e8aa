//! Row of a step.

use super::object::RunStep;
use super::step_content::{ToolInput, Verdict};
use diesel::prelude::*;
use model::{JsonText, RunId, StepId, Timestamp, WorkspaceId, text_enum};
use providers::Tier;

text_enum! {
    /// The status of a step.
    pub(crate) enum StepStatus {
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
#[derive(Debug, Clone, Queryable)]
pub(crate) struct StepRow {
    pub(crate) run_id: RunId,
    pub(crate) position: i64,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) id: StepId,
    pub(crate) kind: StepKind,
    pub(crate) status: StepStatus,
    pub(crate) name: String,
    pub(crate) input: Option<JsonText>,
    pub(crate) output: Option<JsonText>,
    pub(crate) effect_key: Option<String>,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) energy: i64,
    pub(crate) started_at: Timestamp,
    pub(crate) completed_at: Option<Timestamp>,
}

impl StepRow {
    /// As callers see it. `tier` is that of the run.
    pub(crate) fn step(self, tier: Tier) -> RunStep {
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
    pub(crate) fn tier(&self, of_run: Tier) -> Option<Tier> {
        match self.kind {
            StepKind::Model => Some(of_run),
            StepKind::Memory | StepKind::Check => Some(Tier::Fast),
            StepKind::Tool | StepKind::Guardrail => None,
        }
    }

    /// Returns the final status: a step without a result has failed.
    pub(crate) fn final_status(&self) -> StepStatus {
        if self.status == StepStatus::Running { StepStatus::Failed } else { self.status }
    }

    pub(crate) fn is_tool(&self) -> bool {
        self.kind == StepKind::Tool
    }

    /// Returns whether it is a call that waits for an approval, or was approved or refused and has not ended.
    pub(crate) fn is_held_back(&self) -> bool {
        self.completed_at.is_none()
            && matches!(self.status, StepStatus::RequiresAction | StepStatus::Approved | StepStatus::Refused)
    }

    /// Returns the input of a tool call. `None` for other steps, and after the purge.
    pub(crate) fn tool_input(&self) -> Option<ToolInput> {
        self.input.as_ref().and_then(|input| input.parse().ok())
    }
}

text_enum! {
    /// The kind of a step.
    pub(crate) enum StepKind {
        /// A model call.
        Model = "model",
        /// A tool call.
        Tool = "tool",
        /// A summary of older messages.
        Memory = "memory",
        /// A guardrail finding.
        Guardrail = "guardrail",
        /// A classification of a text for guardrails of type `topic`.
        Check = "check",
    }
}

impl StepKind {
    /// Returns whether steps of this kind cost Energy.
    pub(crate) fn is_priced(self) -> bool {
        matches!(self, Self::Model | Self::Memory | Self::Check)
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
