//! Parsing of callbacks, without I/O. Each part is parsed separately, and parts that are not understood are kept in
//! their original form.

mod content;
mod messages;
mod numbers;
mod parts;
mod read;
mod templates;

use self::read::{list, text, time};
use crate::{Account, Update};
use model::Timestamp;
use serde_json::Value;

/// The maximum length of the name of an unknown part.
const LONGEST_KIND: usize = 100;

/// One change of a callback.
struct Change<'a> {
    account: &'a Account,
    /// The network's id of the business.
    business: Option<&'a str>,
    /// The time of the change, if the network states it.
    at: Option<Timestamp>,
    value: &'a Value,
}

impl Change<'_> {
    /// Returns whether the change concerns the account's number.
    fn is_for_number(&self) -> bool {
        let number = self.value.pointer("/metadata/phone_number_id");
        read::id(number).as_deref() == Some(&self.account.number_id)
    }

    fn is_for_business(&self) -> bool {
        self.business == Some(&self.account.business_id)
    }
}

/// Parses a callback into the updates for `account`.
pub(super) fn parse(account: &Account, raw: &[u8]) -> Vec<Update> {
    // Lossless parsing accepts broken surrogate pairs, so that half an emoji does not lose a message.
    let Ok(mut body) = input::numbers::lossless(raw) else {
        return vec![unknown("not JSON", &Value::String(String::from_utf8_lossy(raw).into_owned()))];
    };
    read::replace_nul(&mut body);
    let entries = list(&body, "entry");
    if entries.is_empty() {
        return vec![unknown("no entry", &body)];
    }
    let mut updates = Vec::new();
    for entry in entries {
        let changes = list(entry, "changes");
        if changes.is_empty() {
            updates.push(unknown("no changes", entry));
        }
        let business = read::id(entry.get("id"));
        for change in changes {
            parse_change(account, business.as_deref(), time(entry, "time"), change, &mut updates);
        }
    }
    updates
}

fn parse_change(
    account: &Account,
    business: Option<&str>,
    at: Option<Timestamp>,
    raw: &Value,
    updates: &mut Vec<Update>,
) {
    let (Some(field), Some(value)) = (text(raw, "field"), raw.get("value")) else {
        updates.push(unknown("no field", raw));
        return;
    };
    let change = Change { account, business, at, value };
    let has_number = value.pointer("/metadata/phone_number_id").is_some();
    // Several numbers can share a callback URL.
    if has_number && !change.is_for_number() || !has_number && business.is_some() && !change.is_for_business()
    {
        return;
    }
    match field {
        "messages" if has_number => messages::parse(value, updates),
        "smb_message_echoes" if has_number => messages::parse_echoes(value, updates),
        "user_preferences" => numbers::parse_preferences(value, updates),
        "user_id_update" => numbers::parse_user_ids(value, updates),
        "phone_number_quality_update" => updates.push(numbers::quality(raw, &change)),
        // The network also reports quality in status updates.
        "message_template_status_update" | "message_template_quality_update" | "template_category_update" => {
            updates.push(templates::parse(field, raw, &change));
        }
        _ => updates.push(unknown(field, raw)),
    }
}

fn unknown(kind: &str, raw: &Value) -> Update {
    Update::Unknown { kind: kind.chars().take(LONGEST_KIND).collect(), raw: raw.clone() }
}
