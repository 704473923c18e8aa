//! Types of the API: runs and steps.

use super::action::{Questions, RequiredAction};
use crate::agents::ResponseFormat;
use crate::providers::Tier;
use crate::schema::runs;
use diesel::prelude::*;
use model::{
    AgentId, JsonText, KeyId, Metadata, RequestId, Result, RunId, StepId, Timestamp, WorkspaceId, text_enum,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// Where a run stands.
    pub enum RunStatus {
        /// It waits for its turn.
        Queued = "queued",
        /// It goes on.
        InProgress = "in_progress",
        /// It waits for a person: `required_action` says for what.
        RequiresAction = "requires_action",
        /// It has answered.
        Completed = "completed",
        /// A limit ended it; what it has said so far is kept.
        Incomplete = "incomplete",
        /// It failed, and costs nothing.
        Failed = "failed",
        /// A newer input took its place.
        Cancelled = "cancelled",
        /// It never came to its turn, or nobody answered what it asked.
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
    /// What to do when the conversation is busy with another run.
    #[derive(Default)]
    pub enum OnBusy {
        /// Wait for its turn; at most 10 runs wait behind the one that goes on.
        #[default]
        Enqueue = "enqueue",
        /// Answer 409 `conversation_busy`.
        Reject = "reject",
        /// Cancel what goes on and waits; the cancelled inputs stay in the conversation's memory.
        Interrupt = "interrupt",
        /// Cancel what goes on and waits, and forget the cancelled inputs.
        Rollback = "rollback",
    }
}

/// A run to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRun {
    /// What the agent is told.
    #[schema(min_length = 1, max_length = 100_000, pattern = r"\S")]
    pub input: String,
    /// Keeps memory across runs: the caller's own name for the conversation. Without it the run has an ephemeral
    /// conversation, which is forgotten 72 hours after its last run.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// The agent; the workspace's default if not given.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// A version of the agent; the current one if not given. With a test key it may be `draft`: the current one, and
    /// the agent need not be active.
    #[serde(default)]
    pub agent_version: Option<WantedVersion>,
    /// `true` answers at once; read the run, or subscribe to its events, for the end.
    #[serde(default)]
    pub background: bool,
    /// `true` answers with server-sent events as the run goes on, without a limit of its own. A caller that hangs up does
    /// not stop the run. Not together with `background`.
    #[serde(default)]
    pub stream: bool,
    /// The form of the answer, instead of the agent's.
    #[serde(default)]
    pub response_format: Option<ResponseFormat>,
    /// The most model calls, instead of the agent's.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default)]
    pub max_steps: Option<i64>,
    /// The longest time, instead of the agent's.
    #[schema(minimum = 5, maximum = 600)]
    #[serde(default)]
    pub timeout_seconds: Option<i64>,
    /// The caller's own notes.
    #[serde(default)]
    pub metadata: Option<Metadata>,
    /// What to do when the conversation is busy.
    #[serde(default)]
    pub on_busy: OnBusy,
}

/// Which version of an agent is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum WantedVersion {
    /// This one.
    Number(VersionNumber),
    /// The current one, whether the agent is active or not.
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

/// A version of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = AgentVersionNumber, minimum = 1)]
pub struct VersionNumber(pub i64);

text_enum! {
    /// The word for an agent as it is now.
    #[schema(as = AgentVersionDraft)]
    pub enum Draft {
        /// It.
        Draft = "draft",
    }
}

/// What made a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTrigger {
    /// The kind of it.
    #[serde(rename = "type")]
    pub kind: RunTriggerKind,
    /// The object that did, where there is one.
    pub id: Option<String>,
}

