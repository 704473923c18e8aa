//! Operations on agents: list, create, read, update, delete.

use super::guardrail_functions;
use super::model::{Agent, AgentPatch, AgentRow, AgentStatus, NewAgent, NewAgentStatus, check_metadata};
use super::placeholders::PlaceholderServices;
use super::queries::{self, Fresh};
use super::tools::ToolRow;
use model::{AgentId, Caller, Code, Error, JsonText, Result};
use operation::{
    Body, Created, Deleted, Describe, ExpectedVersion, FromInput, IfMatch, Input, Json, OptIn, OptInList,
    Path, Query, Resource, State, Update, With, operation,
};
use ports::{ObjectUses, UsedObject, WorkspaceFunctions, in_use};
use providers::Tiers;
use serde::Deserialize;
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::IntoParams;

/// Which agents to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct AgentQuery {
    /// Only agents in this state.
    #[serde(default)]
    status: Option<AgentStatus>,
}

/// List agents
///
/// Lists the workspace's agents, newest first. Send `status` for the agents in one state. Deleted agents are not
/// listed.
#[operation(get "/agents", scope = "agents:read")]
pub fn list_agents(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<AgentQuery>,
    page: OptIn,
    tiers: State<Tiers>,
) -> Result<OptInList<Agent>> {
    let rows = queries::list(read, caller.workspace_id(), query.status, page.page())?;
    let agents = rows.into_iter().map(|row| row.agent(&tiers.0)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(agents, |agent| agent.id.to_string()))
}

/// The services that check the settings of agents.
#[derive(Clone)]
pub struct SettingsServices {
    placeholders: PlaceholderServices,
    functions: Arc<WorkspaceFunctions>,
}

impl FromInput for SettingsServices {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let placeholders = PlaceholderServices::from_input(input, name)?;
        Ok(Self { placeholders, functions: input.services.get()? })
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

/// Create an agent
///
/// The agent is created as a `draft`, which does not run, unless `status` is `active`. The first agent of a workspace
/// becomes its default agent. A name that another agent has is a 409 `duplicate_value`.
#[operation(post "/agents", scope = "agents:write")]
pub fn create_agent(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewAgent>,
    tiers: State<Tiers>,
    services: SettingsServices,
) -> Result<Created<Agent>> {
    check_metadata(new.metadata.as_ref())?;
    let settings = new.settings()?;
    let checks = services.placeholders.checks(caller.workspace_id());
    checks.check(tx, &settings.instructions, "instructions")?;
    let status = match new.status {
        Some(NewAgentStatus::Active) => AgentStatus::Active,
        Some(NewAgentStatus::Draft) | None => AgentStatus::Draft,
    };
    let metadata = new.metadata.unwrap_or_default();
    let fresh = Fresh { name: &new.name, status, settings: &settings, metadata: &metadata };
    guardrail_functions::check(tx, &services.functions, caller, &settings.guardrails, &[])?;
    let row = queries::insert(tx, caller.workspace_id(), &fresh)?;
    queries::keep_version(tx, Some(caller), &row, None)?;
    Ok(Created(row.agent(&tiers.0)?))
}

/// Agent detail
///
/// Returns the agent with its settings and tools. The `ETag` header is the agent's version. Send it as `If-Match` with
/// a change to prevent overwriting changes by others.
#[operation(get "/agents/{agentId}", scope = "agents:read")]
pub fn get_agent(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    tiers: State<Tiers>,
) -> Result<With<Json<Agent>>> {
    let row = AgentRow::find(read, caller.workspace_id(), &agent_id)?;
    let tools = queries::tools(read, agent_id)?.into_iter().map(ToolRow::tool);
    let tools = tools.collect::<Result<Vec<_>>>()?;
    Ok(shown(Agent { tools: Some(tools), ..row.agent(&tiers.0)? }))
}

/// Builds the response with an agent and its version as `ETag`.
fn shown(agent: Agent) -> With<Json<Agent>> {
    With::etag(agent.version, Json(agent))
}

/// Change an agent; every change is a new version
///
/// Fields that are not sent stay unchanged. A change of the agent creates a new version; a request that changes nothing
/// does not. With `version` or `If-Match`, the request is rejected with 409 `version_conflict` if the agent was changed
/// in the meantime.
#[operation(patch "/agents/{agentId}", scope = "agents:write")]
pub fn update_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Body(patch): Body<AgentPatch>,
    if_match: IfMatch,
    tiers: State<Tiers>,
    services: SettingsServices,
) -> Result<With<Json<Agent>>> {
    check_metadata(patch.metadata.as_ref())?;
    let expected = ExpectedVersion::new(if_match, patch.version)?.or_deprecated(patch.expected_version)?;
    let mut update = Update::<AgentRow>::begin(tx, caller.workspace_id(), &agent_id, expected)?;
    let before = update.row.settings()?;
    let mut settings = before.clone();
    if let Some(name) = &patch.name {
        update.row.rename(name);
    }
    if let Some(metadata) = &patch.metadata {
        update.row.metadata = JsonText::of(metadata);
    }
    patch.apply(&mut settings)?;
    if settings != before {
        update.row.settings = JsonText::of(&settings);
    }
    if !update.is_change() {
        return Ok(shown(update.row.agent(&tiers.0)?));
    }
    guardrail_functions::check(tx, &services.functions, caller, &settings.guardrails, &before.guardrails)?;
    if settings.instructions != before.instructions {
        let checks = services.placeholders.checks(caller.workspace_id());
        checks.check(tx, &settings.instructions, "instructions")?;
    }
    Ok(shown(queries::store_version(tx, caller, update, None)?.agent(&tiers.0)?))
}

/// Delete an agent
///
/// Deletes the agent. Its name can be used for another agent, and its runs and versions are kept. Runs in progress
/// finish. The default agent cannot be deleted: make another agent the default first. Nor can an agent that others use, such as
/// an agent that has it as a tool: the 409 `resource_in_use` lists them in `details.used_by`.
#[operation(delete "/agents/{agentId}", scope = "agents:write")]
pub fn delete_agent(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    uses: State<ObjectUses>,
) -> Result<Deleted<Agent>> {
    let workspace = caller.workspace_id();
    AgentRow::lock_set(tx, workspace)?;
    let row = AgentRow::find_locked(tx, workspace, &agent_id)?;
    if row.is_default {
        let message = "The agent is the workspace's default. Make another agent the default first.";
        return Err(Error::new(Code::ResourceInUse, message).with(
            "details",
            serde_json::json!({ "used_by": [{ "object": "workspace", "id": row.workspace_id }] }),
        ));
    }
    let used_by = uses.0.of(tx, workspace, UsedObject::Agent(agent_id))?;
    if !used_by.is_empty() {
        return Err(in_use("The agent is used. Change what uses it first: see `details.used_by`.", &used_by));
    }
    queries::set_status(tx, agent_id, AgentStatus::Archived)?;
    Ok(Deleted::of("agent", agent_id))
}
