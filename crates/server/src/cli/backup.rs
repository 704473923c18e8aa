//! `svc backup`: a copy of the embedded database, while it is in use.

use super::arguments::Json;
use super::output;
use crate::Config;
use crate::database::backend;
use crate::operator_error::cause;
use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use store::{Backend, backup_sqlite};

#[derive(Args)]
pub(super) struct Backup {
    /// The file to write. It must not exist.
    file: PathBuf,
    #[command(flatten)]
    json: Json,
}

/// Writes the file, and prints its name and size.
pub(super) fn backup(config: &Config, arguments: &Backup) -> anyhow::Result<()> {
    let Backend::Sqlite(path) = backend(config)? else {
        bail!("`svc backup` copies a SQLite database. Use pg_dump for PostgreSQL")
    };
    let file = &arguments.file;
    ensure!(!file.exists(), "{} exists", file.display());
    backup_sqlite(&path, file)
        .map_err(cause)
        .with_context(|| format!("copying {path} to {}", file.display()))?;
    let bytes = file.metadata()?.len();
    output::object(&json!({ "file": file, "bytes": bytes }), arguments.json.json)?;
    Ok(())
}
