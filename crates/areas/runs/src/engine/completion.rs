//! Completion of a run: what is to be written of its end.

use crate::execution::Execution;
use crate::run::Ending;
use auth::idempotency::Claim;
use std::sync::Arc;

/// The end of a run that this process has worked on.
pub(crate) struct Completion {
    pub(crate) execution: Arc<Execution>,
    pub(crate) ending: Ending,
    /// The Energy of its last step.
    pub(crate) energy: i64,
    pub(crate) claim: Option<Claim>,
}
