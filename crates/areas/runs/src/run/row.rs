//! Row of a run.

use super::object::{IncompleteDetails, Run, RunEnergy, RunFailure, RunStatus, RunUsage};
use super::options::RunOptions;
use diesel::prelude::*;
use model::{AgentId, JsonText, KeyId, RequestId, Result, RunId, Timestamp, Trace, WorkspaceId};
use providers::{Tier, json};

/// A run as it is stored.
#[derive(Debug, Clone, Queryable)]
pub(crate) struct RunRow {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) id: RunId,
    pub(crate) livemode: bool,
    pub(crate) agent_id: AgentId,
    pub(crate) agent_version: i64,
    pub(crate) status: RunStatus,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) conversation_id: String,
    pub(crate) ephemeral: bool,
    pub(crate) model: Tier,
    pub(crate) incomplete_reason: Option<String>,
    pub(crate) error: Option<JsonText>,
    pub(crate) input_tokens: i64,
    pub(crate) cached_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) reasoning_tokens: i64,
    pub(crate) model_calls: i64,
    pub(crate) tool_calls: i64,
    pub(crate) energy: i64,
    pub(crate) simulated_energy: i64,
    pub(crate) options: JsonText,
    pub(crate) metadata: JsonText,
    pub(crate) key_id: KeyId,
    pub(crate) key_lineage: KeyId,
    pub(crate) request_id: RequestId,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) epoch: i64,
    pub(crate) queued_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) completed_at: Option<Timestamp>,
    pub(crate) purged_at: Option<Timestamp>,
}

impl RunRow {
    pub(crate) fn failure(&self) -> Option<RunFailure> {
        self.error.as_ref().and_then(|error| error.parse().ok())
    }

    pub(crate) fn options(&self) -> Result<RunOptions> {
        // Most runs have none, and every answer asks.
        if self.options.as_str() == "{}" { Ok(RunOptions::default()) } else { self.options.parse() }
    }

    /// As callers see it, but for what is asked of a person, which stands in its steps.
    pub(crate) fn run(self) -> Result<Run> {
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
