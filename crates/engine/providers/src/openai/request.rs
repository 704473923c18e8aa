//! Requests for completions.

use super::habits::Habit;
use crate::json;
use crate::{Message, Prompt, Role, ToolCall, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: Role,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// The body of a request.
pub(super) fn body(prompt: &Prompt, habit: Habit) -> String {
    let tool = |tool: &ToolSpec| {
        json!({ "type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        }})
    };
    let format =
        |schema| json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
    let most = Some(prompt.max_output_tokens);
    let schema = prompt.output_schema.as_ref();
    let mut messages: Vec<ChatMessage<'_>> = prompt.messages.iter().map(chat_message).collect();
    if let Some(schema) = schema.filter(|_| habit.no_response_format) {
        ask_for(schema, &mut messages);
    }
    let request = ChatRequest {
        model: &prompt.model,
        messages,
        max_tokens: most.filter(|_| !habit.completion_tokens),
        max_completion_tokens: most.filter(|_| habit.completion_tokens),
        temperature: prompt.temperature.filter(|_| !habit.no_temperature),
        tools: prompt.tools.iter().map(tool).collect(),
        response_format: schema.filter(|_| !habit.no_response_format).map(format),
        stream: prompt.sink.is_some(),
        stream_options: prompt.sink.as_ref().map(|_| StreamOptions { include_usage: true }),
    };
    serde_json::to_string(&request).unwrap_or_default()
}

/// Asks in the instructions for what the server does not take as a parameter.
fn ask_for(schema: &Value, messages: &mut Vec<ChatMessage<'_>>) {
    let rule =
        format!("Answer with JSON only, without any other text. It must fit this JSON Schema:\n{schema}");
    match messages.first_mut().filter(|first| first.role == Role::System) {
        // Some servers take no second system message.
        Some(first) => first.content = format!("{}\n\n{rule}", first.content).into(),
        None => {
            let role = Role::System;
            messages.insert(
                0,
                ChatMessage { role, content: rule.into(), tool_calls: vec![], tool_call_id: None },
            );
        }
    }
}

fn chat_message(message: &Message) -> ChatMessage<'_> {
    // Some servers parse the arguments of earlier calls, and refuse the prompt where one is no object. What was wrong
    // with them stands in the result.
    let arguments =
        |call: &ToolCall| json::object_of(&call.arguments).map_or("{}".into(), |json| json.to_string());
    let call = |call: &ToolCall| json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": arguments(call) } });
    ChatMessage {
        role: message.role,
        content: message.content.as_str().into(),
        tool_calls: message.tool_calls.iter().map(call).collect(),
        tool_call_id: message.tool_call_id.as_deref(),
    }
}
