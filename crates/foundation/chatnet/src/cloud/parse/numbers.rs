//! Consent and identity of contacts, and ratings of numbers.

use super::read::{list, owned, party, text, time};
use super::{Change, unknown};
use crate::cloud::limits::messaging_limit;
use crate::{IdentityChange, Party, Quality, QualityUpdate, Update};
use serde_json::Value;

pub(super) fn parse_preferences(value: &Value, updates: &mut Vec<Update>) {
    let contacts = list(value, "contacts");
    for raw in list(value, "user_preferences") {
        updates.push(preference(contacts, raw).unwrap_or_else(|| unknown("user_preferences", raw)));
    }
}

fn preference(contacts: &[Value], raw: &Value) -> Option<Update> {
    if text(raw, "category")? != "marketing_messages" {
        return None;
    }
    let wants_marketing = match text(raw, "value")? {
        "stop" => false,
        "resume" => true,
        _ => return None,
    };
    let party = party(contacts, text(raw, "wa_id"), text(raw, "user_id"))?;
    Some(Update::Consent { party, wants_marketing, at: time(raw, "timestamp") })
}

pub(super) fn parse_user_ids(value: &Value, updates: &mut Vec<Update>) {
    let contacts = list(value, "contacts");
    for raw in list(value, "user_id_update") {
        updates.push(user_id(contacts, raw).unwrap_or_else(|| unknown("user_id_update", raw)));
    }
}

fn user_id(contacts: &[Value], raw: &Value) -> Option<Update> {
    let ids = raw.get("user_id")?;
    let current = owned(ids, "current")?;
    let known = party(contacts, text(raw, "wa_id"), Some(&current))?;
    let old = Party { user_id: owned(ids, "previous"), phone: known.phone.clone(), ..Party::default() };
    let is_known = old.user_id.is_some() || old.phone.is_some();
    is_known.then_some(Update::Identity(IdentityChange { old, new: known, at: time(raw, "timestamp") }))
}

/// Parses the rating or limit of a number. Callbacks about throughput contain no messaging limit.
pub(super) fn quality(raw: &Value, change: &Change<'_>) -> Update {
    let value = change.value;
    let Some(event) = text(value, "event") else { return unknown("phone_number_quality_update", raw) };
    let quality = match event {
        "FLAGGED" => Some(Quality::Low),
        "UNFLAGGED" => Some(Quality::Medium),
        _ => None,
    };
    let tier = text(value, "max_daily_conversations_per_business")
        .or_else(|| text(value, "current_limit").filter(|_| event != "THROUGHPUT_UPGRADE"));
    Update::Quality(QualityUpdate {
        display_number: text(value, "display_phone_number")
            .map(|number| number.chars().filter(char::is_ascii_digit).collect()),
        quality,
        messaging_limit: tier.and_then(messaging_limit),
        at: change.at,
    })
}
