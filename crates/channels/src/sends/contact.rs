//! Sending to a contact, over its channel.

use super::bodies::{ContactTemplateMessage, ContactTextMessage, DryRun};
use super::operations::text;
use super::recipient::channel_for;
use super::result::SendResult;
use super::send::{Sending, What, sender_of};
use crate::messages::SentTemplate;
use crate::network::Network;
use crate::wakes::Wakes;
use model::{Caller, Result};
use operation::ports::{ContactRef, People};
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
    people: State<People>,
    network: State<Network>,
    wakes: State<Wakes>,
) -> Result<Json<SendResult>> {
    let contact = people.0.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    let sending = Sending {
        caller,
        people: &people.0,
        network: &network.0,
        wakes: &wakes.0,
        sender: sender_of(caller)?,
        dry_run: query.dry_run,
    };
    let what = What::Free(text(body.text, body.preview_url, body.reply_to));
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
    people: State<People>,
    network: State<Network>,
    wakes: State<Wakes>,
) -> Result<Json<SendResult>> {
    let contact = people.0.find(tx, caller.workspace_id(), &contact_id)?;
    let channel = channel_for(tx, caller.workspace_id(), contact.id, body.channel_id)?;
    let filled = SentTemplate {
        name: body.name,
        language: body.language,
        namespace: body.namespace.clone(),
        params: body.params,
        header_params: body.header_params,
        button_params: body.button_params,
    };
    let sending = Sending {
        caller,
        people: &people.0,
        network: &network.0,
        wakes: &wakes.0,
        sender: sender_of(caller)?,
        dry_run: query.dry_run,
    };
    let what = What::Template(filled, body.media, Some(body.namespace));
    sending.send(tx, &channel, Some(contact), what).map(Json)
}
