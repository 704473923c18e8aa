//! What reminders do their actions with.

use ports::{AgentRuns, Messenger};
use std::sync::Arc;

/// What reminders do their actions with. A service that operations ask for.
#[derive(Clone)]
pub struct Actions {
    /// The agents, as reminders run them.
    pub agents: Arc<dyn AgentRuns>,
    /// Sending to contacts.
    pub messenger: Messenger,
}
