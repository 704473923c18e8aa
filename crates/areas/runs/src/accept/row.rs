//! Row of a new run.

use super::agent::wanted_number;
use super::busy;
use crate::queries::runs;
use crate::run::{NewRun, RunOptions, RunRow, RunStatus, conversation};
use agents::{AgentRow, Settings};
use model::{Caller, JsonText, Result, RunId, Timestamp, WorkspaceId};
use providers::Tier;
use store::Tx;

/// The row of a new run. Where its conversation has a name, that is locked from here on.
pub(crate) fn new_row(
    tx: &mut Tx,
    caller: &Caller,
    new: &NewRun,
    agent: &AgentRow,
    settings: &Settings,
) -> Result<RunRow> {
    let workspace_id = caller.workspace_id();
    let (moment, conversation_id) = match &new.conversation_id {
        Some(name) => {
            let key = conversation::key_of(workspace_id, caller.livemode(), agent.id, name);
            conversation::lock(tx, key)?;
            (busy::next_moment(tx, workspace_id, name)?, Some(name.clone()))
        }
        None => (tx.now(), None),
    };
    let id = RunId::new(moment, &*tx.random());
    let conversation_id = conversation_id.unwrap_or_else(|| id.as_str().replacen("run_", "eph_", 1));
    Ok(RunRow {
        ephemeral: conversation_id.starts_with("eph_"),
        conversation_id,
        lease_until: Some(tx.now().plus_seconds(runs::LEASE_SECONDS)),
        queued_at: moment,
        agent_id: agent.id,
        agent_version: wanted_number(new).unwrap_or(agent.version),
        model: settings.model,
        input: Some(new.input.clone()),
        metadata: JsonText::of(&new.metadata.clone().unwrap_or_default()),
        ..empty_row(caller, workspace_id, id, moment)
    })
}

/// Returns a row with the defaults of a new run of this caller.
fn empty_row(caller: &Caller, workspace_id: WorkspaceId, id: RunId, moment: Timestamp) -> RunRow {
    RunRow {
        workspace_id,
        id,
        livemode: caller.livemode(),
        agent_id: model::AgentId(0),
        agent_version: 0,
        status: RunStatus::Queued,
        input: None,
        output: None,
        conversation_id: String::new(),
        ephemeral: false,
        model: Tier::default(),
        incomplete_reason: None,
        error: None,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        reasoning_tokens: 0,
        model_calls: 0,
        tool_calls: 0,
        energy: 0,
        simulated_energy: 0,
        options: JsonText::of(&RunOptions::default()),
        metadata: JsonText::of(&model::Metadata::default()),
        key_id: caller.key.id.clone(),
        key_lineage: caller.key.lineage.clone(),
        request_id: caller.request.clone(),
        lease_until: None,
        epoch: 1,
        queued_at: moment,
        started_at: None,
        completed_at: None,
        purged_at: None,
    }
}
