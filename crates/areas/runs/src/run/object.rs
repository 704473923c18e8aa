//! API objects: a run and its steps.

use action_links::RequiredAction;
use model::{AgentId, JsonText, Metadata, RunId, StepId, Timestamp, WorkspaceId, text_enum};
use providers::Tier;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// The status of a run.
    pub enum RunStatus {
        /// Waiting for its turn.
        Queued = "queued",
        /// The run is executing.
        InProgress = "in_progress",
        /// Waiting for an approval: see `required_action`.
        RequiresAction = "requires_action",
        /// The run has an answer.
        Completed = "completed",
        /// A limit ended the run. Its output so far is kept.
        Incomplete = "incomplete",
        /// The run failed. It costs no Energy.
        Failed = "failed",
        /// The run was replaced by a newer input to its conversation, or ended with the run within which it ran.
        Cancelled = "cancelled",
        /// The run waited too long in the queue or for an approval.
        Expired = "expired",
    }
}

impl RunStatus {
    /// Whether nothing more will happen.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress | Self::RequiresAction)
    }

    /// Whether nothing more will happen by itself: it has ended, or waits for a person.
    pub(crate) fn is_at_rest(self) -> bool {
        self.is_final() || self == Self::RequiresAction
    }
}

/// What started a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTrigger {
    /// The type of trigger.
    #[serde(rename = "type")]
    pub kind: RunTriggerKind,
    /// The id of the triggering object, if there is one.
    pub id: Option<String>,
}

impl RunTrigger {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

text_enum! {
    /// What can start a run.
    #[derive(Default)]
    pub enum RunTriggerKind {
        /// A request to create a run.
        #[default]
        Api = "api",
        /// A reminder.
        Reminder = "reminder",
        /// A contact that wrote over a channel.
        Channel = "channel",
        /// An automation.
        Automation = "automation",
        /// A tool of another run, whose id is that of the trigger.
        Agent = "agent",
        /// A run of a flow.
        Flow = "flow",
    }
}

/// A run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "livemode": true, "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "agent_version": 3, "status": "completed", "input": "What are your opening hours?",
    "output": "We are open from 9 to 18, Monday to Saturday.", "conversation_id": "customer-1042",
    "model": "balanced", "started_at": "2026-11-20T09:30:00.012Z",
    "completed_at": "2026-11-20T09:30:01.480Z",
}))]
pub struct Run {
    /// The id of the run.
    pub id: RunId,
    /// Always `run`.
    pub object: &'static str,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// `false` for runs made with a test key.
    pub livemode: bool,
    /// The id of the agent.
    pub agent_id: AgentId,
    /// The version of the agent.
    pub agent_version: i64,
    /// The status.
    pub status: RunStatus,
    /// The input. `null` after it was purged.
    pub input: Option<String>,
    /// The agent's answer. `null` if there is none or after it was purged.
    pub output: Option<String>,
    /// The output as parsed JSON, if a schema was requested and the output matches it.
    #[schema(value_type = Option<Object>)]
    pub output_data: Option<JsonText>,
    /// The id of the conversation. `eph_…` for an ephemeral one.
    pub conversation_id: String,
    /// Whether the conversation is purged 72 hours after its last run.
    pub ephemeral: bool,
    /// The model tier.
    pub model: &'static str,
    /// Why the run is incomplete, cancelled or expired.
    pub incomplete_details: Option<IncompleteDetails>,
    /// What a person must do before the run can continue.
    pub required_action: Option<RequiredAction>,
    /// Why it failed.
    pub error: Option<RunFailure>,
    /// The tokens and calls that were used.
    pub usage: RunUsage,
    /// The Energy that the run spent.
    pub energy: RunEnergy,
    /// What started the run.
    pub trigger: RunTrigger,
    /// The id of the trace that the run belongs to: 32 hexadecimal digits. It is the one of the request's `traceparent`, and
    /// is passed on to tools and model servers.
    #[schema(min_length = 32, max_length = 32)]
    pub trace_id: String,
    /// Your own key-value data.
    pub metadata: Metadata,
    /// The steps. Only with `include=steps`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<RunStep>>,
    /// When the run was accepted. The same as `queued_at`.
    pub created_at: Timestamp,
    /// When the run last made progress: the latest of the times below.
    pub updated_at: Timestamp,
    /// When the run was accepted.
    pub queued_at: Timestamp,
    /// When the run started to execute.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When the run's texts were purged.
    pub purged_at: Option<Timestamp>,
}

