//! UpdateContext the parts of a callback: each in a savepoint of its own, so that one that fails hinders no other.

use super::context::{UpdateContext, identity};
use super::identities;
use super::message::{device_wrote, receive, receive_together};
use super::status::{StatusReport, report};
use channels::{NewChannelError, templates};
use chatnet::{InboundMessage, Update};
use model::{Code, Result};
use ports::{ConsentStatement, ConsentTies};
use store::Tx;

/// The most statuses that are applied together: a database takes so many values in one statement and no more.
const STATUSES_AT_ONCE: usize = 1_000;

/// Applies all parts of callbacks. What fails for good is noted among the channel's errors.
///
/// # Errors
/// When the database fails: nothing was applied then, and everything is tried again.
pub(crate) fn apply<'a>(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    updates: impl Iterator<Item = &'a Update>,
) -> Result<()> {
    let updates: Vec<&Update> = updates.collect();
    for part in updates.chunk_by(|one, next| is_status(one) && is_status(next)) {
        match tx.savepoint(|tx| apply_part(tx, of, part)) {
            Err(error) if error.code() == Code::InternalError => return Err(error),
            Err(error) => {
                tracing::warn!(channel = %of.channel.id, %error, "a part of a callback could not be applied");
                let (code, message) = (error.code().as_str(), &error.to_string());
                let error = NewChannelError { code, message, ..NewChannelError::default() };
                channels::note_error(tx, of.channel.id, error)?;
            }
            Ok(()) => {}
        }
    }
    if updates.iter().any(|update| matches!(update, Update::Message(_))) {
        channels::note_inbound(tx, of.channel.id)?;
    }
    Ok(())
}

/// Applies messages of contacts, by statements of many rows. Gives whether each was applied: all others are to be applied
/// alone, each in a transaction of its own, in their order.
///
/// # Errors
/// When one of them cannot be applied, or when the database fails: nothing was applied then.
pub(crate) fn apply_messages(
    tx: &mut Tx,
    of: &UpdateContext<'_>,
    messages: &[&InboundMessage],
) -> Result<Vec<bool>> {
    let applied = receive_together(tx, of, messages)?;
    channels::note_inbound(tx, of.channel.id)?;
    Ok(applied)
}

fn is_status(update: &Update) -> bool {
    matches!(update, Update::Status(_))
}

/// Applies statuses that came together, or one other update.
fn apply_part(tx: &mut Tx, of: &UpdateContext<'_>, updates: &[&Update]) -> Result<()> {
    let status = |update: &&Update| match update {
        Update::Status(status) => Some(StatusReport::of(status)),
        _ => None,
    };
    let statuses: Vec<StatusReport> = updates.iter().filter_map(status).collect();
    if statuses.is_empty() {
        return updates.iter().try_for_each(|update| one(tx, of, update));
    }
    statuses.chunks(STATUSES_AT_ONCE).try_for_each(|some| report(tx, of.channel, of.areas, some))
}

fn one(tx: &mut Tx, of: &UpdateContext<'_>, update: &Update) -> Result<()> {
    match update {
        Update::Message(message) => receive(tx, of, message),
        Update::Echo(echo) => device_wrote(tx, of, echo),
        Update::Status(status) => report(tx, of.channel, of.areas, &[StatusReport::of(status)]),
        Update::Template(update) => templates::updated(tx, of.channel, update),
        Update::Quality(update) => channels::note_quality(tx, of.channel.id, update),
        Update::Consent { party, wants_marketing, at } => {
            let workspace = of.channel.workspace_id;
            let contact = of.areas.people.receive(tx, workspace, &identity(party))?;
            let proof = "The contact changed its preference on the network.".to_owned();
            let (wants_messages, ties) = (*wants_marketing, ConsentTies::ToOptOut);
            let statement = ConsentStatement { wants_messages, at: *at, ties, proof };
            of.areas.people.record_consent(tx, workspace, contact.id, &statement).map(drop)
        }
        Update::Identity(change) => identities::changed(tx, of, change),
        Update::Unknown { kind, .. } => {
            tracing::info!(channel = %of.channel.id, kind, "a callback has a part that is not understood");
            Ok(())
        }
    }
}
