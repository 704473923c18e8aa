//! Any server that speaks OpenAI's chat completions.

use super::{BoxFuture, Completion, Finish, Message, Prompt, Provider, ProviderError, Role, ToolCall, Usage};
use egress::{Connector, Limits, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
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
}

/// Attempts for faults that may pass: the first and three more.
const ATTEMPTS: u32 = 4;
const LARGEST_ANSWER: usize = 4 << 20;

impl OpenAi {
    /// A provider that reaches its server through `connector`, whose policy must allow it.
    pub fn new(settings: OpenAiSettings, connector: Connector) -> Self {
        Self { settings, connector }
    }

    async fn attempt(&self, body: &Value, patience: Duration) -> Result<Response, Fault> {
        let url = format!("{}/chat/completions", self.settings.base_url.trim_end_matches('/'));
        let limits = Limits { total: patience, max_response_bytes: LARGEST_ANSWER, ..Limits::default() };
        let mut request =
            Request::post(url, body.to_string()).header("content-type", "application/json").limits(limits);
        if let Some(key) = &self.settings.api_key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let response = self.connector.send(request).await.map_err(|error| match error {
            egress::Error::Timeout { .. } => Fault::Final(ProviderError::Timeout),
            error if error.is_refusal() => Fault::Final(ProviderError::Unavailable(error.to_string())),
            error => Fault::Passing(None, error.to_string()),
        })?;
        match response.status {
            200..=299 => Ok(response),
            408 | 409 | 425 | 429 | 500..=599 => {
                let wait =
                    response.headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
                Err(Fault::Passing(wait.map(Duration::from_secs), format!("HTTP {}", response.status)))
            }
            401 | 403 | 404 => {
                Err(Fault::Final(ProviderError::Unavailable(format!("HTTP {}", response.status))))
            }
            status => {
                let why = String::from_utf8_lossy(&response.body).chars().take(300).collect::<String>();
                Err(Fault::Final(ProviderError::Refused(format!("HTTP {status}: {why}"))))
            }
        }
    }

    async fn try_until(&self, prompt: &Prompt) -> Result<Completion, ProviderError> {
        let began = Instant::now();
        let body = request_body(prompt);
        for attempt in 1..=ATTEMPTS {
            let left = prompt.patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Err(ProviderError::Timeout);
            }
            match self.attempt(&body, left).await {
                Ok(response) => return read_completion(&response.body),
                Err(Fault::Final(error)) => return Err(error),
                Err(Fault::Passing(wanted, why)) => {
                    tracing::info!(attempt, why, "the model's server failed for now");
                    let wait = wanted.unwrap_or(Duration::from_millis(250 << attempt));
                    if attempt == ATTEMPTS || wait >= prompt.patience.saturating_sub(began.elapsed()) {
                        return Err(ProviderError::Unavailable(why));
                    }
                    tokio::time::sleep(wait).await;
                }
            }
        }
        Err(ProviderError::Timeout)
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
    Final(ProviderError),
}

fn request_body(prompt: &Prompt) -> Value {
    let messages: Vec<Value> = prompt.messages.iter().map(message_json).collect();
    let mut body =
        json!({ "model": prompt.model, "messages": messages, "max_tokens": prompt.max_output_tokens });
    if let Some(temperature) = prompt.temperature {
        body["temperature"] = temperature.into();
    }
    if !prompt.tools.is_empty() {
        let tools = prompt.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body["tools"] = tools.collect();
    }
    if let Some(schema) = &prompt.output_schema {
        body["response_format"] =
            json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
    }
    body
}

fn message_json(message: &Message) -> Value {
    let mut value = json!({ "role": message.role, "content": message.content });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({ "id": call.id, "type": "function", "function": { "name": call.name, "arguments": call.arguments } })
        });
        value["tool_calls"] = calls.collect();
    }
    if message.role == Role::Tool {
        value["tool_call_id"] = message.tool_call_id.clone().into();
    }
    value
}

#[derive(Deserialize)]
struct ChatCompletion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: ChatUsage,
}

#[derive(Deserialize)]
struct Choice {
    message: ChoiceMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    content: Option<String>,
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
    let unreadable = |why: String| ProviderError::Unavailable(format!("its answer cannot be read: {why}"));
    let answer: ChatCompletion =
        serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))?;
    let choice =
        answer.choices.into_iter().next().ok_or_else(|| unreadable("it has no choices".to_owned()))?;
    let tool_calls: Vec<ToolCall> = choice
        .message
        .tool_calls
        .unwrap_or_default()
        .into_iter()
        .map(|call| ToolCall { id: call.id, name: call.function.name, arguments: call.function.arguments })
        .collect();
    let finish = match choice.finish_reason.as_deref() {
        _ if !tool_calls.is_empty() => Finish::ToolCalls,
        Some("length") => Finish::Length,
        _ => Finish::Stop,
    };
    let usage = Usage {
        input_tokens: answer.usage.prompt_tokens.max(0),
        cached_tokens: answer.usage.prompt_tokens_details.map_or(0, |details| details.cached_tokens).max(0),
        output_tokens: answer.usage.completion_tokens.max(0),
        reasoning_tokens: answer
            .usage
            .completion_tokens_details
            .map_or(0, |details| details.reasoning_tokens)
            .max(0),
    };
    // What models print may hold NUL, which PostgreSQL cannot store.
    let text = choice.message.content.unwrap_or_default().replace('\0', "");
    Ok(Completion { text, tool_calls, finish, usage })
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
        assert_eq!(completion.usage.cached_tokens, 2);
        for broken in [&b"{}"[..], b"{\"choices\":[]}", b"<html>", b""] {
            assert!(matches!(read_completion(broken), Err(ProviderError::Unavailable(_))));
        }
    }
}
