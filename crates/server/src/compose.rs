//! The composition: the groups of areas, and what the program hands to them.

use crate::traces::Traces;
use crate::version::VERSION;
use crate::{process, sandbox_metrics};
use accounts::SessionTokens;
use auth::{CountContacts, Directory, Quotas, RateWindows, Seal, SealedTable, Spending, SpentMicros};
use billing::BillingSettings;
use channels::Network;
use chatnet::Chatnet;
use conversations::{Transcriber, Workers};
use dashboard::InsecureSignIn;
use egress::Connector;
use events::{EventConsumer, Readers, readers_behind};
use files::{Files, Objects};
use flows::FlowEngine;
use jobs::Runner;
use mcp::{Endpoint, Tools};
use model::Result;
use oauth::AccessTokens;
use oauth::clients::Clients;
use operation::{
    BaseUrl, CauseHeader, Declarations, Group, Limits, LocalCalls, Metrics, Mount, Parts, Pipeline, RawRoute,
    Registry, RequestLog, RequestMetrics, Services,
};
use ports::{
    BusinessCalendar, ContactReferences, ContactUses, FileReferences, FileUses, LinkDirectory, LinkTargets,
    Members, MessageTaker, MessageTakers, ObjectUsers, ObjectUses, OpenWork, OpenWorkDirectory,
    VariableUserDirectory, VariableUsers, WorkspaceFlows,
};
use providers::Tiers;
use records::shape::{Kind, Shapes};
use rest::{Api, Contracts, Home, Readiness};
use runs::RunEngine;
use sandbox::Sandbox;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::{LogKind, Logs, Retentions};
use tokio::sync::watch;
use webhooks::Deliveries;
use workbench::InstallationChecks;

/// All groups. Each can use what those before it have started, and what any of them declares.
const GROUPS: [Group; 26] = [
    operation::FOUNDATION,
    transfer::ENGINE,
    variables::GROUP,
    media::GROUP,
    collections::GROUP,
    business::GROUP,
    contacts::GROUP,
    billing::GROUP,
    functions::GROUP,
    skills::GROUP,
    agents::GROUP,
    runs::GROUP,
    channels::GROUP,
    conversations::GROUP,
    sends::GROUP,
    broadcasts::GROUP,
    tasks::GROUP,
    events::GROUP,
    webhooks::GROUP,
    inbound::GROUP,
    flows::GROUP,
    automations::GROUP,
    workbench::GROUP,
    dashboard::PAGES,
    dashboard::OAUTH,
    mcp::GROUP,
];

/// What all groups declare.
fn declared() -> Result<Declarations> {
    GROUPS.iter().try_fold(Declarations::default(), |declarations, group| (group.declare)(declarations))
}

/// All areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn registry() -> Result<Registry> {
    declared()?.registry()
}

/// The tables of all groups with sealed values.
///
/// # Errors
/// When two groups contradict each other.
pub fn sealed_tables() -> Result<Vec<&'static SealedTable>> {
    Ok(declared()?.sealed)
}

