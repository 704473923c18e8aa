//! Model providers: language models behind one trait, and the tiers that callers choose from.

pub mod json;
mod openai;
mod spans;
#[cfg(test)]
mod tests;
mod thoughts;

pub use openai::{OpenAi, OpenAiSettings};

use model::{Code, Error, Result, Trace, Tracer, text_enum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A future that a provider gives.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers prompts.
pub trait Provider: Send + Sync {
    /// Answers one prompt. Retries what is worth retrying within the request's deadline.
    fn complete<'a>(
        &'a self,
        request: &'a Prompt,
    ) -> BoxFuture<'a, std::result::Result<Completion, ProviderError>>;
}

/// Hears what a model says while it is still at it.
pub trait Sink: fmt::Debug + Send + Sync {
    /// The next piece of the answer's text. Calls of tools are no text.
    fn say(&self, piece: &str);

    /// What was said so far does not count: the attempt failed, and another one begins.
    fn begin_anew(&self);
}

/// A call of a model.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The provider's name for the model.
    pub model: String,
    /// The conversation, instructions first.
    pub messages: Vec<Message>,
    /// What the model may call.
    pub tools: Vec<ToolSpec>,
    /// A JSON Schema that the answer must fit.
    pub output_schema: Option<Value>,
    /// The most tokens of the answer.
    pub max_output_tokens: i64,
    /// Randomness, 0 to 2; `None` leaves it to the model.
    pub temperature: Option<f64>,
    /// How long an answer is waited for, retries included.
    pub patience: Duration,
    /// Stops the work.
    pub cancel: CancellationToken,
    /// Who hears the text as it comes. A provider that cannot say it in pieces need not: the whole answer comes anyway.
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
    /// Takes back what was said of an answer that failed half-way.
    pub fn begin_anew(&self) {
        if let Some(sink) = &self.sink {
            sink.begin_anew();
        }
    }
}

text_enum! {
    /// Who says something.
    pub enum Role {
        /// The instructions.
        System = "system",
        /// The input.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The result of a tool.
        Tool = "tool",
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// The text.
    pub content: String,
    /// What the model wants called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call this is the result of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A plain message.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }
}

/// A tool, as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// A JSON Schema of the arguments.
    pub parameters: Value,
}

/// A call that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if all is well.
    pub arguments: String,
}

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

/// More tokens than any call has: what a provider says beyond that is a mistake, and sums of it must stay numbers.
const MOST_TOKENS: i64 = 100_000_000;

impl Usage {
    /// What of it can be true: no number is negative or absurd, and no part is more than its whole.
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
    /// What it wants called.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it used; `None` where the provider does not say.
    pub usage: Option<Usage>,
}

/// A model's answer, with what is charged for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The answer.
    pub completion: Completion,
    /// What it used.
    pub usage: Usage,
    /// Whether that is a guess, because the provider did not say.
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

text_enum! {
    /// A model tier: a choice by speed, quality and price.
    #[derive(Default, Hash)]
    pub enum Tier {
        /// Fast and inexpensive.
        Fast = "fast",
        /// The default: a balance of quality and price.
        #[default]
        Balanced = "balanced",
        /// The best answers, at the highest price.
        Advanced = "advanced",
    }
}

/// What a tier costs, in Energy per 1,000 tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Tokens of the prompt that were not cached.
    pub input: i64,
    /// Tokens of the prompt that were.
    pub cached: i64,
    /// Tokens of the answer, thinking included.
    pub output: i64,
}

impl Prices {
    /// The Energy of a call, rounded up once (decision 15).
    pub fn energy(&self, usage: Usage) -> i64 {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_tokens).max(0);
        let thousandths = fresh
            .saturating_mul(self.input)
            .saturating_add(usage.cached_tokens.max(0).saturating_mul(self.cached))
            .saturating_add(usage.output_tokens.max(0).saturating_mul(self.output));
        thousandths.saturating_add(999) / 1000
    }

    /// The longest answer that `energy` pays for after a prompt of `input_tokens`.
    pub fn affordable_output(&self, energy: i64, input_tokens: i64) -> i64 {
        if self.output <= 0 {
            return i64::MAX;
        }
        let left = energy.saturating_mul(1000).saturating_sub(input_tokens.saturating_mul(self.input));
        (left / self.output).max(0)
    }
}

