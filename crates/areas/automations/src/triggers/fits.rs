//! Whether an event fits a trigger.

use super::TriggerType;
use super::compiled::Settings;
use super::config::Handler;
use expressions::{Value as Typed, equal, text};
use model::ContactId;
use serde_json::{Value, json};

/// What an event is for an automation that it fits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// `$trigger`.
    pub(crate) payload: Value,
    pub(crate) contact: Option<ContactId>,
}

/// Returns what an event is for a trigger, or `None` if it does not fit.
pub(crate) fn fit(trigger: TriggerType, settings: &Settings, kind: &str, data: &Value) -> Option<Fit> {
    let at = |pointer: &str| data.pointer(pointer);
    let is_id = |pointer: &str, id: i64| at(pointer).and_then(Value::as_i64) == Some(id);
    let mut payload = None;
    let fits = match settings {
        Settings::Anything => true,
        Settings::Contact(wanted) => {
            is_change(data, &wanted.fields, wanted.from.as_ref(), wanted.to.as_ref())
        }
        Settings::Tags(wanted) => {
            let tags = tags(trigger, kind, data, &wanted.tags);
            let has_some = !tags.is_empty();
            let mut with_tags = data.clone();
            if let Some(members) = with_tags.as_object_mut() {
                members.insert("tags".to_owned(), json!(tags));
            }
            payload = Some(with_tags);
            has_some
        }
        Settings::Webhook(wanted) => {
            let is = |pointer: &str, wanted: Option<&String>| {
                wanted.is_none_or(|wanted| at(pointer).and_then(Value::as_str) == Some(wanted))
            };
            is("/inbound_webhook_id", wanted.inbound_webhook_id.as_ref())
                && is("/event_type", wanted.event_type.as_ref())
        }
        Settings::Items(wanted) => {
            // An item that is deleted permanently from the trash was deleted before.
            let is_again = kind == "item.deleted" && at("/item/trashed_at").is_some_and(Value::is_string);
            is_id("/item/collection_id", wanted.collection_id) && !is_again
        }
        Settings::Item(wanted) => {
            is_id("/item/collection_id", wanted.collection_id)
                && is_change(data, &wanted.fields, wanted.from.as_ref(), wanted.to.as_ref())
        }
        Settings::Handoff(wanted) => {
            wanted.to.is_none_or(|to: Handler| at("/to").and_then(Value::as_str) == Some(to.as_str()))
        }
        Settings::Run(wanted) => wanted.agent_id.is_none_or(|agent| is_id("/agent_id", agent)),
        Settings::Custom(wanted) => wanted.name == kind,
        _ => false,
    };
    fits.then(|| Fit { payload: payload.unwrap_or_else(|| data.clone()), contact: contact_of(data) })
}

/// The contact that an event is about.
fn contact_of(data: &Value) -> Option<ContactId> {
    let places =
        ["/contact_id", "/contact/id", "/contact/contact_id", "/task/contact_id", "/task/contact/id"];
    places.into_iter().find_map(|place| data.pointer(place)?.as_i64()).map(ContactId)
}

/// Returns whether one of these fields changed in this way. No fields are all fields.
fn is_change(data: &Value, fields: &[String], from: Option<&Value>, to: Option<&Value>) -> bool {
    let Some(changed) = data.get("changed").and_then(Value::as_object) else { return false };
    if fields.is_empty() {
        return !changed.is_empty();
    }
    fields.iter().any(|field| {
        let Some(change) = changed.get(field) else { return false };
        let is = |side: &str, wanted: Option<&Value>| {
            wanted.is_none_or(|wanted| same(change.get(side).unwrap_or(&Value::Null), wanted))
        };
        is("old", from) && is("new", to)
    })
}

fn same(one: &Value, other: &Value) -> bool {
    equal(&Typed::of(one), &Typed::of(other), chrono_tz::Tz::UTC)
}

/// The tags that a contact got or lost, of those that are wanted.
fn tags(trigger: TriggerType, kind: &str, data: &Value, wanted: &[String]) -> Vec<String> {
    let list = |value: Option<&Value>| -> Vec<String> {
        let tags = value.and_then(Value::as_array).into_iter().flatten();
        tags.filter_map(Value::as_str).map(text::fold).collect()
    };
    let change = data.pointer("/changed/$tags");
    let (old, new) = if kind == "contact.created" {
        (Vec::new(), list(data.pointer("/contact/tags")))
    } else {
        (list(change.and_then(|change| change.get("old"))), list(change.and_then(|change| change.get("new"))))
    };
    let (these, others) = if trigger == TriggerType::TagAdded { (new, old) } else { (old, new) };
    let is_wanted = |tag: &String| !others.contains(tag) && (wanted.is_empty() || wanted.contains(tag));
    these.into_iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(kind: TriggerType, config: Value, event: &str, data: Value) -> Option<Fit> {
        fit(kind, &Settings::read(kind, &config).unwrap(), event, &data)
    }

    #[test]
    fn changes_are_found_by_field_and_value() {
        let event = |old: Value, new: Value| json!({ "contact_id": 7, "changed": { "$stage": { "old": old, "new": new } } });
        let is = |config: Value, data: Value| {
            fits(TriggerType::ContactUpdated, config, "contact.updated", data).is_some()
        };
        assert!(is(json!({}), event(json!("a"), json!("b"))));
        assert!(is(json!({ "fields": ["$stage"], "from": "a", "to": "b" }), event(json!("a"), json!("b"))));
        assert!(!is(json!({ "fields": ["$stage"], "to": "c" }), event(json!("a"), json!("b"))));
        assert!(!is(json!({ "fields": ["$name"] }), event(json!("a"), json!("b"))));
        assert!(is(json!({ "fields": ["$stage"], "to": true }), event(json!(false), json!(true))));
        assert!(!is(json!({}), json!({ "contact_id": 7, "changed": {} })));
    }

    #[test]
    fn tags_are_those_that_changed() {
        let data = json!({ "contact_id": 7, "changed": { "$tags": { "old": ["a"], "new": ["a", "vip"] } } });
        let added = fits(TriggerType::TagAdded, json!({ "tags": ["VIP"] }), "contact.updated", data.clone());
        let added = added.unwrap();
        assert_eq!((&added.payload["tags"], added.contact), (&json!(["vip"]), Some(ContactId(7))));
        assert_eq!(
            fits(TriggerType::TagAdded, json!({ "tags": ["a"] }), "contact.updated", data.clone()),
            None
        );
        assert_eq!(fits(TriggerType::TagRemoved, json!({}), "contact.updated", data), None);
    }

    #[test]
    fn an_item_is_deleted_once() {
        let data = |trashed: Value| json!({ "item": { "id": 1, "collection_id": 2, "trashed_at": trashed } });
        let is = |event: &str, trashed: Value| {
            fits(TriggerType::ItemDeleted, json!({ "collection_id": 2 }), event, data(trashed)).is_some()
        };
        assert!(is("item.trashed", json!("2026-11-28T00:00:00Z")));
        assert!(is("item.deleted", Value::Null));
        assert!(!is("item.deleted", json!("2026-11-28T00:00:00Z")));
    }
}
