//! Streamed completions of a server.

use super::events::EventReader;
use super::{ChatUsage, Fault, LARGEST_ANSWER, completion, unreadable};
use crate::providers::{Completion, Sink, ToolCall};
use egress::Streaming;
use serde::Deserialize;
use serde_json::Value;

/// Reads an answer to its end, and says its text as it comes.
pub(super) async fn read(mut response: Streaming, sink: &dyn Sink) -> Result<Completion, Fault> {
    let mut events = EventReader::default();
    let mut answer = Answer::default();
    while let Some(bytes) = response.chunk().await? {
        for event in events.push(&bytes).map_err(|_| too_large())? {
            if event == b"[DONE]" {
                return answer.end();
            }
            answer.take(&event, sink)?;
        }
    }
    if answer.finish_reason.is_none() {
        return Err(Fault::Passing(None, "the answer broke off".to_owned()));
    }
    answer.end()
}

fn too_large() -> Fault {
    Fault::Final(unreadable("it is too large"))
}

/// What was said so far.
#[derive(Default)]
struct Answer {
    /// Something was said, be it nothing.
    has_begun: bool,
    text: String,
    refusal: String,
    /// The calls, with the server's numbers for them.
    calls: Vec<(Option<u64>, ToolCall)>,
    finish_reason: Option<String>,
    usage: Option<ChatUsage>,
    bytes: usize,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<ChunkChoice>>,
    #[serde(default)]
    usage: Option<ChatUsage>,
    /// What servers send that fail half-way.
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

impl Answer {
    fn take(&mut self, event: &[u8], sink: &dyn Sink) -> Result<(), Fault> {
        let chunk: Chunk = serde_json::from_slice(event).map_err(|error| Fault::Final(unreadable(error)))?;
        if let Some(error) = chunk.error {
            let why: String = error.to_string().chars().take(300).collect();
            return Err(Fault::Passing(None, format!("it failed half-way: {why}")));
        }
        // Where a server sends it more than once, the last one is the total.
        self.usage = chunk.usage.or(self.usage.take());
        let Some(choice) = chunk.choices.into_iter().flatten().find(|choice| choice.index == 0) else {
            return Ok(());
        };
        self.has_begun = true;
        if let Some(delta) = choice.delta {
            self.hear(delta, sink)?;
        }
        self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        Ok(())
    }

    fn hear(&mut self, delta: Delta, sink: &dyn Sink) -> Result<(), Fault> {
        let text = delta.content.unwrap_or_default();
        let refusal = delta.refusal.unwrap_or_default();
        self.bytes += text.len() + refusal.len();
        for piece in delta.tool_calls.into_iter().flatten() {
            self.hear_call(piece);
        }
        if self.bytes > LARGEST_ANSWER {
            return Err(too_large());
        }
        if !text.is_empty() {
            sink.say(&text);
        }
        self.text.push_str(&text);
        self.refusal.push_str(&refusal);
        Ok(())
    }

    /// A piece belongs to the last call of its number, and without a number to the last one, unless it says another
    /// id: some servers number all calls alike.
    fn hear_call(&mut self, piece: CallPiece) {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or(FunctionPiece { name: None, arguments: None });
        let (name, arguments) = (function.name.unwrap_or_default(), function.arguments.unwrap_or_default());
        // With something for the call itself, so that no number of empty calls is free.
        self.bytes += id.len() + name.len() + arguments.len() + 16;
        let same =
            self.calls.iter_mut().rev().find(|(index, _)| piece.index.is_none() || *index == piece.index);
        match same {
            Some((_, call)) if id.is_empty() || call.id.is_empty() || call.id == id => {
                if call.id.is_empty() {
                    call.id = id;
                }
                if call.name.is_empty() {
                    call.name = name;
                }
                call.arguments.push_str(&arguments);
            }
            _ => self.calls.push((piece.index, ToolCall { id, name, arguments })),
        }
    }

    fn end(self) -> Result<Completion, Fault> {
        if !self.has_begun {
            return Err(Fault::Final(unreadable("it has no choices")));
        }
        let calls = self.calls.into_iter().map(|(_, call)| call).collect();
        Ok(completion(self.text, self.refusal, calls, self.finish_reason.as_deref(), self.usage))
    }
}
