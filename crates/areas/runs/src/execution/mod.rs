//! State of a run in execution: its plan, its progress, and the registry of the runs of this process.

mod persist;
mod plan;
mod progress;
mod registry;
mod state;

pub(crate) use persist::{drop_pending, write_absorbed, write_finished};
pub(crate) use plan::{Plan, PlannedTool};
pub(crate) use progress::{Progress, ProgressSender, StepHead};
pub(crate) use registry::ActiveRuns;
pub(crate) use state::{Execution, FirstStep, ModelRequest, TopicCheck};
