//! The composition: which areas there are, and what they are handed.

use crate::process;
use crate::traces::Traces;
use agents::RunEngine;
use agents::providers::Tiers;
use agents::runs::{RunDirectory, RunEngineParts};
use auth::{Directory, Quotas, RateWindows, Seal, SealedTable, Spending};
use billing::{BillingSettings, Ledger};
use channels::{BoundedCallbacks, Keeping, Network, Transcriber, Uploads, Wakes, WorkerParts, Workers};
use chatnet::Chatnet;
use egress::Connector;
use events::inbound::{Receiver, ReceiverParts};
use events::{Deliveries, EventRetention, EventsParts};
use files::{Files, Objects};
use jobs::{Job, Runner};
use model::{Error, Result};
use operation::ports::{
    AutoAssignment, CollectionDirectory, ContactUses, FileUses, LinkDirectory, OpenWorkDirectory,
    VariableUserDirectory, WorkspaceVariables,
};
use operation::{
    Areas, BoundedRequestLog, Group, Limits, LocalCalls, Metrics, Pipeline, RawRoute, Registry, RequestLog,
    RequestMetrics, Services, TableGauge,
};
use prometheus::core::Collector;
use records::activity::BoundedActivity;
use records::shape::{Kind, Shapes};
use rest::{Api, Contracts, Home, Readiness};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::{BoundedLog, Logs, Retention};
use tokio::sync::watch;
use transfer::imports::Target;

/// The version of the contract: that of the newest heading in CHANGELOG.md.
pub const VERSION: &str = "v0.28.0";

/// The areas of all groups, in the order of the published documents.
const AREAS: [Areas; 7] = [
    billing::identity,
    agents::areas,
    billing::areas,
    data::areas,
    crm::areas,
    channels::areas,
    events::areas,
];

/// All areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn registry() -> Result<Registry> {
    AREAS.into_iter().try_fold(Registry::new(), |registry, add| add(registry))
}

/// The kinds of records of all groups.
fn kinds() -> [&'static Kind; 3] {
    [&data::items::ITEMS, &crm::contacts::CONTACTS, &crm::tasks::TASKS]
}

/// What imports write the records of all groups with.
fn import_targets() -> Vec<Arc<dyn Target>> {
    data::import_targets().into_iter().chain(crm::import_targets()).collect()
}

/// The tables of all groups with sealed values. Nothing can be sealed for others.
const SEALED: [&[&SealedTable]; 5] =
    [auth::SEALED, agents::SEALED, data::SEALED, channels::SEALED, events::SEALED];

/// The tables of all groups with sealed values.
pub fn sealed_tables() -> impl Iterator<Item = &'static SealedTable> {
    SEALED.into_iter().flatten().copied()
}

/// How long the logs of the service are kept, and up to which size.
#[derive(Debug, Clone, Copy)]
pub struct LogRetention {
    /// The request log.
    pub requests: Retention,
    /// The activity of items. Collections may keep theirs for a shorter time.
    pub activity: Retention,
    /// Callbacks of chat networks.
    pub callbacks: Retention,
    /// Events, deliveries and received requests.
    pub events: EventRetention,
}

impl LogRetention {
    /// The logs themselves, for trimming them and for showing their sizes.
    pub fn logs(self) -> Logs {
        let own: [Arc<dyn BoundedLog>; 3] = [
            Arc::new(BoundedRequestLog(self.requests)),
            Arc::new(BoundedActivity(self.activity)),
            Arc::new(BoundedCallbacks(self.callbacks)),
        ];
        Logs::new(own.into_iter().chain(self.events.logs()))
    }
}

impl Default for LogRetention {
    fn default() -> Self {
        let of_days = Retention::of_days;
        Self {
            requests: of_days(30),
            activity: of_days(3_650),
            callbacks: of_days(14),
            events: EventRetention::default(),
        }
    }
}

/// What a service is made of. Tests hand in a database of their own, scripted models and short waits.
pub struct ServiceParts {
    /// The database, migrated.
    pub db: Db,
    /// The models.
    pub tiers: Tiers,
    /// Outbound HTTP.
    pub connector: Connector,
    /// The same to the chat network, where that is reached under another policy.
    pub network_connector: Option<Connector>,
    /// Seals secrets.
    pub seal: Seal,
    /// Where the bytes of files are.
    pub objects: Objects,
    /// Rate windows.
    pub rates: RateWindows,
    /// How the world reaches the service, without `/api/v1`.
    pub base_url: String,
    /// What the installation set.
    pub limits: Limits,
    /// How long logs are kept.
    pub retention: LogRetention,
    /// What transcribes voice notes.
    pub transcriber: Option<Arc<dyn Transcriber>>,
    /// Records spans.
    pub traces: Traces,
    /// Where runs live. It outlives the HTTP server.
    pub runtime: tokio::runtime::Handle,
}

