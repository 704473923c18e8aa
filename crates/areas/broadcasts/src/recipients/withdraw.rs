//! Withdraws messages that have not been handed to the network yet.

use crate::model::BroadcastRecipientState as State;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients as recipients;
use conversations::messages;
use diesel::prelude::*;
use model::{MessageId, Result};
use store::Tx;

/// The most messages in one statement, because databases limit the number of parameters.
const AT_ONCE: usize = 1_000;

/// Withdraws the messages of a locked broadcast from the outbox, except those that are being handed to the network.
/// Their recipients become pending again, and keep their messages for when the broadcast continues.
pub(crate) fn postpone(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Pending)
}

/// Withdraws and cancels the messages of a locked broadcast, except those that are being handed to the network.
pub(crate) fn cancel(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    let withdrawn = from_outbox(tx, row)?;
    set_state(tx, &withdrawn, State::Cancelled)?;
    messages::cancel(tx, &withdrawn)
}

fn from_outbox(tx: &mut Tx, row: &BroadcastRow) -> Result<Vec<MessageId>> {
    let Some(channel) = row.channel_id else { return Ok(Vec::new()) };
    // The worker of the channel claims messages under a shared lock on the channel. The exclusive lock here makes
    // sure that each message is either claimed or withdrawn.
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
