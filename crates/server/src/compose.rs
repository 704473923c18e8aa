//! The composition: which areas there are, and what they are handed.

use agents::providers::Tiers;
use agents::runs::{ApprovalRoute, RunDirectory, RunEngineParts};
use agents::{Agents, RunEngine, Runs};
use auth::{Directory, Quotas, RateWindows, Seal, Spending};
use billing::{Billing, BillingSettings, Identity, Ledger, Traces};
use data::exports::Exporter;
use data::imports::{self, Importer};
use data::{Collections, ItemLinks, Items};
use egress::Connector;
use events::inbound::{self, Receiver, ReceiverParts};
use events::{Deliveries, Events, EventsParts, Webhooks};
use files::{DownloadRoute, Files, Objects, PermanentRoute};
use http_face::{Contracts, Face};
use jobs::Runner;
use model::Result;
use operation::ports::{LinkDirectory, LinkTargets};
use operation::{Limits, Pipeline, RawRoute, Registry, RequestLog, Services};
use records::query::Planner;
use records::shape::Shapes;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio::sync::watch;

/// The version of the contract: that of the newest heading in CHANGELOG.md.
pub const VERSION: &str = "v0.5.0";

/// All areas, in the order of the published documents.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn registry() -> Result<Registry> {
    Registry::new()
        .with::<Identity>()?
        .with::<Runs>()?
        .with::<Agents>()?
        .with::<Billing>()?
        .with::<Collections>()?
        .with::<Items>()?
        .with::<ItemLinks>()?
        .with::<Events>()?
        .with::<Webhooks>()
}

/// What a service is made of. Tests hand in a database of their own, scripted models and short waits.
pub struct ServiceParts {
    /// The database, migrated.
    pub db: Db,
    /// The models.
    pub tiers: Tiers,
    /// Outbound HTTP.
    pub connector: Connector,
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
    stop: watch::Sender<bool>,
    log_writer: tokio::task::JoinHandle<()>,
}

impl Service {
    /// Puts a service together. Needs a tokio runtime, on which the request log is written.
    ///
    /// # Errors
    /// When two operations claim the same address or id.
    pub fn new(parts: ServiceParts) -> Result<Self> {
        let ServiceParts { db, tiers, connector, seal, objects, rates, base_url, limits, runtime } = parts;
        let registry = Arc::new(registry()?);
        let contracts = Contracts::new(registry.clone(), VERSION);
        let directory = Arc::new(Directory::new(db.clone()));
        let spending = Arc::new(Spending::new(db.clone(), billing::ledger::spent_micros));
        let quotas = Arc::new(Quotas::new(db.clone()));
        let rates = Arc::new(rates);
        let settings = BillingSettings { base_url: base_url.clone() };
        let ledger = Ledger::new(settings.recharge_url()).with_spending(spending.clone());
        let (tiers, connector, seal) = (Arc::new(tiers), Arc::new(connector), Arc::new(seal));
        let engine = RunEngine::new(RunEngineParts {
            db: db.clone(),
            tiers: tiers.clone(),
            meter: Arc::new(ledger),
            connector: connector.clone(),
            seal: seal.clone(),
            directory: directory.clone(),
            base_url: base_url.clone(),
            spending: spending.clone(),
            runtime,
        });
        let receiver = Receiver::new(ReceiverParts {
            db: db.clone(),
            seal: seal.clone(),
            directory: directory.clone(),
            rates: rates.clone(),
            base_url: base_url.clone(),
        });
        let files = Arc::new(Files::new(objects, seal.clone(), base_url));
        let shapes = Arc::new(Shapes::default());
        let types = registry.event_types().to_vec();
        let events = EventsParts::new(&db, types, connector.clone(), seal.clone());
        let services = Services::default()
            .with_shared(files.clone())
            .with_shared(tiers)
            .with_shared(connector)
            .with_shared(seal.clone())
            .with(engine.clone())
            .with(receiver.clone())
            .with(settings)
            .with(Traces(Arc::new(RunDirectory)))
            .with(LinkDirectory::new([Arc::new(RunDirectory) as Arc<dyn LinkTargets>]))
            .with_shared(shapes.clone())
            .with(Planner::new(db.clone()));
        let services = events.serve(services);
        let (stop, stopping) = watch::channel(false);
        let (log, log_writer) = RequestLog::start(db.clone(), quotas.clone(), stopping);
        let importer = Arc::new(Importer { files: files.clone(), shapes: shapes.clone() });
        let jobs = imported(received(background(&db, &engine, &shapes), &receiver), importer);
        let jobs = events.background(jobs);
        let pipeline = Pipeline {
            registry,
            db,
            directory,
            rates,
            quotas,
            spending,
            seal,
            log,
            services: Arc::new(services),
            limits,
        };
        let (pipeline, contracts) = (Arc::new(pipeline), Arc::new(contracts));
        let raw_routes = raw_routes(receiver, &pipeline.db, &engine, &files, shapes).into();
        let deliveries = events.deliveries;
        Ok(Self { pipeline, contracts, raw_routes, engine, jobs, deliveries, stop, log_writer })
    }

