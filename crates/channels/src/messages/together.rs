//! Writing the messages of a broadcast, those of many contacts with few statements: on PostgreSQL each is a round trip.

use super::conversation::Conversation;
use super::enqueue::{NewMessage, NewRow, Outgoing, Priority, attach};
use super::row::MessageRow;
use super::terms;
use crate::schema::{conversations, message_outbox, messages};
use diesel::dsl::max;
use diesel::prelude::*;
use model::{Result, Timestamp};
use std::collections::HashMap;
use store::{Tx, each};

/// Writes messages that are to be sent, one to each conversation. All have a `client_key`, and wait alike. The conversations
/// are of one channel, locked, or of this transaction, and as many as one statement can name.
///
/// # Errors
/// When the database fails.
pub(crate) fn enqueue_all(
    tx: &mut Tx,
    out: Vec<(&Conversation, Outgoing)>,
    priority: Priority,
    expires_at: Timestamp,
) -> Result<Vec<MessageRow>> {
    let now = tx.now();
    let new: Vec<(&Conversation, NewMessage)> =
        out.into_iter().map(|(conversation, out)| (conversation, out.into_message())).collect();
    let Some((first, _)) = new.first() else { return Ok(Vec::new()) };
    let rows: Vec<NewRow> = new.iter().map(|(of, new)| NewRow::of(of, new, now)).collect();
    each!(tx.connection(), |connection| diesel::insert_into(messages::table)
        .values(rows)
        .execute(connection))?;
    let keys = new.iter().map(|(_, new)| new.client_key.as_deref());
    let rows: Vec<MessageRow> = messages::table
        .filter(messages::workspace_id.eq(first.workspace_id))
        .filter(messages::client_key.eq_any(keys))
        .order(messages::id)
        .select(MessageRow::as_select())
        .load(tx.connection())?;
    let attachments: HashMap<_, _> =
        new.iter().filter_map(|(of, new)| Some((of.id, new.attachment.as_ref()?))).collect();
    for row in &rows {
        if let Some(attachment) = attachments.get(&row.conversation_id) {
            attach(tx, row, attachment)?;
        }
    }
    touch_all(tx, &rows, now)?;
    terms::index(tx, &rows)?;
    put_all_into_outbox(tx, &rows, priority, expires_at)?;
    Ok(rows)
}

/// Makes messages of ours the newest of their conversations.
fn touch_all(tx: &mut Tx, rows: &[MessageRow], now: Timestamp) -> Result<()> {
    let ids: Vec<_> = rows.iter().map(|row| row.conversation_id).collect();
    let of = || conversations::table.filter(conversations::id.eq_any(&ids));
    let newest = messages::table
        .filter(messages::conversation_id.eq(conversations::id))
        .select(max(messages::id))
        .single_value();
    diesel::update(of())
        .set((
            conversations::last_message_id.eq(newest.assume_not_null()),
            conversations::last_message_at.eq(now),
            conversations::version.eq(conversations::version + 1),
            conversations::updated_at.eq(now),
            conversations::unread_count.eq(0),
            conversations::last_outbound_at.eq(now),
        ))
        .execute(tx.connection())?;
    let unanswered = of()
        .filter(conversations::first_reply_at.is_null())
        .filter(conversations::last_inbound_at.is_not_null());
    diesel::update(unanswered).set(conversations::first_reply_at.eq(now)).execute(tx.connection())?;
    Ok(())
}

fn put_all_into_outbox(
    tx: &mut Tx,
    rows: &[MessageRow],
    priority: Priority,
    expires_at: Timestamp,
) -> Result<()> {
    let now = tx.now();
    let row = |row: &MessageRow| {
        (
            message_outbox::message_id.eq(row.id),
            message_outbox::channel_id.eq(row.channel_id),
            message_outbox::conversation_id.eq(row.conversation_id),
            message_outbox::priority.eq(priority as i64),
            message_outbox::due_at.eq(now),
            message_outbox::expires_at.eq(expires_at),
            message_outbox::attempts.eq(0),
        )
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    each!(tx.connection(), |connection| diesel::insert_into(message_outbox::table)
        .values(rows)
        .execute(connection))?;
    Ok(())
}
