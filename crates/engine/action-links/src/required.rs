//! Decisions that a run asks people for, as callers see them.

use model::{ContactId, JsonText, StepId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

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
