//! A run as it is stored and shown: API objects, rows, options, and the contents of steps.

pub(crate) mod conversation;
pub(crate) mod effect_key;
mod ending;
mod failure;
mod inner;
mod new_run;
mod object;
mod options;
mod required_action;
pub(crate) mod response;
mod row;
mod step;
mod step_content;

pub(crate) use ending::{Ended, Ending};
pub(crate) use failure::{failure_of, refusal_of};
pub(crate) use inner::{CalledRun, InnerRun};
pub use new_run::{NewRun, OnBusy};
pub(crate) use new_run::{VersionNumber, WantedVersion};
pub use object::{Run, RunStatus};
pub(crate) use object::{RunEnergyItem, RunFailure, RunStep, RunTrigger, RunTriggerKind};
pub(crate) use options::{RunOptions, RunPurpose};
pub(crate) use required_action::ApprovalRequest;
pub(crate) use response::RunAnswer;
pub(crate) use row::RunRow;
pub(crate) use step::{StepKind, StepRow, StepStatus};
pub(crate) use step_content::{
    Approval, CheckOutput, MemoryOutput, ModelOutput, ToolInput, ToolOutput, Verdict,
};