/// As operators write it: the three prices, separated by commas.
impl fmt::Display for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.input, self.cached, self.output)
    }
}

impl FromStr for Prices {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong =
            || format!("`{text}` is not three whole numbers from 0 to {MOST_PRICE}, separated by commas");
        let price = |text: &str| text.trim().parse().ok().filter(|price| (0..=MOST_PRICE).contains(price));
        let prices: Option<Vec<i64>> = text.split(',').map(price).collect();
        match prices.as_deref() {
            Some(&[input, cached, output]) => Ok(Self { input, cached, output }),
            _ => Err(wrong()),
        }
    }
}

/// The highest price, in Energy per 1,000 tokens.
const MOST_PRICE: i64 = 1_000_000;

/// A model of a provider.
#[derive(Clone)]
pub struct Route {
    /// Who runs it.
    pub provider: Arc<dyn Provider>,
    /// The provider's name for it.
    pub model: String,
    /// What callers see as `model_revision`.
    pub label: String,
    /// Tokens that prompt and answer may have together.
    pub context_tokens: i64,
}

/// A tier as this installation runs it.
#[derive(Clone)]
pub struct TierSetup {
    /// The model, then those to fall back on, in order. Empty if the tier has no model.
    pub routes: Vec<Route>,
    /// What it costs, whichever route answers.
    pub prices: Prices,
}

/// All tiers of this installation.
#[derive(Clone)]
pub struct Tiers {
    /// [`Tier::Fast`]
    pub fast: TierSetup,
    /// [`Tier::Balanced`]
    pub balanced: TierSetup,
    /// [`Tier::Advanced`]
    pub advanced: TierSetup,
}

impl Tiers {
    /// The prices of a service without configured ones.
    pub const DEFAULT_PRICES: [Prices; 3] = [
        Prices { input: 1, cached: 1, output: 4 },
        Prices { input: 5, cached: 2, output: 20 },
        Prices { input: 25, cached: 8, output: 100 },
    ];

    /// Refuses work for a tier without a model.
    ///
    /// # Errors
    /// `model_not_configured`.
    pub fn expect_model(&self, tier: Tier) -> Result<()> {
        if !self.get(tier).routes.is_empty() {
            return Ok(());
        }
        let (name, setting) = (tier.as_str(), tier.as_str().to_uppercase());
        let message = format!(
            "The service has no model for the tier `{name}`. Its operator sets SVC_MODEL_FILE for the embedded model, or \
             SVC_MODEL_{setting} to openai:MODEL with SVC_OPENAI_BASE_URL and SVC_OPENAI_API_KEY."
        );
        Err(Error::new(Code::ModelNotConfigured, message))
    }

    /// How a tier is run.
    pub fn get(&self, tier: Tier) -> &TierSetup {
        match tier {
            Tier::Fast => &self.fast,
            Tier::Balanced => &self.balanced,
            Tier::Advanced => &self.advanced,
        }
    }
}

impl TierSetup {
    /// What callers see as `model_revision`.
    pub fn label(&self) -> String {
        self.routes.first().map(|route| route.label.clone()).unwrap_or_default()
    }

    /// Tokens that prompt and answer may have together, whichever route answers.
    pub fn context_tokens(&self) -> i64 {
        self.routes.iter().map(|route| route.context_tokens).min().unwrap_or(8192)
    }