/// The logs of all groups that have a size.
///
/// # Errors
/// When two groups contradict each other.
pub fn log_kinds() -> Result<Vec<LogKind>> {
    Ok(declared()?.logs)
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
    /// Whether OAuth clients may register themselves.
    pub oauth_registration: bool,
    /// Whether people may sign in over plain http from other machines.
    pub insecure_sign_in: InsecureSignIn,
    /// What the installation set.
    pub limits: Limits,
    /// How long logs are kept, where that differs from the default.
    pub retention: Retentions,
    /// What transcribes voice notes.
    pub transcriber: Option<Arc<dyn Transcriber>>,
    /// Checks what the installation depends on.
    pub checks: Option<Arc<dyn InstallationChecks>>,
    /// How code of functions and scripts is confined.
    pub sandbox: sandbox::Settings,
    /// Services in place of those that groups start: scripted ones of tests.
    pub replacing: Services,
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
    /// The MCP server.
    pub tools: Arc<Tools>,
    /// What is served beside the API.
    pub raw_routes: Arc<[Arc<dyn RawRoute>]>,
    /// Drives runs.
    pub engine: RunEngine,
    /// Runs jobs. Not started: `serve` starts it, tests run what is due by hand.
    pub jobs: Runner,
    /// Places events in the log and delivers them. Not started either.
    pub deliveries: Deliveries,
    /// Reads the log of events for consumers. Not started either.
    pub readers: Readers,
    /// Executes runs of flows. Not started either.
    pub flows: FlowEngine,
    /// Talks to contacts. Not started either.
    pub channels: Workers,
    /// Whether requests should come here.
    pub readiness: Arc<Readiness>,
    /// What operators watch.
    pub metrics: Arc<Metrics>,
    /// The logs that have a size.
    pub logs: Logs,
    /// The settings of the MCP server. Tests wait shorter.
    pub mcp: mcp::Settings,
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
    pub fn new(parts: ServiceParts) -> Result<Self> {
        let (db, limits, tracer) = (parts.db.clone(), parts.limits.clone(), parts.traces.tracer.clone());
        let exported = parts.traces.collectors();
        let declared = declared()?;
        let registry = Arc::new(declared.registry()?);
        let replacing = parts.replacing.clone();
        let services = foundation(parts, declared, &registry)?;
        let logs: Logs = services.cloned()?;
        let Parts { services, jobs, raw_routes, mut metrics, table_gauges } =
            start_groups(services, &replacing)?;
        let (stop, stopping) = watch::channel(false);
        let (log, log_writer) = RequestLog::start(db.clone(), services.get()?, stopping)?;
        let requests = RequestMetrics::new(&registry)?;
        metrics.extend(db.metrics()?);
        metrics.extend(process::collectors(db.now(), VERSION)?);
        metrics.push(sandbox_metrics::collector(services.cloned()?)?);
        metrics.extend(exported);
        metrics.extend(services.get::<Connector>()?.collectors());
        metrics.extend(log.collectors().into_iter().chain(requests.collectors()));
        let pipeline = Arc::new(Pipeline {
            registry: registry.clone(),
            db: db.clone(),
            directory: services.get()?,
            session_tokens: services.get()?,
            access_tokens: services.get()?,
            rates: services.get()?,
            quotas: services.get()?,
            spending: services.get()?,
            seal: services.get()?,
            claims: auth::idempotency::Claims::default(),
            log,
            metrics: Some(requests),
            tracer,
            services: Arc::new(services.clone()),
            limits,
        });
        services.get::<LocalCalls>()?.connect(&pipeline);
        Ok(Self {
            contracts: Arc::new(Contracts::new(registry, VERSION)),
            raw_routes: raw_routes.into(),
            engine: services.cloned::<RunEngine>()?,
            jobs: Runner::new(db.clone()).with(jobs),
            deliveries: services.cloned::<Deliveries>()?,
            flows: services.cloned::<FlowEngine>()?,
            readers: Readers::new(
                db.background(),
                services.get()?,
                services.get()?,
                services.all::<Arc<dyn EventConsumer>>(),
            ),
            channels: services.cloned::<Workers>()?,
            readiness: Arc::new(Readiness::new(db.clone(), readers_behind)),
            metrics: Arc::new(Metrics::new(db, metrics, table_gauges)?),
            logs,
            tools: Arc::new(Tools::new(pipeline.clone())),
            mcp: mcp::Settings::new(&services.get::<BaseUrl>()?.0, VERSION),
            pipeline,
            stop,
            log_writer,
            held: None,
        })
    }

    /// What is served, for an HTTP server. Without other origins, and without a chat.
    pub fn api(&self) -> Api {
        self.api_for(&[])
    }

    /// The same with the origins whose pages may call the service from a browser.
    pub fn api_for(&self, origins: &[String]) -> Api {
        let settings = mcp::Settings { origins: origins.to_vec(), ..self.mcp.clone() };
        let mcp = Endpoint::new(self.pipeline.clone(), self.tools.clone(), &settings);
        Api {
            pipeline: self.pipeline.clone(),
            mounts: Arc::new([Arc::new(mcp) as Arc<dyn Mount>]),
            contracts: self.contracts.clone(),
            raw_routes: self.raw_routes.clone(),
            readiness: self.readiness.clone(),
            metrics: self.metrics.clone(),
            cors_origins: origins.into(),
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

/// What groups stand on: what the program hands to them, and what they have declared.
fn foundation(parts: ServiceParts, declared: Declarations, registry: &Arc<Registry>) -> Result<Services> {
    let (db, seal, services) = (parts.db, Arc::new(parts.seal), declared.services);
    seal.declare(declared.sealed);
    let directory = Directory::new(db.clone()).counting_contacts(services.cloned::<CountContacts>()?);
    let directory = Arc::new(directory);
    let session_tokens = SessionTokens::new(db.clone(), directory.clone(), seal.clone(), &parts.base_url);
    let access_tokens = AccessTokens::new(db.clone(), directory.clone());
    let clients = Clients::new(
        db.clone(),
        seal.clone(),
        parts.connector.clone(),
        vec![parts.base_url.clone(), format!("{}/oauth/token", parts.base_url)],
        parts.oauth_registration,
    );
    let spending = Spending::new(db.clone(), services.cloned::<SpentMicros>()?);
    let contact_uses = ContactUses::default();
    let shapes = Shapes::new(services.all::<&'static Kind>())
        .at(&parts.base_url)
        .with_members(services.cloned::<Arc<dyn Members>>()?)
        .with_business(services.cloned::<Arc<dyn BusinessCalendar>>()?)
        .with_contact_uses(contact_uses.clone());
    let network = parts.network_connector.unwrap_or_else(|| parts.connector.clone());
    let services = services
        .with_shared(directory)
        .with(session_tokens)
        .with(access_tokens)
        .with(clients)
        .with(spending)
        .with(Quotas::new(db.clone()))
        .with(parts.rates)
        .with(shapes)
        .with(Files::new(parts.objects, seal.clone(), parts.base_url.clone()))
        .with(Network(Arc::new(Chatnet::new(network))))
        .with(parts.tiers)
        .with(parts.connector)
        .with(parts.transcriber)
        .with(parts.checks)
        .with(Sandbox::new(parts.sandbox))
        .with(parts.traces.tracer)
        .with(parts.runtime)
        .with(CauseHeader::new(seal.clone(), &parts.base_url))
        .with(BaseUrl(parts.base_url))
        .with(parts.insecure_sign_in)
        .with(BillingSettings { recharge_url: None })
        .with(Logs::new(&declared.logs, &parts.retention)?)
        .with(LocalCalls::default())
        .with(MessageTakers::default())
        .with(FileUses::default())
        .with(ObjectUses::default())
        .with(WorkspaceFlows::default())
        .with(contact_uses);
    Ok(services.with(db).with_shared(seal).with_shared(registry.clone()))
}

/// Starts all groups, and then the directories of what each of them offers to the others.
fn start_groups(foundation: Services, replacing: &Services) -> Result<Parts> {
    let mut all = Parts { services: foundation, ..Parts::default() };
    for group in &GROUPS {
        let parts = (group.start)(&all.services)?;
        all = all.and(parts)?;
        all.services = all.services.and(replacing.clone());
    }
    let services = &all.services;
    services.get::<FileUses>()?.connect(services.all::<Arc<dyn FileReferences>>());
    services.get::<MessageTakers>()?.connect(services.all::<Arc<dyn MessageTaker>>());
    services.get::<ObjectUses>()?.connect(services.all::<Arc<dyn ObjectUsers>>());
    services.get::<ContactUses>()?.connect(services.all::<Arc<dyn ContactReferences>>());
    let links = LinkDirectory::new(services.all::<Arc<dyn LinkTargets>>());
    let open_work = OpenWorkDirectory::new(services.all::<Arc<dyn OpenWork>>());
    let variable_users = VariableUserDirectory::new(services.all::<Arc<dyn VariableUsers>>());
    Ok(all.service(links).service(open_work).service(variable_users))
}
