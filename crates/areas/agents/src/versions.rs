//! Operations on the versions of an agent.

use super::agents_as_tools;
use super::model::{Agent, AgentRow};
use super::queries::{self, VersionRow};
use super::settings::Settings;
use super::tools::{AgentTool, ToolSnapshot};
use model::{AgentId, Caller, Code, Error, Result, Timestamp, WorkspaceId};
use operation::{ExpectedVersion, Json, OptIn, OptInList, Path, Resource, State, Update, Version, operation};
use providers::Tiers;
use serde::Serialize;
use store::{Read, Tx};
use utoipa::ToSchema;

/// A version of an agent. It never changes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "Support", "version": 3, "tools": [], "created_by": "key_01m7w4n5e0k3p8r2v6x9b1d4f7" }))]
pub struct AgentVersion {
    /// Always `agent_version`.
    object: &'static str,
    /// The agent's id.
    agent_id: AgentId,
    /// The version number.
    version: i64,
    /// The agent's name in this version.
    name: String,
    /// The settings in this version.
    #[serde(flatten)]
    settings: Settings,
    /// The tools in this version.
    tools: Vec<AgentTool>,
    /// The key that created the version. `null` if the service created it.
    created_by: Option<String>,
    /// The version that this one restored.
    restored_from: Option<i64>,
    /// When the object was created.
    created_at: Timestamp,
}

impl AgentVersion {
    fn of(row: VersionRow, workspace: WorkspaceId) -> Result<Self> {
        let snapshots: Vec<ToolSnapshot> = row.tools.parse()?;
        let tools = snapshots
            .into_iter()
            .map(|snapshot| snapshot.row(workspace, row.agent_id, row.created_at).tool())
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            object: "agent_version",
            agent_id: row.agent_id,
            version: row.version,
            name: row.name,
            settings: row.settings.parse()?,
            tools,
            created_by: row.key_id,
            restored_from: row.restored_from,
            created_at: row.created_at,
        })
    }
}

/// Earlier versions of the agent
///
/// Lists the agent's versions, newest first. The first one is the current version.
#[operation(get "/agents/{agentId}/versions", scope = "agents:read")]
pub fn list_agent_versions(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    page: OptIn,
) -> Result<OptInList<AgentVersion>> {
    let workspace = caller.workspace_id();
    AgentRow::find(read, workspace, &agent_id)?;
    let rows = VersionRow::list(read, workspace, &agent_id, page.page())?;
    let versions =
        rows.into_iter().map(|row| AgentVersion::of(row, workspace)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(versions, |version| version.version.to_string()))
}

/// One earlier version
///
/// Returns the settings and tools that the agent had in this version. Versions never change.
#[operation(get "/agents/{agentId}/versions/{version}", scope = "agents:read")]
pub fn get_agent_version(
    read: &mut Read,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Path(version): Path<i64>,
) -> Result<Json<AgentVersion>> {
    let workspace = caller.workspace_id();
    AgentRow::find(read, workspace, &agent_id)?;
    Ok(Json(AgentVersion::of(VersionRow::find(read, workspace, &agent_id, version)?, workspace)?))
}

/// Make an earlier version current again
///
/// Creates a new version with the name, settings and tools of the given one. Versions in between are kept. Restoring
/// the current version changes nothing. A version whose tools run agents that were deleted meanwhile, or that would form a
/// cycle with the tools that agents have now, cannot be restored.
#[operation(post "/agents/{agentId}/versions/{version}/restore", scope = "agents:write")]
pub fn restore_agent_version(
    tx: &mut Tx,
    caller: &Caller,
    Path(agent_id): Path<AgentId>,
    Path(version): Path<i64>,
    tiers: State<Tiers>,
) -> Result<Json<Agent>> {
    let workspace = caller.workspace_id();
    AgentRow::lock_set(tx, workspace)?;
    let mut update = Update::<AgentRow>::begin(tx, workspace, &agent_id, ExpectedVersion::default())?;
    let earlier = VersionRow::find(tx, workspace, &agent_id, version)?;
    if version == update.row.version {
        return Ok(Json(update.row.agent(&tiers.0)?));
    }
    let snapshots: Vec<ToolSnapshot> = earlier.tools.parse()?;
    queries::delete_tools(tx, agent_id)?;
    let now = tx.now();
    let tools: Vec<_> =
        snapshots.into_iter().map(|snapshot| snapshot.row(workspace, agent_id, now)).collect();
    let inner = agents_as_tools::agents_of(&tools)?;
    agents_as_tools::check(tx, workspace, agent_id, &inner, "version")?;
    for tool in &tools {
        queries::put_tool(tx, tool)?;
    }
    update.row.rename(&earlier.name);
    update.row.settings = earlier.settings;
    let next =
        queries::store_version(tx, caller, update, Some(version)).map_err(|error| match error.code() {
            Code::DuplicateValue => Error::new(
                Code::DuplicateValue,
                "Another agent of the workspace has the name that this version had.",
            )
            .param("version"),
            _ => error,
        })?;
    Ok(Json(next.agent(&tiers.0)?))
}
