//! Provider for servers with OpenAI's chat completions API.

mod answer;
mod calls;
mod completion;
mod events;
mod finish;
mod habits;
mod request;

use self::habits::Habits;
use crate::estimates::estimated_usage;
use crate::{BoxFuture, Completion, Prompt, Provider, ProviderError};
use egress::{Connector, HeaderMap, Limits, Request};
use model::{Clock, SystemClock};
use operation::{http_span, note_http};
use std::fmt;
use std::time::{Duration, Instant};

/// Where the server is.
#[derive(Clone)]
pub struct OpenAiSettings {
    /// Such as `https://api.openai.com/v1`.
    pub base_url: String,
    /// Sent as a bearer token, where the server wants one.
    pub api_key: Option<String>,
}

/// The provider.
pub struct OpenAi {
    settings: OpenAiSettings,
    connector: Connector,
    habits: Habits,
}

/// Attempts for faults that may pass: the first and three more.
const ATTEMPTS: u32 = 4;
const LARGEST_ANSWER: usize = 4 << 20;
/// An answer in pieces has some hundred bytes around each of its tokens. They are not kept.
const LARGEST_STREAM: usize = 64 << 20;

impl OpenAi {
    /// A provider that reaches its server through `connector`, whose policy must allow it.
    pub fn new(settings: OpenAiSettings, connector: Connector) -> Self {
        Self { settings, connector, habits: Habits::default() }
    }

    /// Asks once. `in_words`: the schema of the answer is asked for in the instructions.
    async fn attempt(
        &self,
        prompt: &Prompt,
        in_words: bool,
        patience: Duration,
    ) -> Result<Completion, Fault> {
        let mut habit = self.habits.of(&prompt.model);
        habit.no_response_format |= in_words;
        let url = format!("{}/chat/completions", self.settings.base_url.trim_end_matches('/'));
        let max_response_bytes = if prompt.sink.is_some() { LARGEST_STREAM } else { LARGEST_ANSWER };
        let limits = Limits { total: patience, max_response_bytes, ..Limits::default() };
        let body = request::body(prompt, habit);
        let mut request = Request::post(url, body).header("content-type", "application/json").limits(limits);
        if let Some(key) = &self.settings.api_key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let traced = prompt.trace.as_ref();
        let mut span = traced.map(|trace| http_span(&prompt.tracer, trace, "POST", &request.url));
        request.headers.extend(span.iter().flat_map(|span| span.trace().headers()));
        let answer = self.connector.stream(request).await;
        if let Some(span) = &mut span {
            note_http(span, answer.as_ref().map(|answer| answer.status).map_err(egress::Error::kind));
        }
        let response = answer?;
        if (200..=299).contains(&response.status) {
            let heard = answer::read(response, prompt).await?;
            return heard.completion(|completion| estimated_usage(prompt, completion));
        }
        let response = response.at_most(LARGEST_ANSWER).collect().await?;
        let status = response.status;
        let fault = completion::of_status(status, wait_of(&response.headers), format!("HTTP {status}"));
        if !matches!(fault, Fault::Final(ProviderError::Refused(_))) {
            return Err(fault);
        }
        // The next request is another one, and each habit is learned once.
        if self.habits.learn(&prompt.model, &response.body) {
            return Err(Fault::Learned);
        }
        if prompt.output_schema.is_some() && !habit.no_response_format {
            return Err(Fault::Format);
        }
        let why = String::from_utf8_lossy(&response.body).chars().take(300).collect::<String>();
        Err(Fault::Final(ProviderError::Refused(format!("HTTP {status}: {why}"))))
    }

    async fn try_until(&self, prompt: &Prompt) -> Result<Completion, ProviderError> {
        let began = Instant::now();
        let mut attempt = 1;
        let mut in_words = false;
        loop {
            let left = prompt.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(ProviderError::Timeout);
            }
            match self.attempt(prompt, in_words, left).await {
                Ok(completion) => return Ok(completion),
                Err(Fault::Final(error)) => return Err(error),
                Err(Fault::Learned) => {}
                Err(Fault::Format) => in_words = true,
                Err(Fault::Passing(wanted, why)) => {
                    tracing::info!(attempt, why, "the model's server failed for now");
                    prompt.begin_anew();
                    let wait = wanted.unwrap_or(Duration::from_millis(250 << attempt));
                    let error = ProviderError::Unavailable(why);
                    if attempt == ATTEMPTS || wait >= prompt.patience.saturating_sub(began.elapsed()) {
                        return Err(error);
                    }
                    prompt.attempts.note(&prompt.model, &error);
                    tokio::time::sleep(wait).await;
                    attempt += 1;
                }
            }
        }
    }
}

impl Provider for OpenAi {
    fn complete<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Completion, ProviderError>> {
        Box::pin(async move {
            tokio::select! {
                result = self.try_until(prompt) => result,
                () = prompt.cancel.cancelled() => Err(ProviderError::Cancelled),
            }
        })
    }
}

#[derive(Debug)]
enum Fault {
    /// Worth another attempt, after this long if the server said so.
    Passing(Option<Duration>, String),
    /// The server said how it wants to be asked.
    Learned,
    /// The server refused a request with `response_format`, which many servers do not know.
    Format,
    Final(ProviderError),
}

impl From<egress::Error> for Fault {
    fn from(error: egress::Error) -> Self {
        match error {
            egress::Error::Timeout { .. } if error.is_sent() => Self::Final(ProviderError::Timeout),
            error if error.is_refusal() => Self::Final(ProviderError::Unavailable(error.to_string())),
            error => Self::Passing(None, error.to_string()),
        }
    }
}

/// An answer that is none.
fn unreadable(why: impl fmt::Display) -> ProviderError {
    ProviderError::Unavailable(format!("its answer cannot be read: {why}"))
}

/// Returns the wait that a server requests.
fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let asked = headers.get("retry-after").and_then(|value| value.to_str().ok())?;
    egress::retry_after(asked, SystemClock.now().millis())
}
