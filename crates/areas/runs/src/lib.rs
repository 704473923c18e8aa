//! Runs: one execution of an agent on one input.
//!
//! A run is a row that says how far it has come and who works on it (a lease with an epoch). Each call of the model
//! or of a tool is a step, written before it is made, and its result is written together with its price, so that a
//! crash resumes after the last finished step and nothing is paid twice. At most one run of a conversation goes on
//! at a time; the others wait in order. A run may also wait for a person, and then nobody works on it.

mod accept_together;
mod acceptance;
mod action;
mod active;
mod answer;
mod approvals;
mod call_key;
mod channel_memory;
mod completion;
mod conversation;
mod directory;
mod drive;
mod ending;
mod engine;
mod evaluate;
mod events;
mod failure;
mod fence;
mod finder;
mod finish;
mod finish_together;
mod fold;
mod group;
mod guard;
mod http_tool;
mod injection;
mod listen;
mod local_call;
mod local_tool;
mod many;
mod memory;
mod metrics;
mod model;
pub mod operations;
mod placeholders;
mod prompt;
mod prompt_variables;
mod queries;
mod read_placeholders;
mod recovery;
mod retry;
mod rows;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod spans;
mod start;
mod step;
mod stream;
mod structured;
mod submit;
mod tool_limits;
mod tools;
mod trace;
mod turn;
mod usage;
mod work;

pub use self::model::{NewRun, OnBusy, Run, RunStatus};
pub use approvals::ApprovalRoute;
pub use directory::RunDirectory;
pub use engine::{RunEngine, RunEngineParts};
pub use group::GROUP;
