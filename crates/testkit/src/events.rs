//! Events for tests of what is done with events.

use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// A contact was changed.
#[derive(Debug, Clone, Serialize, ToSchema, Event)]
#[event(
    name = "contact.updated",
    scope = "conversations:read",
    subject = "contact",
    id = "contact_id",
    contact = "contact_id"
)]
pub struct ContactUpdated {
    contact_id: i64,
    app_url: &'static str,
    text: String,
}

impl ContactUpdated {
    /// A change of this contact, known by its text.
    pub fn new(contact_id: i64, text: impl Into<String>) -> Self {
        Self { contact_id, app_url: "https://svc.example/c", text: text.into() }
    }
}

/// A conversion was reported.
#[derive(Debug, Clone, Serialize, ToSchema, Event)]
#[event(name = "conversion.sent", scope = "conversions:read")]
pub struct ConversionSent {
    conversion_id: &'static str,
}

impl ConversionSent {
    /// A conversion.
    pub fn new(conversion_id: &'static str) -> Self {
        Self { conversion_id }
    }
}
