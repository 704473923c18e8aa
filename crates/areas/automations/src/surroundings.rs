//! What automations refer to outside the area.

use ports::{
    AgentDirectory, AgentRuns, BusinessCalendar, CollectionDirectory, DatedRecords, People, WorkspaceFlows,
    WorkspaceFunctions,
};
use std::sync::Arc;

/// What automations refer to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) flows: WorkspaceFlows,
    pub(crate) agents: Arc<dyn AgentRuns>,
    pub(crate) agent_directory: AgentDirectory,
    pub(crate) functions: WorkspaceFunctions,
    pub(crate) collections: CollectionDirectory,
    pub(crate) people: People,
    pub(crate) business: Arc<dyn BusinessCalendar>,
    pub(crate) dated: Vec<Arc<dyn DatedRecords>>,
}
