//! The events that inbound webhooks tell.

use operation::{EventType, object_schema};
use serde_json::json;

pub(crate) fn event_types() -> Vec<EventType> {
    let (text, maybe) = (json!({ "type": "string" }), json!({ "type": ["string", "null"] }));
    let webhook = ("inbound_webhook_id", json!({ "type": "string", "pattern": "^wh_" }));
    let received = object_schema(
        &[
            webhook.clone(),
            ("name", text.clone()),
            ("request_id", json!({ "type": "string", "pattern": "^whr_" })),
            ("received_at", json!({ "type": "string", "format": "date-time" })),
            ("content_type", maybe.clone()),
            ("event_type", maybe.clone()),
            ("vars", json!({ "type": "object", "description": "What the mapping made of it." })),
            ("contact", json!({ "description": "The contact that the mapping found in it, or null." })),
            (
                "body",
                json!({ "description": "JSON and forms as they are, other text as text, the rest as base64." }),
            ),
            ("body_encoding", json!({ "enum": ["base64", null] })),
            ("body_truncated", json!({ "type": "boolean" })),
        ],
        &[],
    );
    let number = json!({ "type": "integer" });
    let failing = object_schema(
        &[webhook, ("failures", number.clone()), ("window_seconds", number), ("last_reason", text)],
        &[],
    );
    let of = |name, description, schema| {
        EventType::with_schema(name, description, "webhooks:manage", schema)
            .about("inbound_webhook", "inbound_webhook_id")
    };
    vec![
        of("webhook.received", "An inbound webhook received a request that was verified.", received),
        of(
            "inbound_webhook.failing",
            "Requests to an inbound webhook fail their verification again and again.",
            failing,
        ),
    ]
}
