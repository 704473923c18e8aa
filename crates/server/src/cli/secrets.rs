//! `svc secrets`: the key under which secrets are sealed, and its rotation.

use super::arguments::Json;
use super::output;
use crate::Config;
use crate::compose::sealed_tables;
use crate::database::{migrate, open_database};
use crate::operator_error::cause;
use crate::secret_key::{Keys, lock_folder, replace_file};
use crate::values::whole;
use anyhow::Context;
use auth::reseal::reseal_table;
use auth::{Seal, SecretKey, adopt_key, begin_rotation, end_rotation};
use clap::Subcommand;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::Db;

#[derive(Subcommand)]
pub(super) enum SecretsCommand {
    /// Encrypt all stored secrets under a new key.
    ///
    /// With `secret.key` in the data folder, the new key is generated. With SVC_SECRET_KEY, first give every replica the new
    /// key there and the present one as SVC_SECRET_KEY_PREVIOUS, and run this with the same settings. The service can run
    /// meanwhile. A rotation that was interrupted is resumed by running it again.
    Rotate {
        /// Seconds that running services get to read the new key, before each of two steps. 0 if none is running.
        #[arg(
            long,
            value_name = "SECONDS",
            default_value = "10",
            value_parser = whole::<u64, 0, 3_600>,
            allow_negative_numbers = true
        )]
        wait: u64,
        #[command(flatten)]
        json: Json,
    },
}

pub(super) fn run(config: &Config, command: &SecretsCommand) -> anyhow::Result<()> {
    let SecretsCommand::Rotate { wait, json } = command;
    migrate(config)?;
    let db = open_database(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(rotate(config, &db, Duration::from_secs(*wait)))?;
    Ok(output::rows(&rows, json.json)?)
}

/// Rotates the key. Each step can be repeated, so that a rotation that was broken off anywhere goes on from there.
async fn rotate(config: &Config, db: &Db, wait: Duration) -> anyhow::Result<Vec<Value>> {
    let read = || Keys::read(config, db.backend());
    let mut keys = read()?.context("there is no secret key yet: `svc serve` generates one")?;
    let _held = if keys.in_files { Some(lock_folder(&config.data_dir)?) } else { None };
    let mark = keys.current.mark().to_owned();
    let installed = db.write(move |tx| adopt_key(tx, &mark)).await.map_err(cause)?;
    let (active, _) = keys.chosen(&installed)?;
    anyhow::ensure!(
        keys.in_files || keys.previous.is_some(),
        "SVC_SECRET_KEY is the key in use. To rotate it, give all replicas a new key there, and the present one as \
         SVC_SECRET_KEY_PREVIOUS"
    );
    if active.mark() == keys.current.mark() {
        // Nothing may be sealed under the previous key when its place is taken by another.
        let rows = reseal(db, &keys).await?;
        if !keys.in_files || installed.retiring.is_some() {
            return Ok(rows);
        }
        replace_file(&config.data_dir)?;
        keys = read()?.context("secret.key is missing")?;
    }
    let previous = keys.previous.as_ref().context("the previous key is missing")?;
    if keys.in_files {
        pause(wait, "running services read the new key").await;
    }
    let (from, to) = (previous.mark().to_owned(), keys.current.mark().to_owned());
    db.write(move |tx| begin_rotation(tx, &from, &to)).await.map_err(cause)?;
    pause(wait, "running services encrypt under the new key").await;
    reseal(db, &keys).await
}

async fn pause(wait: Duration, until: &str) {
    if !wait.is_zero() {
        output::aside(&format!("Waiting {} s until {until}.", wait.as_secs()));
        tokio::time::sleep(wait).await;
    }
}

/// Seals everything under the current key, and ends the rotation. Gives a row for each table.
async fn reseal(db: &Db, keys: &Keys) -> anyhow::Result<Vec<Value>> {
    let seal = Arc::new(Seal::with_keys(keys.current.clone(), keys.previous.clone()));
    let mut resealed: BTreeMap<&'static str, usize> = BTreeMap::new();
    let tables = sealed_tables().map_err(cause)?;
    let unreadable = loop {
        let (mut changed, mut unreadable) = (0, BTreeMap::new());
        for table in &tables {
            let done = reseal_table(db, &seal, table).await.map_err(cause)?;
            *resealed.entry(table.table).or_default() += done.resealed;
            unreadable.insert(table.table, done.unreadable);
            changed += done.resealed;
        }
        // Restoring a version of an agent copies its secrets, perhaps behind our back.
        if changed == 0 {
            break unreadable;
        }
    };
    if let Some(from) = keys.previous.as_ref().map(SecretKey::mark).map(str::to_owned) {
        db.write(move |tx| end_rotation(tx, &from)).await.map_err(cause)?;
    }
    if unreadable.values().any(|number| *number > 0) {
        output::aside(
            "Some values open under none of the keys. They were unreadable before, and stay as they are.",
        );
    }
    let row = |(table, resealed): (&'static str, usize)| json!({ "table": table, "resealed": resealed, "unreadable": unreadable.get(table) });
    Ok(resealed.into_iter().map(row).collect())
}
