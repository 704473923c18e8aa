//! Writing the messages of many contacts with few statements: on PostgreSQL each is a round trip.

use super::conversation::{Conversation, ConversationStatus};
use super::enqueue::{NewMessage, NewRow, Outgoing, Priority, attach, last_inbound_at, write};
use super::row::MessageRow;
use super::terms;
use crate::schema::{conversations, message_outbox, messages};
use diesel::dsl::max;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Text, Timestamp as SqlTimestamp};
use model::{ConversationId, Result, Timestamp};
use std::collections::HashMap;
use store::{AnyConnection, CachedChange, Tx, column, each};

/// Writes messages that are to be sent, one to each conversation. All have a `client_key`. The conversations are of one
/// channel, locked, or of this transaction, and as many as one statement can name.
pub fn enqueue_all(tx: &mut Tx, out: Vec<(&Conversation, Outgoing)>) -> Result<Vec<MessageRow>> {
    let waits: HashMap<ConversationId, Waits> = out
        .iter()
        .map(|(of, out)| (of.id, Waits { priority: out.priority, until: out.expires_at }))
        .collect();
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
    put_all_into_outbox(tx, &rows, &waits)?;
    Ok(rows)
}

/// Writes messages of contacts, one to each conversation, as [`write`] does one. The conversations are locked, or of this
/// transaction, and as many as one statement can name. Gives the messages in their order.
pub(crate) fn write_all(tx: &mut Tx, new: &[(&Conversation, NewMessage)]) -> Result<Vec<MessageRow>> {
    let now = tx.now();
    let AnyConnection::Postgres(connection) = tx.connection() else {
        return new.iter().map(|(conversation, new)| write(tx, conversation, new.clone())).collect();
    };
    let rows: Vec<NewRow> = new.iter().map(|(of, new)| NewRow::of(of, new, now)).collect();
    let insert = diesel::insert_into(messages::table).values(rows).returning(MessageRow::as_select());
    let rows: Vec<MessageRow> = insert.get_results(connection)?;
    let mut written: HashMap<ConversationId, MessageRow> =
        rows.into_iter().map(|row| (row.conversation_id, row)).collect();
    let rows: Vec<MessageRow> = new.iter().filter_map(|(of, _)| written.remove(&of.id)).collect();
    for (row, (_, new)) in rows.iter().zip(new) {
        new.attachment.as_ref().map_or(Ok(()), |attachment| attach(tx, row, attachment))?;
    }
    received_all(tx, new, &rows, now)?;
    terms::index(tx, &rows)?;
    Ok(rows)
}

/// Makes messages of contacts the newest of their conversations, on PostgreSQL: opens those, and counts as unread.
fn received_all(
    tx: &mut Tx,
    new: &[(&Conversation, NewMessage)],
    rows: &[MessageRow],
    now: Timestamp,
) -> Result<()> {
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(()) };
    let last: Vec<Timestamp> =
        new.iter().zip(rows).map(|((of, _), row)| last_inbound_at(of, row, now)).collect();
    let update = diesel::sql_query(
        "UPDATE conversations SET last_message_id = new.message_id, last_message_at = $1, version = version + 1, \
         updated_at = $1, status = $5, snoozed_until = NULL, closed_at = NULL, close_reason = NULL, \
         unread_count = unread_count + 1, last_inbound_at = new.last_inbound_at \
         FROM unnest($2, $3, $4) AS new (id, message_id, last_inbound_at) WHERE conversations.id = new.id",
    )
    .bind::<SqlTimestamp, _>(now)
    .bind::<Array<BigInt>, _>(column(rows, |row| row.conversation_id))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.id))
    .bind::<Array<SqlTimestamp>, _>(last)
    .bind::<Text, _>(ConversationStatus::Open);
    Ok(CachedChange(update).run(connection)?)
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

/// How a message waits to be sent.
#[derive(Clone, Copy)]
struct Waits {
    priority: Priority,
    /// When it is no longer sent.
    until: Timestamp,
}

fn put_all_into_outbox(
    tx: &mut Tx,
    rows: &[MessageRow],
    waits: &HashMap<ConversationId, Waits>,
) -> Result<()> {
    let now = tx.now();
    let row = |row: &MessageRow| {
        let waits = waits.get(&row.conversation_id)?;
        Some((
            message_outbox::message_id.eq(row.id),
            message_outbox::channel_id.eq(row.channel_id),
            message_outbox::conversation_id.eq(row.conversation_id),
            message_outbox::priority.eq(waits.priority as i64),
            message_outbox::due_at.eq(now),
            message_outbox::expires_at.eq(waits.until),
            message_outbox::attempts.eq(0),
        ))
    };
    let rows: Vec<_> = rows.iter().filter_map(row).collect();
    each!(tx.connection(), |connection| diesel::insert_into(message_outbox::table)
        .values(rows)
        .execute(connection))?;
    Ok(())
}
