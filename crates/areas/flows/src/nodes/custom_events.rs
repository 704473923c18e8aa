//! Events that the nodes of flows publish.

use super::calls::done;
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config;
use model::{EventId, Random};
use operation::Event;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// The most bytes of an event's data, as JSON.
const MOST_DATA: usize = 64 * 1024;
/// What names of events begin with.
const PREFIX: &str = "custom.";
/// The longest name.
const LONGEST_NAME: usize = 100;

/// A flow published an event of your own, such as `custom.order_checked`. Its data is what the node `emit_event` says.
#[derive(Clone, Serialize, ToSchema, Event)]
#[event(name = "custom.*", named = "name", scope = "events:read", contact = "contact_id")]
pub(crate) struct CustomEvent {
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    contact_id: Option<i64>,
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    data: Map<String, Value>,
}

/// Publishes an event, once for the key of the node.
pub(super) async fn emit_event(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::EmitEvent = call.config()?;
    if !is_custom(&config.name) {
        let rule =
            "The name must be `custom.` and words of small letters, digits and `_`, with dots between them.";
        return Err(NodeFailure::new("validation_error", rule));
    }
    if serde_json::to_vec(&config.data).map_or(usize::MAX, |data| data.len()) > MOST_DATA {
        let message = format!("The data must not be larger than {MOST_DATA} bytes.");
        return Err(NodeFailure::new("validation_error", message));
    }
    let event =
        CustomEvent { name: config.name, contact_id: call.run.contact_id.map(|id| id.0), data: config.data };
    let id = EventId::new(call.began_at, &Key::of(&call.key));
    let (named, cause) = (id.clone(), call.caller.cause());
    let (workspace, livemode) = (call.run.workspace_id, call.caller.livemode());
    let emit = move |tx: &mut store::Tx| tx.emit_once(named.clone(), workspace, &cause, livemode, &event);
    call.engine.db().write(emit).await?;
    Ok(done(json!({ "event_id": id })))
}

fn is_custom(name: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_lowercase())
            && word.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let words = name.strip_prefix(PREFIX);
    name.len() <= LONGEST_NAME && words.is_some_and(|words| words.split('.').all(word))
}

/// Draws the same id for the same key, so that a repetition finds the event.
struct Key(Vec<u8>);

impl Key {
    fn of(key: &str) -> Self {
        Self(digest(&SHA256, key.as_bytes()).as_ref().to_vec())
    }
}

impl Random for Key {
    fn fill(&self, bytes: &mut [u8]) {
        for (byte, drawn) in bytes.iter_mut().zip(self.0.iter().cycle()) {
            *byte = *drawn;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    #[test]
    fn names_are_custom() {
        for name in ["custom.a", "custom.order_checked", "custom.order.paid_2"] {
            assert!(is_custom(name), "{name}");
        }
        let long = format!("custom.{}", "a".repeat(LONGEST_NAME));
        for name in ["", "custom", "custom.", "custom.*", "custom.A", "custom.a..b", "contact.created", &long]
        {
            assert!(!is_custom(name), "{name}");
        }
    }

    #[test]
    fn a_key_has_one_id() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let id = |key: &str| EventId::new(now, &Key::of(key));
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
    }
}
