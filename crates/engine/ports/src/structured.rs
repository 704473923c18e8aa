//! Structured answers of agents, for operations of other groups.

use auth::idempotency::Claim;
use model::{AgentId, Answering, Caller, Result, RunId};
use operation::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// What an agent is to answer.
#[derive(Debug, Clone)]
pub struct StructuredTask {
    /// The agent; the workspace's default agent if not given.
    pub agent: Option<AgentId>,
    /// What it is to do, and with what.
    pub input: String,
    /// A JSON Schema of the answer.
    pub schema: Value,
    /// The contact whom it is about. Tools of the agent reach no other, unless they say so.
    pub contact: Option<Answering>,
    /// What it is called in ledgers, such as `contact_enrichment`.
    pub purpose: &'static str,
    /// The right to execute, where the request carries an `Idempotency-Key`: a resend finds the run that it began.
    pub claim: Option<Claim>,
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredAnswer {
    /// The run.
    pub run: RunId,
    /// The agent that ran.
    pub agent: AgentId,
    /// How the run ended, such as `completed`.
    pub status: &'static str,
    /// Why there is no answer; `None` where there is one.
    pub reason: Option<String>,
    /// The answer, which fits the schema.
    pub data: Option<Value>,
    /// The Energy spent.
    pub energy: i64,
}

/// Runs of agents that answer with JSON. The group of agents implements it.
pub trait StructuredRuns: Send + Sync {
    /// Runs an agent and waits for the end. Energy is held and charged as for every run.
    ///
    /// # Errors
    /// Those of a request that makes a run, such as `energy_depleted`, `agent_not_configured` and those of models.
    fn answer(&self, caller: Caller, task: StructuredTask) -> BoxFuture<Result<StructuredAnswer>>;
}

/// Runs of agents that answer with JSON. A service that operations ask for.
#[derive(Clone)]
pub struct Structurer(Arc<dyn StructuredRuns>);

impl Structurer {
    /// These runs.
    pub fn new(runs: impl StructuredRuns + 'static) -> Self {
        Self(Arc::new(runs))
    }
}

impl std::ops::Deref for Structurer {
    type Target = dyn StructuredRuns;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
