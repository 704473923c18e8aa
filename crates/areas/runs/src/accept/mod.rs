//! Acceptance of runs: everything that can refuse one, its row and its first step, and the response to its request.

mod agent;
mod batch;
mod busy;
mod retry;
mod row;
mod single;
mod stream;
mod structured;
mod submit;
mod test_runs;
mod triggered;

pub(crate) use agent::narrowed;
pub(crate) use submit::Submitted;
