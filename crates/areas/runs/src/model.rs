//! Types of the API: runs and steps.

use super::action::{Questions, RequiredAction};
use super::placeholders::PlaceholderValues;
use super::prompt_variables::PromptVariables;
use crate::schema::runs;
use agents::{ResponseFormat, Settings};
use diesel::prelude::*;
use model::{
    AgentId, Answering, ContactId, JsonText, KeyId, Metadata, RequestId, Result, RunId, StepId, Timestamp,
    Trace, WorkspaceId, text_enum,
};
use ports::{ChannelQuestion, with_values};
use providers::Tier;
use providers::json;
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
        /// The run was replaced by a newer input to its conversation.
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
    pub(super) fn is_at_rest(self) -> bool {
        self.is_final() || self == Self::RequiresAction
    }
}

text_enum! {
    /// What to do when another run of the conversation is executing.
    #[derive(Default)]
    pub enum OnBusy {
        /// Wait in the queue. At most 10 runs can wait.
        #[default]
        Enqueue = "enqueue",
        /// Return 409 `conversation_busy`.
        Reject = "reject",
        /// Cancel the executing and queued runs. Their inputs stay in the conversation's memory.
        Interrupt = "interrupt",
        /// Cancel the executing and queued runs, and remove their inputs from the conversation's memory.
        Rollback = "rollback",
    }
}

/// A run to execute.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "input": "What are your opening hours?" }))]
pub struct NewRun {
    /// The input for the agent.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    pub input: String,
    /// Your own id of a conversation. Runs with the same id share its memory. Without it, the run uses an ephemeral
    /// conversation, which is purged 72 hours after its last run.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// The agent; the workspace's default agent if not given.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// A version of the agent; the current one if not given. Test keys can send `draft`: the current version, even if
    /// the agent is not active.
    #[serde(default)]
    pub agent_version: Option<WantedVersion>,
    /// `true` returns at once. Get the run or subscribe to its events to learn the result.
    #[serde(default)]
    pub background: bool,
    /// `true` returns server-sent events while the run executes, without a time limit of the request. Closing the
    /// connection does not stop the run. Cannot be combined with `background`.
    #[serde(default)]
    pub stream: bool,
    /// The format of the answer, instead of the agent's setting.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// The maximum number of model calls, instead of the agent's setting.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The maximum duration in seconds, instead of the agent's setting.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// Your own key-value data.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// What to do when another run of the conversation is executing.
    #[serde(default)]
    pub on_busy: OnBusy,
    /// What starts the run.
    #[serde(skip)]
    #[schema(ignore)]
    pub(super) trigger: RunTrigger,
    /// The contact whom the agent answers.
    #[serde(skip)]
    #[schema(ignore)]
    pub(super) answering: Option<Answering>,
    /// The messages that it answers over a channel.
    #[serde(skip)]
    #[schema(ignore)]
    pub(super) question: Option<ChannelQuestion>,
}

/// The version of an agent to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum WantedVersion {
    /// This version.
    Number(VersionNumber),
    /// The current version, even if the agent is not active.
    Draft(Draft),
}

impl WantedVersion {
    /// The version, where it is named by its number.
    pub(super) fn number(self) -> Option<i64> {
        match self {
            Self::Number(VersionNumber(number)) => Some(number),
            Self::Draft(_) => None,
        }
    }
}

/// A version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = AgentVersionNumber, minimum = 1)]
pub struct VersionNumber(pub i64);

text_enum! {
    /// Stands for the current version of an agent.
    #[schema(as = AgentVersionDraft)]
    pub enum Draft {
        /// The current version.
        Draft = "draft",
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
    fn is_default(&self) -> bool {
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
    }
}

/// What a run was asked for beyond its agent's settings; stored with the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct RunOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<ResponseFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_steps: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) background: bool,
    /// The first step of the attempt that counts, where earlier ones failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) attempt_from: Option<i64>,
    /// Whether the answer is JSON, by the run's own format or the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) json: bool,
    /// The request's `Idempotency-Key`, which the events of a run that ends elsewhere carry, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idempotency_key: Option<String>,
    /// How many of its epochs no death of a worker began, but an answer of people or a new attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) handed_over: i64,
    /// What people are asked, and were asked before.
    #[serde(default, skip_serializing_if = "Questions::is_default")]
    pub(super) questions: Questions,
    /// Whether the agent may be off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) draft: bool,
    /// What made the run.
    #[serde(default, skip_serializing_if = "RunTrigger::is_default")]
    pub(super) trigger: RunTrigger,
    /// The trace that the request came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<Trace>,
    /// What the agent's instructions refer to.
    #[serde(default, skip_serializing_if = "PromptVariables::is_empty")]
    pub(super) variables: PromptVariables,
    /// What else they refer to, and the fixed arguments of its tools.
    #[serde(default, skip_serializing_if = "PlaceholderValues::is_empty")]
    pub(super) placeholders: PlaceholderValues,
    /// The contact whom the agent answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) contact: Option<ContactId>,
    /// Whether the model is not told the id of the contact, because it has no tool that takes one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) hides_contact: bool,
    /// The epoch of the contact at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) contact_epoch: Option<i64>,
    /// The messages that it answers over a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<ChannelQuestion>,
    /// What its work is called in ledgers.
    #[serde(default, skip_serializing_if = "RunPurpose::is_default")]
    pub(super) purpose: RunPurpose,
}

