//! Run engine: its services, and the events of finished runs.

mod acceptance;
mod caller;
mod completion;
mod lease;
mod metrics;

pub(crate) use acceptance::{Acceptance, Accepted, InputInspection, RunRequest};
pub(crate) use caller::agent_caller;
pub(crate) use completion::Completion;
pub(crate) use metrics::OPEN_RUNS;

use self::metrics::RunMetrics;
use crate::events::RunEvent;
use crate::execution::ActiveRuns;
use crate::run::RunRow;
use action_links::Links;
use agents::VersionReader;
use auth::idempotency::Claims;
use auth::{Directory, Seal, Spending};
use egress::Connector;
use model::{Cause, Chain, Error, EventId, RequestRef, Result, RunId};
use operation::{CauseHeader, LocalCalls};
use ports::{
    BusinessCalendar, ChannelTurns, CollectionDirectory, EnergyMeter, People, SkillLibrary, WorkspaceFlows,
    WorkspaceFunctions, WorkspaceVariables,
};
use prometheus::core::Collector;
use providers::{ModelAnswer, Prompt, ProviderError, TierSetup, Tiers};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{Batches, Db, Tx};
use telemetry::Tracer;

/// Services of the engine.
pub struct RunEngineParts {
    /// The database.
    pub db: Db,
    /// The models.
    pub tiers: Arc<Tiers>,
    /// The keeper of Energy.
    pub meter: Arc<dyn EnergyMeter>,
    /// Outbound HTTP, for tools.
    pub connector: Arc<Connector>,
    /// Opens the tools' credentials.
    pub seal: Arc<Seal>,
    /// Keys and workspaces, for runs that are resumed.
    pub directory: Arc<Directory>,
    /// The links of approval requests.
    pub approval_links: Links,
    /// Cached spending of keys, invalidated when a run is settled.
    pub spending: Arc<Spending>,
    /// The operations of the service, for tools.
    pub operations: LocalCalls,
    /// Marks calls of tools to the service's own address.
    pub causes: CauseHeader,
    /// The variables that agents refer to.
    pub variables: WorkspaceVariables,
    /// The contacts whom agents answer.
    pub people: People,
    /// The collections that tools cover.
    pub collections: CollectionDirectory,
    /// The code functions that tools call.
    pub functions: WorkspaceFunctions,
    /// The flows that tools start.
    pub flows: WorkspaceFlows,
    /// The skills of agents.
    pub skills: SkillLibrary,
    /// Facts and time zones of businesses.
    pub business: Arc<dyn BusinessCalendar>,
    /// Messages of channels, as turns of conversations.
    pub turns: Arc<dyn ChannelTurns>,
    /// Records spans of runs.
    pub tracer: Tracer,
    /// Runtime of runs. It outlives the runtime that serves requests.
    pub runtime: tokio::runtime::Handle,
}

/// Accepts and executes runs. Cheap to clone.
#[derive(Clone)]
pub struct RunEngine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) parts: RunEngineParts,
    /// Runs that are about to be started once, to be accepted, and to end.
    pub(crate) claims: Claims,
    pub(crate) acceptances: Arc<Batches<Acceptance>>,
    pub(crate) completions: Arc<Batches<Completion>>,
    active: Arc<ActiveRuns>,
    metrics: RunMetrics,
    patience_ms: AtomicU64,
}

/// The time that a request waits for its run before the response is 202.
const PATIENCE: Duration = Duration::from_secs(100);

impl RunEngine {
    /// An engine.
    ///
    /// # Errors
    /// Never: names and help texts of metrics are constants.
    pub fn new(parts: RunEngineParts) -> Result<Self> {
        let metrics = RunMetrics::new()?;
        let inner = Inner {
            parts,
            claims: Claims::default(),
            acceptances: Arc::default(),
            completions: Arc::default(),
            active: Arc::default(),
            metrics,
            patience_ms: AtomicU64::new(0),
        };
        let engine = Self(Arc::new(inner));
        engine.set_patience(PATIENCE);
        Ok(engine)
    }