    /// What is served, for an HTTP server.
    pub fn face(&self) -> Face {
        Face {
            pipeline: self.pipeline.clone(),
            contracts: self.contracts.clone(),
            raw_routes: self.raw_routes.clone(),
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

/// What is served beside the API. No prefix may begin another.
fn raw_routes(
    receiver: Receiver,
    db: &Db,
    engine: &RunEngine,
    files: &Arc<Files>,
    shapes: Arc<Shapes>,
) -> Vec<Arc<dyn RawRoute>> {
    let exporter = Arc::new(Exporter::new(db.clone(), shapes));
    vec![
        Arc::new(receiver),
        Arc::new(ApprovalRoute::new(engine.clone())),
        Arc::new(PermanentRoute { db: db.clone(), files: files.clone() }),
        Arc::new(DownloadRoute { db: db.clone(), files: files.clone(), generator: exporter }),
    ]
}

/// What happens by itself to what inbound webhooks have received.
fn received(runner: Runner, receiver: &Receiver) -> Runner {
    let receiver = receiver.clone();
    runner
        .every("inbound.purge", Duration::from_secs(3600), inbound::jobs::purge)
        .handle(inbound::jobs::FORGET, inbound::jobs::forget)
        .handle(inbound::jobs::REPROCESS, move |job| inbound::jobs::reprocess(job, receiver.clone()))
}

/// What happens by itself to files and imports.
fn imported(runner: Runner, importer: Arc<Importer>) -> Runner {
    let files = importer.files.clone();
    runner
        .every("files.sweep", Duration::from_secs(3600), move |job| {
            let files = files.clone();
            async move {
                files::sweep(&job.db, &files).await?;
                Ok(())
            }
        })
        .handle(imports::JOB, move |job| imports::run(job, importer.clone()))
        .max_attempts(imports::JOB, imports::ATTEMPTS)
}

/// What happens by itself to Energy and plans. Each takes some at a time, so that no transaction is long.
fn billed(runner: Runner) -> Runner {
    let seconds = Duration::from_secs;
    runner
        .every("energy.sweep", seconds(60), |job| async move {
            while job.db.write(billing::ledger::sweep_expired_holds).await? > 0 {}
            while job.db.write(billing::ledger::sweep_expired_grants).await? > 0 {}
            while job.db.write(billing::ledger::sweep_pending_grants).await? > 0 {}
            Ok(())
        })
        .every("plans.renew", seconds(60), |job| async move {
            while job.db.write(billing::plans::renew).await? > 0 {}
            Ok(())
        })
        .every("energy.check", seconds(24 * 3600), |job| async move {
            billing::ledger::check_all(&job.db).await?;
            Ok(())
        })
}

/// What happens by itself.
fn background(db: &Db, engine: &RunEngine, shapes: &Arc<Shapes>) -> Runner {
    let seconds = Duration::from_secs;
    let (resuming, purging) = (engine.clone(), engine.clone());
    let runner = records::handle_jobs(Runner::new(db.clone()), shapes);
    let runner = data::collections::handle_jobs(runner, shapes);
    billed(runner)
        .every("runs.resume", seconds(5), move |_| {
            let engine = resuming.clone();
            async move {
                engine.resume_silent().await?;
                Ok(())
            }
        })
        .every("runs.purge", seconds(600), move |_| {
            let engine = purging.clone();
            async move {
                engine.purge_ephemeral().await?;
                Ok(())
            }
        })
        .every("idempotency.purge", seconds(600), |job| async move {
            while job.db.write(auth::idempotency::purge).await? > 0 {}
            Ok(())
        })
        .every("request_logs.purge", seconds(3600), |job| async move {
            while job.db.write(operation::purge_request_logs).await? > 0 {}
            Ok(())
        })
        .every("database.tidy", seconds(3600), |job| async move {
            job.db.tidy().await?;
            Ok(())
        })
}
