//! Sends the message of a broadcast to one contact, as a test.

use crate::checks::check::{self, Ready};
use crate::model::preview::BroadcastTest;
use crate::rows::row::find;
use crate::rows::template::FrozenParams;
use model::{BroadcastId, Caller, Code, ContactId, Error, Result};
use sends::{SendParts, send_template};
use store::Tx;

/// The parameter in errors.
const PARAM: &str = "test_contact_id";

/// Sends the message of a broadcast to one contact, or only checks that it can be sent. The broadcast does not
/// change.
///
/// # Errors
/// The errors of [`check::choose_channel`] and [`Ready::expect_sendable`], or those of the contact at
/// `test_contact_id`.
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
