//! AI agents and their runs: what an agent is, how a run goes, and which models answer.

pub mod agents;
pub mod providers;
pub mod runs;

pub use agents::Agents;
pub use runs::{RunEngine, Runs};