    /// The metrics.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        self.0.metrics.collectors()
    }

    pub(crate) fn tracer(&self) -> &Tracer {
        &self.0.parts.tracer
    }

    /// Calls the model of a tier, for at most the prompt's patience.
    pub(crate) async fn complete(
        &self,
        tier: &TierSetup,
        prompt: Prompt,
    ) -> std::result::Result<ModelAnswer, ProviderError> {
        let asking = tokio::time::timeout(prompt.patience, tier.complete(prompt));
        let result = asking.await.unwrap_or(Err(ProviderError::Timeout));
        self.0.metrics.called(tier, &result);
        result
    }

    /// Sets the time that a request waits for its run before the response is 202. The default is 100 seconds.
    pub fn set_patience(&self, patience: Duration) {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.0.patience_ms.store(millis, Ordering::Relaxed);
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.0.patience_ms.load(Ordering::Relaxed))
    }

    /// The operations of the service, for tools.
    pub(crate) fn operations(&self) -> &LocalCalls {
        &self.0.parts.operations
    }

    pub(crate) fn variables(&self) -> &WorkspaceVariables {
        &self.0.parts.variables
    }

    pub(crate) fn versions(&self) -> VersionReader<'_> {
        let RunEngineParts { skills, functions, flows, .. } = &self.0.parts;
        VersionReader { skills, functions, flows }
    }

    pub(crate) fn turns(&self) -> &dyn ChannelTurns {
        &*self.0.parts.turns
    }

    pub(crate) fn db(&self) -> &Db {
        &self.0.parts.db
    }

    pub(crate) fn tiers(&self) -> &Tiers {
        &self.0.parts.tiers
    }

    pub(crate) fn active(&self) -> &Arc<ActiveRuns> {
        &self.0.active
    }

    /// The number of runs that this process executes.
    pub fn working(&self) -> usize {
        self.active().working()
    }

    /// Waits until this process works on no run: for shutting down.
    pub async fn idle(&self) {
        self.active().idle().await;
    }

    /// Publishes a run's end, with the change that ends it.
    pub(crate) fn emit_end(&self, tx: &mut Tx, row: &RunRow) -> Result<()> {
        if let Some(event) = RunEvent::of_end(row)? {
            let (workspace, cause) = (row.workspace_id, cause_of(row)?);
            match first_end(row)? {
                Some(id) => tx.emit_as(id, workspace, &cause, row.livemode, &event)?,
                None => drop(tx.emit(workspace, &cause, row.livemode, &event)?),
            }
        }
        let (engine, status) = (self.clone(), row.status);
        tx.after_commit(move || engine.0.metrics.ended(status));
        Ok(())
    }
}

/// Returns the cause of the events of a run: the request that created it.
pub(crate) fn cause_of(row: &RunRow) -> Result<Cause> {
    let options = row.options()?;
    Ok(Cause::request(RequestRef {
        id: row.request_id.clone(),
        key_id: row.key_id.clone(),
        idempotency_key: options.idempotency_key,
        trace: options.trace,
    })
    .at(options.chain.or_else(|| started_by(&row.id))))
}

/// Returns the place of a run in its chain of causes. What the run causes is one step further.
pub(crate) fn chain_of(row: &RunRow) -> Result<Option<Chain>> {
    Ok(row.options()?.chain.or_else(|| started_by(&row.id)))
}

/// The id of the event that announces the end of a run which starts a chain of causes. A run that failed may end once more, by
/// another attempt.
fn first_end(row: &RunRow) -> Result<Option<EventId>> {
    let options = row.options()?;
    let starts = options.chain.is_none() && options.attempt_from.is_none();
    Ok(started_by(&row.id).filter(|_| starts).map(|chain| chain.root))
}

/// The chain that a run starts. The run acts before its first event, so the id of the event that will announce its end is known
/// beforehand: that of the run, with another prefix.
fn started_by(run: &RunId) -> Option<Chain> {
    let random = run.as_str().strip_prefix(RunId::PREFIX)?;
    EventId::parse(&format!("{}{random}", EventId::PREFIX)).map(Chain::starting)
}

/// The cause of the error that a worker gets whose run was taken over.
#[derive(Debug)]
struct Superseded;

impl std::fmt::Display for Superseded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another worker took the run over")
    }
}

impl std::error::Error for Superseded {}

/// The error of a run that another worker took over while this one was at it.
pub(crate) fn superseded() -> Error {
    Error::internal(Superseded)
}

pub(crate) fn is_superseded(error: &Error) -> bool {
    error.cause().is_some_and(|cause| cause.downcast_ref::<Superseded>().is_some())
}
