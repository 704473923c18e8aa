//! The format of callbacks.

use super::numbers::Number;
use model::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

/// A part of a callback.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// A message of a customer.
    Message { contact: Option<Value>, message: Value },
    /// A status of a message of the business.
    Status { contact: Option<Value>, status: Value },
    /// A separate change. A change of a business, not of a number, has a time.
    Change { field: &'static str, value: Value, at: Option<Timestamp> },
}

/// A request to the service.
#[derive(Debug)]
pub(crate) struct Callback {
    pub(crate) number_id: String,
    pub(crate) body: Vec<u8>,
    pub(crate) parts: usize,
    pub(crate) is_badly_signed: bool,
    pub(crate) attempt: u32,
    /// Notified when the callback was answered, with any status.
    pub(crate) seen: Vec<oneshot::Sender<()>>,
}

/// Returns the common fields of all changes of a number.
pub(crate) fn about(number: &Number) -> Map<String, Value> {
    let mut value = Map::new();
    value.insert("messaging_product".to_owned(), json!("whatsapp"));
    let metadata = json!({ "display_phone_number": number.display_number, "phone_number_id": number.id });
    value.insert("metadata".to_owned(), metadata);
    value
}

/// Returns the body of a callback with these parts.
pub(crate) fn body(number: &Number, parts: Vec<Part>) -> Value {
    let (mut contacts, mut messages, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    let (mut changes, mut entries) = (Vec::new(), Vec::new());
    let mut meet = |contact: Option<Value>| {
        if let Some(contact) = contact.filter(|contact| !contacts.contains(contact)) {
            contacts.push(contact);
        }
    };
    for part in parts {
        match part {
            Part::Message { contact, message } => {
                meet(contact);
                messages.push(message);
            }
            Part::Status { contact, status } => {
                meet(contact);
                statuses.push(status);
            }
            Part::Change { field, value, at: None } => changes.push(json!({ "value": value, "field": field })),
            Part::Change { field, value, at: Some(at) } => entries.push(json!({
                "id": number.business_id, "time": at.seconds(), "changes": [{ "value": value, "field": field }],
            })),
        }
    }
    if !messages.is_empty() || !statuses.is_empty() {
        let mut value = about(number);
        for (key, rows) in [("contacts", contacts), ("messages", messages), ("statuses", statuses)] {
            if !rows.is_empty() {
                value.insert(key.to_owned(), Value::Array(rows));
            }
        }
        changes.insert(0, json!({ "value": value, "field": "messages" }));
    }
    if !changes.is_empty() {
        entries.insert(0, json!({ "id": number.business_id, "changes": changes }));
    }
    json!({ "object": "whatsapp_business_account", "entry": entries })
}
