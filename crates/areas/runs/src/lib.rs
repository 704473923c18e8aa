//! Runs: one execution of an agent on one input.
//!
//! A run is a row with a status and a lease with an epoch. Each model call and each tool call is a step, which is written
//! before it is made; its result is written together with its price. After a crash the run resumes after its last finished
//! step, and nothing is paid twice. At most one run of a conversation executes at a time; the others are queued in order. A
//! run that waits for an approval has no worker.
//!
//! The folders follow the life of a run: `accept`, `drive` with `steps` and `tools`, `approvals`, `end`. They share the
//! `engine`, the state of an `execution`, `memory`, `guardrails`, and the stored `run` with its `queries`.

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

pub use directory::RunDirectory;
pub use engine::{RunEngine, RunEngineParts};
pub use group::GROUP;
pub use run::{NewRun, OnBusy, Run, RunStatus};
