//! Events: what happened, told to whoever subscribed.

use crate::JsonText;
use serde::Serialize;

/// An event to be written with the change that caused it. Id, sequence and time are given by the transaction.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// The event's name, such as `run.completed`.
    pub kind: &'static str,
    /// Whether the effects were real: `false` for whatever a test key's run caused.
    pub livemode: bool,
    /// The event's own data, as JSON.
    pub data: JsonText,
}

impl NewEvent {
    /// An event whose data is `data` as JSON.
    pub fn new(kind: &'static str, livemode: bool, data: &impl Serialize) -> Self {
        Self { kind, livemode, data: JsonText::of(data) }
    }

    /// An event whose data is JSON already.
    pub fn printed(kind: &'static str, livemode: bool, data: String) -> Self {
        Self { kind, livemode, data: JsonText::printed(data) }
    }
}