impl RunOptions {
    /// The contact whom the agent answers.
    pub(super) fn answering(&self) -> Option<Answering> {
        Some(Answering { contact: self.contact?, epoch: self.contact_epoch? })
    }

    /// Completes the agent's instructions with what this run knows. Gives the keys of the variables that have no value.
    pub(super) fn complete(&self, settings: &mut Settings) -> Vec<String> {
        let value = |placeholder| self.placeholders.in_instructions(&placeholder, &self.variables);
        settings.instructions = with_values(&settings.instructions, value);
        if let Some(contact) = self.contact.filter(|_| !self.hides_contact) {
            let line = format!("\n\nThe messages are from the contact with the id {contact}.");
            settings.instructions.push_str(&line);
        }
        self.variables.missing()
    }
}

text_enum! {
    /// What the work of a run is called in ledgers.
    #[derive(Default)]
    pub(super) enum RunPurpose {
        /// It answers an input.
        #[default]
        Run = "run",
        /// It fills fields of a contact.
        ContactEnrichment = "contact_enrichment",
        /// It judges the conversation with a contact.
        ContactAnalysis = "contact_analysis",
    }
}

impl RunPurpose {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
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
    /// `budget_exceeded`, `loop_detected`, `output_invalid`, `guardrail`, `handoff`, `content_filter` or
    /// `unknown_finish_reason`. For a cancelled run: `interrupted` or `rolled_back`. For an expired run: `queue_timeout`, or `unanswered` after an
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

/// One step of a run: a model call, a tool call, a memory summary or a guardrail finding.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunStep {
    /// The id of the step.
    pub id: StepId,
    /// Always `run_step`.
    pub object: &'static str,
    /// The position in the run, from 1.
    pub position: i64,
    /// `model`, `tool`, `memory` (a summary of older messages) or `guardrail` (a finding).
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

/// A run as it is stored.
#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = runs, treat_none_as_default_value = false)]
pub(super) struct RunRow {
    pub(super) workspace_id: WorkspaceId,
    pub(super) id: RunId,
    pub(super) livemode: bool,
    pub(super) agent_id: AgentId,
    pub(super) agent_version: i64,
    pub(super) status: RunStatus,
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    pub(super) conversation_id: String,
    pub(super) ephemeral: bool,
    pub(super) model: Tier,
    pub(super) incomplete_reason: Option<String>,
    pub(super) error: Option<JsonText>,
    pub(super) input_tokens: i64,
    pub(super) cached_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) reasoning_tokens: i64,
    pub(super) model_calls: i64,
    pub(super) tool_calls: i64,
    pub(super) energy: i64,
    pub(super) simulated_energy: i64,
    pub(super) options: JsonText,
    pub(super) metadata: JsonText,
    pub(super) key_id: KeyId,
    pub(super) key_lineage: KeyId,
    pub(super) request_id: RequestId,
    pub(super) lease_until: Option<Timestamp>,
    pub(super) epoch: i64,
    pub(super) queued_at: Timestamp,
    pub(super) started_at: Option<Timestamp>,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) purged_at: Option<Timestamp>,
}

impl RunRow {
    pub(super) fn failure(&self) -> Option<RunFailure> {
        self.error.as_ref().and_then(|error| error.parse().ok())
    }

    pub(super) fn options(&self) -> Result<RunOptions> {
        // Most runs have none, and every answer asks.
        if self.options.as_str() == "{}" { Ok(RunOptions::default()) } else { self.options.parse() }
    }

    /// As callers see it, but for what is asked of a person, which stands in its steps.
    pub(super) fn run(self) -> Result<Run> {
        let error = self.failure();
        let options = self.options()?;
        let output_data = match &self.output {
            Some(output) if self.status == RunStatus::Completed && options.json => json::text_of(output),
            _ => None,
        };
        let times = [self.started_at, self.completed_at, self.purged_at];
        Ok(Run {
            object: "run",
            status: self.status,
            metadata: self.metadata.parse()?,
            id: self.id,
            workspace_id: self.workspace_id,
            livemode: self.livemode,
            agent_id: self.agent_id,
            agent_version: self.agent_version,
            input: self.input,
            output: self.output,
            output_data,
            conversation_id: self.conversation_id,
            ephemeral: self.ephemeral,
            model: self.model.as_str(),
            incomplete_details: self.incomplete_reason.map(|reason| IncompleteDetails { reason }),
            required_action: None,
            error,
            usage: RunUsage {
                input_tokens: self.input_tokens,
                cached_tokens: self.cached_tokens,
                output_tokens: self.output_tokens,
                reasoning_tokens: self.reasoning_tokens,
                model_calls: self.model_calls,
                tool_calls: self.tool_calls,
            },
            energy: RunEnergy { amount: self.energy, simulated: self.simulated_energy, items: None },
            trace_id: options.trace.unwrap_or_else(|| Trace::of_id(self.request_id.as_str())).id(),
            trigger: options.trigger,
            steps: None,
            created_at: self.queued_at,
            updated_at: times.into_iter().flatten().fold(self.queued_at, Timestamp::max),
            queued_at: self.queued_at,
            started_at: self.started_at,
            completed_at: self.completed_at,
            purged_at: self.purged_at,
        })
    }
}
