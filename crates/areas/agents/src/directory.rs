//! The port by which other groups look up agents.

use super::model::{AgentRow, AgentStatus};
use super::tools::ToolRow;
use crate::schema::{agent_tools, agents};
use diesel::prelude::*;
use model::{AgentId, Result, WorkspaceId};
use ports::{AgentSkill, LiveAgents};
use std::collections::BTreeSet;
use store::Read;

/// The implementation of [`LiveAgents`].
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceAgents;

impl LiveAgents for WorkspaceAgents {
    fn among(&self, read: &mut Read, workspace: WorkspaceId, ids: &[AgentId]) -> Result<Vec<AgentId>> {
        Ok(agents::table
            .filter(agents::workspace_id.eq(workspace))
            .filter(agents::id.eq_any(ids))
            .filter(agents::status.ne(AgentStatus::Archived))
            .select(agents::id)
            .load(read.connection())?)
    }

    fn skills(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<AgentSkill>> {
        let rows: Vec<AgentRow> = agents::table
            .filter(agents::workspace_id.eq(workspace))
            .filter(agents::status.ne(AgentStatus::Archived))
            .filter(agents::settings.like("%\"skill_id\":%"))
            .order(agents::id)
            .select(AgentRow::as_select())
            .load(read.connection())?;
        let mut all = Vec::new();
        for row in rows {
            all.extend(row.settings()?.skills.into_iter().map(|skill| AgentSkill {
                agent: row.id,
                name: row.name.clone(),
                is_active: row.status == AgentStatus::Active,
                pin: skill.pin(),
            }));
        }
        Ok(all)
    }

    fn tool_names(&self, read: &mut Read, workspace: WorkspaceId) -> Result<BTreeSet<String>> {
        let rows: Vec<ToolRow> = agent_tools::table
            .inner_join(agents::table.on(agents::id.eq(agent_tools::agent_id)))
            .filter(agent_tools::workspace_id.eq(workspace))
            .filter(agents::status.ne(AgentStatus::Archived))
            .select(ToolRow::as_select())
            .load(read.connection())?;
        let mut names = BTreeSet::new();
        for row in rows {
            names.extend(row.callables(false)?.into_iter().map(|callable| callable.spec.name));
            names.insert(row.name);
        }
        Ok(names)
    }
}
