//! The outside of a function call: what `ctx.fetch`, `ctx.items` and `ctx.kv` reach, and under which rules.
//!
//! Everything that a worker asks is treated as hostile: the program, or whoever has taken over its process, chose each byte.

mod fetch;
mod fixtures;
mod items;
mod kv;
mod mask;
mod schema;
mod secrets;

pub use fixtures::FixtureHost;
pub use kv::forget;

use crate::network::{FetchRecord, Fixture, Network, NetworkMode};
use async_trait::async_trait;
use egress::Connector;
use kv::Kv;
use model::{Caller, FunctionId, WorkspaceId};
use operation::{CauseHeader, LocalCalls};
use ports::FunctionEffect;
use sandbox::{FetchRequest, FetchResponse, Host, HostError, Secret};
use secrets::Secrets;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use store::Db;

/// What calls of all functions use. Cheap to clone.
#[derive(Clone)]
pub struct HostServices {
    /// The database.
    pub db: Db,
    /// Outbound HTTP.
    pub connector: Connector,
    /// Makes the header of requests to the service's own address.
    pub causes: CauseHeader,
    /// The operations of the service.
    pub calls: LocalCalls,
}

/// What one call may do.
#[derive(Debug)]
pub struct HostSettings {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The function.
    pub function: FunctionId,
    /// Who calls, with exactly the scopes of this call, and with the chain of causes in which the call's effects are.
    pub caller: Caller,
    /// Whether effects are real.
    pub livemode: bool,
    /// The hosts that it may call.
    pub network: Network,
    /// Names and values of the secrets that it may use. Only a function with a list of hosts gets them.
    pub secrets: Vec<(String, String)>,
    /// Values of other secrets, which its input has.
    pub hidden: Vec<String>,
    /// Recorded answers, which are used in test mode only.
    pub fixtures: Vec<Fixture>,
    /// What the function may change.
    pub effect: FunctionEffect,
}

/// Answers what one call of a function asks.
pub struct CallHost {
    services: HostServices,
    settings: HostSettings,
    secrets: Secrets,
    records: Records,
}

/// The calls of `ctx.fetch`, in the order in which they began.
#[derive(Default)]
struct Records(Mutex<Vec<FetchRecord>>);

impl Records {
    fn lock(&self) -> MutexGuard<'_, Vec<FetchRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallHost {
    /// The host of one call.
    pub fn new(services: &HostServices, mut settings: HostSettings) -> Self {
        let secrets = std::mem::take(&mut settings.secrets);
        // A function that may call anybody could send secrets to anybody.
        let usable = if settings.network.mode == NetworkMode::Allowlist { secrets } else { Vec::new() };
        let secrets = Secrets::new(usable, &settings.hidden, &*services.db.random());
        Self { services: services.clone(), settings, secrets, records: Records::default() }
    }

    /// The names and placeholders of the secrets, for the sandbox.
    pub fn secrets(&self) -> Vec<Secret> {
        self.secrets.placeholders()
    }

    /// The calls of `ctx.fetch` so far, in the order in which they began.
    pub fn fetches(&self) -> Vec<FetchRecord> {
        self.records.lock().clone()
    }

    /// A text without the values of secrets: a line of the log, or the message of an error.
    pub fn mask(&self, text: &str) -> String {
        self.secrets.mask.text(text)
    }

    /// A JSON text without the values of secrets, which stays JSON: input and output.
    pub fn mask_json(&self, text: &str) -> String {
        self.secrets.mask.json(text)
    }

    fn kv(&self) -> Kv {
        let HostSettings { workspace, function, livemode, .. } = self.settings;
        Kv { workspace, function, livemode }
    }

    fn expect_writing(&self, what: &str) -> Result<(), HostError> {
        if self.settings.effect == FunctionEffect::Read { Err(read_only(what)) } else { Ok(()) }
    }
}

/// A call that is made once more after a crash must not change anything.
fn read_only(what: &str) -> HostError {
    let message = format!("a function whose effect is `read` cannot {what}");
    HostError::new("ReadOnly", &message).code("read_only")
}

#[async_trait]
impl Host for CallHost {
    async fn fetch(&self, request: FetchRequest) -> Result<FetchResponse, HostError> {
        self.fetch_recorded(request).await
    }

    async fn find_items(&self, collection: String, query: Value) -> Result<Value, HostError> {
        items::find(&self.services.calls, self.settings.caller.clone(), collection, query).await
    }

    async fn get_item(&self, collection: String, id: String) -> Result<Value, HostError> {
        items::get(&self.services.calls, self.settings.caller.clone(), collection, id).await
    }

    async fn kv_get(&self, key: String) -> Result<Value, HostError> {
        self.kv().get(&self.services.db, key).await
    }

    async fn kv_set(&self, key: String, value: Value) -> Result<(), HostError> {
        self.expect_writing("set values in `kv`")?;
        self.kv().set(&self.services.db, key, &value).await
    }

    async fn kv_delete(&self, key: String) -> Result<(), HostError> {
        self.expect_writing("delete values in `kv`")?;
        self.kv().delete(&self.services.db, key).await
    }
}
