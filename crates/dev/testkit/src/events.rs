//! Events for tests of the delivery of events.

use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// A message was sent to a contact, as the area of channels publishes it.
#[derive(Debug, Clone, Serialize, ToSchema, Event)]
#[event(
    name = "contact.message.sent",
    scope = "conversations:read",
    subject = "contact",
    id = "contact_id",
    contact = "contact_id"
)]
pub struct MessageSent {
    contact_id: i64,
    message_id: i64,
    conversation_id: i64,
    channel_id: i64,
    channel_type: &'static str,
    r#type: &'static str,
    content: String,
    run_id: Option<String>,
    app_url: &'static str,
}

impl MessageSent {
    /// Creates an event for a message to this contact, identified by its text.
    pub fn new(contact_id: i64, text: impl Into<String>) -> Self {
        Self {
            contact_id,
            message_id: 1,
            conversation_id: 1,
            channel_id: 1,
            channel_type: "chatnet",
            r#type: "text",
            content: text.into(),
            run_id: None,
            app_url: "https://svc.example/c",
        }
    }
}

/// A conversion was reported.
#[derive(Debug, Clone, Serialize, ToSchema, Event)]
#[event(name = "conversion.sent", scope = "conversions:read")]
pub struct ConversionSent {
    conversion_id: &'static str,
}

impl ConversionSent {
    /// Creates an event for a conversion.
    pub fn new(conversion_id: &'static str) -> Self {
        Self { conversion_id }
    }
}
