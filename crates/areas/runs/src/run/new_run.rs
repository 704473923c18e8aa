//! Request for a run.

use super::inner::InnerRun;
use super::object::RunTrigger;
use agents::ResponseFormat;
use model::{AgentId, Answering, Metadata, text_enum};
use ports::ChannelQuestion;
use providers::Tier;
use serde::Deserialize;
use utoipa::ToSchema;

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
    pub(crate) trigger: RunTrigger,
    /// The contact whom the agent answers.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) answering: Option<Answering>,
    /// The messages that it answers over a channel.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) question: Option<ChannelQuestion>,
    /// The bounds of a run that the tool of another run starts.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) inner: Option<InnerRun>,
    /// The most Energy that it may use, besides the limits of the agent.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) energy_limit: Option<i64>,
    /// The tier of a model that only reads the input.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) reading_tier: Option<Tier>,
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
    pub(crate) fn number(self) -> Option<i64> {
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
