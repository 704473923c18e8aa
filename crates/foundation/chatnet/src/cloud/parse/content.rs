//! Contents of messages.

use super::parts;
use super::read::{owned, text};
use crate::{InboundContent, InboundMedia, MediaKind};
use serde_json::Value;

/// Parses the content of a message. Content that is not understood is kept in its original form.
pub(super) fn content(message: &Value) -> InboundContent {
    let kind = text(message, "type").unwrap_or("unknown");
    let known = message.get(kind).and_then(|part| match kind {
        "text" => owned(part, "body").map(InboundContent::Text),
        "image" | "audio" | "video" | "document" | "sticker" => media(kind, part),
        "location" => location(part),
        "contacts" => part.is_array().then(|| InboundContent::Contacts(part.clone())),
        "button" => button(part),
        "interactive" => interactive(part),
        "reaction" => Some(InboundContent::Reaction {
            message: owned(part, "message_id")?,
            emoji: owned(part, "emoji"),
        }),
        "order" => parts::order(part),
        "edit" => edit(part),
        "revoke" => Some(InboundContent::Deleted { message: owned(part, "original_message_id")? }),
        _ => None,
    });
    known.unwrap_or_else(|| InboundContent::Unsupported {
        kind: kind.chars().take(super::LONGEST_KIND).collect(),
        raw: message.clone(),
    })
}

fn media(kind: &str, part: &Value) -> Option<InboundContent> {
    Some(InboundContent::Media(InboundMedia {
        kind: MediaKind::parse(kind)?,
        media_id: super::read::id(part.get("id"))?,
        mime_type: owned(part, "mime_type"),
        caption: owned(part, "caption"),
        file_name: owned(part, "filename"),
        is_voice: part.get("voice").and_then(Value::as_bool).unwrap_or(false),
    }))
}

fn location(part: &Value) -> Option<InboundContent> {
    let degrees = |key, most: f64| part.get(key).and_then(Value::as_f64).filter(|value| value.abs() <= most);
    Some(InboundContent::Location {
        latitude: degrees("latitude", 90.0)?,
        longitude: degrees("longitude", 180.0)?,
        name: owned(part, "name"),
        address: owned(part, "address"),
    })
}

fn button(part: &Value) -> Option<InboundContent> {
    let title = owned(part, "text")?;
    Some(InboundContent::ButtonReply {
        id: owned(part, "payload").unwrap_or_else(|| title.clone()),
        title,
        of_template: true,
    })
}

fn interactive(part: &Value) -> Option<InboundContent> {
    let kind = text(part, "type")?;
    let reply = part.get(kind)?;
    if kind == "nfm_reply" {
        return parts::form(reply);
    }
    let (id, title) = (owned(reply, "id")?, owned(reply, "title")?);
    match kind {
        "button_reply" => Some(InboundContent::ButtonReply { id, title, of_template: false }),
        "list_reply" => Some(InboundContent::ListReply { id, title }),
        _ => None,
    }
}

/// Parses the new text of an edited message. For a file the text is its caption, which may have been removed.
fn edit(part: &Value) -> Option<InboundContent> {
    let message = part.get("message")?;
    let kind = text(message, "type")?;
    let body = message.get(kind)?;
    let text = owned(body, "body").or_else(|| owned(body, "caption"));
    let text = text.or_else(|| MediaKind::parse(kind).map(|_| String::new()));
    Some(InboundContent::Edited { message: owned(part, "original_message_id")?, text: text? })
}
