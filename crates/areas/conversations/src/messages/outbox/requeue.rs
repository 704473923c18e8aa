//! Messages that are sent after all.

use crate::messages::enqueue::put_into_outbox;
use crate::messages::{Detail, MessageRow, MessageStatus, Priority};
use crate::schema::messages;
use diesel::prelude::*;
use model::{JsonText, MessageId, Result, Timestamp};
use store::{Read, Tx};

/// Puts a message that was taken out of the outbox back into it. Nobody sends it at this moment.
pub fn requeue(tx: &mut Tx, id: MessageId, priority: Priority, expires_at: Timestamp) -> Result<MessageRow> {
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

/// Begins another attempt to send a message: the network will give it another id.
pub fn begin_attempt(tx: &mut Tx, id: MessageId, detail: Option<JsonText>) -> Result<()> {
    diesel::update(messages::table.find(id))
        .set((
            messages::attempt.eq(messages::attempt + 1),
            messages::provider_message_id.eq(None::<String>),
            messages::detail.eq(detail),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Whether a message is sent again if the network does not answer, although it may have been sent.
pub(crate) fn may_come_twice(read: &mut Read, id: MessageId) -> Result<bool> {
    let detail: Option<Option<JsonText>> =
        messages::table.find(id).select(messages::detail).first(read.connection()).optional()?;
    let detail: Option<Detail> = detail.flatten().as_ref().map(JsonText::parse).transpose()?;
    Ok(detail.is_some_and(|detail| detail.at_least_once))
}
