//! Serving: from the configuration to a listening socket, and back down on SIGTERM.

use crate::compose::{Service, ServiceParts};
use crate::{Config, demo, tiers};
use actix_web::{App, HttpServer};
use anyhow::Context;
use auth::{RateWindows, Seal};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use egress::{Connector, Policy};
use model::{Clock, Random, SystemClock, SystemRandom};
use operation::Limits;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{Backend, Db, Options};
use tokio::runtime::Handle;

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
    let began = std::time::Instant::now();
    let migrated = Db::migrate(&backend(&config)?).map_err(cause)?;
    for name in &migrated {
        tracing::info!(name, "migrated the database");
    }
    let db = open_database(&config)?;
    let welcome = if with_demo { Some(demo::prepare(&db, &config).await?) } else { None };
    let config = Arc::new(config);
    // Loading the model takes seconds of computing, which must not stop the runtime.
    let loading = config.clone();
    let tiers = tokio::task::spawn_blocking(move || tiers::tiers(&loading)).await??;
    let rates = match &config.redis_url {
        Some(url) => RateWindows::shared(url, &*db.random()).await.context("SVC_REDIS_URL")?,
        None => RateWindows::local(),
    };
    let policy =
        Policy::allowing(config.allow_outbound.iter().map(String::as_str)).context("SVC_ALLOW_OUTBOUND")?;
    let service = Service::new(ServiceParts {
        db,
        tiers,
        connector: Connector::new(policy)?,
        seal: seal(&config)?,
        objects: data::files::objects_in(&config.data_dir.join("files")).map_err(cause)?,
        rates,
        base_url: config.base_url(),
        limits: Limits::default(),
        runtime,
    })
    .map_err(cause)?;

    let face = service.face();
    let patience = Duration::from_secs(config.shutdown_seconds);
    let app = move || App::new().configure(|app| http_face::configure(app, &face));
    let mut server = HttpServer::new(app).shutdown_timeout(config.shutdown_seconds);
    if let Some(workers) = config.workers {
        server = server.workers(workers.max(1));
    }
    let server = server.bind(&config.listen).with_context(|| format!("listening on {}", config.listen))?;
    let running = service.jobs.start();
    let delivering = service.deliveries.start();
    tracing::info!(listen = config.listen, ready_ms = began.elapsed().as_millis(), "serving");
    if let Some(welcome) = welcome {
        welcome.print();
    }
    server.run().await?;

    tracing::info!("stopping");
    let aborted = running.stop(patience).await;
    if !aborted.is_empty() {
        tracing::warn!(jobs = aborted.len(), "jobs were stopped; they run again");
    }
    // What the last requests told is delivered by whoever serves next, or by ourselves then.
    delivering.stop(patience).await;
    service.stop(patience).await;
    Ok(())
}

/// The key under which secrets are sealed: configured, or made once and kept in the data folder.
fn seal(config: &Config) -> anyhow::Result<Seal> {
    let text = match &config.secret_key {
        Some(text) => text.clone(),
        None => {
            let path = config.data_dir.join("secret.key");
            match std::fs::read_to_string(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => make_key(&path)?,
                Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
            }
        }
    };
    let key = STANDARD.decode(text.trim()).context("the secret key is not base64")?;
    Seal::new(&key).map_err(cause)
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