impl RunTrigger {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

text_enum! {
    /// The kinds of what makes runs.
    #[derive(Default)]
    pub enum RunTriggerKind {
        /// A request for a run.
        #[default]
        Api = "api",
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
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Run {
    /// The run.
    pub id: RunId,
    /// Always `run`.
    pub object: &'static str,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// `false` for runs made with a test key.
    pub livemode: bool,
    /// The agent that ran.
    pub agent_id: AgentId,
    /// The version of the agent that ran.
    pub agent_version: i64,
    /// Where it stands.
    pub status: RunStatus,
    /// What the agent was told; `null` once forgotten.
    pub input: Option<String>,
    /// What the agent said; `null` where it has not, and once forgotten.
    pub output: Option<String>,
    /// The output as JSON, where a schema was asked for and the output fits it.
    #[schema(value_type = Option<Object>)]
    pub output_data: Option<Value>,
    /// The conversation; `eph_…` where the caller named none.
    pub conversation_id: String,
    /// Whether the conversation is forgotten 72 hours after its last run.
    pub ephemeral: bool,
    /// The tier of models.
    pub model: &'static str,
    /// Why it is incomplete, cancelled or expired.
    pub incomplete_details: Option<IncompleteDetails>,
    /// What a person has to do before it goes on.
    pub required_action: Option<RequiredAction>,
    /// Why it failed.
    pub error: Option<RunFailure>,
    /// What it used.
    pub usage: RunUsage,
    /// What it cost.
    pub energy: RunEnergy,
    /// What made it.
    pub trigger: RunTrigger,
    /// The caller's own notes.
    pub metadata: Metadata,
    /// The steps, with `include=steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<RunStep>>,
    /// When it was accepted: the same as `queued_at`.
    pub created_at: Timestamp,
    /// When it last went on: the newest of the times below.
    pub updated_at: Timestamp,
    /// When it was accepted.
    pub queued_at: Timestamp,
    /// When its turn came.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When its texts were forgotten.
    pub purged_at: Option<Timestamp>,
}

/// Why a run is incomplete.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct IncompleteDetails {
    /// `max_steps`, `max_tool_calls`, `max_output_tokens`, `timeout`, `energy_depleted`, `energy_limit`,
    /// `budget_exceeded`, `loop_detected`, `output_invalid`, `guardrail`, `handoff`,
    /// `content_filter`; of a cancelled run `interrupted` or
    /// `rolled_back`; of an expired one `queue_timeout`, or `unanswered` where it had asked a person.
    pub reason: String,
}

/// Why a run failed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunFailure {
    /// The code, as in error answers.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// What a run used.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct RunUsage {
    /// Tokens of prompts.
    pub input_tokens: i64,
    /// Of them, those found in the provider's cache.
    pub cached_tokens: i64,
    /// Tokens of answers.
    pub output_tokens: i64,
    /// Of them, those spent on thinking.
    pub reasoning_tokens: i64,
    /// Calls of the model.
    pub model_calls: i64,
    /// Calls of tools.
    pub tool_calls: i64,
}

/// What a run cost.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunEnergy {
    /// Energy spent; zero with a test key.
    pub amount: i64,
    /// With a test key: what it would have cost.
    pub simulated: i64,
    /// With `include=steps`: the steps that cost something, which make up `amount`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<RunEnergyItem>>,
}

/// What a step cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunEnergyItem {
    /// The step.
    pub step_id: StepId,
    /// The model that answered.
    pub model: String,
    /// The tier by whose prices it was charged.
    pub tier: Tier,
    /// Energy spent.
    pub energy: i64,
}

/// A call of the model or of a tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunStep {
    /// The step.
    pub id: StepId,
    /// Always `run_step`.
    pub object: &'static str,
    /// Its place in the run, from 1.
    pub position: i64,
    /// `model`, `tool`, `memory` (older turns of the conversation were summarised) or `guardrail` (something was found).
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `running`, `completed`, `failed` or `unknown`; of a call that a person must allow also `requires_action`,
    /// `approved`, `refused` and, where the run ended before the call was made, `cancelled`.
    pub status: &'static str,
    /// The model, the tool, or where guardrails found something.
    pub name: String,
    /// Of calls of a model: the tier by whose prices they are charged.
    pub tier: Option<Tier>,
    /// Of calls of a tool: what a repeated one is known by, and what a writing one sends as its `Idempotency-Key`.
    pub effect_key: Option<String>,
    /// What went in; `null` once forgotten. Of a call of the model: `messages` has what it was told that it had not been
    /// told at its call before, and `earlier` the number of those that it had been. Of a call that a person was asked
    /// about, `approval` has the `decision` (`approved` or `refused`), the `note` and `decided_at`.
    #[schema(value_type = Option<Object>)]
    pub input: Option<JsonText>,
    /// What came out; `null` until then, and once forgotten.
    #[schema(value_type = Option<Object>)]
    pub output: Option<JsonText>,
    /// Tokens of the prompt.
    pub input_tokens: i64,
    /// Tokens of the answer.
    pub output_tokens: i64,
    /// Energy spent.
    pub energy: i64,
    /// When it began.
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
            Some(output) if self.status == RunStatus::Completed && options.json => {
                serde_json::from_str(output).ok()
            }
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
