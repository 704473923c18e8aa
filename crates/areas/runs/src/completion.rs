//! Completion of a run: what is to be written of its end.

use super::ending::Ending;
use super::work::Work;
use auth::idempotency::Claim;
use std::sync::Arc;

/// The end of a run that this process has worked on.
pub(super) struct Completion {
    pub(super) work: Arc<Work>,
    pub(super) ending: Ending,
    /// What its last step cost.
    pub(super) energy: i64,
    pub(super) claim: Option<Claim>,
}
