//! The message of a broadcast to one contact, as a test.

use crate::checks::check::{self, Ready};
use crate::model::preview::BroadcastTest;
use crate::rows::row::find;
use crate::rows::template::FrozenParams;
use model::{BroadcastId, Caller, Code, ContactId, Error, Result};
use sends::{SendParts, send_template};
use store::Tx;

/// What errors call the contact.
const PARAM: &str = "test_contact_id";

/// Sends the message of a broadcast to one contact, or only checks it. The broadcast stays as it is.
///
/// # Errors
/// What keeps it from being sent, or the contact from getting it.
pub(crate) fn send(
    tx: &mut Tx,
    caller: &Caller,
    parts: &SendParts,
    (broadcast, contact): (BroadcastId, ContactId),
    dry_run: bool,
) -> Result<BroadcastTest> {
    let workspace = caller.workspace_id();
    let mut row = find(tx, workspace, broadcast)?;
    check::choose_channel(tx, &mut row)?;
    let ready = Ready::of(tx, parts, &row)?;
    ready.expect_sendable()?;
    let found = parts.people.find(tx, workspace, &contact.into());
    let card = found.map_err(|error| match error.code() {
        Code::NotFound => error.param(PARAM),
        _ => error,
    })?;
    let contact_id = card.id;
    let rule = "must be a contact that has the values of the template, because a fallback is empty";
    let params = FrozenParams::of(&ready.wanted, &card).ok_or_else(|| Error::invalid(PARAM, rule))?;
    let template = params.sent(&ready.wanted, &ready.template.namespace);
    let sent = (template, ready.wanted.media);
    let (message_id, message) = send_template(tx, caller, parts, &ready.channel, card, sent, dry_run)
        .map_err(|error| match error.param_name() {
            None => error.param(PARAM),
            Some(_) => error.below("template"),
        })?;
    Ok(BroadcastTest { contact_id, message_id, message })
}
