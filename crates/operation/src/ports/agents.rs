//! Agents, for whoever assigns work to them or lets them run without a request.

use crate::BoxFuture;
use model::{AgentId, KeyId, ReminderId, Result, WorkspaceId};
use std::sync::Arc;
use store::Read;

/// A run that a reminder starts.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The key on whose behalf it runs, and which pays. It must still have `runs:execute`.
    pub key: KeyId,
    /// The agent; `None` for the workspace's default agent.
    pub agent: Option<AgentId>,
    /// The input.
    pub input: String,
    /// The reminder, which the run shows as its trigger.
    pub reminder: ReminderId,
    /// What names this start among all: of several attempts with one name, one makes a run.
    pub once: String,
}

/// Runs of agents, for other groups.
pub trait AgentRuns: Send + Sync {
    /// Makes sure that a run of this agent, or of the default agent, could be started now.
    ///
    /// # Errors
    /// As those of `POST /runs`: `not_found`, `agent_inactive`, `agent_not_configured`.
    fn expect_active(&self, read: &mut Read, workspace: WorkspaceId, agent: Option<AgentId>) -> Result<()>;

    /// Starts a run, which then goes on in the background. Once it was started, starting it again within a day does
    /// nothing.
    ///
    /// # Errors
    /// As those of `POST /runs`; `missing_scope` where the key may not run agents any more, `workspace_blocked`.
    fn start(&self, run: StartRun) -> BoxFuture<Result<()>>;
}

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
