//! Messages of contacts, statuses of our messages, and messages that the business wrote on its own device.

use super::content::content;
use super::parts;
use super::read::{self, list, owned, party, text, time};
use super::unknown;
use crate::cloud::codes;
use crate::{Echo, IdentityChange, InboundMessage, NetworkStatus, Party, StatusError, StatusUpdate, Update};
use serde_json::Value;

pub(super) fn parse(value: &Value, updates: &mut Vec<Update>) {
    let contacts = list(value, "contacts");
    let before = updates.len();
    for raw in list(value, "messages") {
        updates.push(message(contacts, raw).unwrap_or_else(|| unknown(&named("messages", raw), raw)));
    }
    for raw in list(value, "statuses") {
        updates.push(status(contacts, raw).unwrap_or_else(|| unknown(&named("statuses", raw), raw)));
    }
    for raw in list(value, "errors") {
        updates.push(unknown("errors", raw));
    }
    if updates.len() == before {
        updates.push(unknown("messages", value));
    }
}

pub(super) fn parse_echoes(value: &Value, updates: &mut Vec<Update>) {
    let contacts = list(value, "contacts");
    for raw in list(value, "message_echoes") {
        updates.push(echo(contacts, raw).unwrap_or_else(|| unknown(&named("message_echoes", raw), raw)));
    }
}

fn named(field: &str, raw: &Value) -> String {
    let kind = text(raw, "type").or_else(|| text(raw, "status")).unwrap_or("unknown");
    format!("{field}.{kind}")
}

fn message(contacts: &[Value], raw: &Value) -> Option<Update> {
    // A group message has no single contact to reply to.
    if raw.get("group_id").is_some() {
        return None;
    }
    if text(raw, "type") == Some("system") {
        return identity(contacts, raw);
    }
    Some(Update::Message(InboundMessage {
        provider_id: owned(raw, "id")?,
        from: party(contacts, text(raw, "from"), text(raw, "from_user_id"))?,
        sent_at: time(raw, "timestamp")?,
        content: content(raw),
        reply_to: replied(raw),
        referral: parts::referral(raw),
        product: parts::product(raw),
    }))
}

fn echo(contacts: &[Value], raw: &Value) -> Option<Update> {
    Some(Update::Echo(Echo {
        provider_id: owned(raw, "id")?,
        to: party(contacts, text(raw, "to"), text(raw, "to_user_id"))?,
        sent_at: time(raw, "timestamp")?,
        content: content(raw),
        reply_to: replied(raw),
    }))
}

fn replied(raw: &Value) -> Option<String> {
    raw.get("context").and_then(|context| owned(context, "id"))
}

/// Parses a change of a person's number or user id.
fn identity(contacts: &[Value], raw: &Value) -> Option<Update> {
    let system = raw.get("system")?;
    if !matches!(text(system, "type")?, "user_changed_number" | "user_changed_user_id") {
        return None;
    }
    let previous = text(system, "previous_user_id");
    let old = party(contacts, text(raw, "from"), previous.or_else(|| text(raw, "from_user_id")))?;
    let new = Party {
        user_id: owned(system, "user_id"),
        phone: read::phone(text(system, "wa_id")),
        username: old.username.clone(),
        name: old.name.clone(),
    };
    let is_known = new.user_id.is_some() || new.phone.is_some();
    is_known.then_some(Update::Identity(IdentityChange { old, new, at: time(raw, "timestamp") }))
}

fn status(contacts: &[Value], raw: &Value) -> Option<Update> {
    let status = match text(raw, "status")? {
        // A contact who has played a voice note has read it.
        "played" => NetworkStatus::Read,
        word => NetworkStatus::parse(word)?,
    };
    let recipient = party(contacts, text(raw, "recipient_id"), text(raw, "recipient_user_id"));
    Some(Update::Status(StatusUpdate {
        provider_id: owned(raw, "id")?,
        reference: owned(raw, "biz_opaque_callback_data"),
        status,
        at: time(raw, "timestamp")?,
        recipient: recipient.unwrap_or_default(),
        error: list(raw, "errors").first().map(status_error),
    }))
}

fn status_error(raw: &Value) -> StatusError {
    let provider_code = raw.get("code").and_then(Value::as_i64);
    let details = raw.get("error_data").and_then(|data| text(data, "details"));
    let message = details.or_else(|| text(raw, "message")).or_else(|| text(raw, "title"));
    StatusError {
        code: codes::meaning(provider_code, None).0,
        provider_code,
        message: message.unwrap_or("The network did not say why.").chars().take(300).collect(),
    }
}
