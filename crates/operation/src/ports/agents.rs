//! The agents of a workspace, for whoever assigns work to them.

use model::{AgentId, Result, WorkspaceId};
use std::sync::Arc;
use store::Read;

/// The agents of all workspaces. The group that keeps them implements it.
pub trait LiveAgents: Send + Sync {
    /// Those of the workspace's agents that have one of these ids and were not deleted, in no order.
    ///
    /// # Errors
    /// When the database fails.
    fn among(&self, read: &mut Read, workspace: WorkspaceId, ids: &[AgentId]) -> Result<Vec<AgentId>>;
}

/// The agents of all workspaces. A service that operations ask for.
#[derive(Clone)]
pub struct AgentDirectory(Arc<dyn LiveAgents>);

impl AgentDirectory {
    /// The directory of these agents.
    pub fn new(agents: impl LiveAgents + 'static) -> Self {
        Self(Arc::new(agents))
    }

    /// Whether the workspace has an agent with this id that was not deleted.
    ///
    /// # Errors
    /// When the database fails.
    pub fn has(&self, read: &mut Read, workspace: WorkspaceId, id: AgentId) -> Result<bool> {
        Ok(!self.0.among(read, workspace, &[id])?.is_empty())
    }
}