/// Why a run is incomplete, cancelled or expired.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IncompleteDetails {
    /// The reason: `max_steps`, `max_tool_calls`, `max_output_tokens`, `timeout`, `energy_depleted`, `energy_limit`,
    /// `budget_exceeded`, `loop_detected`, `output_invalid`, `guardrail`, `guardrail_unavailable`, `handoff`, `content_filter` or
    /// `unknown_finish_reason`. For a cancelled run: `interrupted` or `rolled_back`, or `outer_ended` for a run within
    /// another. For an expired run: `queue_timeout`, or `unanswered` after an
    /// approval request.
    pub reason: String,
}

/// Why a run failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunFailure {
    /// The error code, as in error responses.
    pub code: String,
    /// The reason as a sentence.
    pub message: String,
}

/// The tokens and calls of a run.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[schema(example = json!({
    "input_tokens": 412, "cached_tokens": 256, "output_tokens": 38, "reasoning_tokens": 0, "model_calls": 1,
    "tool_calls": 0,
}))]
pub struct RunUsage {
    /// The number of tokens in prompts.
    pub input_tokens: i64,
    /// The number of prompt tokens that the provider had cached.
    pub cached_tokens: i64,
    /// The number of tokens in answers.
    pub output_tokens: i64,
    /// The number of answer tokens that the model used for reasoning.
    pub reasoning_tokens: i64,
    /// The number of model calls.
    pub model_calls: i64,
    /// The number of tool calls.
    pub tool_calls: i64,
}

/// The Energy that a run spent.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "amount": 12, "simulated": 0 }))]
pub struct RunEnergy {
    /// The Energy spent. 0 with a test key.
    pub amount: i64,
    /// With a test key: the Energy that a live key would have spent.
    pub simulated: i64,
    /// The steps that spent Energy; they add up to `amount`. Only with `include=steps`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<RunEnergyItem>>,
}

/// The Energy that a step spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunEnergyItem {
    /// The id of the step.
    pub step_id: StepId,
    /// The model.
    pub model: String,
    /// The tier whose price was charged.
    pub tier: Tier,
    /// The Energy spent.
    pub energy: i64,
}

/// One step of a run: a model call, a tool call, a memory summary, a guardrail finding or a check of topics.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunStep {
    /// The id of the step.
    pub id: StepId,
    /// Always `run_step`.
    pub object: &'static str,
    /// The position in the run, from 1.
    pub position: i64,
    /// `model`, `tool`, `memory` (a summary of older messages), `guardrail` (a finding) or `check` (a classification of a text for
    /// guardrails of type `topic`).
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `running`, `completed`, `failed` or `unknown`. For a call that needs approval also `requires_action`,
    /// `approved`, `refused`, and `cancelled` if the run ended before the call.
    pub status: &'static str,
    /// The name of the model or tool, or the stage of the guardrail.
    pub name: String,
    /// For model calls: the tier whose price is charged.
    pub tier: Option<Tier>,
    /// For tool calls: identifies repeated calls. It is sent as the `Idempotency-Key` of calls with side effects.
    pub effect_key: Option<String>,
    /// The input. `null` after it was purged. For a model call, `messages` has the messages that were added since the
    /// previous call, and `earlier` is the number of those before. For a call with an approval, `approval` has the
    /// `decision` (`approved` or `refused`), the `note` and `decided_at`.
    #[schema(value_type = Option<Object>)]
    pub input: Option<JsonText>,
    /// The output. `null` while the step executes and after it was purged.
    #[schema(value_type = Option<Object>)]
    pub output: Option<JsonText>,
    /// The number of tokens in the prompt.
    pub input_tokens: i64,
    /// The number of tokens in the answer.
    pub output_tokens: i64,
    /// The Energy spent.
    pub energy: i64,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}
