//! Taking messages back that are not being handed to the network.

use crate::messages::MessageStatus;
use crate::schema::{message_outbox as outbox, message_statuses as history, messages};
use diesel::prelude::*;
use model::{MessageId, Result};
use store::{Tx, each};

/// The most messages that one statement names: a database takes so many values and no more.
const AT_ONCE: usize = 1_000;

/// Takes messages out of the outbox, except those that are being handed to the network. Returns those that were taken out, in
/// the order of their ids.
pub fn withdraw(tx: &mut Tx, ids: &[MessageId]) -> Result<Vec<MessageId>> {
    let mut withdrawn = Vec::with_capacity(ids.len());
    for ids in ids.chunks(AT_ONCE) {
        let waiting: Vec<MessageId> = diesel::delete(outbox::table)
            .filter(outbox::message_id.eq_any(ids))
            .filter(outbox::claimed_epoch.is_null())
            .returning(outbox::message_id)
            .get_results(tx.connection())?;
        withdrawn.extend(waiting);
    }
    withdrawn.sort_unstable();
    Ok(withdrawn)
}

/// Marks messages that are in no outbox as cancelled.
pub fn cancel(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
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
