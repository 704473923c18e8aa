//! AI agents and their runs: what an agent is, how a run goes, and which models answer.

pub mod agents;
mod group;
mod json;
pub mod providers;
pub mod runs;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;

pub use agents::Agents;
pub use group::GROUP;
pub use runs::{RunEngine, Runs};
