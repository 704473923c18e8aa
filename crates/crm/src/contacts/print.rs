//! Contacts as JSON.

use super::contact::IdentityKind;
use super::system_fields::{ALIASES, AUTOPILOT_CONFIG, PAUSED_UNTIL, ROUTING_CONFIG, SEGMENTS};
use model::{JsonText, RawMembers, Result};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::Shape;
use serde_json::value::RawValue;
use std::fmt::Write;

/// System fields that a contact shows beside `data`, or not at all.
const BESIDE: [&str; 10] = [
    "$tags",
    "$status",
    "$assignee",
    "$autopilot",
    "$opted_out",
    PAUSED_UNTIL,
    SEGMENTS,
    ALIASES,
    AUTOPILOT_CONFIG,
    ROUTING_CONFIG,
];

/// A contact as JSON.
///
/// # Errors
/// When what is stored is damaged.
pub(super) fn printed(shape: &Shape, row: &ItemRow) -> Result<String> {
    let mut out = String::with_capacity(row.data.as_str().len() + 768);
    Printer::whole(shape).print(row, &mut out)?;
    Ok(out)
}

/// Where the dashboard shows a contact.
pub(super) fn app_url(shape: &Shape, row: &ItemRow) -> String {
    format!("{}/app/contacts/{}", shape.base_url, row.id)
}

/// Prints what identifies a contact: its own values, and those that it took over from others.
fn print_identities(values: &RawMembers<'_>, out: &mut String) {
    let aliases: RawMembers<'_> = values.read(ALIASES).unwrap_or_default();
    let mut separator = "";
    let mut print = |kind: IdentityKind, value: &str, is_primary: bool| {
        let kind = kind.as_str();
        let _ = write!(out, r#"{separator}{{"kind":"{kind}","value":{value},"primary":{is_primary}}}"#);
        separator = ",";
    };
    for (kind, key) in IdentityKind::FIELDS {
        let own = values.get(key).filter(|value| is_text(value));
        own.iter().for_each(|value| print(kind, value, true));
        let others: Vec<&RawValue> = aliases.read(key).unwrap_or_default();
        let others = others.into_iter().map(RawValue::get).filter(|other| Some(*other) != own);
        others.for_each(|value| print(kind, value, false));
    }
}

/// Whether a value, as it is written, is a text.
fn is_text(value: &str) -> bool {
    value.starts_with('"')
}

/// Prints the values that a contact shows in `data`.
fn print_data(values: &RawMembers<'_>, out: &mut String) {
    let mut separator = "";
    for (key, value) in values.iter().filter(|(key, _)| !BESIDE.contains(key)) {
        let _ = write!(out, "{separator}{}:{value}", JsonText::of(&key));
        separator = ",";
    }
}

/// Prints a contact as JSON, with `data` for its values. Those that are shown as they are stored stay text.
pub(super) fn print(shape: &Shape, row: &ItemRow, data: &str, out: &mut String) {
    // What is stored was written by this service; damaged values would show as none.
    let values = RawMembers::of(row.data.as_str()).unwrap_or_default();
    let text = |key: &str| values.get(key).filter(|value| is_text(value));
    let is_set = |key: &str, default| values.read(key).unwrap_or(default);
    let (external_id, name) = (JsonText::of(&row.external_key), JsonText::of(&row.title));
    let _ = write!(
        out,
        r#"{{"id":{},"object":"contact","external_id":{external_id},"name":{name},"data":{{"#,
        row.id
    );
    if data == row.data.as_str() {
        print_data(&values, out);
    } else {
        print_data(&RawMembers::of(data).unwrap_or_default(), out);
    }
    let _ = write!(out, r#"}},"tags":{},"identities":["#, values.get("$tags").unwrap_or("[]"));
    print_identities(&values, out);
    let _ = write!(
        out,
        r#"],"status":{},"autopilot":{{"enabled":{},"paused_until":{}}},"assignee":"#,
        text("$status").unwrap_or(r#""active""#),
        is_set("$autopilot", true),
        text(PAUSED_UNTIL).unwrap_or("null"),
    );
    let assignees: Vec<i64> = values.read("$assignee").unwrap_or_default();
    let _ = match assignees.first() {
        Some(id) => write!(out, r#"{{"type":"user","id":{id}}}"#),
        None => write!(out, "null"),
    };
    let _ = write!(
        out,
        r#","opted_out":{},"app_url":{},"version":{},"created_by":{},"updated_by":{},"created_at":"{}","updated_at":"{}","#,
        is_set("$opted_out", false),
        JsonText::of(&app_url(shape, row)),
        row.version,
        row.created_by,
        row.updated_by,
        row.created_at,
        row.updated_at,
    );
    let _ = match row.trashed_at {
        Some(moment) => write!(out, r#""trashed_at":"{moment}"}}"#),
        None => write!(out, r#""trashed_at":null}}"#),
    };
}
