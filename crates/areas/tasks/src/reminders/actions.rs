//! The ports that actions of reminders use.

use ports::{AgentRuns, Messenger};
use std::sync::Arc;

/// The ports that actions of reminders use. A service that operations ask for.
#[derive(Clone)]
pub struct Actions {
    /// Starts runs of agents.
    pub agents: Arc<dyn AgentRuns>,
    /// Sends messages to contacts.
    pub messenger: Messenger,
}
