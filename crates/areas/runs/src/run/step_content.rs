//! Contents of steps: the JSON of their inputs and outputs.

use super::inner::CalledRun;
use model::{JsonText, Timestamp, text_enum};
use providers::{FailedAttempt, Finish, ToolCall, Usage, json};
use serde::{Deserialize, Serialize};

/// The output of a memory step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MemoryOutput {
    pub(crate) summary: String,
    #[serde(default)]
    pub(crate) usage: Usage,
    /// The usage is an estimate, because the provider did not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) usage_estimated: bool,
}

/// The output of a check of topics, as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CheckOutput {
    /// What the text is about. `None` where that was not found out.
    pub(crate) topics: Option<Vec<String>>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) usage: Usage,
    /// The usage is an estimate, because the provider did not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) usage_estimated: bool,
}

/// The output of a model step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelOutput {
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) finish_reason: Finish,
    #[serde(default)]
    pub(crate) usage: Usage,
    /// The usage is an estimate, because the provider did not report it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) usage_estimated: bool,
    /// Attempts that failed before this answer came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed_attempts: Vec<FailedAttempt>,
    /// The message for the model when its answer did not fit the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) correction: Option<String>,
}

/// The input of a tool step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolInput {
    pub(crate) call_id: String,
    /// As the model wrote them, with all digits of their numbers; a text where they are not JSON.
    #[serde(deserialize_with = "json::raw")]
    pub(crate) arguments: JsonText,
    /// The decision about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<Approval>,
}

/// Decision about a call. The person is not known, because the approval link needs no login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approval {
    pub(crate) decision: Verdict,
    pub(crate) note: Option<String>,
    pub(crate) decided_at: Timestamp,
}

text_enum! {
    /// Verdict on a call.
    pub(crate) enum Verdict {
        Approved = "approved",
        Refused = "refused",
    }
}

/// The prefix of errors about wrong arguments. Resumed runs recognize such results by it.
const BAD_ARGUMENTS: &str = "the arguments";

/// The prefix of errors of calls that may have had their effect.
const UNKNOWN: &str = "outcome unknown";

/// The output of a tool step, as stored and as the model gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolOutput {
    pub(crate) ok: bool,
    /// As the tool wrote it, with all digits of its numbers.
    #[serde(deserialize_with = "json::raw")]
    pub(crate) result: JsonText,
    /// The run of another agent that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<CalledRun>,
}

impl ToolOutput {
    pub(crate) fn new(ok: bool, result: &impl Serialize) -> Self {
        Self { ok, result: JsonText::of(result), run: None }
    }

    pub(crate) fn error(why: impl Into<String>) -> Self {
        Self::new(false, &why.into())
    }

    /// A call that may have had its effect.
    pub(crate) fn unknown(why: &str) -> Self {
        Self::error(format!("{UNKNOWN}: {why}"))
    }

    pub(crate) fn is_unknown(&self) -> bool {
        !self.ok && json::plain(&self.result).starts_with(UNKNOWN)
    }

    /// Arguments that the tool was not called with.
    pub(crate) fn bad_arguments(why: impl std::fmt::Display) -> Self {
        Self::error(format!("{BAD_ARGUMENTS} {why}"))
    }

    pub(crate) fn is_bad_arguments(&self) -> bool {
        !self.ok && json::plain(&self.result).starts_with(BAD_ARGUMENTS)
    }
}
