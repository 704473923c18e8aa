//! Provider for servers with OpenAI's chat completions API.

mod answer;
mod events;
mod habits;

use self::habits::{Habit, Habits};
use super::{
    BoxFuture, Completion, Finish, Message, Prompt, Provider, ProviderError, Role, ToolCall, ToolSpec, Usage,
};
use egress::{Connector, HeaderMap, Limits, Request};
use operation::{http_span, note_http};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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

    async fn attempt(&self, prompt: &Prompt, patience: Duration) -> Result<Completion, Fault> {
        let sink = prompt.sink.as_deref();
        let body = request_body(prompt, self.habits.of(&prompt.model));
        let url = format!("{}/chat/completions", self.settings.base_url.trim_end_matches('/'));
        let max_response_bytes = if sink.is_some() { LARGEST_STREAM } else { LARGEST_ANSWER };
        let limits = Limits { total: patience, max_response_bytes, ..Limits::default() };
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
        let is_success = (200..=299).contains(&response.status);
        // A server that cannot send pieces sends the whole answer all the same.
        if let Some(sink) = sink.filter(|_| is_success && is_event_stream(&response.headers)) {
            return answer::read(response, sink).await;
        }
        let response = response.at_most(LARGEST_ANSWER).collect().await?;
        match response.status {
            200..=299 => read_completion(&response.body).map_err(Fault::Final),
            408 | 409 | 425 | 429 | 500..=599 => {
                let wait =
                    response.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                Err(Fault::Passing(wait.map(Duration::from_secs), format!("HTTP {}", response.status)))
            }
            401 | 403 | 404 => {
                Err(Fault::Final(ProviderError::Unavailable(format!("HTTP {}", response.status))))
            }
            // The next request is another one, and each habit is learned once.
            _ if self.habits.learn(&prompt.model, &response.body) => Err(Fault::Learned),
            status => {
                let why = String::from_utf8_lossy(&response.body).chars().take(300).collect::<String>();
                Err(Fault::Final(ProviderError::Refused(format!("HTTP {status}: {why}"))))
            }
        }
    }

    async fn try_until(&self, prompt: &Prompt) -> Result<Completion, ProviderError> {
        let began = Instant::now();
        let mut attempt = 1;
        loop {
            let left = prompt.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(ProviderError::Timeout);
            }
            match self.attempt(prompt, left).await {
                Ok(completion) => return Ok(completion),
                Err(Fault::Final(error)) => return Err(error),
                Err(Fault::Learned) => {}
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

enum Fault {
    /// Worth another attempt, after this long if the server said so.
    Passing(Option<Duration>, String),
    /// The server said how it wants to be asked.
    Learned,
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

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

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
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

fn request_body(prompt: &Prompt, habit: Habit) -> String {
    let tool = |tool: &ToolSpec| {
        json!({ "type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.parameters,
        }})
    };
    let schema =
        |schema| json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
    let most = Some(prompt.max_output_tokens);
    let request = ChatRequest {
        model: &prompt.model,
        messages: prompt.messages.iter().map(chat_message).collect(),
        max_tokens: most.filter(|_| !habit.completion_tokens),
        max_completion_tokens: most.filter(|_| habit.completion_tokens),
        temperature: prompt.temperature.filter(|_| !habit.no_temperature),
        tools: prompt.tools.iter().map(tool).collect(),
        response_format: prompt.output_schema.as_ref().map(schema),
        stream: prompt.sink.is_some(),
        stream_options: prompt.sink.as_ref().map(|_| StreamOptions { include_usage: true }),
    };
    serde_json::to_string(&request).unwrap_or_default()
}

fn chat_message(message: &Message) -> ChatMessage<'_> {
    let call = |call: &ToolCall| json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } });
    ChatMessage {
        role: message.role,
        content: &message.content,
        tool_calls: message.tool_calls.iter().map(call).collect(),
        tool_call_id: message.tool_call_id.as_deref(),
    }
}

#[derive(Deserialize)]
struct ChatCompletion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct Choice {
    message: ChoiceMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    content: Option<String>,
    /// What some servers say instead of an answer.
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ChoiceCall>>,
}

#[derive(Deserialize)]
struct ChoiceCall {
    #[serde(default)]
    id: String,
    function: ChoiceFunction,
}

#[derive(Deserialize)]
struct ChoiceFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Deserialize, Default)]
struct ChatUsage {
    #[serde(default)]
    prompt_tokens: i64,
    #[serde(default)]
    completion_tokens: i64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

impl ChatUsage {
    fn tokens(self) -> Usage {
        Usage {
            input_tokens: self.prompt_tokens.max(0),
            cached_tokens: self.prompt_tokens_details.map_or(0, |details| details.cached_tokens).max(0),
            output_tokens: self.completion_tokens.max(0),
            reasoning_tokens: self
                .completion_tokens_details
                .map_or(0, |details| details.reasoning_tokens)
                .max(0),
        }
    }
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: i64,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: i64,
}

fn read_completion(body: &[u8]) -> Result<Completion, ProviderError> {
    let answer: ChatCompletion = serde_json::from_slice(body).map_err(unreadable)?;
    let choice = answer.choices.into_iter().next().ok_or_else(|| unreadable("it has no choices"))?;
    let tool_calls: Vec<ToolCall> = choice
        .message
        .tool_calls
        .unwrap_or_default()
        .into_iter()
        .map(|call| ToolCall { id: call.id, name: call.function.name, arguments: call.function.arguments })
        .collect();
    let text = choice.message.content.unwrap_or_default();
    let refusal = choice.message.refusal.unwrap_or_default();
    Ok(completion(text, refusal, tool_calls, choice.finish_reason.as_deref(), answer.usage))
}

/// What a server said. Some say a refusal instead of a text.
fn completion(
    text: String,
    refusal: String,
    tool_calls: Vec<ToolCall>,
    finish_reason: Option<&str>,
    usage: Option<ChatUsage>,
) -> Completion {
    let finish = match finish_reason {
        _ if !tool_calls.is_empty() => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        _ => Finish::Stop,
    };
    let usage = usage.map(ChatUsage::tokens).filter(|usage| *usage != Usage::default());
    // What models print may hold NUL, which PostgreSQL cannot store.
    let text = if text.is_empty() { refusal } else { text }.replace('\0', "");
    Completion { text, tool_calls, finish, usage }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let body = br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c1","type":"function",
            "function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},"finish_reason":"tool_calls"}],
            "usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}"#;
        let completion = read_completion(body).unwrap();
        assert_eq!(completion.finish, Finish::ToolCalls);
        assert_eq!(completion.tool_calls[0].name, "weather");
        assert_eq!(completion.usage.unwrap().cached_tokens, 2);
        for silent in [&b"null"[..], b"{}", br#"{"prompt_tokens":0,"completion_tokens":0}"#] {
            let body = [br#"{"choices":[{"message":{"content":"hi"}}],"usage":"#, silent, b"}"].concat();
            assert_eq!(read_completion(&body).unwrap().usage, None);
        }
        for broken in [&b"{}"[..], b"{\"choices\":[]}", b"<html>", b""] {
            assert!(matches!(read_completion(broken), Err(ProviderError::Unavailable(_))));
        }
    }
}
