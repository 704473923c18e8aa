//! Taking messages back that were not handed to the network yet.

use super::model::BroadcastRecipientState as State;
use super::row::BroadcastRow;
use crate::channels;
use crate::messages::MessageStatus;
use crate::schema::{
    broadcast_recipients as recipients, message_outbox as outbox, message_statuses as history, messages,
};
use diesel::prelude::*;
use model::{MessageId, Result};
use store::{Tx, each};

/// The most messages that one statement names: a database takes so many values and no more.
const AT_ONCE: usize = 1_000;

/// Takes the messages of a locked broadcast out of the outbox, except those that are being handed to the network. Their
/// recipients are pending again, and keep their messages for the time when it goes on.
///
/// # Errors
/// When the database fails.
pub(super) fn postpone(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Pending)
}

/// Takes the messages of a locked broadcast out of the outbox for good, except those that are being handed to the network.
///
/// # Errors
/// When the database fails.
pub(super) fn cancel(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Cancelled)?;
    cancel_messages(tx, &withdrawn)
}

/// Marks messages that are in no outbox as cancelled.
///
/// # Errors
/// When the database fails.
pub(super) fn cancel_messages(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
    let now = tx.now();
    let status = MessageStatus::Cancelled;
    for ids in ids.chunks(AT_ONCE) {
        diesel::update(messages::table.filter(messages::id.eq_any(ids)))
            .set((
                messages::status.eq(status),
                messages::status_rank.eq(status.rank()),
                messages::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
        let row = |id: &MessageId| {
            (
                history::message_id.eq(*id),
                history::status.eq(status),
                history::reported_at.eq(now),
                history::created_at.eq(now),
            )
        };
        let rows: Vec<_> = ids.iter().map(row).collect();
        each!(tx.connection(), |connection| diesel::insert_into(history::table)
            .values(rows)
            .execute(connection))?;
    }
    Ok(())
}

fn from_outbox(tx: &mut Tx, row: &BroadcastRow) -> Result<Vec<MessageId>> {
    let Some(channel) = row.channel_id else { return Ok(Vec::new()) };
    // The channel's worker claims messages while it shares the channel, so each is either claimed or withdrawn.
    channels::hold(tx, channel)?;
    let waiting: Vec<MessageId> = recipients::table
        .inner_join(outbox::table.on(recipients::message_id.eq(outbox::message_id.nullable())))
        .filter(recipients::broadcast_id.eq(row.id))
        .filter(recipients::state.eq(State::Claimed))
        .filter(outbox::claimed_epoch.is_null())
        .order(outbox::message_id)
        .select(outbox::message_id)
        .load(tx.connection())?;
    take_out(tx, &waiting)?;
    Ok(waiting)
}

/// Takes messages out of the outbox.
///
/// # Errors
/// When the database fails.
pub(super) fn take_out(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
    for ids in ids.chunks(AT_ONCE) {
        diesel::delete(outbox::table.filter(outbox::message_id.eq_any(ids))).execute(tx.connection())?;
    }
    Ok(())
}

/// Sets the state of the recipients of messages.
///
/// # Errors
/// When the database fails.
pub(super) fn set_state(tx: &mut Tx, of: &[MessageId], state: State) -> Result<()> {
    let now = tx.now();
    for of in of.chunks(AT_ONCE) {
        let of: Vec<Option<MessageId>> = of.iter().copied().map(Some).collect();
        diesel::update(recipients::table.filter(recipients::message_id.eq_any(of)))
            .set((recipients::state.eq(state), recipients::updated_at.eq(now)))
            .execute(tx.connection())?;
    }
    Ok(())
}
