//! Sending to a contact, over its channel.

use super::bodies::{ContactTemplateMessage, ContactTextMessage, DryRun};
use super::content::Content;
use super::recipient::channel_for;
use super::result::SendResult;
use super::send::{SendParts, Sending};
use super::text_or_reply::TextOrReply;
use model::{Caller, Result};
use operation::{Body, Json, Path, Query, State, operation};
use ports::{ContactRef, WorkspaceVariables};
use store::Tx;

/// Send text to a contact over its channel
///
/// Sends a text, a text with buttons or a list, or a quick reply, and files behind it. Without `channel_id` it goes over the channel on which the contact was last spoken to. The
/// 24-hour window must be open. A workspace without channels answers 409 `no_channel`.
#[operation(post "/contacts/{contactId}/send-message", scope = "channels:send")]
pub fn send_contact_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Query(query): Query<DryRun>,
    Body(body): Body<ContactTextMessage>,
    parts: State<SendParts>,
    variables: State<WorkspaceVariables>,
) -> Result<Json<SendResult>> {
    let contact = parts.0.people.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, body.attempt())?;
    let message =
        TextOrReply { interactive: body.interactive.as_ref(), files: &body.file_ids, ..body.text_or_reply() };
    let message = (message, body.preview_url);
    sending.send_text_or_reply(tx, caller, &channel, &contact, &variables.0, message).map(Json)
}

/// Send an approved template to a contact
///
/// Without `channel_id` the template goes over the channel on which the contact was last spoken to, or the workspace's first.
/// `namespace` must be the template's.
#[operation(post "/contacts/{contactId}/send-template", scope = "channels:send")]
pub fn send_contact_template(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Query(query): Query<DryRun>,
    Body(body): Body<ContactTemplateMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let contact = parts.0.people.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run, body.attempt())?;
    let namespace = Some(body.namespace.clone());
    sending.send(tx, &channel, Some(contact), Content::Template(body.filled(namespace))).map(Json)
}
