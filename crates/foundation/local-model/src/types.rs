//! The input and output types of the engine.

use std::{fmt, path::PathBuf, time::Duration};

use serde_json::Value;

/// A request: a conversation, the tools that may be called, and limits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The conversation, oldest first. If it does not fit into the context, the oldest turns other than the system's
    /// are left out.
    pub messages: Vec<Message>,
    /// The tools that may be called. If empty, the answer is text.
    pub tools: Vec<Tool>,
    /// A JSON Schema for the text of the answer. Tool calls follow the schema of their tool instead.
    pub output_schema: Option<Value>,
    /// The maximum number of tokens to generate. The rest of the context is a second limit.
    pub max_output_tokens: u32,
    /// The temperature. 0 always selects the most likely token; `None` is 0.2; values are clamped to 0..=2.
    pub temperature: Option<f32>,
    /// The seed of the sampling. The same request with the same seed has the same answer, except for rounding
    /// differences if a cached prefix was used.
    pub seed: u64,
}

/// The author of a [`Message`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Instructions, which are never dropped for lack of room.
    System,
    /// The person or program that asks.
    #[default]
    User,
    /// An earlier answer of a model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// A turn of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text. For [`Role::Tool`], the result of the call.
    pub content: String,
    /// The calls that the assistant made in this turn.
    pub tool_calls: Vec<ToolCall>,
    /// For [`Role::Tool`], the id of the call that this is the result of.
    pub tool_call_id: Option<String>,
}

impl Message {
    /// Creates a message without tool calls.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), ..Self::default() }
    }
}

/// A function that the model may ask the caller to run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    /// The name, as used in [`ToolCall::name`].
    pub name: String,
    /// The description. Its words help to choose the tool.
    pub description: String,
    /// A JSON Schema of the arguments, which is an object. Any other value means that there are no arguments.
    pub parameters: Value,
}

/// A request of the model to run a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The identifier of the call within the conversation.
    pub id: String,
    /// The name of one of the request's tools.
    pub name: String,
    /// The arguments as JSON, valid by the tool's schema.
    pub arguments: String,
}

/// An event of a [`crate::Generation`]: any number of tokens, then exactly one `Done` or `Failed`.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A piece of the answer's text, in whole code points. Tool calls are not streamed.
    Token(String),
    /// The end, with the whole answer and its statistics.
    Done(Completion),
    /// The end, without an answer.
    Failed(Error),
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The text, which equals the concatenated tokens. Empty if tools are called.
    pub text: String,
    /// The calls to run. Not empty if and only if `finish` is [`Finish::ToolCalls`].
    pub tool_calls: Vec<ToolCall>,
    /// The reason why the generation ended.
    pub finish: Finish,
    /// The number of tokens in the prompt, including cached ones.
    pub prompt_tokens: u32,
    /// The number of tokens in the answer, including those that a grammar determined.
    pub output_tokens: u32,
    /// The time to process the prompt, without waiting in the queue.
    pub prompt_time: Duration,
    /// The time to generate the answer.
    pub output_time: Duration,
}

/// The reason why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn, or the grammar was complete.
    Stop,
    /// `max_output_tokens` or the context was exhausted. The text is incomplete then; an incomplete tool call is left
    /// out.
    Length,
    /// The model requests tool calls.
    ToolCalls,
}

/// The reason why the engine did not load or did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file does not exist.
    FileMissing(PathBuf),
    /// The file is not a GGUF file, or is corrupt.
    NotGguf(String),
    /// The architecture or the tokenizer of the model is not supported.
    UnsupportedArchitecture(String),
    /// The format of the weights is not supported.
    UnsupportedQuantisation(String),
    /// Loading failed for another reason, such as permissions.
    Load(String),
    /// The queue is full; try again later.
    Busy,
    /// The generation was cancelled before it was complete.
    Cancelled,
    /// The request cannot be executed, for example because its output schema has no grammar.
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
