//! Serving: from the configuration to a listening socket, and back down on SIGTERM.

use crate::compose::{Service, ServiceParts};
use crate::{Config, demo, tiers};
use actix_web::dev::Server;
use actix_web::{App, HttpServer};
use anyhow::Context;
use auth::{RateWindows, Seal, is_sealed_under};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::{Connector, Policy};
use events::Delivering;
use jobs::Running;
use model::{Clock, Random, SystemClock, SystemRandom};
use operation::Limits;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Backend, Db, Options};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Opens the configured database, which must have been migrated.
pub(crate) fn open_database(config: &Config) -> anyhow::Result<Db> {
    let backend = backend(config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom::default());
    Db::open(Options { backend, connections: config.database_connections, clock, random }).map_err(cause)
}

/// The configured database's place. The folder of a SQLite file is made.
pub(crate) fn backend(config: &Config) -> anyhow::Result<Backend> {
    let backend = Backend::parse(&config.database_url()).map_err(anyhow::Error::msg)?;
    if let Backend::Sqlite(path) = &backend
        && let Some(folder) = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    Ok(backend)
}

/// An error of the service as one for the operator, with its cause.
pub(crate) fn cause(error: model::Error) -> anyhow::Error {
    match error.cause() {
        Some(cause) => anyhow::anyhow!("{cause}"),
        None => anyhow::anyhow!("{error}"),
    }
}

/// Serves until SIGTERM or SIGINT. Runs live on a runtime of their own: a worker of the HTTP server has one thread, and
/// ends before they may.
pub(crate) fn run(config: Config, with_demo: bool) -> anyhow::Result<()> {
    let runs = tokio::runtime::Builder::new_multi_thread().thread_name("runs").enable_all().build()?;
    let result = actix_web::rt::System::new().block_on(serve(config, with_demo, runs.handle().clone()));
    // What still goes on had its time; its leases run out, and whoever serves next goes on with it.
    runs.shutdown_background();
    result
}

async fn serve(config: Config, with_demo: bool, runtime: Handle) -> anyhow::Result<()> {
    let began = Instant::now();
    let backend = backend(&config)?;
    let migrated = Db::migrate(&backend).map_err(cause)?;
    for name in &migrated {
        tracing::info!(name, "migrated the database");
    }
    let db = open_database(&config)?;
    let seal = seal(&config, &backend)?;
    check_key(&db, &seal).await?;
    let welcome = if with_demo { Some(demo::prepare(&db, &config).await?) } else { None };
    let config = Arc::new(config);
    let service = compose(&config, db, seal, runtime).await?;

    let face = service.face();
    let app = move || App::new().configure(|app| http_face::configure(app, &face));
    // Signals are ours: requests are the first of several that get their time.
    let mut server = HttpServer::new(app).disable_signals().shutdown_timeout(config.shutdown_seconds);
    if let Some(workers) = config.workers {
        server = server.workers(workers.max(1));
    }
    let server = server.bind(&config.listen).with_context(|| format!("listening on {}", config.listen))?;
    let mut signals = StopSignals::listen()?;
    let background = (service.jobs.start(), service.deliveries.start());
    let mut server = server.run();
    tracing::info!(listen = config.listen, ready_ms = began.elapsed().as_millis(), "serving");
    if let Some(welcome) = welcome {
        welcome.print();
    }
    tokio::select! {
        ended = &mut server => return Ok(ended?),
        () = signals.arrive() => {}
    }
    tracing::info!("stopping");
    tokio::select! {
        stopped = stop(server, background, service, Duration::from_secs(config.shutdown_seconds)) => stopped,
        () = signals.arrive() => anyhow::bail!("asked to stop a second time: what went on is broken off"),
    }
}

/// The service that is configured.
async fn compose(config: &Arc<Config>, db: Db, seal: Seal, runtime: Handle) -> anyhow::Result<Service> {
    // Loading the model takes seconds of computing, which must not stop the runtime.
    let loading = config.clone();
    let tiers = tokio::task::spawn_blocking(move || tiers::tiers(&loading)).await??;
    let rates = match &config.redis_url {
        Some(url) => RateWindows::shared(url, &*db.random()).await.context("SVC_REDIS_URL")?,
        None => RateWindows::local(),
    };
    let policy =
        Policy::allowing(config.allow_outbound.iter().map(String::as_str)).context("SVC_ALLOW_OUTBOUND")?;
    let parts = ServiceParts {
        db,
        tiers,
        connector: Connector::new(policy)?,
        seal,
        objects: data::files::objects_in(&config.data_dir.join("files")).map_err(cause)?,
        rates,
        base_url: config.base_url(),
        limits: Limits { default_rpm: config.default_rpm, ..Limits::default() },
        runtime,
    };
    Service::new(parts).map_err(cause)
}

/// Ends what goes on: requests, jobs, deliveries, runs. They share `patience`: who comes later has what is left of it.
async fn stop(
    server: Server,
    (jobs, deliveries): (Running, Delivering),
    service: Service,
    patience: Duration,
) -> anyhow::Result<()> {
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
    deliveries.stop(left()).await;
    service.stop(left()).await;
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

/// The key under which secrets are sealed: configured, or kept in the data folder, where one is made for a database that
/// has this process only.
fn seal(config: &Config, backend: &Backend) -> anyhow::Result<Seal> {
    let text = match &config.secret_key {
        Some(text) => text.clone(),
        None => {
            let path = config.data_dir.join("secret.key");
            match (std::fs::read_to_string(&path), backend) {
                (Ok(text), _) => text,
                (Err(error), Backend::Sqlite(_)) if error.kind() == ErrorKind::NotFound => make_key(&path)?,
                (Err(error), Backend::Postgres(_)) if error.kind() == ErrorKind::NotFound => anyhow::bail!(
                    "SVC_SECRET_KEY is not set. With PostgreSQL all replicas share one key: make it once with \
                     `head -c 32 /dev/urandom | base64`, and give it to each of them"
                ),
                (Err(error), _) => return Err(error).with_context(|| format!("reading {}", path.display())),
            }
        }
    };
    let key = STANDARD.decode(text.trim()).context("the secret key is not base64")?;
    Seal::new(&key).map_err(cause)
}

/// Refuses a key other than the one that this database's secrets were sealed under: its callers would be the first to
/// notice. The first start tells the database its key's mark.
async fn check_key(db: &Db, seal: &Seal) -> anyhow::Result<()> {
    let mark = seal.mark();
    let is_known = db.write(move |tx| is_sealed_under(tx, &mark)).await.map_err(cause)?;
    anyhow::ensure!(
        is_known,
        "SVC_SECRET_KEY (or secret.key in the data folder) is not the key under which this database's secrets were \
         sealed. Start with the earlier one: what was sealed cannot be opened otherwise"
    );
    Ok(())
}

fn make_key(path: &Path) -> anyhow::Result<String> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut key = [0; 32];
    SystemRandom::default().fill(&mut key);
    let text = STANDARD.encode(key);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("making {}", path.display()))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(text)
}
