//! Taking messages back that were not handed to the network yet.

use crate::model::BroadcastRecipientState as State;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients as recipients;
use conversations::messages;
use diesel::prelude::*;
use model::{MessageId, Result};
use store::Tx;

/// The most messages that one statement names: a database takes so many values and no more.
const AT_ONCE: usize = 1_000;

/// Takes the messages of a locked broadcast out of the outbox, except those that are being handed to the network. Their
/// recipients are pending again, and keep their messages for the time when it goes on.
pub(crate) fn postpone(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Pending)
}

/// Takes the messages of a locked broadcast out of the outbox for good, except those that are being handed to the network.
pub(crate) fn cancel(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Cancelled)?;
    messages::cancel(tx, &withdrawn)
}

fn from_outbox(tx: &mut Tx, row: &BroadcastRow) -> Result<Vec<MessageId>> {
    let Some(channel) = row.channel_id else { return Ok(Vec::new()) };
    // The channel's worker claims messages while it shares the channel, so each is either claimed or withdrawn.
    channels::hold(tx, channel)?;
    let claimed: Vec<Option<MessageId>> = recipients::table
        .filter(recipients::broadcast_id.eq(row.id))
        .filter(recipients::state.eq(State::Claimed))
        .order(recipients::message_id)
        .select(recipients::message_id)
        .load(tx.connection())?;
    let claimed: Vec<MessageId> = claimed.into_iter().flatten().collect();
    messages::withdraw(tx, &claimed)
}

/// Sets the state of the recipients of messages.
pub(crate) fn set_state(tx: &mut Tx, of: &[MessageId], state: State) -> Result<()> {
    let now = tx.now();
    for of in of.chunks(AT_ONCE) {
        let of: Vec<Option<MessageId>> = of.iter().copied().map(Some).collect();
        diesel::update(recipients::table.filter(recipients::message_id.eq_any(of)))
            .set((recipients::state.eq(state), recipients::updated_at.eq(now)))
            .execute(tx.connection())?;
    }
    Ok(())
}
