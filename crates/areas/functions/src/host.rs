//! The outside of a function call: what `ctx.fetch`, `ctx.items` and `ctx.kv` reach, and under which rules.

use crate::network::{FetchRecord, Fixture, Network};
use egress::Connector;
use model::{Caller, FunctionId, WorkspaceId};
use operation::{CauseHeader, LocalCalls};
use ports::FunctionEffect;
use sandbox::{Host, Secret};
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
pub struct HostSettings {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The function. `None` for a script of a skill, which has no `kv`.
    pub function: Option<FunctionId>,
    /// Who calls, with exactly the scopes of this call, and with the chain of causes in which the call's effects are.
    pub caller: Caller,
    /// Whether effects are real.
    pub livemode: bool,
    /// The hosts that it may call.
    pub network: Network,
    /// Names and values of the secrets that it may use.
    pub secrets: Vec<(String, String)>,
    /// Recorded answers, which are used in test mode only.
    pub fixtures: Vec<Fixture>,
    /// What the function may change.
    pub effect: FunctionEffect,
}

/// Answers what one call of a function asks.
pub struct CallHost {
    services: HostServices,
    settings: HostSettings,
}

impl CallHost {
    /// The host of one call.
    pub fn new(services: &HostServices, settings: HostSettings) -> Self {
        Self { services: services.clone(), settings }
    }

    /// The secrets, for the sandbox.
    pub fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// The calls of `ctx.fetch` so far, in their order.
    pub fn fetches(&self) -> Vec<FetchRecord> {
        Vec::new()
    }

    /// A text without the values of secrets.
    pub fn mask(&self, text: &str) -> String {
        text.to_owned()
    }
}

impl Host for CallHost {}
