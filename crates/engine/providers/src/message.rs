//! Messages of a conversation with a model, and the tools that it can call.

use model::text_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The role of the author.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The tool calls that the model requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The id of the call whose result this is.
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

impl ToolCall {
    /// Adds ids to calls without one, for providers that send none.
    pub fn with_ids(mut calls: Vec<Self>, position: i64) -> Vec<Self> {
        for (place, call) in calls.iter_mut().enumerate().filter(|(_, call)| call.id.is_empty()) {
            call.id = format!("call_{position}_{place}");
        }
        calls
    }
}
