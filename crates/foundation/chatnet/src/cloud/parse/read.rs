//! Reading JSON of which nothing is certain.

use crate::Party;
use model::Timestamp;
use serde_json::Value;

pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Replaces the character NUL in all texts: PostgreSQL keeps none.
pub(super) fn replace_nul(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(members) => members.values_mut().for_each(replace_nul),
        _ => {}
    }
}

/// A text that is present and not empty.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

pub(super) fn owned(value: &Value, key: &str) -> Option<String> {
    text(value, key).map(str::to_owned)
}

/// An id: the network writes some as texts and some as numbers.
pub(super) fn id(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

/// Seconds since 1970, as a text or a number.
pub(super) fn time(value: &Value, key: &str) -> Option<Timestamp> {
    let seconds: i64 = match value.get(key)? {
        Value::String(text) => text.parse().ok()?,
        Value::Number(number) => number.as_i64()?,
        _ => return None,
    };
    // Beyond the year 9999 it is no time at which anybody wrote.
    (0..253_402_300_800).contains(&seconds).then(|| Timestamp::from_millis(seconds * 1000))
}

/// A telephone number as the service writes it. The network leaves the `+` out; what is not a number is none.
pub(super) fn phone(text: Option<&str>) -> Option<String> {
    let digits = text?.trim_start_matches('+');
    let is_number = (5..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("+{digits}"))
}

/// The person of `address` and `user_id`, with what the callback's contacts say about it. `None` if it cannot be told who
/// it is.
pub(super) fn party(contacts: &[Value], address: Option<&str>, user_id: Option<&str>) -> Option<Party> {
    // Where the number is hidden, the network may put the user id in its place.
    let number = phone(address);
    let user_id = user_id.or(address.filter(|_| number.is_none()));
    let is_same = |contact: &&Value| {
        let theirs = text(contact, "user_id");
        match (theirs, user_id) {
            (Some(theirs), Some(ours)) => theirs == ours,
            _ => number.is_some() && phone(text(contact, "wa_id")) == number,
        }
    };
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
