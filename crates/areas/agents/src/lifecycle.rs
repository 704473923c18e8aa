//! Operations on an agent's lifecycle: duplicate, enable, disable, make default.

use super::model::{Agent, AgentRow, AgentStatus, check_metadata};
use super::queries::{self, Fresh};
use fields::text::copy_name;
use model::{AgentId, Caller, Metadata, Result, WorkspaceId};
use operation::{Body, Created, Json, Path, Resource, State, operation};
use providers::Tiers;
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// How the copy differs from the original.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Support (copy)" }))]
pub struct Duplicate {
    /// The copy's name; the original's name with "(copy)" if not given.
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
    /// The copy's metadata; that of the original if not given.
    #[serde(default)]
    metadata: Option<Metadata>,
}

/// Copy an agent with its tools and skills
///
/// Creates a copy of the agent. The copy is a `draft` at version 1 and is not the default agent.
#[operation(post "/agents/{agentId}/duplicate", scope = "agents:write")]
pub fn duplicate_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Body(copy): Body<Duplicate>,
    tiers: State<Tiers>,
) -> Result<Created<Agent>> {
    check_metadata(copy.metadata.as_ref())?;
    let workspace = caller.workspace_id();
    AgentRow::lock_set(tx, workspace)?;
    let original = AgentRow::find(tx, workspace, &agent_id)?;
    let name = match copy.name {
        Some(name) => name,
        None => free_name(tx, workspace, &original.name)?,
    };
    let metadata = match copy.metadata {
        Some(metadata) => metadata,
        None => original.metadata.parse()?,
    };
    let settings = original.settings()?;
    let fresh = Fresh { name: &name, status: AgentStatus::Draft, settings: &settings, metadata: &metadata };
    let row = queries::insert(tx, workspace, &fresh)?;
    for mut tool in queries::tools(tx, agent_id)? {
        tool.agent_id = row.id;
        queries::put_tool(tx, &tool)?;
    }
    queries::keep_version(tx, Some(caller), &row, None)?;
    Ok(Created(row.agent(&tiers.0)?))
}

fn free_name(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<String> {
    let taken = queries::taken_names(read, workspace)?;
    Ok(copy_name(name, 85, |name| taken.contains(&name.to_lowercase())))
}

/// Let the agent answer and run
///
/// Sets the agent's status to `active`, so that it can run. Activating an active agent changes nothing.
#[operation(post "/agents/{agentId}/activate", scope = "agents:write")]
pub fn activate_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    tiers: State<Tiers>,
) -> Result<Json<Agent>> {
    let row = AgentRow::find_locked(tx, caller.workspace_id(), &agent_id)?;
    switched(tx, row, AgentStatus::Active, &tiers.0)
}

/// Stop the agent from answering and running
///
/// Sets the agent's status to `inactive`. Runs in progress finish. Queued runs fail with `agent_inactive`, and so do
/// new ones. Deactivating an inactive agent changes nothing.
#[operation(post "/agents/{agentId}/deactivate", scope = "agents:write")]
pub fn deactivate_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    tiers: State<Tiers>,
) -> Result<Json<Agent>> {
    let row = AgentRow::find_locked(tx, caller.workspace_id(), &agent_id)?;
    // A draft is already off, and stays a draft.
    if row.status == AgentStatus::Draft {
        return Ok(Json(row.agent(&tiers.0)?));
    }
    switched(tx, row, AgentStatus::Inactive, &tiers.0)
}

fn switched(tx: &mut Tx, row: AgentRow, status: AgentStatus, tiers: &Tiers) -> Result<Json<Agent>> {
    let row = if row.status == status { row } else { queries::set_status(tx, row.id, status)? };
    Ok(Json(row.agent(tiers)?))
}

/// Make it the agent that runs when none is named
///
/// Makes the agent the workspace's default: runs that name no agent use it. The previous default agent stays active.
#[operation(put "/agents/{agentId}/default", scope = "agents:write")]
pub fn set_default_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    tiers: State<Tiers>,
) -> Result<Json<Agent>> {
    AgentRow::lock_set(tx, caller.workspace_id())?;
    let row = AgentRow::find_locked(tx, caller.workspace_id(), &agent_id)?;
    let row = if row.is_default { row } else { queries::set_default(tx, caller.workspace_id(), agent_id)? };
    Ok(Json(row.agent(&tiers.0)?))
}
