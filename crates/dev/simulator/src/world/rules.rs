//! The network's rules for messages, except templates.

use super::refused::Refused;
use serde_json::Value;
use std::collections::HashSet;

/// The types of messages with files.
const MEDIA: [&str; 5] = ["image", "audio", "video", "document", "sticker"];

/// Checks the content of a message, as far as no state is needed. Returns its type.
pub(super) fn checked_kind(body: &Value) -> Result<&str, Refused> {
    if body.get("messaging_product").and_then(Value::as_str) != Some("whatsapp") {
        return Err(Refused::new(100, "The parameter messaging_product is required."));
    }
    let kind = body.get("type").and_then(Value::as_str).unwrap_or("text");
    let part = body.get(kind).ok_or_else(|| required(kind))?;
    match kind {
        "text" => text_within(part, "/body", 1, 4096)?,
        "interactive" => interactive(part)?,
        "reaction" => {
            part.get("message_id").and_then(Value::as_str).ok_or_else(|| required("message_id"))?;
        }
        "template" => {
            text_within(part, "/name", 1, 512)?;
            text_within(part, "/language/code", 2, 20)?;
        }
        kind if MEDIA.contains(&kind) => media(kind, part)?,
        other => return Err(Refused::new(100, format!("The type {other} is not supported."))),
    }
    Ok(kind)
}

pub(super) fn required(name: &str) -> Refused {
    Refused::new(131_008, format!("The parameter {name} is required."))
}

fn invalid(details: impl Into<String>) -> Refused {
    Refused::new(131_009, details)
}

/// Checks that the text at `pointer` exists and has an allowed length.
fn text_within(part: &Value, pointer: &str, least: usize, most: usize) -> Result<(), Refused> {
    let text = part.pointer(pointer).and_then(Value::as_str).ok_or_else(|| required(pointer))?;
    let length = text.chars().count();
    if (least..=most).contains(&length) {
        return Ok(());
    }
    Err(invalid(format!("{pointer} must have {least} to {most} characters, not {length}.")))
}

fn optional_text(part: &Value, pointer: &str, most: usize) -> Result<(), Refused> {
    if part.pointer(pointer).is_some() { text_within(part, pointer, 1, most) } else { Ok(()) }
}

fn media(kind: &str, part: &Value) -> Result<(), Refused> {
    let text = |key| part.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("id"), text("link")) {
        (None, None) => return Err(required("id or link")),
        (None, Some(link)) if !link.starts_with("http://") && !link.starts_with("https://") => {
            return Err(invalid("The link is not a URL."));
        }
        _ => {}
    }
    if matches!(kind, "audio" | "sticker") && text("caption").is_some() {
        return Err(invalid(format!("A message of type {kind} has no caption.")));
    }
    optional_text(part, "/caption", 1024)
}

fn interactive(part: &Value) -> Result<(), Refused> {
    text_within(part, "/body/text", 1, 1024)?;
    optional_text(part, "/footer/text", 60)?;
    optional_text(part, "/header/text", 60)?;
    match part.get("type").and_then(Value::as_str) {
        Some("button") => buttons(part),
        Some("list") => rows(part),
        _ => Err(invalid("The type of an interactive message must be button or list.")),
    }
}

fn buttons(part: &Value) -> Result<(), Refused> {
    let buttons = list(part, "/action/buttons");
    if !(1..=3).contains(&buttons.len()) {
        return Err(invalid("A message has 1 to 3 buttons."));
    }
    let replies: Vec<&Value> = buttons.iter().filter_map(|button| button.get("reply")).collect();
    if replies.len() != buttons.len() {
        return Err(required("reply"));
    }
    for reply in &replies {
        text_within(reply, "/id", 1, 256)?;
        text_within(reply, "/title", 1, 20)?;
    }
    unique(&replies, "id")?;
    unique(&replies, "title")
}

fn rows(part: &Value) -> Result<(), Refused> {
    text_within(part, "/action/button", 1, 20)?;
    let sections = list(part, "/action/sections");
    if !(1..=10).contains(&sections.len()) {
        return Err(invalid("A list has 1 to 10 sections."));
    }
    for section in sections {
        if sections.len() > 1 {
            text_within(section, "/title", 1, 24)?;
        }
    }
    let rows: Vec<&Value> = sections.iter().flat_map(|section| list(section, "/rows")).collect();
    if !(1..=10).contains(&rows.len()) {
        return Err(invalid("A list has 1 to 10 rows."));
    }
    for row in &rows {
        text_within(row, "/id", 1, 200)?;
        text_within(row, "/title", 1, 24)?;
        optional_text(row, "/description", 72)?;
    }
    unique(&rows, "id")
}

pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn unique(values: &[&Value], key: &str) -> Result<(), Refused> {
    let words: HashSet<_> = values.iter().filter_map(|value| value.get(key)?.as_str()).collect();
    if words.len() == values.len() { Ok(()) } else { Err(invalid(format!("Each {key} must be different."))) }
}

/// Returns the maximum size of a file of this type.
pub(super) fn most_bytes(mime_type: &str) -> usize {
    const MIB: usize = 1024 * 1024;
    match mime_type.split('/').next().unwrap_or_default() {
        "image" => 5 * MIB,
        "audio" | "video" => 16 * MIB,
        _ => 100 * MIB,
    }
}
