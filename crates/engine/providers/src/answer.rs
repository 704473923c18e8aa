//! Answers of models, and errors.

use crate::message::ToolCall;
use model::text_enum;
use serde::{Deserialize, Serialize};
use std::fmt;

text_enum! {
    /// Why the model stopped.
    pub enum Finish {
        /// It was done.
        Stop = "stop",
        /// The answer reached its limit.
        Length = "length",
        /// It wants tools called.
        ToolCalls = "tool_calls",
        /// Its server held the rest back.
        ContentFilter = "content_filter",
        /// For a reason that is not known, so that nobody knows whether the answer is whole.
        Unknown = "unknown",
    }
}

/// Tokens used by a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the prompt.
    pub input_tokens: i64,
    /// Of the prompt, found in the provider's cache; part of `input_tokens`.
    pub cached_tokens: i64,
    /// Of the answer.
    pub output_tokens: i64,
    /// Of the answer, spent on thinking; part of `output_tokens`.
    pub reasoning_tokens: i64,
}

/// The maximum plausible number of tokens of a call. Sums of larger ones could overflow.
const MOST_TOKENS: i64 = 100_000_000;

impl Usage {
    /// Clamps the counts to plausible values: not negative, not absurd, and no part larger than its whole.
    #[must_use]
    pub fn believable(self) -> Self {
        let input_tokens = self.input_tokens.clamp(0, MOST_TOKENS);
        let output_tokens = self.output_tokens.clamp(0, MOST_TOKENS);
        Self {
            input_tokens,
            cached_tokens: self.cached_tokens.clamp(0, input_tokens),
            output_tokens,
            reasoning_tokens: self.reasoning_tokens.clamp(0, output_tokens),
        }
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, empty where the model only calls tools.
    pub text: String,
    /// The requested tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// The usage; `None` if the provider does not report it.
    pub usage: Option<Usage>,
}

/// A model's answer, with what is charged for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The answer.
    pub completion: Completion,
    /// The usage.
    pub usage: Usage,
    /// The usage is an estimate, because the provider did not report it.
    pub usage_estimated: bool,
    /// The label of the route that answered.
    pub label: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderError {
    /// The provider cannot be reached, is overloaded or failed, and went on failing.
    Unavailable(String),
    /// It took too long.
    Timeout,
    /// It refused the prompt, and would refuse it again.
    Refused(String),
    /// The work was cancelled.
    Cancelled,
}

impl ProviderError {
    /// The kind in one word, for metrics and traces.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Timeout => "timeout",
            Self::Refused(_) => "refused",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the model is unavailable: {why}"),
            Self::Timeout => f.write_str("the model took too long"),
            Self::Refused(why) => write!(f, "the model refused the prompt: {why}"),
            Self::Cancelled => f.write_str("the work was cancelled"),
        }
    }
}

impl std::error::Error for ProviderError {}
