//! Events: what happened, told to whoever subscribed.

use serde::Serialize;
use serde_json::Value;

/// An event to be written with the change that caused it. Id, sequence and time are given by the transaction.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The event's name, such as `run.completed`.
    pub kind: &'static str,
    /// Whether the effects were real: `false` for whatever a test key's run caused.
    pub livemode: bool,
    /// The event's own data.
    pub data: Value,
}

impl NewEvent {
    /// An event whose data is `data` as JSON.
    pub fn new(kind: &'static str, livemode: bool, data: &impl Serialize) -> Self {
        Self { kind, livemode, data: serde_json::to_value(data).unwrap_or(Value::Null) }
    }
}
