//! Sending a message again that was not sent, or of which that is not known.

use super::content::FreeMessage;
use conversations::messages::{
    self, BroadcastRecipients, Conversation, Detail, MessageRow, MessageStatus, Priority, requeue,
};
use model::{Code, Error, JsonText, MessageId, Result, Timestamp};
use serde_json::json;
use store::{Read, Tx};

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
    draft: &FreeMessage,
) -> Result<MessageRow> {
    let conversation = conversation.map(|conversation| conversation.id);
    let row = messages::sent_in(read, conversation, id).map_err(|error| error.param("retry_of"))?;
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

fn is_same(read: &mut Read, row: &MessageRow, draft: &FreeMessage) -> Result<bool> {
    let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
    let detail = Detail { at_least_once: draft.detail.at_least_once, ..detail };
    let files = messages::files_of(read, row.id)?;
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
    draft: &FreeMessage,
    expires_at: Timestamp,
) -> Result<MessageRow> {
    messages::lock(tx, id)?;
    let row = expect_retryable(tx, Some(conversation), id, draft)?;
    messages::begin_attempt(tx, row.id, draft.stored_detail())?;
    let row = requeue(tx, row.id, Priority::Live, expires_at)?;
    broadcasts.messages_changed(tx, &[&row])?;
    Ok(row)
}
