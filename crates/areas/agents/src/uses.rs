//! Agents as users of functions, skills, flows and other agents.

use super::directory::WorkspaceAgents;
use super::model::AgentStatus;
use super::settings::Settings;
use super::tools::{ToolKind, ToolSettings};
use crate::schema::{agent_tools, agents};
use diesel::prelude::*;
use model::{AgentId, FunctionId, JsonText, Result, SkillId, WorkspaceId};
use ports::{LiveAgents, ObjectUse, ObjectUsers, UsedObject};
use store::Read;

/// The implementation of [`ObjectUsers`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentsAsUsers;

impl ObjectUsers for AgentsAsUsers {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        match used {
            UsedObject::Agent(agent) => {
                uses_by_tool(read, workspace, ToolKind::Agent, |tool| tool.agent == Some(agent))
            }
            UsedObject::Function(function) => uses_of_function(read, workspace, function),
            UsedObject::Skill(skill) => uses_of_skill(read, workspace, skill),
            UsedObject::Flow(flow) => uses_by_tool(read, workspace, ToolKind::Flow, |tool| {
                tool.flow.as_ref().is_some_and(|called| called.id == flow)
            }),
        }
    }
}

/// Returns the agents with a tool of this type whose settings are such.
fn uses_by_tool(
    read: &mut Read,
    workspace: WorkspaceId,
    kind: ToolKind,
    is_such: impl Fn(&ToolSettings) -> bool,
) -> Result<Vec<ObjectUse>> {
    let rows: Vec<(AgentId, String, JsonText)> = agent_tools::table
        .inner_join(agents::table.on(agents::id.eq(agent_tools::agent_id)))
        .filter(agent_tools::workspace_id.eq(workspace))
        .filter(agent_tools::kind.eq(kind))
        .filter(agents::status.ne(AgentStatus::Archived))
        .order(agents::id)
        .select((agents::id, agents::name, agent_tools::settings))
        .load(read.connection())?;
    let mut uses: Vec<ObjectUse> = Vec::new();
    for (id, name, settings) in rows {
        let is_known = uses.last().is_some_and(|last| last.id == id.to_string());
        if !is_known && is_such(&settings.parse()?) {
            uses.push(ObjectUse { r#type: "agent", id: id.to_string(), name, version: None });
        }
    }
    Ok(uses)
}

/// Returns the agents with a tool that calls `function` or a guardrail that asks it, each once for each version that it calls.
fn uses_of_function(read: &mut Read, workspace: WorkspaceId, function: FunctionId) -> Result<Vec<ObjectUse>> {
    let rows: Vec<(AgentId, String, JsonText)> = agent_tools::table
        .inner_join(agents::table.on(agents::id.eq(agent_tools::agent_id)))
        .filter(agent_tools::workspace_id.eq(workspace))
        .filter(agent_tools::kind.eq(ToolKind::Function))
        .filter(agents::status.ne(AgentStatus::Archived))
        .order((agents::id, agent_tools::name))
        .select((agents::id, agents::name, agent_tools::settings))
        .load(read.connection())?;
    let mut uses: Vec<ObjectUse> = Vec::new();
    for (id, name, settings) in rows {
        let code = settings.parse::<ToolSettings>()?.code.filter(|code| code.id == function);
        let used =
            code.map(|code| ObjectUse { r#type: "agent", id: id.to_string(), name, version: code.version });
        uses.extend(used.filter(|used| !uses.contains(used)));
    }
    let guarded: Vec<(AgentId, String, JsonText)> = agents::table
        .filter(agents::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .filter(agents::settings.like("%\"function_id\":%"))
        .select((agents::id, agents::name, agents::settings))
        .load(read.connection())?;
    for (id, name, settings) in guarded {
        let settings: Settings = settings.parse()?;
        let used = ObjectUse { r#type: "agent", id: id.to_string(), name, version: None };
        let asks = settings.guardrails.iter().any(|guardrail| guardrail.function_id == Some(function));
        if asks && !uses.contains(&used) {
            uses.push(used);
        }
    }
    uses.sort_by_key(|used| used.id.parse::<i64>().unwrap_or_default());
    Ok(uses)
}

/// Returns the agents that have `skill`.
fn uses_of_skill(read: &mut Read, workspace: WorkspaceId, skill: SkillId) -> Result<Vec<ObjectUse>> {
    let all = WorkspaceAgents.skills(read, workspace)?.into_iter().filter(|one| one.pin.skill == skill);
    let used = all.map(|one| ObjectUse {
        r#type: "agent",
        id: one.agent.to_string(),
        name: one.name,
        version: one.pin.version,
    });
    Ok(used.collect())
}
