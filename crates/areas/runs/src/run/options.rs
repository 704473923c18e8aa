//! Options of a run: what it was asked for beyond the settings of its agent.

use super::object::RunTrigger;
use super::placeholders::PlaceholderValues;
use super::required_action::ApprovalState;
use super::variables::PromptVariables;
use agents::{ResponseFormat, Settings};
use model::{Answering, ContactId, Trace, text_enum};
use ports::{ChannelQuestion, with_values};
use serde::{Deserialize, Serialize};

/// What a run was asked for beyond its agent's settings; stored with the run.
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
    /// Whether the answer is JSON, by the run's own format or the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) json: bool,
    /// The request's `Idempotency-Key`, which the events of a run that ends elsewhere carry, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idempotency_key: Option<String>,
    /// How many of its epochs no death of a worker began, but an answer of people or a new attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) handed_over: i64,
    /// What people are asked, and were asked before.
    #[serde(default, skip_serializing_if = "Questions::is_default")]
    pub(crate) questions: ApprovalState,
    /// Whether the agent may be off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) draft: bool,
    /// What made the run.
    #[serde(default, skip_serializing_if = "RunTrigger::is_default")]
    pub(crate) trigger: RunTrigger,
    /// The trace that the request came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<Trace>,
    /// What the agent's instructions refer to.
    #[serde(default, skip_serializing_if = "PromptVariables::is_empty")]
    pub(crate) variables: PromptVariables,
    /// What else they refer to, and the fixed arguments of its tools.
    #[serde(default, skip_serializing_if = "PlaceholderValues::is_empty")]
    pub(crate) placeholders: PlaceholderValues,
    /// The contact whom the agent answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contact: Option<ContactId>,
    /// Whether the model is not told the id of the contact, because it has no tool that takes one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) hides_contact: bool,
    /// The epoch of the contact at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) contact_epoch: Option<i64>,
    /// The messages that it answers over a channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<ChannelQuestion>,
    /// What its work is called in ledgers.
    #[serde(default, skip_serializing_if = "RunPurpose::is_default")]
    pub(crate) purpose: RunPurpose,
}

impl RunOptions {
    /// The contact whom the agent answers.
    pub(crate) fn answering(&self) -> Option<Answering> {
        Some(Answering { contact: self.contact?, epoch: self.contact_epoch? })
    }

    /// Completes the agent's instructions with what this run knows. Gives the keys of the variables that have no value.
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
    /// What the work of a run is called in ledgers.
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
