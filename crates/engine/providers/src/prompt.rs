//! Prompts: the input of a model call.

use crate::answer::ProviderError;
use crate::message::{Message, ToolSpec};
use model::Trace;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use telemetry::Tracer;
use tokio_util::sync::CancellationToken;

/// Receiver of a model's text while it is generated.
pub trait Sink: fmt::Debug + Send + Sync {
    /// Receives the next piece of the text. Tool calls are no text.
    fn say(&self, piece: &str);

    /// Discards the text so far: the attempt failed, and another one begins.
    fn begin_anew(&self);
}

/// A call of a model.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The provider's name for the model.
    pub model: String,
    /// The conversation, instructions first.
    pub messages: Vec<Message>,
    /// The tools that the model can call.
    pub tools: Vec<ToolSpec>,
    /// A JSON Schema that the answer must fit.
    pub output_schema: Option<Value>,
    /// The most tokens of the answer.
    pub max_output_tokens: i64,
    /// Randomness, 0 to 2; `None` leaves it to the model.
    pub temperature: Option<f64>,
    /// The time limit for the answer, including retries.
    pub patience: Duration,
    /// Stops the work.
    pub cancel: CancellationToken,
    /// Receiver of the text while it is generated. A provider that cannot stream ignores it.
    pub sink: Option<Arc<dyn Sink>>,
    /// Notes attempts that brought no answer.
    pub attempts: Attempts,
    /// The trace that the call belongs to.
    pub trace: Option<Trace>,
    /// Records spans of the call.
    pub tracer: Tracer,
}

/// Attempts at one answer that failed before another one brought it, or none did. Clones note in the same list.
#[derive(Debug, Clone, Default)]
pub struct Attempts(Arc<Mutex<Vec<FailedAttempt>>>);

/// An attempt that brought no answer. Without the words of the model's server, which are for the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The provider's name for the model.
    pub model: String,
    /// `unavailable`, `timeout` or `refused`.
    pub reason: String,
}

impl Attempts {
    /// Notes one.
    pub fn note(&self, model: &str, error: &ProviderError) {
        if *error == ProviderError::Cancelled {
            return;
        }
        let failed = FailedAttempt { model: model.to_owned(), reason: error.kind().to_owned() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
    }

    /// All that were noted so far.
    pub fn failed(&self) -> Vec<FailedAttempt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Prompt {
    /// Discards the text of an answer that failed.
    pub fn begin_anew(&self) {
        if let Some(sink) = &self.sink {
            sink.begin_anew();
        }
    }
}
