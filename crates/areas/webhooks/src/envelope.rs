//! Body of a delivery: made once, stored, and sent unchanged on every attempt.

use crate::endpoint::model::Payload;
use events::LoggedEvent;
use model::{EventId, JsonText, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The largest body; of a larger event the thin form is sent, marked `truncated`.
pub(crate) const LARGEST: usize = 64 * 1024;

#[derive(Serialize)]
struct Envelope<'a> {
    id: &'a EventId,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'a str,
    created_at: Timestamp,
    livemode: bool,
    workspace_id: WorkspaceId,
    sequence: i64,
    data: &'a JsonText,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Previous>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// Old values by field.
type Previous = BTreeMap<String, Box<RawValue>>;

/// The body for an event in this form.
pub(crate) fn body(event: &LoggedEvent, payload: Payload) -> String {
    let whole = |data: &JsonText, previous: Option<Previous>, truncated| {
        let envelope = Envelope {
            id: &event.id,
            object: "event",
            kind: &event.kind,
            created_at: event.created_at,
            livemode: event.livemode,
            workspace_id: event.workspace_id,
            sequence: event.position,
            data,
            previous,
            truncated,
        };
        serde_json::to_string(&envelope).unwrap_or_default()
    };
    if payload == Payload::Full {
        let full = whole(&event.data, previous(&event.data), false);
        if full.len() <= LARGEST {
            return full;
        }
    }
    whole(&thin(&event.data), None, payload == Payload::Full)
}

/// The old values of what an event's data calls `changed`. Few events do, so most are not parsed.
fn previous(data: &JsonText) -> Option<Previous> {
    #[derive(Deserialize)]
    struct Changes {
        changed: BTreeMap<String, Change>,
    }
    #[derive(Deserialize)]
    struct Change {
        old: Box<RawValue>,
    }
    if !data.as_str().contains("\"changed\"") {
        return None;
    }
    let changed = data.parse::<Changes>().ok()?.changed;
    let previous: Previous = changed.into_iter().map(|(field, change)| (field, change.old)).collect();
    (!previous.is_empty()).then_some(previous)
}

/// The ids in an event's data, those of the object that it shows, and `app_url`.
fn thin(data: &JsonText) -> JsonText {
    let Ok(Value::Object(fields)) = data.parse::<Value>() else { return JsonText::of(&Map::new()) };
    let mut kept = Map::new();
    for (name, value) in fields {
        match value {
            Value::Object(inner) => {
                let ids: Map<String, Value> =
                    inner.into_iter().filter(|(name, value)| is_id(name, value)).collect();
                if ids.contains_key("id") {
                    kept.insert(name, Value::Object(ids));
                }
            }
            value if is_id(&name, &value) => drop(kept.insert(name, value)),
            _ => {}
        }
    }
    JsonText::of(&kept)
}

fn is_id(name: &str, value: &Value) -> bool {
    (matches!(name, "id" | "object" | "app_url") || name.ends_with("_id"))
        && !value.is_object()
        && !value.is_array()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;
    use serde_json::json;

    fn event(data: Value) -> LoggedEvent {
        let now = Timestamp::from_millis(1_800_000_000_000);
        LoggedEvent {
            position: 7,
            id: EventId::new(now, &SeededRandom::new(1)),
            workspace_id: WorkspaceId(3),
            kind: "run.completed".to_owned(),
            livemode: true,
            data: JsonText::of(&data),
            created_at: now,
            request_id: None,
            traceparent: None,
            root_event_id: None,
            depth: 0,
            automations: None,
        }
    }

    #[test]
    fn bodies_have_the_wire_form() {
        let event = event(json!({ "run_id": "run_1", "text": "é", "tags": [1] }));
        let full = body(&event, Payload::Full);
        let start = format!(
            r#"{{"id":"{}","object":"event","type":"run.completed","created_at":"2027-01-15T08:00:00.000Z","livemode":true,"workspace_id":3,"sequence":7,"data":"#,
            event.id
        );
        assert_eq!(full, format!(r#"{start}{{"run_id":"run_1","text":"é","tags":[1]}}}}"#));
        assert_eq!(body(&event, Payload::Thin), format!(r#"{start}{{"run_id":"run_1"}}}}"#));
    }

    #[test]
    fn old_values_are_in_previous() {
        let changed = json!({ "price": { "old": 1.50, "new": 2 }, "name": { "old": null, "new": "A" } });
        let sent =
            |data: Value| -> Value { serde_json::from_str(&body(&event(data), Payload::Full)).unwrap() };
        let updated = json!({ "item": { "id": 4 }, "changed": changed });
        assert_eq!(sent(updated.clone())["previous"], json!({ "name": null, "price": 1.5 }));
        let thin: Value = serde_json::from_str(&body(&event(updated), Payload::Thin)).unwrap();
        assert_eq!(thin.get("previous"), None);
        for data in [
            json!({}),
            json!({ "changed": {} }),
            json!({ "changed": ["a"] }),
            json!({ "text": "\"changed\"" }),
        ] {
            assert_eq!(sent(data.clone()).get("previous"), None, "{data}");
        }
    }

    #[test]
    fn large_events_become_thin_and_say_so() {
        let item = json!({ "id": 4, "object": "item", "collection_id": 2, "text": "a".repeat(LARGEST) });
        let event = event(json!({ "item": item, "changed": { "text": {} }, "app_url": "https://x" }));
        let body: Value = serde_json::from_str(&body(&event, Payload::Full)).unwrap();
        let item = json!({ "id": 4, "object": "item", "collection_id": 2 });
        assert_eq!(body["data"], json!({ "item": item, "app_url": "https://x" }));
        assert_eq!(body["truncated"], true);
    }
}
