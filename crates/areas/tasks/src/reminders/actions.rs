//! The ports for the actions of reminders.

use ports::{AgentRuns, Messenger, WorkspaceFlows};
use std::sync::Arc;

/// The ports for the actions of reminders. They are a service, so that operations can request them.
#[derive(Clone)]
pub struct Actions {
    /// The port that starts runs of agents.
    pub agents: Arc<dyn AgentRuns>,
    /// The port that sends messages to contacts.
    pub messenger: Messenger,
    /// The port that starts runs of flows.
    pub flows: WorkspaceFlows,
}
