//! Sending to a contact, over its channel.

use super::bodies::{ContactTemplateMessage, ContactTextMessage, DryRun};
use super::operations::text;
use super::recipient::channel_for;
use super::result::SendResult;
use super::send::{Filled, SendParts, Sending, What};
use crate::messages::SentTemplate;
use model::{Caller, Result};
use operation::ports::ContactRef;
use operation::{Body, Json, Path, Query, State, operation};
use store::Tx;

/// Send text to a contact over its channel
///
/// Without `channel_id` the message goes over the channel on which the contact was last spoken to. The 24-hour window must
/// be open. A workspace without channels answers 409 `no_channel`.
#[operation(post "/contacts/{contactId}/send-message", scope = "channels:send")]
pub fn send_contact_message(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Query(query): Query<DryRun>,
    Body(body): Body<ContactTextMessage>,
    parts: State<SendParts>,
) -> Result<Json<SendResult>> {
    let contact = parts.0.people.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    let sending = Sending::new(caller, &parts.0, query.dry_run)?;
    let what = What::Free(Box::new(text(body.text, body.preview_url, body.reply_to)));
    sending.send(tx, &channel, Some(contact), what).map(Json)
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
    let filled = SentTemplate {
        name: body.name,
        language: body.language,
        namespace: body.namespace.clone(),
        params: body.params,
        header_params: body.header_params,
        button_params: body.button_params,
    };
    let sending = Sending::new(caller, &parts.0, query.dry_run)?;
    let what =
        What::Template(Filled { template: filled, media: body.media, namespace: Some(body.namespace) });
    sending.send(tx, &channel, Some(contact), what).map(Json)
}
