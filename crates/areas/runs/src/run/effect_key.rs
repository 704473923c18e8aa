//! Idempotency keys of tool calls.

use super::row::RunRow;
use model::JsonText;
use providers::{ToolCall, json};
use serde_json::json;

/// The arguments as JSON; as text where they are none. Nothing is not an empty object here: a provider says so where a
/// call has ended without arguments, and a call that was cut before them has none.
pub(crate) fn arguments_of(call: &ToolCall) -> JsonText {
    json::text_of(&call.arguments).unwrap_or_else(|| JsonText::of(&call.arguments))
}

/// The replacement of arguments that a guardrail withheld. A call with it is not made.
pub(crate) fn withheld() -> JsonText {
    JsonText::of(&json!({ "withheld": "by a guardrail" }))
}

/// Names an effect: the same tool with the same arguments in the same run, however the model spelt them.
pub(crate) fn key(row: &RunRow, tool: &str, arguments: &JsonText) -> String {
    let arguments = JsonText::printed(json::canonical(arguments.as_str()));
    let canonical = serde_json::to_string(&(row.id.as_str(), tool, arguments)).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, canonical.as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
