//! The port by which other groups look up agents.

use super::model::AgentStatus;
use crate::schema::agents;
use diesel::prelude::*;
use model::{AgentId, Result, WorkspaceId};
use ports::LiveAgents;
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
}