/// A service that is put together. Faces use its pipeline; `stop` ends what goes on in the background.
pub struct Service {
    /// Runs requests.
    pub pipeline: Arc<Pipeline>,
    /// The published documents.
    pub contracts: Arc<Contracts>,
    /// What is served beside the API.
    pub raw_routes: Arc<[Arc<dyn RawRoute>]>,
    /// Drives runs.
    pub engine: RunEngine,
    /// Runs jobs. Not started: `serve` starts it, tests run what is due by hand.
    pub jobs: Runner,
    /// Places events in the log and delivers them. Not started either.
    pub deliveries: Deliveries,
    /// Talks to contacts. Not started either.
    pub channels: Workers,
    /// Whether requests should come here.
    pub readiness: Arc<Readiness>,
    /// What operators watch.
    pub metrics: Arc<Metrics>,
    /// The logs that have a size.
    pub logs: Logs,
    stop: watch::Sender<bool>,
    log_writer: tokio::task::JoinHandle<()>,
    /// Keeps other processes from serving the same SQLite file.
    pub(crate) held: Option<File>,
}

impl Service {
    /// Puts a service together. Needs a tokio runtime, on which the request log is written.
    ///
    /// # Errors
    /// When two operations claim the same address or id, or two jobs the same name.
    #[expect(clippy::too_many_lines, reason = "one list of everything that the service is made of")]
    pub fn new(parts: ServiceParts) -> Result<Self> {
        let ServiceParts {
            db,
            tiers,
            connector,
            network_connector,
            seal,
            objects,
            rates,
            base_url,
            limits,
            retention,
            transcriber,
            traces,
            runtime,
        } = parts;
        let registry = Arc::new(registry()?);
        let contracts = Contracts::new(registry.clone(), VERSION);
        let directory = Arc::new(Directory::new(db.clone()).counting_contacts(crm::contacts::count_up_to));
        let spending = Arc::new(Spending::new(db.clone(), billing::ledger::spent_micros));
        let quotas = Arc::new(Quotas::new(db.clone()));
        let rates = Arc::new(rates);
        let settings = BillingSettings { recharge_url: None };
        let ledger = Ledger::new(settings.recharge_url.clone()).with_spending(spending.clone());
        let (tiers, connector, seal) = (Arc::new(tiers), Arc::new(connector), Arc::new(seal));
        let operations = LocalCalls::default();
        let variables = WorkspaceVariables::new(data::VariableValues::new(seal.clone()));
        let shapes = Shapes::new(kinds()).at(&base_url).with_members(Arc::new(crm::TeamDirectory));
        let shapes = Arc::new(shapes.with_business(Arc::new(crm::Calendar)));
        let assigned = AutoAssignment(Arc::new(channels::conversations::AutoAssigned));
        let people = crm::people(&shapes, &db, assigned.clone());
        let collections = CollectionDirectory::new(data::collections::CollectionNames(shapes.clone()));
        let engine = RunEngine::new(RunEngineParts {
            db: db.clone(),
            tiers: tiers.clone(),
            meter: Arc::new(ledger),
            connector: connector.clone(),
            seal: seal.clone(),
            directory: directory.clone(),
            base_url: base_url.clone(),
            spending: spending.clone(),
            turns: Arc::new(channels::messages::Turns(Arc::new(crm::TeamDirectory))),
            tracer: traces.tracer.clone(),
            operations: operations.clone(),
            variables: variables.clone(),
            people: people.clone(),
            collections: collections.clone(),
            business: Arc::new(crm::Calendar),
            runtime,
        })?;
        let receiver = Receiver::new(ReceiverParts {
            db: db.clone(),
            seal: seal.clone(),
            directory: directory.clone(),
            rates: rates.clone(),
            base_url: base_url.clone(),
            tracer: traces.tracer.clone(),
        });
        let files = Arc::new(Files::new(objects, seal.clone(), base_url));
        let types = registry.event_types().to_vec();
        let events = EventsParts::new(&db, types, connector.clone(), seal.clone(), traces.tracer.clone())?;
        let outbound = connector.collectors();
        let (file_uses, contact_uses) = (FileUses::default(), ContactUses::default());
        let talking = WorkerParts {
            db: db.clone(),
            network: Network(Arc::new(Chatnet::new(
                network_connector.unwrap_or_else(|| (*connector).clone()),
            ))),
            seal: seal.clone(),
            people: people.clone(),
            runs: Arc::new(engine.clone()),
            files: files.clone(),
            file_uses: file_uses.clone(),
            transcriber,
            uploads: Uploads::default(),
            wakes: Wakes::default(),
        };
        let logs = retention.logs();
        let keeping = Keeping { days: Arc::new(crm::Retention), file_uses: file_uses.clone() };
        let groups = [
            operation::foundation(retention.requests, logs.clone()),
            agents::group(&engine, tiers, connector),
            billing::group(settings, Arc::new(RunDirectory)),
            transfer::group(&db, &files, &shapes, import_targets(), retention.activity),
            data::group(&shapes),
            crm::group(
                &shapes,
                Arc::new(engine.clone()),
                people,
                channels::messenger(&talking),
                assigned,
                contact_uses.clone(),
            ),
            channels::group(&talking, retention.callbacks, keeping),
            events.group(receiver, retention.events),
        ];
        let Joined { services, jobs, raw_routes, mut metrics, table_gauges } =
            join(groups, file_uses, contact_uses)?;
        seal.declare(sealed_tables());
        let jobs = Runner::new(db.clone()).with(jobs);
        let services = services.with_shared(seal.clone()).with(variables).with(collections);
        let (stop, stopping) = watch::channel(false);
        let (log, log_writer) = RequestLog::start(db.clone(), quotas.clone(), stopping)?;
        let requests = RequestMetrics::new(&registry)?;
        metrics.extend(db.metrics()?);
        metrics.extend(process::collectors(db.now(), VERSION)?);
        metrics.extend(traces.collectors());
        metrics.extend(outbound.into_iter().chain(log.collectors()).chain(requests.collectors()));
        let metrics = Arc::new(Metrics::new(db.clone(), metrics, table_gauges)?);
        let readiness = Arc::new(Readiness::new(db.clone()));
        let pipeline = Pipeline {
            registry,
            db,
            directory,
            rates,
            quotas,
            spending,
            seal,
            claims: auth::idempotency::Claims::default(),
            log,
            metrics: Some(requests),
            tracer: traces.tracer,
            services: Arc::new(services),
            limits,
        };
        let (pipeline, contracts) = (Arc::new(pipeline), Arc::new(contracts));
        operations.connect(&pipeline);
        let raw_routes = raw_routes.into();
        let deliveries = events.deliveries;
        Ok(Self {
            pipeline,
            contracts,
            raw_routes,
            engine,
            jobs,
            deliveries,
            channels: Workers::new(talking),
            readiness,
            metrics,
            logs,
            stop,
            log_writer,
            held: None,
        })
    }

