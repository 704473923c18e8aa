//! What becomes of the messages of broadcasts.

use super::model::BroadcastRecipientState as State;
use super::row::RecipientRow;
use crate::messages::{MessageError, MessageRow, MessageStatus};
use crate::schema::broadcast_recipients;
use chatnet::RefusalCode;
use diesel::prelude::*;
use model::{ContactId, JsonText, Result, Timestamp, WorkspaceId};
use store::Tx;

/// What a contact writes within this time answers a broadcast.
const REPLY_SECONDS: i64 = 7 * 86_400;

/// Carries the status of a message over to the recipient of the broadcast that sent it. Whoever changes the status of a
/// message calls it in the same transaction; of other messages it does nothing.
///
/// # Errors
/// When the database fails.
pub fn message_changed(tx: &mut Tx, row: &MessageRow) -> Result<()> {
    let (Some(status), Some(_)) = (row.status, row.broadcast_id) else { return Ok(()) };
    let found = broadcast_recipients::table.filter(broadcast_recipients::message_id.eq(row.id));
    let found = found.select(RecipientRow::as_select()).get_result(tx.connection()).optional()?;
    let Some(recipient) = found else { return Ok(()) };
    let now = tx.now();
    let state = state_of(status);
    let is_out = matches!(status, MessageStatus::Sent | MessageStatus::Delivered | MessageStatus::Read);
    let came = matches!(status, MessageStatus::Delivered | MessageStatus::Read);
    let since = |before: Option<Timestamp>, is_so: bool| before.or(is_so.then_some(now));
    diesel::update(broadcast_recipients::table.find(recipient.id))
        .set((
            broadcast_recipients::state.eq(state),
            broadcast_recipients::error.eq(error_of(row, status)),
            broadcast_recipients::sent_at.eq(since(recipient.sent_at, is_out)),
            broadcast_recipients::delivered_at.eq(since(recipient.delivered_at, came)),
            broadcast_recipients::read_at.eq(since(recipient.read_at, status == MessageStatus::Read)),
            broadcast_recipients::settled_at.eq((state != State::Claimed).then_some(now)),
            broadcast_recipients::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

fn state_of(status: MessageStatus) -> State {
    match status {
        MessageStatus::Queued | MessageStatus::Sending => State::Claimed,
        MessageStatus::Sent => State::Sent,
        MessageStatus::Delivered => State::Delivered,
        MessageStatus::Read => State::Read,
        MessageStatus::Failed | MessageStatus::Expired => State::Failed,
        MessageStatus::Unknown => State::Unknown,
        MessageStatus::Cancelled => State::Cancelled,
    }
}

fn error_of(row: &MessageRow, status: MessageStatus) -> Option<JsonText> {
    if status != MessageStatus::Expired || row.error.is_some() {
        return row.error.clone();
    }
    Some(JsonText::of(&MessageError {
        code: RefusalCode::Expired,
        message: "The message waited too long to be sent.".to_owned(),
        provider_code: None,
        retryable: true,
    }))
}

/// Notes that a contact wrote: that answers the last broadcast that it was sent.
///
/// # Errors
/// When the database fails.
pub fn contact_replied(tx: &mut Tx, workspace: WorkspaceId, contact: ContactId, at: Timestamp) -> Result<()> {
    let last = broadcast_recipients::table
        .filter(broadcast_recipients::contact_id.eq(contact))
        .filter(broadcast_recipients::workspace_id.eq(workspace))
        .filter(broadcast_recipients::sent_at.ge(at.plus_seconds(-REPLY_SECONDS)))
        .order(broadcast_recipients::sent_at.desc())
        .select(RecipientRow::as_select())
        .first(tx.connection())
        .optional()?;
    if let Some(recipient) = last.filter(|recipient| recipient.replied_at.is_none()) {
        diesel::update(broadcast_recipients::table.find(recipient.id))
            .set((broadcast_recipients::replied_at.eq(at), broadcast_recipients::updated_at.eq(tx.now())))
            .execute(tx.connection())?;
    }
    Ok(())
}
