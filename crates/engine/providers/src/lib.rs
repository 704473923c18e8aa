//! Model providers: language models behind one trait, and the tiers that callers choose from.

mod answer;
pub mod code_fence;
mod estimates;
pub mod json;
mod message;
mod openai;
mod prompt;
mod provider;
mod spans;
mod streamed_text;
#[cfg(test)]
mod tests;
mod thoughts;
mod tiers;

pub use answer::{Completion, Finish, ModelAnswer, ProviderError, Usage};
pub use estimates::{beginning, estimated_tokens, estimated_tool_tokens};
pub use message::{Message, Role, ToolCall, ToolSpec};
pub use openai::{OpenAi, OpenAiSettings};
pub use prompt::{Attempts, FailedAttempt, Prompt, Sink};
pub use provider::{BoxFuture, Provider, Route};
pub use streamed_text::{Delta, StreamedText};
pub use tiers::{Prices, Tier, TierSetup, Tiers};
