//! The record kind of contacts: its system fields, and the rules for every contact.

use super::events::ContactEvent;
use super::forget;
use super::matching::match_keys;
use super::merges;
use super::print::print;
use super::system_fields::{ALIASES, SEGMENTS, system_fields};
use fields::invisible::is_blank;
use fields::{Data, FieldType, phone};
use model::{ActorType, ContactId, Error, Result};
use records::Author;
use records::activity::Action;
use records::shape::{Kind, RecordChange, ReferencedBy};
use serde_json::Value;
use store::Tx;

/// The record kind of contacts.
pub static CONTACTS: Kind = Kind {
    number: 1,
    noun: "contact",
    set_noun: "contact list",
    external_key: "external_id",
    aliases: Some(ALIASES),
    referenced_by: Some(ReferencedBy {
        kind: FieldType::Contact,
        survivors: merges::survivors,
        merged_into: merges::merged_into,
    }),
    fields: system_fields,
    param: |key| format!("data.{key}"),
    title: Some("$name"),
    indexes: &["$tags", "$assignee", SEGMENTS],
    print,
    complete,
    match_keys,
    publish,
};

/// The fields that identify a contact. A contact without an external id needs one of them.
const IDENTIFYING: [&str; 4] = ["$name", "$phone", "$email", "$chat_user_id"];

/// Checks that a contact has an identity or a name, and derives `$country` from the telephone number unless it was set.
fn complete(
    data: &mut Data,
    before: Option<&Data>,
    external_key: Option<&str>,
    author: &Author,
) -> Result<()> {
    let says = |key: &str| data.get(key).and_then(Value::as_str).is_some_and(|text| !is_blank(text));
    if external_key.is_none() && !IDENTIFYING.into_iter().any(says) {
        // The external id is no field but a column of every record.
        let rule = format!("must have one of {}, or the contact an `external_id`", IDENTIFYING.join(", "));
        return Err(Error::invalid("data", rule));
    }
    if !data.contains_key("$country") || before.is_some_and(|before| is_left_over(data, before)) {
        match country_of(data) {
            Some(country) => data.insert("$country".to_owned(), country.into()),
            None => data.shift_remove("$country"),
        };
    }
    if !data.contains_key("$created_via") {
        let actor: model::Actor = author.cause.actor.parse()?;
        data.insert("$created_via".to_owned(), created_via(actor.kind).into());
    }
    Ok(())
}

/// Returns the country of the telephone number.
fn country_of(data: &Data) -> Option<String> {
    data.get("$phone").and_then(Value::as_str).and_then(phone::country_of)
}

/// Returns whether the country was derived from the previous telephone number.
fn is_left_over(data: &Data, before: &Data) -> bool {
    let old = before.get("$country").and_then(Value::as_str);
    let is_kept = old.is_some() && data.get("$country") == before.get("$country");
    is_kept && data.get("$phone") != before.get("$phone") && old == country_of(before).as_deref()
}

fn created_via(actor: ActorType) -> &'static str {
    match actor {
        ActorType::ApiKey => "api",
        ActorType::User => "user",
        ActorType::Agent => "agent",
        ActorType::Flow => "flow",
        ActorType::Function => "function",
        ActorType::Import => "import",
        ActorType::InboundWebhook => "webhook",
        ActorType::Contact => "message",
        ActorType::System => "service",
    }
}

fn publish(tx: &mut Tx, author: &Author, change: &RecordChange<'_>) -> Result<()> {
    if change.action == Action::Deleted {
        let contact = ContactId::from(change.row.id);
        change.shape.contact_uses.delete(tx, author.workspace, contact)?;
        forget::begin(tx, author.workspace, contact)?;
    }
    tx.emit(author.workspace, &author.cause, author.livemode, &ContactEvent::of(change))?;
    Ok(())
}
