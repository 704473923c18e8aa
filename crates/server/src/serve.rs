//! Serving: from the configuration to a listening socket, and back down on SIGTERM.

use crate::compose::{Service, ServiceParts};
use crate::operator_error::cause;
use crate::{Config, demo, tiers};
use actix_web::dev::Server;
use agents::providers::Tiers;
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
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Backend, Db, Options};
use tokio::net::TcpSocket;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a connection that is not used stays open.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Connections that may wait to be taken.
const BACKLOG: u32 = 1024;
/// Where a key that was made is kept, in the data folder.
const KEY_FILE: &str = "secret.key";

/// Opens the configured database, which must have been migrated.
pub(crate) fn open_database(config: &Config) -> anyhow::Result<Db> {
    let backend = backend(config)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom::default());
    Db::open(Options { backend, connections: config.database_connections, clock, random }).map_err(cause)
}

/// Brings the configured database to the newest schema, and says what was done. The folder of a SQLite file is made.
pub(crate) fn migrate(config: &Config) -> anyhow::Result<Vec<String>> {
    let backend = backend(config)?;
    if let Backend::Sqlite(path) = &backend
        && let Some(folder) = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    Db::migrate(&backend).map_err(cause)
}

fn backend(config: &Config) -> anyhow::Result<Backend> {
    Backend::parse(&config.database_url()).map_err(anyhow::Error::msg)
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
    let config = Arc::new(config);
    let settings = Settings::read(&config).await?;
    for name in migrate(&config)? {
        tracing::info!(name, "migrated the database");
    }
    let db = open_database(&config)?;
    let seal = match settings.seal {
        Some(seal) => seal,
        None => read_seal(&make_key(&config.data_dir.join(KEY_FILE))?)?,
    };
    check_key(&db, &seal).await?;
    let welcome = if with_demo { Some(demo::prepare(&db, &config).await?) } else { None };
    let service = Service::new(ServiceParts {
        db,
        tiers: settings.tiers,
        connector: settings.connector,
        seal,
        objects: files::objects_in(&config.data_dir.join("files")).map_err(cause)?,
        rates: settings.rates,
        base_url: config.base_url(),
        limits: Limits { default_rpm: config.default_rpm, ..Limits::default() },
        retention: config.log_retention(),
        runtime,
    })
    .map_err(cause)?;

    // Signals are ours: requests are the first of several that get their time.
    let mut server = rest::server(&service.api(), settings.listeners, KEEP_ALIVE)?
        .disable_signals()
        .shutdown_timeout(config.shutdown_seconds);
    if let Some(workers) = config.workers {
        server = server.workers(workers);
    }
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

/// What the settings stand for. All that can be wrong with them is found here, before anything is made or changed.
struct Settings {
    listeners: Vec<TcpListener>,
    /// `None` where a key is to be made.
    seal: Option<Seal>,
    connector: Connector,
    rates: RateWindows,
    tiers: Tiers,
}

impl Settings {
    /// What costs least is looked at first.
    async fn read(config: &Arc<Config>) -> anyhow::Result<Self> {
        let backend = backend(config)?;
        let folder = &config.data_dir;
        anyhow::ensure!(folder.is_dir() || !folder.exists(), "{} is no folder", folder.display());
        let seal = configured_seal(config, &backend)?;
        let policy = Policy::allowing(config.allow_outbound.iter().map(String::as_str))
            .context("SVC_ALLOW_OUTBOUND")?;
        let listeners = listen(&config.listen).with_context(|| format!("listening on {}", config.listen))?;
        let rates = match &config.redis_url {
            Some(url) => RateWindows::shared(url, &SystemRandom::default()).await.context("SVC_REDIS_URL")?,
            None => RateWindows::local(),
        };
        // Loading the model takes seconds of computing, which must not stop the runtime.
        let loading = config.clone();
        let tiers = tokio::task::spawn_blocking(move || tiers::tiers(&loading)).await??;
        Ok(Self { listeners, seal, connector: Connector::new(policy)?, rates, tiers })
    }
}

/// Takes every address that `address` stands for, as far as this machine has it. Callers wait from here on until they
/// are served.
fn listen(address: &str) -> std::io::Result<Vec<TcpListener>> {
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

/// The key under which secrets are sealed: configured, or kept in the data folder. `None` where one is to be made, for a
/// database that has this process only.
fn configured_seal(config: &Config, backend: &Backend) -> anyhow::Result<Option<Seal>> {
    if let Some(text) = &config.secret_key {
        return read_seal(text).context("SVC_SECRET_KEY").map(Some);
    }
    let path = config.data_dir.join(KEY_FILE);
    match (std::fs::read_to_string(&path), backend) {
        (Ok(text), _) => read_seal(&text).with_context(|| path.display().to_string()).map(Some),
        (Err(error), Backend::Sqlite(_)) if error.kind() == ErrorKind::NotFound => Ok(None),
        (Err(error), Backend::Postgres(_)) if error.kind() == ErrorKind::NotFound => anyhow::bail!(
            "SVC_SECRET_KEY is not set. With PostgreSQL all replicas share one key: make it once with \
             `head -c 32 /dev/urandom | base64`, and give it to each of them"
        ),
        (Err(error), _) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

fn read_seal(text: &str) -> anyhow::Result<Seal> {
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
