//! Contacts as JSON.

use super::contact::IdentityKind;
use super::system_fields::{ALIASES, AUTOPILOT_CONFIG, MATCH_KEYS, PAUSED_UNTIL, ROUTING_CONFIG, SEGMENTS};
use fields::Data;
use model::{JsonText, Result, Timestamp};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::Shape;
use serde_json::{Value, json};
use std::fmt::Write;

/// System fields that a contact shows beside `data`, or not at all.
const BESIDE: [&str; 11] = [
    "$tags",
    "$status",
    "$assignee",
    "$autopilot",
    "$opted_out",
    PAUSED_UNTIL,
    SEGMENTS,
    MATCH_KEYS,
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

/// What identifies a contact: its own values, and those that it took over from others.
fn identities(values: &Data) -> Vec<Value> {
    let mut all = Vec::new();
    for (kind, key) in IdentityKind::FIELDS {
        let own = values.get(key).filter(|value| value.is_string());
        all.extend(own.map(|value| json!({ "kind": kind, "value": value, "primary": true })));
        let aliases = values.get(ALIASES).and_then(|aliases| aliases.get(key)).and_then(Value::as_array);
        let others = aliases.into_iter().flatten().filter(|alias| Some(*alias) != own);
        all.extend(others.map(|value| json!({ "kind": kind, "value": value, "primary": false })));
    }
    all
}

/// Prints a contact as JSON, with `data` for its values.
pub(super) fn print(shape: &Shape, row: &ItemRow, data: &str, out: &mut String) {
    // What is stored was written by this service; damaged values would show as none.
    let parsed = |text: &str| serde_json::from_str::<Data>(text).unwrap_or_default();
    let values = parsed(row.data.as_str());
    let some = (data != row.data.as_str()).then(|| parsed(data));
    let text = |key: &str| values.get(key).and_then(Value::as_str);
    let identities = identities(&values);
    let assignee = values.get("$assignee").and_then(Value::as_array).and_then(|ids| ids.first());
    let is_set = |key: &str, default| values.get(key).and_then(Value::as_bool).unwrap_or(default);
    let shown: Vec<(&String, &Value)> =
        some.as_ref().unwrap_or(&values).iter().filter(|(key, _)| !BESIDE.contains(&key.as_str())).collect();
    let moment = |moment: Option<Timestamp>| json!(moment.map(Timestamp::rfc3339));
    let actor = |actor: &JsonText| actor.as_str().to_owned();
    let _ = write!(
        out,
        r#"{{"id":{},"object":"contact","external_id":{},"name":{},"data":{{"#,
        row.id,
        json!(row.external_key),
        json!(row.title)
    );
    for (place, (key, value)) in shown.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{}:{value}", json!(key));
    }
    let _ = write!(
        out,
        concat!(
            r#"}},"tags":{},"identities":{},"status":{},"autopilot":{},"assignee":{},"opted_out":{},"app_url":{},"#,
            r#""version":{},"created_by":{},"updated_by":{},"created_at":{},"updated_at":{},"trashed_at":{}}}"#
        ),
        values.get("$tags").unwrap_or(&json!([])),
        Value::from(identities),
        json!(text("$status").unwrap_or("active")),
        json!({ "enabled": is_set("$autopilot", true), "paused_until": text(PAUSED_UNTIL) }),
        assignee.map_or(Value::Null, |id| json!({ "type": "user", "id": id })),
        is_set("$opted_out", false),
        json!(app_url(shape, row)),
        row.version,
        actor(&row.created_by),
        actor(&row.updated_by),
        moment(Some(row.created_at)),
        moment(Some(row.updated_at)),
        moment(row.trashed_at),
    );
}
