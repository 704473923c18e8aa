//! Sending a message again that was not sent, or of which that is not known.

use super::what::Free;
use crate::messages::{
    BroadcastRecipients, Conversation, Detail, MessageRow, MessageStatus, Priority, requeue,
};
use crate::schema::{message_attachments, messages as table};
use diesel::prelude::*;
use model::{Code, Error, FileId, JsonText, MessageId, Result, Timestamp};
use serde_json::json;
use store::{OneRow as _, Read, Tx, lock_row};

/// Whether a send is that of an earlier message, and how often it is handed to the network.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attempt {
    pub(super) retry_of: Option<MessageId>,
    /// Whether the message is sent again if the network does not answer.
    pub(super) at_least_once: bool,
}

/// Makes sure that a message can be sent again as `draft`.
///
/// # Errors
/// `not_found` for a message of another conversation, `invalid_state` for one that is neither failed nor unknown, and
/// `validation_error` for another content; all with `param` = `retry_of`.
pub(super) fn expect_retryable(
    read: &mut Read,
    conversation: Option<&Conversation>,
    id: MessageId,
    draft: &Free,
) -> Result<MessageRow> {
    let row: MessageRow = table::table
        .find(id)
        .filter(table::conversation_id.nullable().eq(conversation.map(|conversation| conversation.id)))
        .filter(table::status.is_not_null())
        .select(MessageRow::as_select())
        .get_result(read.connection())
        .or_not_found("message")
        .map_err(|error| error.param("retry_of"))?;
    if !matches!(row.status, Some(MessageStatus::Failed | MessageStatus::Unknown)) {
        let message = "Only a message that is failed or unknown can be sent again.";
        return Err(Error::new(Code::InvalidState, message)
            .param("retry_of")
            .with("details", json!({ "state": row.status })));
    }
    if !is_same(read, &row, draft)? {
        return Err(Error::invalid("retry_of", "must be a message with the same content"));
    }
    Ok(row)
}

fn is_same(read: &mut Read, row: &MessageRow, draft: &Free) -> Result<bool> {
    let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
    let detail = Detail { at_least_once: draft.detail.at_least_once, ..detail };
    let files: Vec<Option<FileId>> = message_attachments::table
        .filter(message_attachments::message_id.eq(row.id))
        .select(message_attachments::file_id)
        .load(read.connection())?;
    let file = draft.attachment.as_ref().map(|attachment| attachment.file);
    Ok(row.message_type == draft.message_type
        && row.content == draft.content
        && row.reply_to_id == draft.reply_to
        && detail == draft.detail
        && files == file.into_iter().collect::<Vec<_>>())
}

/// Queues a message again, as another attempt under an id of the network that is still to come. What was reported of the
/// earlier attempts stays in its history.
///
/// # Errors
/// As those of [`expect_retryable`].
pub(super) fn again(
    tx: &mut Tx,
    broadcasts: &dyn BroadcastRecipients,
    conversation: &Conversation,
    id: MessageId,
    draft: &Free,
    expires_at: Timestamp,
) -> Result<MessageRow> {
    lock_row!(tx, table::table.find(id).select(table::id), for_update);
    let row = expect_retryable(tx, Some(conversation), id, draft)?;
    diesel::update(table::table.find(row.id))
        .set((
            table::attempt.eq(table::attempt + 1),
            table::provider_message_id.eq(None::<String>),
            table::detail.eq(draft.stored_detail()),
        ))
        .execute(tx.connection())?;
    let row = requeue(tx, row.id, Priority::Live, expires_at)?;
    broadcasts.messages_changed(tx, &[&row])?;
    Ok(row)
}
