//! Runs: one execution of an agent on one input.
//!
//! A run is a row that says how far it has come and who works on it (a lease with an epoch). Each call of the model
//! or of a tool is a step, written before it is made, and its result is written together with its price, so that a
//! crash resumes after the last finished step and nothing is paid twice. At most one run of a conversation goes on
//! at a time; the others wait in order. A run may also wait for a person, and then nobody works on it.

mod accept;
mod approvals;
mod directory;
mod drive;
mod end;
mod engine;
mod events;
mod execution;
mod group;
mod guardrails;
mod memory;
pub mod operations;
mod prompt;
mod queries;
mod run;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod spans;
mod steps;
mod tools;
mod trace;
mod usage;

pub use approvals::ApprovalRoute;
pub use directory::RunDirectory;
pub use engine::{RunEngine, RunEngineParts};
pub use group::GROUP;
pub use run::{NewRun, OnBusy, Run, RunStatus};
