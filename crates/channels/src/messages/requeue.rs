//! Messages that are sent after all.

use super::enqueue::{Priority, put_into_outbox};
use super::row::{MessageRow, MessageStatus};
use crate::schema::messages;
use diesel::prelude::*;
use model::{JsonText, MessageId, Result, Timestamp};
use store::Tx;

/// Puts a message that was taken out of the outbox back into it. Nobody sends it at this moment.
///
/// # Errors
/// When the database fails.
pub(crate) fn requeue(
    tx: &mut Tx,
    id: MessageId,
    priority: Priority,
    expires_at: Timestamp,
) -> Result<MessageRow> {
    let now = tx.now();
    let row: MessageRow = diesel::update(messages::table.find(id))
        .set((
            messages::status.eq(MessageStatus::Queued),
            messages::status_rank.eq(MessageStatus::Queued.rank()),
            messages::error.eq(None::<JsonText>),
            messages::updated_at.eq(now),
        ))
        .returning(messages::all_columns)
        .get_result(tx.connection())?;
    put_into_outbox(tx, &row, priority, expires_at)?;
    Ok(row)
}
