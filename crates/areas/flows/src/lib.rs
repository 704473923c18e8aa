//! Flows: what an owner draws, and its runs.

mod draft;
mod engine;
mod events;
mod group;
mod nodes;
mod runs;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod waits;

pub use engine::{FlowEngine, Serving};
pub use group::GROUP;
