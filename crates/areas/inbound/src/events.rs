//! Events of inbound webhooks.

use model::{InboundWebhookId, JsonText, ReceivedRequestId, Timestamp};
use operation::Event;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// An event of an inbound webhook.
#[derive(Event)]
#[event(scope = "webhooks:manage", subject = "inbound_webhook", id = "inbound_webhook_id")]
pub(crate) enum InboundEvent {
    /// An inbound webhook received a verified request.
    #[event(name = "webhook.received")]
    Received(Box<Received>),
    /// Requests to an inbound webhook repeatedly failed verification.
    #[event(name = "inbound_webhook.failing")]
    Failing(Failing),
}

// The names speak for themselves; the contract describes those that do not.
#[derive(Serialize, ToSchema)]
pub(crate) struct Received {
    #[schema(inline)]
    pub(super) inbound_webhook_id: InboundWebhookId,
    pub(super) name: String,
    #[schema(inline)]
    pub(super) request_id: ReceivedRequestId,
    #[schema(inline)]
    pub(super) received_at: Timestamp,
    pub(super) content_type: Option<String>,
    pub(super) event_type: Option<String>,
    /// The result of the mapping.
    #[schema(value_type = Object)]
    pub(super) vars: Map<String, Value>,
    /// The contact that the mapping found, or null.
    #[schema(required, value_type = Value)]
    pub(super) contact: Option<Value>,
    /// The body: JSON and forms as JSON, other text as a string, everything else as base64.
    #[schema(required, value_type = Value)]
    pub(super) body: Option<JsonText>,
    #[schema(required, schema_with = encoding)]
    pub(super) body_encoding: Option<&'static str>,
    pub(super) body_truncated: bool,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Failing {
    #[schema(inline)]
    pub(super) inbound_webhook_id: InboundWebhookId,
    #[schema(schema_with = whole_number)]
    pub(super) failures: i64,
    #[schema(schema_with = whole_number)]
    pub(super) window_seconds: i64,
    pub(super) last_reason: &'static str,
}

fn encoding() -> Object {
    let words = [json!("base64"), Value::Null];
    ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .enum_values(Some(words))
        .description(Some("How `body` is encoded: `base64`, or null for JSON and text."))
        .build()
}

fn whole_number() -> Object {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer)).build()
}