    /// What is served, for an HTTP server. Without other origins, and without a chat.
    pub fn api(&self) -> Api {
        Api {
            pipeline: self.pipeline.clone(),
            contracts: self.contracts.clone(),
            raw_routes: self.raw_routes.clone(),
            readiness: self.readiness.clone(),
            metrics: self.metrics.clone(),
            cors_origins: Arc::default(),
            home: Home { version: VERSION, chat: None },
        }
    }

    /// Waits for runs to end, for at most `patience`, and writes what the request log still holds. Runs that go on
    /// longer are resumed by whoever serves next.
    pub async fn stop(self, patience: Duration) {
        if tokio::time::timeout(patience, self.engine.idle()).await.is_err() {
            tracing::warn!(runs = self.engine.working(), "runs are left to be resumed");
        }
        self.stop.send_replace(true);
        if let Err(error) = self.log_writer.await {
            tracing::error!(%error, "the request log's writer failed");
        }
    }
}

/// What all groups add to the service.
#[derive(Default)]
struct Joined {
    services: Services,
    jobs: Vec<Job>,
    raw_routes: Vec<Arc<dyn RawRoute>>,
    metrics: Vec<Box<dyn Collector>>,
    table_gauges: Vec<TableGauge>,
}

/// Puts groups together: what one offers to the others is handed to them as services. `file_uses` then knows what refers to
/// files, and `contact_uses` what refers to contacts.
///
/// # Errors
/// When two jobs have the same name: the runner would run one of them for the rows of both.
fn join(
    groups: impl IntoIterator<Item = Group>,
    file_uses: FileUses,
    contact_uses: ContactUses,
) -> Result<Joined> {
    let mut joined = Joined::default();
    let (mut link_targets, mut open_work, mut variable_users) = (Vec::new(), Vec::new(), Vec::new());
    let (mut file_references, mut contact_references) = (Vec::new(), Vec::new());
    for group in groups {
        joined.services = joined.services.and(group.services);
        for job in group.jobs {
            if joined.jobs.iter().any(|other| other.kind() == job.kind()) {
                return Err(Error::internal(format!("two jobs have the name {}", job.kind())));
            }
            joined.jobs.push(job);
        }
        joined.raw_routes.extend(group.raw_routes);
        joined.metrics.extend(group.metrics);
        joined.table_gauges.extend(group.table_gauges);
        link_targets.extend(group.link_targets);
        open_work.extend(group.open_work);
        variable_users.extend(group.variable_users);
        file_references.extend(group.file_references);
        contact_references.extend(group.contact_references);
    }
    let links = LinkDirectory::new(link_targets);
    joined.services = joined.services.with(links).with(OpenWorkDirectory::new(open_work));
    joined.services = joined.services.with(VariableUserDirectory::new(variable_users));
    file_uses.connect(file_references);
    contact_uses.connect(contact_references);
    joined.services = joined.services.with(file_uses).with(contact_uses);
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_one_job() {
        let group = |kind| Group::default().job(Job::after(kind, "", "", |_| async { Ok(()) }));
        let joined = |kinds: &[&'static str]| {
            join(kinds.iter().copied().map(group), FileUses::default(), ContactUses::default())
        };
        assert_eq!(joined(&["a", "b"]).unwrap().jobs.len(), 2);
        let error = joined(&["a", "b", "a"]).err().unwrap();
        assert_eq!(error.cause().unwrap().to_string(), "two jobs have the name a");
    }
}
