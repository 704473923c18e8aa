//! The engine of flows.

use auth::{Directory, Seal};
use egress::Connector;
use model::Result;
use operation::{BaseUrl, CauseHeader, LocalCalls, Services};
use ports::{AgentRuns, BusinessCalendar, People, WorkspaceFunctions, WorkspaceVariables};
use sandbox::Sandbox;
use std::sync::Arc;
use store::Db;

/// Services of the engine.
pub(crate) struct EngineParts {
    pub(crate) db: Db,
    /// The operations of the service, which most nodes call.
    pub(crate) operations: LocalCalls,
    /// Keys and workspaces.
    pub(crate) directory: Arc<Directory>,
    pub(crate) people: People,
    pub(crate) variables: WorkspaceVariables,
    pub(crate) functions: WorkspaceFunctions,
    pub(crate) agents: Arc<dyn AgentRuns>,
    pub(crate) business: Arc<dyn BusinessCalendar>,
    pub(crate) sandbox: Sandbox,
    /// Outbound HTTP.
    pub(crate) connector: Arc<Connector>,
    /// Marks calls to the service's own address.
    pub(crate) causes: CauseHeader,
    pub(crate) seal: Arc<Seal>,
    pub(crate) base_url: String,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl EngineParts {
    pub(crate) fn of(services: &Services) -> Result<Self> {
        let BaseUrl(base_url) = services.cloned()?;
        Ok(Self {
            db: services.cloned()?,
            operations: services.cloned()?,
            directory: services.get()?,
            people: services.cloned()?,
            variables: services.cloned()?,
            functions: services.cloned()?,
            agents: services.cloned()?,
            business: services.cloned()?,
            sandbox: services.cloned()?,
            connector: services.get()?,
            causes: services.cloned()?,
            seal: services.get()?,
            base_url,
            runtime: services.cloned()?,
        })
    }
}

/// Executes runs. Cheap to clone.
#[derive(Clone)]
pub struct FlowEngine(pub(crate) Arc<EngineParts>);

impl FlowEngine {
    pub(crate) fn new(parts: EngineParts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.db
    }
}
