//! Helpers to read untrusted JSON.

use crate::Party;
use model::Timestamp;
use serde_json::Value;

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Replaces NUL in all strings, because PostgreSQL cannot store it.
pub(super) fn replace_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(members) => members.values_mut().for_each(replace_nul),
        _ => {}
    }
}

/// Returns a string that is present and not empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn owned(value: &Value, key: &str) -> Option<String> {
    text(value, key).map(str::to_owned)
}

/// Returns an id. The network writes some ids as strings and some as numbers.
pub(super) fn id(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Parses a time in seconds since 1970, written as a string or a number.
pub(super) fn time(value: &Value, key: &str) -> Option<Timestamp> {
    let seconds: i64 = match value.get(key)? {
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => number.as_i64()?,
        _ => return None,
    };
    // Times after the year 9999 are treated as missing.
    (0..253_402_300_800).contains(&seconds).then(|| Timestamp::from_millis(seconds * 1000))
}

/// Parses a telephone number, which the network writes without `+`. Returns `None` if it is not a number.
pub(super) fn phone(text: Option<&str>) -> Option<String> {
    let digits = text?.trim_start_matches('+');
    let is_number = (5..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("+{digits}"))
}

/// Returns the person with `address` and `user_id`, with the details in the callback's contacts. Returns `None` if
/// neither identifies a person.
pub(super) fn party(contacts: &[Value], address: Option<&str>, user_id: Option<&str>) -> Option<Party> {
    // If the person hides the number, the network may send the user id in its place.
    let number = phone(address);
    let user_id = user_id.or(address.filter(|_| number.is_none()));
    let is_same = |contact: &&Value| {
        let theirs = text(contact, "user_id");
        match (theirs, user_id) {
            (Some(theirs), Some(ours)) => theirs == ours,
            _ => number.is_some() && phone(text(contact, "wa_id")) == number,
        }
    };
    // Without any address, a single contact must be the person.
    let nameless = user_id.is_none() && number.is_none();
    let contact = match contacts {
        [only] if nameless => Some(only),
        _ => contacts.iter().find(is_same),
    };
    let from_contact = |key| contact.and_then(|contact| text(contact, key));
    let profile = contact.and_then(|contact| contact.get("profile"));
    let party = Party {
        user_id: user_id.or_else(|| from_contact("user_id")).map(str::to_owned),
        phone: number.or_else(|| phone(from_contact("wa_id"))),
        username: profile
            .and_then(|profile| text(profile, "username"))
            .or_else(|| from_contact("username"))
            .map(|name| name.trim_start_matches('@').to_owned()),
        name: profile.and_then(|profile| owned(profile, "name")),
    };
    (party.user_id.is_some() || party.phone.is_some()).then_some(party)
}
