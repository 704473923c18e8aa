//! Queries for single messages.

use super::row::MessageRow;
use crate::schema::{message_attachments, messages};
use diesel::prelude::*;
use model::{ChannelId, ConversationId, FileId, MessageId, Result, WorkspaceId};
use std::collections::HashMap;
use store::{OneRow as _, Read, Tx, lock_row};

/// Returns a message of a channel.
///
/// # Errors
/// `not_found`.
pub fn of_channel(
    read: &mut Read,
    (workspace, channel): (WorkspaceId, ChannelId),
    id: MessageId,
) -> Result<MessageRow> {
    messages::table
        .find(id)
        .filter(messages::channel_id.eq(channel))
        .filter(messages::workspace_id.eq(workspace))
        .select(MessageRow::as_select())
        .get_result(read.connection())
        .or_not_found("message")
}

/// Makes sure that a message is in a conversation.
///
/// # Errors
/// `not_found`.
pub fn expect_in(read: &mut Read, conversation: ConversationId, id: MessageId) -> Result<()> {
    messages::table
        .find(id)
        .filter(messages::conversation_id.eq(conversation))
        .select(messages::id)
        .get_result::<MessageId>(read.connection())
        .or_not_found("message")
        .map(drop)
}

/// Returns a message of a conversation that the business sent.
///
/// # Errors
/// `not_found`, also without a conversation.
pub fn sent_in(read: &mut Read, conversation: Option<ConversationId>, id: MessageId) -> Result<MessageRow> {
    messages::table
        .find(id)
        .filter(messages::conversation_id.nullable().eq(conversation))
        .filter(messages::status.is_not_null())
        .select(MessageRow::as_select())
        .get_result(read.connection())
        .or_not_found("message")
}

/// Returns the message that was sent under a key, if there is one.
pub fn by_client_key(read: &mut Read, workspace: WorkspaceId, key: &str) -> Result<Option<MessageId>> {
    Ok(messages::table
        .filter(messages::workspace_id.eq(workspace))
        .filter(messages::client_key.eq(key))
        .select(messages::id)
        .first(read.connection())
        .optional()?)
}

/// Returns the files of a message.
pub fn files_of(read: &mut Read, id: MessageId) -> Result<Vec<Option<FileId>>> {
    Ok(message_attachments::table
        .filter(message_attachments::message_id.eq(id))
        .select(message_attachments::file_id)
        .load(read.connection())?)
}

/// The files of messages that are still there.
pub(crate) fn files_of_all(
    read: &mut Read,
    messages: &[MessageRow],
) -> Result<HashMap<MessageId, Vec<FileId>>> {
    let rows: Vec<(MessageId, Option<FileId>)> = message_attachments::table
        .filter(message_attachments::message_id.eq_any(messages.iter().map(|row| row.id)))
        .order(message_attachments::id)
        .select((message_attachments::message_id, message_attachments::file_id))
        .load(read.connection())?;
    let mut all: HashMap<MessageId, Vec<FileId>> = HashMap::new();
    for (message, file) in rows {
        all.entry(message).or_default().extend(file);
    }
    Ok(all)
}

/// Locks a message.
pub fn lock(tx: &mut Tx, id: MessageId) -> Result<()> {
    lock_row!(tx, messages::table.find(id).select(messages::id), for_update);
    Ok(())
}
