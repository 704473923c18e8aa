//! Queries on agents.

use super::model::{AgentRow, AgentStatus};
use super::settings::Settings;
use super::tools::{ToolKind, ToolRow, ToolSettings};
use crate::schema::{agent_tools, agent_versions, agents};
use diesel::prelude::*;
use model::{AgentId, Caller, JsonText, Metadata, Result, Timestamp, WorkspaceId};
use operation::{Resource, Update, Version};
use std::collections::HashSet;
use store::{OptInPage, Read, Tx, each};

/// Returns whether an agent exists and is active.
///
/// # Errors
/// `internal_error`.
pub fn is_active(read: &mut Read, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
    let active = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::id.eq(id))
        .filter(agents::status.eq(AgentStatus::Active))
        .select(agents::id);
    Ok(diesel::select(diesel::dsl::exists(active)).get_result(read.connection())?)
}

/// Returns the default agent of a workspace.
///
/// # Errors
/// `internal_error`.
pub fn default_agent(read: &mut Read, workspace: WorkspaceId) -> Result<Option<AgentRow>> {
    Ok(agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::is_default.eq(true))
        .first(read.connection())
        .optional()?)
}

/// Returns the active agents with these ids in these workspaces, and the active default agents of the workspaces, all
/// with their tools. Two queries load them all.
///
/// # Errors
/// `internal_error`.
pub fn active_agents(read: &mut Read, asked: &[(WorkspaceId, Option<AgentId>)]) -> Result<Vec<ActiveAgent>> {
    let workspaces: Vec<WorkspaceId> = asked.iter().map(|(workspace, _)| *workspace).collect();
    let ids: Vec<AgentId> = asked.iter().filter_map(|(_, id)| *id).collect();
    let found: Vec<AgentRow> = agents::table
        .filter(agents::workspace_id.eq_any(workspaces))
        .filter(agents::status.eq(AgentStatus::Active))
        .filter(agents::is_default.eq(true).or(agents::id.eq_any(ids)))
        .load(read.connection())?;
    let ids: Vec<AgentId> = found.iter().map(|agent| agent.id).collect();
    let tools: Vec<ToolRow> = agent_tools::table
        .filter(agent_tools::agent_id.eq_any(ids))
        .order(agent_tools::name.asc())
        .load(read.connection())?;
    let with_tools = |row: AgentRow| {
        let tools = tools.iter().filter(|tool| tool.agent_id == row.id).cloned().collect();
        ActiveAgent { row, tools }
    };
    Ok(found.into_iter().map(with_tools).collect())
}

/// An active agent with its tools.
pub struct ActiveAgent {
    /// The agent.
    pub row: AgentRow,
    /// The tools, sorted by name.
    pub tools: Vec<ToolRow>,
}

