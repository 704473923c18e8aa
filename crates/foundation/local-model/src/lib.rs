//! The embedded language model: a small llama or qwen2 (SmolLM2-135M-Instruct) that runs in the process, without a
//! network, and needs only a GGUF file (`scripts/fetch-model`).
//!
//! This crate contains the reader of the file, the forward pass, the chat template, tool calls, structured output by
//! grammars, and the queue of the computing thread. It does not contain providers, agents, prices and permissions. It
//! depends on no other crate of the workspace, because its dependencies are heavy.
//!
//! | module | subject |
//! |---|---|
//! | [`types`](Request) | request, messages, events, completion, errors |
//! | `engine` | the handle, the bounded queue, the thread |
//! | `session` | one request from prompt to completion, reuse of the cached prefix |
//! | `choose` | whether to call a tool, and which |
//! | `chat`, `prompt` | ChatML; fitting a conversation into the context |
//! | `constrain` | grammars: JSON by schema, tool calls |
//! | `guard` | numbers that an answer may not make up |
//! | `sample`, `stream` | picking tokens; cutting bytes at code points |
//! | `llama`, `weights`, `tokenizer` | the model itself |
//!
//! The model is small: expect valid JSON and fluent sentences, but not good judgement.

mod chat;
mod choose;
mod constrain;
mod engine;
#[cfg(test)]
mod engine_tests;
mod guard;
mod llama;
mod prompt;
mod sample;
mod search_terms;
mod session;
mod stream;
#[cfg(test)]
mod tiny;
mod tokenizer;
mod types;
mod weights;

pub use engine::{Engine, Generation, Options};
pub use types::{Completion, Error, Event, Finish, Message, Request, Role, Tool, ToolCall};
