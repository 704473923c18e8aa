//! The plain types of the interface: what goes into the engine and what comes out.

use std::{fmt, path::PathBuf, time::Duration};

use serde_json::Value;

/// One call of the model: a conversation, the tools it may call and limits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The conversation, oldest first. When it does not fit into the context, the oldest turns that are not
    /// from the system are left out.
    pub messages: Vec<Message>,
    /// Tools the model may call. Empty: the answer is text.
    pub tools: Vec<Tool>,
    /// JSON Schema the text of the answer must satisfy. Tool calls are bound by their own schema instead.
    pub output_schema: Option<Value>,
    /// Most tokens to generate. The room left in the context is a second limit.
    pub max_output_tokens: u32,
    /// 0 takes the most likely token every time; `None` is 0.2; values are clamped to 0..=2.
    pub temperature: Option<f32>,
    /// Seed of the sampling. The same request with the same seed gives the same answer, up to differences in
    /// rounding when a cached prefix was used.
    pub seed: u64,
}

/// Who speaks in a [`Message`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Instructions; never dropped for lack of room.
    System,
    /// The person or program that asks.
    #[default]
    User,
    /// An earlier answer of a model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; for [`Role::Tool`] the result of the call.
    pub content: String,
    /// Calls an assistant made in this turn.
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Tool`]: the call this is the result of.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message without tool calls.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), ..Self::default() }
    }
}

/// A function the model may ask the caller to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    /// Name, as it will stand in [`ToolCall::name`].
    pub name: String,
    /// What the tool does; its words help to choose it.
    pub description: String,
    /// JSON Schema of the arguments, an object. Anything else counts as "no arguments".
    pub parameters: Value,
}

/// The model's wish to have a tool run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Identifier of the call within the conversation.
    pub id: String,
    /// Name of one of the request's tools.
    pub name: String,
    /// The arguments as JSON text, valid by the tool's schema.
    pub arguments: String,
}

/// What a [`crate::Generation`] yields: any number of tokens, then exactly one `Done` or `Failed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A piece of the answer's text, whole code points. Tool calls are not streamed.
    Token(String),
    /// The end: the whole answer and what it took.
    Done(Completion),
    /// The end: no answer.
    Failed(Error),
}

/// A finished answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The text, equal to the concatenated tokens. Empty when tools are called.
    pub text: String,
    /// Calls to run; not empty exactly if `finish` is [`Finish::ToolCalls`].
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Tokens of the prompt, including those taken from the cache.
    pub prompt_tokens: u32,
    /// Tokens of the answer, including those a grammar left no choice about.
    pub output_tokens: u32,
    /// Time to process the prompt, without waiting in the queue.
    pub prompt_time: Duration,
    /// Time to generate the answer.
    pub output_time: Duration,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn, or the grammar was complete.
    Stop,
    /// `max_output_tokens` or the context was used up. Text is incomplete then; a cut tool call is left out.
    Length,
    /// The model wants tools to be run.
    ToolCalls,
}

/// Why the engine did not load or did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no file at this path.
    FileMissing(PathBuf),
    /// The file is not a GGUF file, or a damaged one.
    NotGguf(String),
    /// The file holds a model of an architecture or with a tokenizer this crate does not implement.
    UnsupportedArchitecture(String),
    /// The file's weights are stored in a way this crate cannot read.
    UnsupportedQuantisation(String),
    /// Loading failed for another reason, such as permissions.
    Load(String),
    /// The queue is full; try again later.
    Busy,
    /// The generation was cancelled before it was complete.
    Cancelled,
    /// The request cannot be served, such as an output schema that no grammar can be made of.
    InvalidRequest(String),
    /// The computation failed.
    Inference(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileMissing(path) => write!(f, "there is no model file at {}", path.display()),
            Self::NotGguf(why) => write!(f, "not a readable GGUF file: {why}"),
            Self::UnsupportedArchitecture(what) => write!(f, "unsupported model: {what}"),
            Self::UnsupportedQuantisation(what) => write!(f, "unsupported quantisation: {what}"),
            Self::Load(why) => write!(f, "the model could not be loaded: {why}"),
            Self::Busy => f.write_str("the embedded model is busy and its queue is full"),
            Self::Cancelled => f.write_str("the generation was cancelled"),
            Self::InvalidRequest(why) => write!(f, "the request cannot be served: {why}"),
            Self::Inference(why) => write!(f, "inference failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Self {
        Self::Inference(error.to_string())
    }
}
