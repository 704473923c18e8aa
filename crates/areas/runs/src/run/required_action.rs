//! Required actions: what a run asks of people, as stored with the run and as callers see it.

use model::{ContactId, JsonText, StepId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// What a person must do before a run can continue.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredAction {
    /// Always `approval`: a person approves or refuses tool calls.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The tool calls, in the order in which the model requested them.
    pub calls: Vec<RequiredCall>,
    /// The contact whom the run answers over a channel, which is the one that tools with the scope `contact` reach.
    pub contact_id: Option<ContactId>,
    /// When the request expires. The run then ends as `expired`.
    pub expires_at: Timestamp,
    /// The page on which a person approves or refuses the calls, without a login: everyone with the link can do so.
    /// Only keys with `runs:execute` receive it, and lists never contain it.
    pub approval_url: Option<String>,
}

/// A tool call that needs approval.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredCall {
    /// The id of the step.
    pub step_id: StepId,
    /// The tool.
    pub tool: String,
    /// The arguments of the call.
    #[schema(value_type = Object)]
    pub arguments: JsonText,
}
