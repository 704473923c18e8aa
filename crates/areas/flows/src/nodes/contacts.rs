//! Nodes that change the contact of the run and its conversation.

use super::calls::{Request, done};
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config;
use serde_json::{Map, Value, json};

/// The fields by which a contact is recognized.
const IDENTITIES: [&str; 4] = ["$phone", "$email", "$username", "$chat_user_id"];

/// Changes fields of the contact. A run without one gets the contact that is in the output.
pub(super) async fn update_contact(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::UpdateContact = call.config()?;
    let names_somebody = |fields: &Map<String, Value>| {
        IDENTITIES.iter().any(|key| fields.get(*key).is_some_and(|value| !value.is_null() && value != ""))
    };
    let is_known = names_somebody(&config.fields);
    let request = Request::with_body(json!({ "data": config.fields, "typecast": config.typecast }));
    let contact = match call.run.contact_id {
        Some(id) => call.call("updateContact", request.at("contactId", id)).await?,
        None if !config.create_if_missing => call.contact().map(|_| Value::Null)?,
        None if is_known => {
            let mut found = call.call("upsertContact", request).await?;
            found.get_mut("contact").map(Value::take).unwrap_or_default()
        }
        None => call.call("createContact", request).await?,
    };
    Ok(done(contact))
}

/// Adds tags to the contact, and removes tags.
pub(super) async fn contact_tag(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::ContactTag = call.config()?;
    let contact = call.contact()?;
    let mut changed = None;
    let request = |tag: &str, part: &str| {
        Request::default().at("contactId", contact).at("tag", tag).part(format_args!("{part}:{tag}"))
    };
    for tag in &config.add {
        changed = Some(call.call("addContactTag", request(tag, "add")).await?);
    }
    for tag in &config.remove {
        match call.call("removeContactTag", request(tag, "remove")).await {
            Ok(contact) => changed = Some(contact),
            // The contact does not have it.
            Err(failure) if failure.code == "not_found" => {}
            Err(failure) => return Err(failure),
        }
    }
    let contact = match changed {
        Some(contact) => contact,
        None => {
            // A change of nothing shows the contact, and finds out whether there is one.
            let nothing = Request::with_body(json!({})).at("contactId", contact);
            call.call("updateContact", nothing).await?
        }
    };
    let tags = contact.get("tags").or_else(|| contact.pointer("/data/$tags")).cloned();
    Ok(done(json!({ "tags": tags.unwrap_or_else(|| json!([])) })))
}

/// Writes a note on the contact.
pub(super) async fn note(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Note = call.config()?;
    let request = Request::with_body(json!({ "body": config.text })).at("contactId", call.contact()?);
    Ok(done(call.call("createContactNote", request).await?))
}

/// Hands the conversation over to people, or back to the agent.
pub(super) async fn handoff(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Handoff = call.config()?;
    let contact = call.contact()?;
    let changed = match config.assignee_id {
        Some(member) => {
            let body =
                json!({ "assignee_id": member, "autopilot": config.autopilot, "summary": config.note });
            call.call("assignContact", Request::with_body(body).at("contactId", contact)).await?
        }
        None => {
            let body = json!({ "enabled": config.autopilot, "summary": config.note });
            call.call("setContactAutopilot", Request::with_body(body).at("contactId", contact)).await?
        }
    };
    Ok(done(json!({
        "contact_id": changed.get("id"),
        "autopilot": changed.get("autopilot"),
        "assignee": changed.get("assignee"),
    })))
}
