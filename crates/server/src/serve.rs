//! Serving: from the configuration to a listening socket, and back down on SIGTERM.

use crate::compose::Service;
use crate::database::{backend, hold, migrate, open_database};
use crate::demo::{self, Demo, Given};
use crate::operator_error::cause;
use crate::secret_key::{follow, open_seal};
use crate::settings::Settings;
use crate::start_link;
use crate::traces::{Exporting, Traces};
use crate::{Config, tiers};
use actix_web::dev::{Server, ServerHandle};
use anyhow::Context;
use auth::workspaces;
use egress::Connector;
use events::Reading;
use jobs::Running;
use model::WorkspaceId;
use providers::Tiers;
use rest::ServerOptions;
use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Db;
use tokio::net::TcpSocket;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use webhooks::Delivering;
use workbench::InstallationChecks;

/// How long a connection that is not used stays open.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Connections that may wait to be taken.
const BACKLOG: u32 = 1024;
/// How long the last spans may take, so that a collector that does not answer keeps no service from ending.
const LAST_EXPORT: Duration = Duration::from_secs(5);

/// Makes the checks of an installation from its settings.
pub(crate) type Checks = fn(Arc<Config>) -> Arc<dyn InstallationChecks>;

/// Serves until SIGTERM or SIGINT. Runs live on a runtime of their own: a worker of the HTTP server has one thread, and
/// ends before they may. With `demo`, the demo workspace is served; it holds the settings that the demo must not choose.
/// `checks` makes what checks the installation for its operators.
pub(crate) fn run(config: Config, demo: Option<Given>, checks: Checks) -> anyhow::Result<()> {
    let runs = tokio::runtime::Builder::new_multi_thread().thread_name("runs").enable_all().build()?;
    let result = actix_web::rt::System::new().block_on(serve(config, demo, checks, runs.handle().clone()));
    // What still goes on had its time; its leases run out, and whoever serves next goes on with it.
    runs.shutdown_background();
    result
}

async fn serve(config: Config, demo: Option<Given>, checks: Checks, runtime: Handle) -> anyhow::Result<()> {
    let began = Instant::now();
    let (config, notes) = demo::complete(config, demo).await;
    let bind = |address: &str| listen(address).with_context(|| format!("listening on {address}"));
    let listeners = bind(&config.listen)?;
    let admin_listeners = config.admin_listen.as_deref().map(bind).transpose()?;
    let mut settings = Settings::read(&config).await?;
    expect_models(&settings.tiers, notes.is_some())?;
    let _held = hold(&backend(&config)?)?;
    for name in migrate(&config)? {
        tracing::info!(name, "migrated the database");
    }
    let db = open_database(&config)?;
    let seal = open_seal(&config, settings.keys.take(), &db).await?;
    let mut demo = prepare_demo(&db, &config, &settings.connector, notes).await?;
    demo::offer_key(&db, config.demo_key).await?;
    let start_link = start_link::issue(&db, &config, demo.as_ref().map(Demo::workspace)).await?;
    let followed = db.background();
    let (traces, exporting) = Traces::start(settings.collector.take(), &db, &runtime).map_err(cause)?;
    let mut parts = settings.parts(&config, db, seal, traces, runtime)?;
    parts.checks = Some(checks(config.clone()));
    if let Some(demo) = &demo {
        parts.network_connector = Some(demo.network_connector.clone());
        parts.transcriber = parts.transcriber.or_else(|| Some(demo.transcriber()));
    }
    let service = Service::new(parts).map_err(cause)?;

    if let Some(demo) = &mut demo {
        demo.connect(&service.pipeline, &listeners).await?;
    }
    let mut server = serve_api(&service, demo.as_ref(), listeners, &config)?;
    let admin = serve_admin(&service, admin_listeners)?;
    let mut signals = StopSignals::listen()?;
    let background = Background {
        jobs: service.jobs.start(),
        deliveries: service.deliveries.start(),
        readers: service.readers.start(),
        flows: service.flows.start(),
        channels: service.channels.start(),
    };
    let key_refresh = tokio::spawn(follow(config.clone(), followed, service.pipeline.seal.clone()));
    tracing::info!(listen = config.listen, ready_ms = began.elapsed().as_millis(), "serving");
    welcome(demo.as_ref(), start_link);
    tokio::select! {
        ended = &mut server => return Ok(ended?),
        () = signals.arrive() => {}
    }
    tracing::info!("stopping");
    key_refresh.abort();
    service.readiness.stop();
    let patience = Duration::from_secs(config.shutdown_seconds);
    tokio::select! {
        stopped = stop(server, background, service, exporting, patience) => stopped?,
        () = signals.arrive() => anyhow::bail!("asked to stop a second time: what went on is broken off"),
    }
    // Last, so that operators can watch the service stop.
    if let Some(admin) = admin {
        admin.stop(false).await;
    }
    Ok(())
}

