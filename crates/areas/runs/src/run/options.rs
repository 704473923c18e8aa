//! Options of a run: what it was asked for beyond the settings of its agent.

use super::inner::InnerRun;
use super::object::RunTrigger;
use super::required_action::ApprovalState;
use agents::{KeptVersions, PlaceholderValues, PromptVariables, ResponseFormat, Settings};
use model::{Answering, Chain, ContactId, Trace, text_enum};
use ports::{ChannelQuestion, with_values};
use providers::Tier;
use serde::{Deserialize, Serialize};

/// Options of a run beyond the settings of its agent. Stored with the run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct RunOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response_format: Option<ResponseFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_steps: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) background: bool,
    /// The first step of the attempt that counts, where earlier ones failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt_from: Option<i64>,
    /// The answer is JSON, by the format of the run or of the agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) json: bool,
    /// The request's `Idempotency-Key`, which the events of a run that ends elsewhere carry, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
    /// The number of epochs that started with an approval or a new attempt, and not with the death of a worker.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) handed_over: i64,
    /// The open approval request, and the time spent on all requests.
    #[serde(default, skip_serializing_if = "ApprovalState::is_default")]
    pub(crate) questions: ApprovalState,
    /// The agent can be inactive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) draft: bool,
    /// The trigger.
    #[serde(default, skip_serializing_if = "RunTrigger::is_default")]
    pub(crate) trigger: RunTrigger,
    /// The trace that the request came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Trace>,
    /// The place in the chain of causes. `None` for a run that starts a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<Chain>,
    /// Variables in the instructions.
    #[serde(default, skip_serializing_if = "PromptVariables::is_empty")]
    pub(crate) variables: PromptVariables,
    /// Values of the other placeholders in the instructions, and of those in fixed arguments of tools.
    #[serde(default, skip_serializing_if = "PlaceholderValues::is_empty")]
    pub(crate) placeholders: PlaceholderValues,
    /// The contact whom the agent answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contact: Option<ContactId>,
    /// The prompt does not contain the id of the contact, because no tool takes one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hides_contact: bool,
    /// The epoch of the contact at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contact_epoch: Option<i64>,
    /// The messages that it answers over a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<ChannelQuestion>,
    /// The versions of skills and code functions.
    #[serde(default, skip_serializing_if = "KeptVersions::is_empty")]
    pub(crate) versions: KeptVersions,
    /// The purpose in ledger entries.
    #[serde(default, skip_serializing_if = "RunPurpose::is_default")]
    pub(crate) purpose: RunPurpose,
    /// The bounds of a run that the tool of another run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inner: Option<InnerRun>,
    /// The most Energy that it may use, besides the limits of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) energy_limit: Option<i64>,
    /// The tier of a model that only reads the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reading_tier: Option<Tier>,
}

impl RunOptions {
    /// The contact whom the agent answers.
    pub(crate) fn answering(&self) -> Option<Answering> {
        Some(Answering { contact: self.contact?, epoch: self.contact_epoch? })
    }

    /// Replaces the placeholders in the instructions. Returns the keys of the variables without a value.
    pub(crate) fn complete(&self, settings: &mut Settings) -> Vec<String> {
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
    /// Purpose of a run in ledger entries.
    #[derive(Default)]
    pub(crate) enum RunPurpose {
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
