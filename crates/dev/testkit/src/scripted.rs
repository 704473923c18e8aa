//! Scripted model servers.

use providers::{BoxFuture, Completion, Finish, Prompt, Provider, ProviderError, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::Semaphore;

/// The next response of a scripted model.
#[derive(Debug, Clone)]
pub enum Script {
    /// A text.
    Say(String),
    /// A text that was truncated at its limit.
    Cut(String),
    /// Tool calls: name and arguments.
    Call(Vec<(String, Value)>),
    /// An error.
    Fail(ProviderError),
    /// Tool calls after a [`ScriptedModel::release`].
    WaitAndCall(Vec<(String, Value)>),
    /// A text, after the run is cancelled or [`ScriptedModel::release`] is called.
    Wait(String),
    /// A text in pieces: the first at once, each other one after a [`ScriptedModel::release`].
    Pieces(Vec<String>),
    /// An error after these pieces.
    BreakOff(Vec<String>, ProviderError),
}

/// A model that returns scripted responses in order, and then "ok". It records its prompts.
#[derive(Default)]
pub struct ScriptedModel {
    script: Mutex<VecDeque<Script>>,
    asked: Mutex<Vec<Prompt>>,
    usage: Mutex<Option<Usage>>,
    gate: Gate,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl ScriptedModel {
    /// Adds a response to the script.
    pub fn then(&self, script: Script) -> &Self {
        self.script.lock().unwrap().push_back(script);
        self
    }

    /// Removes the rest of the script.
    pub fn forget(&self) {
        self.script.lock().unwrap().clear();
    }

    /// Sets the token usage of every response. The default is 10 and 5.
    pub fn usage(&self, input_tokens: i64, output_tokens: i64) -> &Self {
        *self.usage.lock().unwrap() = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
        self
    }

    /// Lets one [`Script::Wait`] continue.
    pub fn release(&self) {
        self.gate.0.add_permits(1);
    }

    /// Returns the prompts so far.
    pub fn prompts(&self) -> Vec<Prompt> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the texts of the last prompt.
    pub fn last_texts(&self) -> Vec<String> {
        let prompts = self.prompts();
        prompts
            .last()
            .map(|prompt| prompt.messages.iter().map(|message| message.content.clone()).collect())
            .unwrap_or_default()
    }

    async fn say(&self, prompt: &Prompt, pieces: &[String]) {
        for (place, piece) in pieces.iter().enumerate() {
            if place > 0 {
                self.gate.0.acquire().await.unwrap().forget();
            }
            say(prompt, piece);
        }
    }

    fn calls(&self, calls: Vec<(String, Value)>) -> Completion {
        let calls = calls.into_iter().map(|(name, arguments)| ToolCall {
            id: String::new(),
            name,
            arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
        });
        self.completion(String::new(), Finish::ToolCalls, calls.collect())
    }

    fn completion(&self, text: String, finish: Finish, tool_calls: Vec<ToolCall>) -> Completion {
        let usage = self.usage.lock().unwrap().unwrap_or(Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        });
        Completion { text, tool_calls, finish, usage: Some(usage) }
    }
}

fn say(prompt: &Prompt, piece: &str) {
    if let Some(sink) = &prompt.sink {
        sink.say(piece);
    }
}

impl Provider for ScriptedModel {
    fn complete<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Completion, ProviderError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(prompt.clone());
            let next = self.script.lock().unwrap().pop_front();
            match next.unwrap_or_else(|| Script::Say("ok".to_owned())) {
                Script::Say(text) => Ok(self.completion(text, Finish::Stop, Vec::new())),
                Script::Cut(text) => Ok(self.completion(text, Finish::Length, Vec::new())),
                Script::Call(calls) => Ok(self.calls(calls)),
                Script::WaitAndCall(calls) => {
                    self.gate.0.acquire().await.unwrap().forget();
                    Ok(self.calls(calls))
                }
                Script::Fail(error) => Err(error),
                Script::Wait(text) => tokio::select! {
                    permit = self.gate.0.acquire() => {
                        permit.unwrap().forget();
                        Ok(self.completion(text, Finish::Stop, Vec::new()))
                    }
                    () = prompt.cancel.cancelled() => Err(ProviderError::Cancelled),
                },
                Script::Pieces(pieces) => tokio::select! {
                    () = self.say(prompt, &pieces) => {
                        Ok(self.completion(pieces.concat(), Finish::Stop, Vec::new()))
                    }
                    () = prompt.cancel.cancelled() => Err(ProviderError::Cancelled),
                },
                Script::BreakOff(pieces, error) => {
                    pieces.iter().for_each(|piece| say(prompt, piece));
                    Err(error)
                }
            }
        })
    }
}

/// A scripted response.
enum Scripted {
    /// Status, `Retry-After` and body. With the status 0 the request hangs.
    Json(u16, Option<u64>, Value),
    /// Server-sent events, and whether the end of the stream is sent.
    Events(Vec<Value>, bool),
    /// Status, headers and body, byte for byte.
    Raw(u16, Vec<(String, String)>, Vec<u8>),
}

/// The rule for requests after the end of the script, given the request's body.
type Rule = dyn Fn(&Value) -> Value + Send + Sync;

/// An HTTP server with scripted responses, in order. After them it applies a rule, by default a short completion. It
/// supports just enough HTTP/1.1 for the service's client.
pub struct OpenAiServer {
    /// The address that it listens on.
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    script: Mutex<VecDeque<Scripted>>,
    rule: Mutex<Arc<Rule>>,
    bodies: Mutex<Vec<Value>>,
    texts: Mutex<Vec<String>>,
    heads: Mutex<Vec<String>>,
    requests: AtomicUsize,
    hang_up: Notify,
}

