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
mod ports;
mod prompt;
mod prompt_variables;
mod queries;
mod read_placeholders;
mod recovery;
mod retry;
mod rows;
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
mod work;

pub use approvals::ApprovalRoute;
pub use engine::{RunEngine, RunEngineParts};
pub(crate) use metrics::OPEN_RUNS;
pub use model::{NewRun, OnBusy, Run, RunStatus};
pub use ports::RunDirectory;

use operation::{Domain, EventType, Operations};

/// The area.
pub struct Runs;

impl Domain for Runs {
    const AREA: &'static str = "Runs";
    const ORDER: u16 = 20;
    const DESCRIPTION: &'static str = "A run executes an agent on a text input and returns its output. It is made of steps, spends Energy \
         with a live key, and can share the memory of a conversation with other runs.";

    fn operations() -> Operations {
        vec![
            Box::new(operations::CreateRun),
            Box::new(operations::CreateWorkspaceRun),
            Box::new(operations::ListRuns),
            Box::new(operations::GetRun),
        ]
    }

    fn event_types() -> Vec<EventType> {
        EventType::of::<events::RunEvent<'_>>()
    }
}
