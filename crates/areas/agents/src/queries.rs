//! Queries of agents.

use super::model::{AgentRow, AgentStatus};
use super::settings::Settings;
use super::tools::{ToolKind, ToolRow, ToolSettings};
use crate::schema::{agent_tools, agent_versions, agents};
use diesel::prelude::*;
use model::{AgentId, Caller, Code, Error, JsonText, Metadata, Result, Timestamp, WorkspaceId};
use std::collections::HashSet;
use store::{OneRow, OptInPage, Read, Tx, each, lock_row};

/// The most agents of a workspace.
const MOST_AGENTS: i64 = 1000;

/// A live agent of the workspace.
///
/// # Errors
/// `not_found`.
pub fn live_agent(read: &mut Read, workspace: WorkspaceId, id: AgentId) -> Result<AgentRow> {
    agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::id.eq(id))
        .filter(agents::status.ne(AgentStatus::Archived))
        .first(read.connection())
        .or_not_found("agent")
}

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

/// A live agent, locked on PostgreSQL until the transaction ends, so that two changes cannot make one version.
pub(super) fn locked_agent(tx: &mut Tx, workspace: WorkspaceId, id: AgentId) -> Result<AgentRow> {
    lock_row!(
        tx,
        agents::table.filter(agents::workspace_id.eq(workspace)).filter(agents::id.eq(id)).select(agents::id),
        for_no_key_update
    );
    live_agent(tx, workspace, id)
}

/// Locks the set, the names and the default of the agents of a workspace until the transaction ends. Code that also locks an
/// agent takes this lock first. SQLite has only one writer and needs no lock.
pub(super) fn lock_names(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("agents {workspace}"))
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

/// Returns agents with their tools, by workspace and id, or as the default of the workspace. Agents that do not exist or are not
/// active are left out.
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
    /// Its tools, in the order of their names.
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

/// The columns of an agent that callers can change.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = agents)]
struct Content<'a> {
    name: &'a str,
    name_key: String,
    settings: JsonText,
    metadata: &'a JsonText,
}

impl<'a> Content<'a> {
    fn new(name: &'a str, settings: &Settings, metadata: &'a JsonText) -> Self {
        Self { name, name_key: name.to_lowercase(), settings: JsonText::of(settings), metadata }
    }
}

/// An agent to be inserted with its first version.
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

/// Inserts an agent, which is version 1. The first agent of a workspace becomes its default.
///
/// # Errors
/// `duplicate_value`, `limit_reached`.
pub fn insert(tx: &mut Tx, workspace: WorkspaceId, fresh: &Fresh<'_>) -> Result<AgentRow> {
    lock_names(tx, workspace)?;
    let now = tx.now();
    let name = fresh.name.trim();
    refuse_taken_name(tx, workspace, name, None)?;
    let live: i64 = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .count()
        .get_result(tx.connection())?;
    if live >= MOST_AGENTS {
        return Err(Error::new(Code::LimitReached, format!("A workspace has at most {MOST_AGENTS} agents.")));
    }
    let has_default = default_agent(tx, workspace)?.is_some();
    Ok(diesel::insert_into(agents::table)
        .values((
            agents::workspace_id.eq(workspace),
            Content::new(name, fresh.settings, &JsonText::of(fresh.metadata)),
            agents::status.eq(fresh.status),
            agents::is_default.eq(!has_default),
            agents::version.eq(1),
            agents::created_at.eq(now),
            agents::updated_at.eq(now),
        ))
        .returning(agents::all_columns)
        .get_result(tx.connection())?)
}

/// The names of a workspace's agents, in lower case: at most as many as it may have agents.
pub(super) fn taken_names(read: &mut Read, workspace: WorkspaceId) -> Result<HashSet<String>> {
    let names: Vec<String> = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .select(agents::name_key)
        .load(read.connection())?;
    Ok(names.into_iter().collect())
}

