//! The service inside another program: opened from a configuration, and called without a socket.

use crate::Config;
use crate::cli::set_up;
use crate::compose::Service;
use crate::database::{backend, hold, migrate, open_database};
use crate::operator_error::cause;
use crate::secret_key::open_seal;
use crate::settings::Settings;
use crate::traces::Traces;
use operation::{LocalAnswer, OperationInput};
use std::sync::Arc;
use tokio::runtime::Handle;

impl Service {
    /// Opens the database, migrates it, and puts the service together. A SQLite file is locked until the service is dropped.
    /// Runs are driven on the runtime that calls this. Nothing else goes on in the background until `jobs`, `deliveries` and
    /// `channels` are started.
    ///
    /// # Errors
    /// When a setting is wrong, the database cannot be opened, or another process serves it.
    pub async fn open(config: Config) -> anyhow::Result<Self> {
        let config = Arc::new(config);
        let mut settings = Settings::read(&config).await?;
        let held = hold(&backend(&config)?)?;
        migrate(&config)?;
        let db = open_database(&config)?;
        let seal = open_seal(&config, settings.keys.take(), &db).await?;
        let traces = Traces::off(db.random()).map_err(cause)?;
        let parts = settings.parts(&config, db, seal, traces, Handle::current())?;
        let mut service = Self::new(parts).map_err(cause)?;
        service.held = held;
        Ok(service)
    }

    /// Makes a workspace with the plan `unlimited` where there is none of this name, and a live key with all scopes. Returns the
    /// secret of the key.
    ///
    /// # Errors
    /// When the name is not valid.
    pub async fn key_of(&self, workspace: &str) -> anyhow::Result<String> {
        let name = workspace.to_owned();
        self.pipeline.db.write(move |tx| set_up(tx, &name)).await.map_err(cause)
    }

    /// Calls an operation by its id, such as `createItem`. The call passes the same gates as a request over HTTP: the key, its
    /// scopes and limits, idempotency, validation, and the request log. A refusal is an answer too, with its status.
    ///
    /// # Errors
    /// For an id that no operation has, a parameter of the path that is missing, and an operation that reads a form or answers
    /// with a stream.
    pub async fn call(&self, operation: &str, input: &OperationInput) -> anyhow::Result<LocalAnswer> {
        self.pipeline.call_operation(operation, input).await.map_err(cause)
    }
}
