//! The request and the response of an enrichment.

use model::{AgentId, ContactId, RunId, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// What the agent is asked to do.
    #[derive(Default)]
    pub enum EnrichmentMode {
        /// To complete the profile: values that follow from what is known.
        #[default]
        Enrich = "enrich",
        /// To judge what was said with the contact: a summary, and values that follow from it.
        Analyse = "analyse",
    }
}

impl EnrichmentMode {
    /// Returns the purpose under which the run is recorded in ledgers.
    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Enrich => "contact_enrichment",
            Self::Analyse => "contact_analysis",
        }
    }
}

/// What an agent is to find out about a contact.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "fields": ["$company", "$language"], "context": "Signature: Ana Souza, Souza & Filhos, São Paulo" }))]
pub struct ContactEnrichmentRequest {
    /// What the agent is asked to do.
    #[serde(default)]
    pub mode: EnrichmentMode,
    /// The keys of the fields to fill. If not given, all fields that can be filled and have no value, or with
    /// `overwrite` all that can be filled. Fields that identify
    /// a contact, that refer to other objects or that the service sets cannot be.
    #[schema(min_items = 1, max_items = 50)]
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    /// The agent; the workspace's default agent if not given.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// More that the agent should know, such as the text of an e-mail.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    #[serde(default)]
    pub context: Option<String>,
    /// Whether values that fields have already are replaced.
    #[serde(default)]
    pub overwrite: bool,
    /// The confidence from which a value is written; 0.5 if not given.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(default)]
    pub min_confidence: Option<f64>,
    /// Whether values are only proposed and not written. Energy is spent all the same.
    #[serde(default)]
    pub dry_run: bool,
}

/// What an agent found out about a contact.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "completed", "summary": "Runs a family business.", "applied_count": 1, "energy": 12, "version": 3,
}))]
pub struct ContactEnrichment {
    /// Always `contact_enrichment`.
    pub object: &'static str,
    /// The id of the contact.
    pub contact_id: ContactId,
    /// What the agent was asked to do.
    pub mode: EnrichmentMode,
    /// Whether values were only proposed.
    pub dry_run: bool,
    /// The status of the run. Only a `completed` run has proposals.
    pub status: &'static str,
    /// Why there are no proposals, as the `reason` of a run: `output_invalid` if the answer did not fit.
    pub reason: Option<String>,
    /// A summary of the contact in a few sentences, if the agent was asked to `analyse`.
    pub summary: Option<String>,
    /// The values that the agent proposes.
    pub proposals: Vec<Proposal>,
    /// How many of them were written.
    pub applied_count: i64,
    /// The version of the contact after that.
    pub version: i64,
    /// The agent that ran.
    pub agent_id: AgentId,
    /// The run, with its steps.
    pub run_id: RunId,
    /// The Energy spent.
    pub energy: i64,
}

/// A value that an agent proposes for a field.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "field": "$company", "value": "Souza & Filhos", "current": null, "confidence": 0.9,
    "reason": "The signature of the e-mail names it.", "applied": true,
}))]
pub struct Proposal {
    /// The key of the field.
    pub field: String,
    /// The proposed value.
    #[schema(value_type = Value)]
    pub value: Value,
    /// The value before. `null` if there was none.
    #[schema(value_type = Value)]
    pub current: Value,
    /// How sure the agent is, from 0 to 1.
    pub confidence: f64,
    /// Why, in the words of the agent.
    pub reason: String,
    /// Whether the value was written.
    pub applied: bool,
    /// Why it was not written.
    pub problem: Option<String>,
}
