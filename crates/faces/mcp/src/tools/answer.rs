//! The types between the protocol and the tools.

use super::selection::Selection;
use super::texts::Arguments;
use model::Scope;
use operation::Chunks;
use serde_json::{Map, Value};

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The tools that the client chose. Read-only is enforced here.
    pub selection: Selection,
}

/// The answer to a [`ToolCall`].
pub struct ToolAnswer {
    /// The headers that the pipeline sets: request id, rate window.
    pub headers: Vec<(&'static str, String)>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a [`ToolCall`].
pub enum Outcome {
    /// The call ended, with or without success.
    Result(ToolResult),
    /// There is no tool with this name (JSON-RPC −32602).
    UnknownTool(String),
    /// An OAuth token lacks scopes: all that the tool needs, for the challenge. Keys get a [`ToolResult`] instead.
    MissingScopes(Vec<Scope>),
    /// The operation answers with a stream of events (`stream: true`), which ends with the result.
    Running(Running),
}

/// A call whose operation answers with a stream of server-sent events, such as `createRun`. Dropping it ends the waiting,
/// but not the work.
pub struct Running {
    /// The events of the operation, as its REST interface sends them.
    pub events: Chunks,
    /// Makes the result of the enveloped answer (`{"success":true,"data":…}` or an error) in the last event.
    pub finish: Box<dyn FnOnce(Value) -> ToolResult + Send>,
}

/// The result of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The text for the model.
    pub text: String,
    /// The JSON text of `structuredContent`.
    pub structured: Option<String>,
    /// Blocks of content after the text, such as resource links.
    pub more_content: Vec<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// `_meta`: the request id, and code and status of an error.
    pub meta: Map<String, Value>,
}