/// Prints how to begin.
fn welcome(demo: Option<&Demo>, start_link: Option<String>) {
    match (demo, start_link) {
        (Some(demo), link) => demo.welcome(link),
        (None, Some(link)) => start_link::print(link),
        (None, None) => {}
    }
}

/// Says which tiers have no model. The demo is nothing without one.
fn expect_models(tiers: &Tiers, with_demo: bool) -> anyhow::Result<()> {
    let missing = tiers::without_model(tiers).join(", ");
    if missing.is_empty() {
        return Ok(());
    }
    anyhow::ensure!(
        !with_demo,
        "the demo needs a model: start a model server on this machine, set OPENAI_API_KEY, install the package svc-model, or set \
         SVC_MODEL_FILE (`make run` fetches the file)"
    );
    tracing::warn!(tiers = missing, "no model is configured: runs are rejected with model_not_configured");
    Ok(())
}

/// Makes the demo if it is wanted, which then has notes. Otherwise says how to begin where there is no workspace.
async fn prepare_demo(
    db: &Db,
    config: &Config,
    connector: &Connector,
    notes: Option<Vec<String>>,
) -> anyhow::Result<Option<Demo>> {
    if let Some(notes) = notes {
        return Demo::prepare(db, config, connector, notes).await.map(Some);
    }
    if db.read(|read| workspaces::ids_after(read, WorkspaceId(0), 1)).await.map_err(cause)?.is_empty() {
        tracing::warn!("there is no workspace yet: `svc init` makes one, with a plan and a key");
    }
    Ok(None)
}

/// Serves the API until it is stopped.
fn serve_api(
    service: &Service,
    demo: Option<&Demo>,
    listeners: Vec<TcpListener>,
    config: &Config,
) -> anyhow::Result<Server> {
    let mut api = service.api_for(&config.cors_origins);
    api.home.chat = demo.map(Demo::chat_page);
    let options = ServerOptions {
        keep_alive: KEEP_ALIVE,
        workers: config.workers,
        shutdown_seconds: config.shutdown_seconds,
    };
    Ok(rest::server(&api, listeners, &options)?)
}

/// Serves health, readiness and metrics where there is an address for them, until the handle is stopped.
fn serve_admin(
    service: &Service,
    listeners: Option<Vec<TcpListener>>,
) -> anyhow::Result<Option<ServerHandle>> {
    let Some(listeners) = listeners else { return Ok(None) };
    let server = rest::admin_server(&service.api(), listeners)?;
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "metrics are not served any more");
        }
    });
    Ok(Some(handle))
}

/// Takes every address that `address` stands for, as far as this machine has it. Callers wait from here on until they
/// are served.
pub(crate) fn listen(address: &str) -> std::io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::new();
    let mut failure = ErrorKind::AddrNotAvailable.into();
    for address in address.to_socket_addrs()? {
        let bound =
            if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.and_then(|socket| {
                socket.set_reuseaddr(true)?;
                socket.bind(address)?;
                socket.listen(BACKLOG)?.into_std()
            });
        match bound {
            Ok(listener) => listeners.push(listener),
            Err(error) => failure = error,
        }
    }
    if listeners.is_empty() { Err(failure) } else { Ok(listeners) }
}

/// What goes on beside requests and runs.
struct Background {
    jobs: Running,
    deliveries: Delivering,
    readers: Reading,
    flows: flows::Serving,
    channels: conversations::Working,
}

/// Ends what goes on: requests, jobs, channels, deliveries, readers, runs. They share `patience`: who comes later has what is left of it.
async fn stop(
    server: Server,
    background: Background,
    service: Service,
    exporting: Option<Exporting>,
    patience: Duration,
) -> anyhow::Result<()> {
    let Background { jobs, deliveries, readers, flows, channels } = background;
    let deadline = Instant::now() + patience;
    let left = || deadline.saturating_duration_since(Instant::now());
    let handle = server.handle();
    let ((), ended) = tokio::join!(handle.stop(true), server);
    ended?;
    let aborted = jobs.stop(left()).await;
    if !aborted.is_empty() {
        tracing::warn!(jobs = aborted.len(), "jobs were stopped; they run again");
    }
    // What the last requests told is delivered by whoever serves next, or by ourselves then.
    channels.stop(left()).await;
    deliveries.stop(left()).await;
    readers.stop(left()).await;
    flows.stop(left()).await;
    service.stop(left()).await;
    if let Some(exporting) = exporting {
        exporting.stop(left().min(LAST_EXPORT)).await;
    }
    Ok(())
}

/// The signals that ask the service to stop.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn arrive(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