pub(super) fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    status: Option<AgentStatus>,
    page: &OptInPage,
) -> Result<Vec<AgentRow>> {
    let mut query = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .order(agents::id.desc())
        .limit(page.fetch())
        .into_boxed();
    if let Some(status) = status {
        query = query.filter(agents::status.eq(status));
    }
    if let Some(after) = page.after::<AgentId>()? {
        query = query.filter(agents::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// The values of a new agent.
pub struct Fresh<'a> {
    /// The name.
    pub name: &'a str,
    /// Draft or active.
    pub status: AgentStatus,
    /// The settings.
    pub settings: &'a Settings,
    /// Your own key-value data.
    pub metadata: &'a Metadata,
}

/// Inserts an agent as version 1. The first agent of a workspace becomes its default.
///
/// # Errors
/// `duplicate_value`, `limit_reached`.
pub fn insert(tx: &mut Tx, workspace: WorkspaceId, fresh: &Fresh<'_>) -> Result<AgentRow> {
    AgentRow::lock_set(tx, workspace)?;
    let now = tx.now();
    let mut row = AgentRow {
        id: AgentId(0),
        workspace_id: workspace,
        name: String::new(),
        name_key: String::new(),
        status: fresh.status,
        is_default: default_agent(tx, workspace)?.is_none(),
        version: 1,
        settings: JsonText::of(fresh.settings),
        metadata: JsonText::of(fresh.metadata),
        created_at: now,
        updated_at: now,
    };
    row.rename(fresh.name);
    row.create(tx)
}

/// Returns the names of a workspace's agents, in lower case. There are at most 1,000.
pub(super) fn taken_names(read: &mut Read, workspace: WorkspaceId) -> Result<HashSet<String>> {
    let names: Vec<String> = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .select(agents::name_key)
        .load(read.connection())?;
    Ok(names.into_iter().collect())
}

/// Stores a changed agent as its next version.
///
/// # Errors
/// `duplicate_value`.
pub(super) fn store_version(
    tx: &mut Tx,
    caller: &Caller,
    update: Update<AgentRow>,
    restored_from: Option<i64>,
) -> Result<AgentRow> {
    let row = update.store(tx)?;
    keep_version(tx, Some(caller), &row, restored_from)?;
    Ok(row)
}

pub(super) fn set_status(tx: &mut Tx, id: AgentId, status: AgentStatus) -> Result<AgentRow> {
    let now = tx.now();
    Ok(diesel::update(agents::table.find(id))
        .set((agents::status.eq(status), agents::updated_at.eq(now)))
        .returning(agents::all_columns)
        .get_result(tx.connection())?)
}

pub(super) fn set_default(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<AgentRow> {
    diesel::update(
        agents::table.filter(agents::workspace_id.eq(workspace)).filter(agents::is_default.eq(true)),
    )
    .set(agents::is_default.eq(false))
    .execute(tx.connection())?;
    Ok(diesel::update(agents::table.find(id))
        .set(agents::is_default.eq(true))
        .returning(agents::all_columns)
        .get_result(tx.connection())?)
}

/// Stores the current state of an agent as a version.
///
/// # Errors
/// `internal_error`.
pub fn keep_version(
    tx: &mut Tx,
    caller: Option<&Caller>,
    row: &AgentRow,
    restored_from: Option<i64>,
) -> Result<()> {
    let tools = JsonText::of(&tools(tx, row.id)?.iter().map(ToolRow::snapshot).collect::<Vec<_>>());
    let version = VersionRow {
        agent_id: row.id,
        version: row.version,
        workspace_id: row.workspace_id,
        name: row.name.clone(),
        settings: row.settings.clone(),
        tools,
        key_id: caller.map(|caller| caller.key.id.to_string()),
        restored_from,
        created_at: tx.now(),
    };
    version.insert(tx)
}

/// Returns the tools of an agent, by name.
///
/// # Errors
/// `internal_error`.
pub fn tools(read: &mut Read, agent: AgentId) -> Result<Vec<ToolRow>> {
    Ok(agent_tools::table
        .filter(agent_tools::agent_id.eq(agent))
        .order(agent_tools::name.asc())
        .load(read.connection())?)
}

/// Attaches a tool without the checks of a request. The caller has to call [`keep_version`] afterwards.
///
/// # Errors
/// `internal_error`.
pub fn give_tool(
    tx: &mut Tx,
    agent: &AgentRow,
    name: &str,
    kind: ToolKind,
    settings: &ToolSettings,
) -> Result<()> {
    let now = tx.now();
    let row = ToolRow {
        agent_id: agent.id,
        name: name.to_owned(),
        workspace_id: agent.workspace_id,
        kind,
        settings: JsonText::of(settings),
        created_at: now,
        updated_at: now,
    };
    put_tool(tx, &row)
}

pub(super) fn put_tool(tx: &mut Tx, row: &ToolRow) -> Result<()> {
    each!(tx.connection(), |connection| diesel::insert_into(agent_tools::table)
        .values(row)
        .on_conflict((agent_tools::agent_id, agent_tools::name))
        .do_update()
        .set((
            agent_tools::kind.eq(&row.kind),
            agent_tools::settings.eq(&row.settings),
            agent_tools::updated_at.eq(row.updated_at),
        ))
        .execute(connection))?;
    Ok(())
}

pub(super) fn delete_tool(tx: &mut Tx, agent: AgentId, name: &str) -> Result<bool> {
    Ok(diesel::delete(agent_tools::table.find((agent, name))).execute(tx.connection())? > 0)
}

pub(super) fn delete_tools(tx: &mut Tx, agent: AgentId) -> Result<()> {
    diesel::delete(agent_tools::table.filter(agent_tools::agent_id.eq(agent))).execute(tx.connection())?;
    Ok(())
}

/// A row of `agent_versions`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = agent_versions)]
pub(super) struct VersionRow {
    pub(super) agent_id: AgentId,
    pub(super) version: i64,
    workspace_id: WorkspaceId,
    pub(super) name: String,
    pub(super) settings: JsonText,
    pub(super) tools: JsonText,
    pub(super) key_id: Option<String>,
    pub(super) restored_from: Option<i64>,
    pub(super) created_at: Timestamp,
}

operation::versions! { VersionRow, agent_versions, agent_id: AgentId }

impl VersionRow {
    fn tools(&self) -> Result<Vec<ToolRow>> {
        let snapshots: Vec<super::tools::ToolSnapshot> = self.tools.parse()?;
        let rows = snapshots.into_iter();
        Ok(rows.map(|tool| tool.row(self.workspace_id, self.agent_id, self.created_at)).collect())
    }
}

/// Returns the name that the agent had in a version, and its tools.
///
/// # Errors
/// `not_found`.
pub fn version_named(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    wanted: i64,
) -> Result<(String, Vec<ToolRow>)> {
    let row = VersionRow::find(read, workspace, &agent, wanted)?;
    Ok((row.name.clone(), row.tools()?))
}

/// Returns the settings and the tools for a run of a version. The monthly Energy limit is that of the current
/// version, so that runs of an old version cannot exceed it.
///
/// # Errors
/// `not_found`.
pub fn version_settings(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    wanted: i64,
) -> Result<(Settings, Vec<ToolRow>)> {
    let row = VersionRow::find(read, workspace, &agent, wanted)?;
    let mut settings: Settings = row.settings.parse()?;
    let current: JsonText = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::id.eq(agent))
        .select(agents::settings)
        .get_result(read.connection())?;
    settings.energy_limit_monthly = current.parse::<Settings>()?.energy_limit_monthly;
    Ok((settings, row.tools()?))
}
