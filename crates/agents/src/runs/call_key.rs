//! Deduplication keys of tool calls.

use super::model::RunRow;
use crate::providers::ToolCall;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The arguments as JSON; as text where they are none.
pub(super) fn arguments_of(call: &ToolCall) -> Value {
    // Some models leave the arguments of a tool without any empty.
    if call.arguments.trim().is_empty() {
        return json!({});
    }
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into())
}

/// What stands in the place of arguments that guardrails withheld. A call with them is not made.
pub(super) fn withheld() -> Value {
    json!({ "withheld": "by a guardrail" })
}

/// Names an effect: the same tool with the same arguments in the same run, however the model spelt them.
pub(super) fn key(row: &RunRow, tool: &str, arguments: &Value) -> String {
    let canonical = serde_json::to_string(&(row.id.as_str(), tool, sorted(arguments))).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, canonical.as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<&String, Value> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            json!(ordered)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
