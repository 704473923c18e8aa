//! References of agents to variables.

use super::model::{AgentRow, AgentStatus};
use super::placeholders::texts;
use super::tools::ToolSettings;
use crate::schema::{agent_tools, agents};
use diesel::prelude::*;
use model::{AgentId, JsonText, Result, WorkspaceId};
use ports::{VariableReference, VariableUsers, referenced_variables};
use serde_json::Value;
use store::Read;

/// Agents as users of variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentVariables;

impl VariableUsers for AgentVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let rows: Vec<AgentRow> = agents::table
            .filter(agents::workspace_id.eq(workspace))
            .filter(agents::status.ne(AgentStatus::Archived))
            .filter(agents::settings.like("%vars.%"))
            .order(agents::id)
            .load(read.connection())?;
        let mut all = Vec::new();
        for row in rows {
            let settings = row.settings()?;
            all.extend(referenced_variables(&settings.instructions).into_iter().map(|key| {
                VariableReference {
                    key: key.to_owned(),
                    object: "agent",
                    id: row.id.to_string(),
                    name: row.name.clone(),
                    field: "instructions".into(),
                }
            }));
        }
        all.extend(references_of_tools(read, workspace)?);
        Ok(all)
    }
}

/// Returns the references in headers and fixed arguments of tools. Headers are sealed, so the variables in them are
/// stored next to them.
fn references_of_tools(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
    let rows: Vec<(AgentId, String, JsonText)> = agent_tools::table
        .inner_join(agents::table.on(agents::id.eq(agent_tools::agent_id)))
        .filter(agent_tools::workspace_id.eq(workspace))
        .filter(agents::status.ne(AgentStatus::Archived))
        .filter(
            agent_tools::settings.like("%\"header_variables\":%").or(agent_tools::settings.like("%vars.%")),
        )
        .order((agent_tools::agent_id, agent_tools::name))
        .select((agents::id, agents::name, agent_tools::settings))
        .load(read.connection())?;
    let mut all: Vec<VariableReference> = Vec::new();
    for (id, name, settings) in rows {
        let tool: ToolSettings = settings.parse()?;
        let fixed = Value::Object(tool.fixed_arguments);
        let fixed = texts(&fixed).into_iter().flat_map(referenced_variables).map(str::to_owned);
        for key in tool.header_variables.into_iter().chain(fixed) {
            let reference = VariableReference {
                key,
                object: "agent",
                id: id.to_string(),
                name: name.clone(),
                field: "tools".into(),
            };
            if !all.contains(&reference) {
                all.push(reference);
            }
        }
    }
    Ok(all)
}
