//! Outcomes of a run.

use super::row::RunRow;
use model::Code;

/// Outcome of an execution.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
    Completed(String),
    Incomplete(&'static str, Option<String>),
    Failed(Code, String),
    /// Nobody answered what it asked.
    Unanswered,
    /// Somebody else ended it, or took it over; the database says which.
    Stopped,
}

/// A run that has ended, and whether the outcome of its request was stored with it.
pub(crate) struct Ended {
    pub(crate) row: RunRow,
    pub(crate) stored: bool,
}
