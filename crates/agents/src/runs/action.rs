//! Required actions: what a run asks of people, as stored with the run and as callers see it.

use model::{StepId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// How long a person has for an answer.
const PATIENCE_SECONDS: i64 = 24 * 3600;

/// What a run asks of people, and has asked; stored with its options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Questions {
    /// What is asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) open: Option<Question>,
    /// How long all answers took, in milliseconds. That is not the run's time.
    #[serde(default)]
    pub(super) waited_ms: i64,
}

impl Questions {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What is asked of people at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    /// The position of the first call that is asked about, which identifies the question within its run.
    pub(super) from: i64,
    pub(super) asked_at: Timestamp,
}

impl Question {
    pub(super) fn expires_at(self) -> Timestamp {
        self.asked_at.plus_seconds(PATIENCE_SECONDS)
    }
}

/// What a person has to do before a run goes on.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredAction {
    /// Always `approval`: the person allows or refuses calls of tools.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The calls, in the order in which the model asks for them.
    pub calls: Vec<RequiredCall>,
    /// Until when. Then the run ends as `expired`.
    pub expires_at: Timestamp,
    /// Where the person answers, without a login: whoever has the link can. Only keys with `runs:execute` see it, and
    /// no list shows it.
    pub approval_url: Option<String>,
}

/// A call that a person must allow.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RequiredCall {
    /// The call's step.
    pub step_id: StepId,
    /// The tool.
    pub tool: String,
    /// What it would be called with.
    #[schema(value_type = Object)]
    pub arguments: Value,
}
