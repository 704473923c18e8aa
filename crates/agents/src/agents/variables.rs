//! Which variables agents refer to.

use super::model::{AgentRow, AgentStatus};
use crate::schema::agents;
use diesel::prelude::*;
use model::{Result, WorkspaceId};
use operation::ports::{VariableReference, VariableUsers, referenced_variables};
use store::Read;

/// The references of agents.
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
                    field: "instructions",
                }
            }));
        }
        Ok(all)
    }
}
