//! Approval requests, as stored with their runs.

use model::Timestamp;
use serde::{Deserialize, Serialize};

/// The lifetime of an approval request.
const PATIENCE_SECONDS: i64 = 24 * 3600;

/// State of the approvals of a run. Stored with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalState {
    /// The open request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<ApprovalRequest>,
    /// The total waiting time in milliseconds. It does not count towards the timeout of the run.
    #[serde(default)]
    pub(crate) waited_ms: i64,
}

impl ApprovalState {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// An approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalRequest {
    /// The position of the first call. It identifies the request within its run.
    pub(crate) from: i64,
    pub(crate) asked_at: Timestamp,
}

impl ApprovalRequest {
    pub(crate) fn expires_at(self) -> Timestamp {
        self.asked_at.plus_seconds(PATIENCE_SECONDS)
    }
}
