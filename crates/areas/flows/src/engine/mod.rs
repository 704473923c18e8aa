//! The engine of flows: it claims runs that have work, and drives each to its end or to where it waits.

mod answers;
pub(crate) mod claim;
mod commit;
pub(crate) mod content;
mod drive;
mod end;
pub(crate) mod metrics;
pub(crate) mod secrets;
mod serve;
mod values;
mod waiters;

pub(crate) use drive::cause_of;
pub use serve::Serving;

use action_links::Links;
use auth::{Directory, Seal};
use content::Contents;
use egress::Connector;
use model::Result;
use operation::{BaseUrl, CauseHeader, LocalCalls, Services};
use ports::{AgentRuns, BusinessCalendar, People, WorkspaceFunctions, WorkspaceVariables};
use std::sync::Arc;
use store::{Db, Tx};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use waiters::Waiters;

/// How many runs a process executes at a time.
const MAX_DRIVES: usize = 256;

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
    /// Outbound HTTP.
    pub(crate) connector: Arc<Connector>,
    /// Marks calls to the service's own address.
    pub(crate) causes: CauseHeader,
    pub(crate) seal: Arc<Seal>,
    /// The links by which people decide.
    pub(crate) links: Links,
    pub(crate) runtime: tokio::runtime::Handle,
    contents: Contents,
    permits: Arc<Semaphore>,
    wake: Notify,
    waiters: Waiters,
}

impl EngineParts {
    pub(crate) fn of(services: &Services) -> Result<Self> {
        let BaseUrl(base_url) = services.cloned()?;
        let seal: Arc<Seal> = services.get()?;
        Ok(Self {
            db: services.cloned()?,
            operations: services.cloned()?,
            directory: services.get()?,
            people: services.cloned()?,
            variables: services.cloned()?,
            functions: services.cloned()?,
            agents: services.cloned()?,
            business: services.cloned()?,
            connector: services.get()?,
            causes: services.cloned()?,
            links: Links::new(seal.clone(), &base_url, "/flow-approvals/", "flow-approval"),
            seal,
            runtime: services.cloned()?,
            contents: Contents::default(),
            permits: Arc::new(Semaphore::new(MAX_DRIVES)),
            wake: Notify::new(),
            waiters: Waiters::default(),
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

    /// A place for a run in this process, if one is free.
    pub(crate) fn reserve(&self) -> Option<OwnedSemaphorePermit> {
        self.0.permits.clone().try_acquire_owned().ok()
    }

    /// Lets this process look for runs that have work.
    pub(crate) fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// The same, once the transaction has committed.
    pub(crate) fn wake_after(&self, tx: &mut Tx) {
        let engine = self.clone();
        tx.after_commit(move || engine.wake());
    }
}
