//! The configured database: opening it, migrating it, and holding it while it is served.

use crate::Config;
use crate::operator_error::cause;
use anyhow::Context;
use model::{Clock, Random, SystemClock, SystemRandom};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use store::{Backend, Db, Options};

/// Reads which database is configured.
pub(crate) fn backend(config: &Config) -> anyhow::Result<Backend> {
    Backend::parse(&config.database_url()).map_err(anyhow::Error::msg)
}

/// Opens the configured database, which must have been migrated.
pub(crate) fn open_database(config: &Config) -> anyhow::Result<Db> {
    let backend = backend(config)?;
    let named = name(&backend).to_owned();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom::default());
    let opened = Db::open(Options { backend, connections: config.database_connections, clock, random });
    opened.map_err(cause).with_context(|| format!("opening {named}"))
}

/// Brings the configured database to the newest schema, and returns the migrations that were applied. Creates the folder of
/// a SQLite file.
pub(crate) fn migrate(config: &Config) -> anyhow::Result<Vec<String>> {
    let backend = backend(config)?;
    if let Backend::Sqlite(path) = &backend {
        make_folder(path)?;
    }
    Db::migrate(&backend).map_err(cause).with_context(|| format!("migrating {}", name(&backend)))
}

/// Locks the configured database for the process that serves it, until the returned file is closed. SQLite has one: jobs and
/// events wake each other, and caches are dropped, inside a process. PostgreSQL serves any number of replicas.
///
/// The lock is on a file beside the database, because SQLite's own locks are on the database itself. The kernel releases it
/// when the process ends, however it ends.
///
/// # Errors
/// When another process holds it.
pub(crate) fn hold(backend: &Backend) -> anyhow::Result<Option<File>> {
    let Backend::Sqlite(path) = backend else { return Ok(None) };
    make_folder(path)?;
    let lock_path = format!("{path}.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&lock_path);
    let file = file.with_context(|| format!("opening {lock_path}"))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).with_context(|| {
        format!("another process serves {path}: stop it first, or give this one a SVC_DATA_DIR of its own")
    })?;
    Ok(Some(file))
}

fn make_folder(path: &str) -> anyhow::Result<()> {
    let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder else { return Ok(()) };
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// The name of a database in messages. The URL of PostgreSQL may contain a password.
fn name(backend: &Backend) -> &str {
    match backend {
        Backend::Sqlite(path) => path,
        Backend::Postgres(_) => "the PostgreSQL database",
    }
}