impl OpenAiServer {
    /// Starts on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            script: Mutex::default(),
            rule: Mutex::new(Arc::new(|_: &Value| completion("ok"))),
            bodies: Mutex::default(),
            texts: Mutex::default(),
            heads: Mutex::default(),
            requests: AtomicUsize::default(),
            hang_up: Notify::default(),
        });
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = serving.clone();
                tokio::spawn(async move { state.serve(stream).await });
            }
        });
        Self { address, state }
    }

    /// Sets the rule for requests after the end of the script.
    pub fn answer(&self, rule: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        *self.state.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Returns the base URL for the provider.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds a response. With the status 0 the request hangs.
    pub fn then(&self, status: u16, retry_after: Option<u64>, body: Value) -> &Self {
        self.state.script.lock().unwrap().push_back(Scripted::Json(status, retry_after, body));
        self
    }

    /// Adds a response with events, followed by `[DONE]`.
    pub fn then_events(&self, events: impl IntoIterator<Item = Value>) -> &Self {
        let events = events.into_iter().collect();
        self.state.script.lock().unwrap().push_back(Scripted::Events(events, true));
        self
    }

    /// Adds a response that ends abruptly after these events.
    pub fn then_break_off(&self, events: impl IntoIterator<Item = Value>) -> &Self {
        let events = events.into_iter().collect();
        self.state.script.lock().unwrap().push_back(Scripted::Events(events, false));
        self
    }

    /// Adds a response with these headers and this body, byte for byte.
    pub fn then_raw(&self, status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> &Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.state.script.lock().unwrap().push_back(Scripted::Raw(status, headers.collect(), body.into()));
        self
    }

    /// Adds a response that never comes.
    pub fn then_silence(&self) -> &Self {
        self.then(SILENCE, None, Value::Null)
    }

    /// Closes a hanging request without a response.
    pub fn hang_up(&self) {
        self.state.hang_up.notify_one();
    }

    /// Returns the received bodies.
    pub fn bodies(&self) -> Vec<Value> {
        self.state.bodies.lock().unwrap().clone()
    }

    /// Returns the received bodies as text.
    pub fn texts(&self) -> Vec<String> {
        self.state.texts.lock().unwrap().clone()
    }

    /// Returns the received request lines and headers, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.state.heads.lock().unwrap().clone()
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }
}

/// The status for a response that never comes.
const SILENCE: u16 = 0;

impl State {
    async fn serve(&self, mut stream: tokio::net::TcpStream) {
        let mut buffer = Vec::new();
        while let Some((head, body)) = read_request(&mut stream, &mut buffer).await {
            self.texts.lock().unwrap().push(String::from_utf8_lossy(&body).into_owned());
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            self.heads.lock().unwrap().push(head);
            self.requests.fetch_add(1, Ordering::SeqCst);
            self.bodies.lock().unwrap().push(body.clone());
            let next = self.script.lock().unwrap().pop_front();
            let (status, retry_after, body) = match next {
                None => {
                    let rule = self.rule.lock().unwrap().clone();
                    (200, None, rule(&body))
                }
                Some(Scripted::Json(status, retry_after, body)) => (status, retry_after, body),
                Some(Scripted::Raw(status, headers, body)) => {
                    if send_raw(&mut stream, status, &headers, &body).await.is_err() {
                        return;
                    }
                    continue;
                }
                Some(Scripted::Events(events, complete)) => {
                    if send_events(&mut stream, &events, complete).await.is_err() || !complete {
                        return;
                    }
                    continue;
                }
            };
            if status == SILENCE {
                // Wait until the client or the test gives up.
                let mut end = [0];
                tokio::select! {
                    _ = stream.read(&mut end) => {}
                    () = self.hang_up.notified() => {}
                }
                return;
            }
            let body = body.to_string();
            let retry = retry_after.map(|seconds| format!("retry-after: {seconds}\r\n")).unwrap_or_default();
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{retry}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn send_raw(
    stream: &mut tokio::net::TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> std::io::Result<()> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await
}

async fn send_events(
    stream: &mut tokio::net::TcpStream,
    events: &[Value],
    complete: bool,
) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let events = events.iter().map(Value::to_string).chain(complete.then(|| "[DONE]".to_owned()));
    for event in events {
        let event = format!("data: {event}\n\n");
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
    }
    if complete { stream.write_all(b"0\r\n\r\n").await } else { Ok(()) }
}

async fn read_request(stream: &mut tokio::net::TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(buffer.get(..end)?).to_lowercase();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .map_or(0, |length| length.trim().parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let rest = buffer.split_off(end + 4 + length);
                let body = buffer.split_off(end + 4);
                *buffer = rest;
                return Some((head, body));
            }
        }
        let mut chunk = [0; 8192];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(chunk.get(..read)?),
        }
    }
}

/// Returns a completion with `text`.
pub fn completion(text: &str) -> Value {
    finished(json!({ "role": "assistant", "content": text }), "stop")
}

/// Returns a completion that calls a tool.
pub fn tool_call(name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "id": format!("call_{name}"), "type": "function", "function": function });
    finished(json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
}

fn finished(message: Value, reason: &str) -> Value {
    json!({
        "id": "c1",
        "object": "chat.completion",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}