/// # Errors
/// `duplicate_value`.
pub(super) fn refuse_taken_name(
    read: &mut Read,
    workspace: WorkspaceId,
    name: &str,
    except: Option<AgentId>,
) -> Result<()> {
    let holder: Option<AgentId> = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::name_key.eq(name.to_lowercase()))
        .filter(agents::status.ne(AgentStatus::Archived))
        .select(agents::id)
        .first(read.connection())
        .optional()?;
    match holder.filter(|holder| Some(*holder) != except) {
        None => Ok(()),
        Some(holder) => {
            Err(Error::duplicate("name", "Another agent of the workspace has this name.", holder))
        }
    }
}

/// Writes a changed agent as its next version.
pub(super) fn write_next(
    tx: &mut Tx,
    row: &AgentRow,
    name: &str,
    settings: &Settings,
    metadata: &JsonText,
) -> Result<AgentRow> {
    let now = tx.now();
    Ok(diesel::update(agents::table.find(row.id))
        .set((
            Content::new(name, settings, metadata),
            agents::version.eq(row.version + 1),
            agents::updated_at.eq(now),
        ))
        .returning(agents::all_columns)
        .get_result(tx.connection())?)
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
    let now = tx.now();
    diesel::insert_into(agent_versions::table)
        .values((
            agent_versions::agent_id.eq(row.id),
            agent_versions::version.eq(row.version),
            agent_versions::workspace_id.eq(row.workspace_id),
            agent_versions::name.eq(&row.name),
            agent_versions::settings.eq(&row.settings),
            agent_versions::tools.eq(tools),
            agent_versions::key_id.eq(caller.map(|caller| caller.key.id.as_str())),
            agent_versions::restored_from.eq(restored_from),
            agent_versions::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
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

/// Attaches a tool without the checks of a request. Call [`keep_version`] afterwards.
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

/// A version as it is stored.
#[derive(Debug, Clone, Queryable)]
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

impl VersionRow {
    fn tools(&self) -> Result<Vec<ToolRow>> {
        let snapshots: Vec<super::tools::ToolSnapshot> = self.tools.parse()?;
        let rows = snapshots.into_iter();
        Ok(rows.map(|tool| tool.row(self.workspace_id, self.agent_id, self.created_at)).collect())
    }
}

pub(super) fn version(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    version: i64,
) -> Result<VersionRow> {
    agent_versions::table
        .filter(agent_versions::workspace_id.eq(workspace))
        .filter(agent_versions::agent_id.eq(agent))
        .filter(agent_versions::version.eq(version))
        .first(read.connection())
        .or_not_found("version")
}

pub(super) fn versions(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    page: &OptInPage,
) -> Result<Vec<VersionRow>> {
    let mut query = agent_versions::table
        .filter(agent_versions::workspace_id.eq(workspace))
        .filter(agent_versions::agent_id.eq(agent))
        .order(agent_versions::version.desc())
        .limit(page.fetch())
        .into_boxed();
    if let Some(after) = page.after::<i64>()? {
        query = query.filter(agent_versions::version.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Returns the name of the agent in a version, and its tools.
///
/// # Errors
/// `not_found`.
pub fn version_named(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    wanted: i64,
) -> Result<(String, Vec<ToolRow>)> {
    let row = version(read, workspace, agent, wanted)?;
    Ok((row.name.clone(), row.tools()?))
}

/// Returns the settings for a run of a version, and its tools. The monthly Energy limit is that of the current version, so that
/// runs of an old version cannot exceed it.
///
/// # Errors
/// `not_found`.
pub fn version_settings(
    read: &mut Read,
    workspace: WorkspaceId,
    agent: AgentId,
    wanted: i64,
) -> Result<(Settings, Vec<ToolRow>)> {
    let row = version(read, workspace, agent, wanted)?;
    let mut settings: Settings = row.settings.parse()?;
    let current: JsonText = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::id.eq(agent))
        .select(agents::settings)
        .get_result(read.connection())?;
    settings.energy_limit_monthly = current.parse::<Settings>()?.energy_limit_monthly;
    Ok((settings, row.tools()?))
}
