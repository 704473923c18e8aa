//! Checks of the database and of what only it can tell.

use super::Finding;
use crate::Config;
use crate::compose::log_kinds;
use crate::database::{backend, open_database};
use crate::operator_error::cause;
use crate::secret_key::Keys;
use anyhow::Context;
use auth::installed_keys;
use model::{Clock, SystemClock, Timestamp};
use std::path::Path;
use store::dialect::{database_time, product, size_bytes};
use store::logs::{LogSize, Logs};
use store::{Backend, Db};

/// From here on clocks differ by so much that leases and signed links end at the wrong time.
const SKEW_MS: i64 = 2_000;

/// Is it there, and is its schema the one of this program? Hands it out if so.
pub(super) async fn database(config: &Config, opened: &mut Option<Db>) -> anyhow::Result<Finding> {
    let backend = backend(config)?;
    let name = match &backend {
        Backend::Sqlite(path) if !Path::new(path).exists() => {
            return Ok(Finding::warn(format!("{path} does not exist. `svc serve` creates it.")));
        }
        Backend::Sqlite(path) => format!("SQLite, {path}"),
        Backend::Postgres(_) => "PostgreSQL".to_owned(),
    };
    let state = tokio::task::spawn_blocking(move || Db::schema_state(&backend)).await?;
    let state = state.map_err(cause).context("The database cannot be reached: check SVC_DATABASE_URL")?;
    if !state.pending.is_empty() {
        let pending = state.pending.len();
        return Ok(Finding::warn(format!(
            "{name}: {pending} migrations are pending. `svc serve` and `svc migrate` apply them; make a backup first."
        )));
    }
    if !state.unknown.is_empty() {
        return Ok(Finding::fail(format!(
            "{name}: a newer version of svc has migrated it. Use that version, or restore the backup made before."
        )));
    }
    let settings = config.clone();
    let db = tokio::task::spawn_blocking(move || open_database(&settings)).await??;
    let (product, bytes) = db.read(|read| Ok((product(read)?, size_bytes(read)?))).await.map_err(cause)?;
    *opened = Some(db);
    Ok(Finding::ok(format!("{name}: the schema is current. Version: {product}. Size: {} MiB.", bytes >> 20)))
}

/// Is it the key under which this database's secrets are encrypted?
pub(super) async fn secret_key(config: &Config, opened: Option<Db>) -> anyhow::Result<Finding> {
    let keys = Keys::read(config, &backend(config)?)?;
    let Some(db) = opened else {
        return Ok(Finding::warn("Not compared with the database, which is not ready."));
    };
    Ok(match (keys, db.read(installed_keys).await.map_err(cause)?) {
        (Some(keys), Some(installed)) => {
            let (active, _) = keys.chosen(&installed)?;
            if active.mark() != keys.current.mark() {
                Finding::warn(
                    "The previous key is in use. Once all replicas have both keys, run `svc secrets rotate`.",
                )
            } else if installed.retiring.is_some() {
                Finding::warn("A rotation has not ended. Run `svc secrets rotate`.")
            } else {
                Finding::ok("It is the key of this database. Keep a backup of it apart from the database's.")
            }
        }
        (None, Some(_)) => Finding::fail(
            "secret.key is missing in the data folder, but this database has secrets. Restore the file, or set \
             SVC_SECRET_KEY.",
        ),
        (Some(_), None) => Finding::ok("The first start of `svc serve` ties it to this database."),
        (None, None) => Finding::ok("`svc serve` generates one in the data folder."),
    })
}

/// Are the logs within their sizes?
pub(super) async fn logs(config: &Config, opened: Option<Db>) -> anyhow::Result<Finding> {
    let Some(db) = opened else {
        return Ok(Finding::warn("Not measured, because the database is not ready."));
    };
    let logs = Logs::new(&log_kinds().map_err(cause)?, &config.log_retentions()).map_err(cause)?;
    let sizes = db.read(move |read| logs.sizes(read)).await.map_err(cause)?;
    let size =
        |log: &LogSize| format!("{} {} of {} MiB", log.log, log.size.bytes >> 20, log.most_bytes >> 20);
    let message = sizes.iter().map(size).collect::<Vec<_>>().join(", ");
    // Jobs trim the logs from time to time, so that they may be somewhat larger.
    let is_over = |log: &LogSize| log.size.bytes > log.most_bytes.saturating_add(log.most_bytes / 4);
    Ok(if sizes.iter().any(is_over) {
        Finding::warn(format!(
            "{message}. Those over their size are trimmed while `svc serve` runs; if they stay, look for failed jobs in \
             its log."
        ))
    } else {
        Finding::ok(format!("{message}."))
    })
}

/// Is the time plausible, and the same on the database's machine?
pub(super) async fn clock(opened: Option<Db>) -> anyhow::Result<Finding> {
    let now = SystemClock.now();
    let bound = |text| Timestamp::parse(text).unwrap_or(now);
    if now < bound("2025-01-01T00:00:00Z") || now > bound("2100-01-01T00:00:00Z") {
        return Ok(Finding::fail(format!(
            "This machine's clock says {now}. Set it, and run a time service (NTP)."
        )));
    }
    let Some(db) = opened else {
        return Ok(Finding::ok(format!("This machine's clock says {now}.")));
    };
    let before = SystemClock.now().millis();
    let there = db.read(database_time).await.map_err(cause)?.millis();
    let after = SystemClock.now().millis();
    // What the question itself took does not count.
    let skew = (there - after).max(before - there).max(0);
    if skew >= SKEW_MS {
        return Ok(Finding::fail(format!(
            "The database's clock differs by {skew} ms. Run a time service (NTP) on both machines."
        )));
    }
    Ok(Finding::ok(format!("This machine's clock says {now}, and the database's agrees.")))
}