    /// Asks the tier's model, and where it is unavailable or silent the ones to fall back on. Each may use an equal share
    /// of the patience that is left, so that one that hangs leaves time for the others.
    ///
    /// # Errors
    /// The error of the last route that was tried.
    pub async fn complete(&self, mut prompt: Prompt) -> std::result::Result<ModelAnswer, ProviderError> {
        let (began, patience) = (Instant::now(), prompt.patience);
        let trace = prompt.trace.take();
        let mut last = ProviderError::Unavailable("no model is configured".to_owned());
        for (route, left) in self.routes.iter().zip((1..=self.routes.len()).rev()) {
            prompt.model.clone_from(&route.model);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            prompt.patience = patience.saturating_sub(began.elapsed()) / left;
            let mut span = trace.as_ref().map(|trace| spans::call(&prompt.tracer, trace, route));
            prompt.trace = span.as_ref().map(|span| span.trace().clone());
            let answered = route.provider.complete(&prompt).await;
            if let Some(span) = &mut span {
                spans::note_call(span, &answered);
            }
            match answered {
                Ok(mut completion) => {
                    let said = completion.usage;
                    let usage = said.unwrap_or_else(|| estimated_usage(&prompt, &completion)).believable();
                    let (usage_estimated, label) = (said.is_none(), route.label.clone());
                    // They were paid, but they are not for the customer, nor for the next prompt.
                    completion.text = thoughts::spoken(&completion.text).to_owned();
                    return Ok(ModelAnswer { completion, usage, usage_estimated, label });
                }
                Err(ProviderError::Cancelled) => return Err(ProviderError::Cancelled),
                Err(error @ ProviderError::Refused(_)) => {
                    prompt.attempts.note(&prompt.model, &error);
                    // Callers get no details, because the message is the server's.
                    tracing::warn!(%error, model = route.label, "a model refused a prompt");
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(%error, model = route.label, "a model did not answer");
                    prompt.attempts.note(&prompt.model, &error);
                    prompt.begin_anew();
                    last = error;
                }
            }
        }
        Err(last)
    }
}

/// What a call is taken to have used whose provider does not say: a token for four characters.
fn estimated_usage(prompt: &Prompt, completion: &Completion) -> Usage {
    let tokens = |characters: usize| i64::try_from(characters.div_ceil(4)).unwrap_or(i64::MAX);
    let call = |call: &ToolCall| call.name.chars().count() + call.arguments.chars().count();
    let message = |message: &Message| {
        message.content.chars().count() + message.tool_calls.iter().map(call).sum::<usize>()
    };
    let tool = |tool: &ToolSpec| {
        let parameters = tool.parameters.to_string();
        tool.name.chars().count() + tool.description.chars().count() + parameters.chars().count()
    };
    let input =
        prompt.messages.iter().map(message).sum::<usize>() + prompt.tools.iter().map(tool).sum::<usize>();
    let output = completion.text.chars().count() + completion.tool_calls.iter().map(call).sum::<usize>();
    Usage { input_tokens: tokens(input), output_tokens: tokens(output), ..Usage::default() }
}

/// A guess of a text's tokens that is rather too high: providers count for themselves, holds must be enough.
///
/// Letters of ASCII come three to a token and more, its punctuation in pairs, its digits alone at worst. Beyond ASCII
/// tokenizers know common characters and spell rare ones byte by byte: one token for a character of two bytes
/// (Greek, Cyrillic, Hebrew, Arabic), two for one of three (Chinese, Japanese, Korean, Indic), and four for the rest.
fn text_tokens(text: &str) -> i64 {
    text.bytes().map(sixths).sum::<i64>() / 6 + 1
}

/// The sixths of a token that a byte counts for.
fn sixths(byte: u8) -> i64 {
    match byte {
        b' ' => 1,
        byte if byte.is_ascii_alphabetic() => 2,
        b'0'..=b'9' => 6,
        0x00..=0x7f => 4,
        0xc0..=0xdf => 6,
        0xe0..=0xef => 12,
        0xf0..=0xff => 24,
        // The rest of a character that was counted with its first byte.
        _ => 0,
    }
}

/// The longest beginning of a text that adds at most so many tokens by our guess.
pub fn beginning(text: &str, tokens: i64) -> &str {
    let mut left = tokens.max(0).saturating_mul(6);
    let end = text.bytes().position(|byte| {
        left -= sixths(byte);
        left < 0
    });
    // The bytes behind a character's first count for nothing, so it ends before a character.
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// A guess of the tokens of messages that is rather too high.
pub fn estimated_tokens<'a>(messages: impl IntoIterator<Item = &'a Message>) -> i64 {
    let call = |call: &ToolCall| 8 + text_tokens(&call.name) + text_tokens(&call.arguments);
    messages
        .into_iter()
        .map(|message| 8 + text_tokens(&message.content) + message.tool_calls.iter().map(call).sum::<i64>())
        .sum()
}

/// A guess of the tokens that tools add to a prompt, rather too high.
pub fn estimated_tool_tokens(tools: &[ToolSpec]) -> i64 {
    let tool = |tool: &ToolSpec| {
        16 + text_tokens(&tool.name)
            + text_tokens(&tool.description)
            + text_tokens(&tool.parameters.to_string())
    };
    tools.iter().map(tool).sum()
}
