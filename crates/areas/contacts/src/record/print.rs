//! Serialization of contacts as JSON.

use super::contact::IdentityKind;
use super::system_fields::{ALIASES, AUTOPILOT_CONFIG, PAUSED_UNTIL, ROUTING_CONFIG, SEGMENTS};
use model::{JsonText, RawMembers, Result};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::Shape;
use serde_json::value::RawValue;
use std::fmt::Write;

/// System fields that are left out of `data`, because they are members of the contact or hidden.
const NOT_IN_DATA: [&str; 10] = [
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

/// Returns a contact as JSON.
///
/// # Errors
/// `internal_error` if the stored values are damaged.
pub(crate) fn printed(shape: &Shape, row: &ItemRow) -> Result<String> {
    let mut out = String::with_capacity(row.data.as_str().len() + 768);
    Printer::whole(shape).print(row, &mut out)?;
    Ok(out)
}

/// The URL of a contact in the dashboard. There is no dashboard yet.
pub(crate) const APP_URL: Option<String> = None;

/// Prints the identities of a contact: its own, and those of contacts that were merged into it.
fn print_identities(values: &RawMembers<'_>, out: &mut String) {
    let aliases: RawMembers<'_> = values.read(ALIASES).unwrap_or_default();
    let mut separator = "";
    let mut print = |kind: IdentityKind, value: &str, is_primary: bool| {
        let primary = if is_primary { r#","primary":true}"# } else { r#","primary":false}"# };
        for part in [separator, r#"{"kind":""#, kind.as_str(), r#"","value":"#, value, primary] {
            out.push_str(part);
        }
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

/// Appends a text as a JSON string.
fn push_text(out: &mut String, text: &str) {
    // Most texts need no escaping, and a page has dozens of them.
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(JsonText::of(&text).as_str());
    }
}

/// Returns whether a JSON value is a string.
fn is_text(value: &str) -> bool {
    value.starts_with('"')
}

/// Prints the members of `data`.
fn print_data(values: &RawMembers<'_>, out: &mut String) {
    let mut separator = "";
    for (key, value) in values.iter().filter(|(key, _)| !(key.starts_with('$') && NOT_IN_DATA.contains(key)))
    {
        out.push_str(separator);
        push_text(out, key);
        out.push(':');
        out.push_str(value);
        separator = ",";
    }
}

/// Prints a contact as JSON, with the values in `data`. Values are copied without parsing them where they are shown
/// as they are stored.
pub(crate) fn print(_: &Shape, row: &ItemRow, data: &str, out: &mut String) {
    // Only the service writes stored values. If they are damaged nevertheless, they are printed as missing.
    let values = RawMembers::of(row.data.as_str()).unwrap_or_default();
    let text = |key: &str| values.get(key).filter(|value| is_text(value));
    let is_set = |key: &str, default| values.read(key).unwrap_or(default);
    let _ = write!(out, r#"{{"id":{},"object":"contact","external_id":"#, row.id);
    match &row.external_key {
        Some(key) => push_text(out, key),
        None => out.push_str("null"),
    }
    out.push_str(r#","name":"#);
    push_text(out, &row.title);
    out.push_str(r#","data":{"#);
    if data == row.data.as_str() {
        print_data(&values, out);
    } else {
        print_data(&RawMembers::of(data).unwrap_or_default(), out);
    }
    let paused_until = text(PAUSED_UNTIL).unwrap_or("null");
    for part in [r#"},"tags":"#, values.get("$tags").unwrap_or("[]"), r#","identities":["#] {
        out.push_str(part);
    }
    print_identities(&values, out);
    let autopilot = if is_set("$autopilot", true) { "true" } else { "false" };
    for part in [
        r#"],"status":"#,
        text("$status").unwrap_or(r#""active""#),
        r#","autopilot":{"enabled":"#,
        autopilot,
        r#","paused_until":"#,
        paused_until,
        r#"},"assignee":"#,
    ] {
        out.push_str(part);
    }
    let assignees: Vec<i64> = values.read("$assignee").unwrap_or_default();
    match assignees.first() {
        Some(id) => drop(write!(out, r#"{{"type":"user","id":{id}}}"#)),
        None => out.push_str("null"),
    }
    let opted_out = if is_set("$opted_out", false) { "true" } else { "false" };
    for part in [r#","opted_out":"#, opted_out, r#","app_url":null"#] {
        out.push_str(part);
    }
    let _ = write!(out, r#","version":{}"#, row.version);
    for part in [r#","created_by":"#, row.created_by.as_str(), r#","updated_by":"#, row.updated_by.as_str()] {
        out.push_str(part);
    }
    let _ = write!(out, r#","created_at":"{}","updated_at":"{}","#, row.created_at, row.updated_at);
    let _ = match row.trashed_at {
        Some(moment) => write!(out, r#""trashed_at":"{moment}"}}"#),
        None => write!(out, r#""trashed_at":null}}"#),
    };
}
