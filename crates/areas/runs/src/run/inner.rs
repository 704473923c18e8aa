//! Runs within runs: what the run of an agent that another agent called knows of its outer run.

use model::{AgentId, RunId};
use serde::{Deserialize, Serialize};

/// The bounds of a run that the tool of another run started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InnerRun {
    /// The run that called the tool.
    pub(crate) outer: RunId,
    /// The number of runs that it is within.
    pub(crate) depth: usize,
    /// The agent of the outermost run. Its month is charged.
    pub(crate) agent: AgentId,
    /// The limit of that month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) month: Option<i64>,
    /// What the outer run's limit left when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) energy: Option<i64>,
    /// The longest duration, in seconds.
    pub(crate) timeout_seconds: i64,
}

/// The run of another agent that a call of a tool started, as its step notes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CalledRun {
    pub(crate) id: RunId,
    /// The Energy that it spent, with the runs within it. It counts for the limit of the outer run.
    pub(crate) energy: i64,
}
