//! Marking messages of contacts as read.

use super::row::MessageDirection;
use crate::schema::{conversations, messages};
use diesel::prelude::*;
use model::{ConversationId, MessageId, Result};
use store::Tx;

/// Marks the messages of a conversation up to `upto` as read. Returns how many are still unread.
pub fn mark_read(tx: &mut Tx, conversation: ConversationId, upto: MessageId) -> Result<i64> {
    let unread: i64 = messages::table
        .filter(messages::conversation_id.eq(conversation))
        .filter(messages::direction.eq(MessageDirection::Inbound))
        .filter(messages::id.gt(upto))
        .count()
        .get_result(tx.connection())?;
    let row = conversations::table.find(conversation).filter(conversations::unread_count.gt(unread));
    diesel::update(row).set(conversations::unread_count.eq(unread)).execute(tx.connection())?;
    Ok(unread)
}
