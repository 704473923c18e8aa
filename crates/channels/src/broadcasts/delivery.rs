//! What becomes of the messages of broadcasts.

use super::model::BroadcastRecipientState as State;
use super::row::RecipientRow;
use crate::messages::{Alike, MessageError, MessageRow, MessageStatus};
use crate::schema::broadcast_recipients;
use chatnet::RefusalCode;
use diesel::prelude::*;
use model::{ContactId, JsonText, Result, Timestamp, WorkspaceId};
use store::Tx;

/// What a contact writes within this time answers a broadcast.
const REPLY_SECONDS: i64 = 7 * 86_400;

/// Carries the statuses of messages over to the recipients of the broadcasts that sent them. Whoever changes the status of
/// messages calls it in the same transaction; of other messages it does nothing.
///
/// # Errors
/// When the database fails.
pub fn messages_changed(tx: &mut Tx, rows: &[&MessageRow]) -> Result<()> {
    let now = tx.now();
    for Alike { status, error, ids } in
        Alike::among(rows.iter().copied().filter(|row| row.broadcast_id.is_some()))
    {
        let state = state_of(status);
        let of = || broadcast_recipients::table.filter(broadcast_recipients::message_id.eq_any(&ids));
        diesel::update(of())
            .set((
                broadcast_recipients::state.eq(state),
                broadcast_recipients::error.eq(error_of(error, status)),
                broadcast_recipients::settled_at.eq((state != State::Claimed).then_some(now)),
                broadcast_recipients::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
        let (is_read, came, went) = match status {
            MessageStatus::Read => (true, true, true),
            MessageStatus::Delivered => (false, true, true),
            MessageStatus::Sent => (false, false, true),
            _ => (false, false, false),
        };
        if went {
            diesel::update(of().filter(broadcast_recipients::sent_at.is_null()))
                .set(broadcast_recipients::sent_at.eq(now))
                .execute(tx.connection())?;
        }
        if came {
            diesel::update(of().filter(broadcast_recipients::delivered_at.is_null()))
                .set(broadcast_recipients::delivered_at.eq(now))
                .execute(tx.connection())?;
        }
        if is_read {
            diesel::update(of().filter(broadcast_recipients::read_at.is_null()))
                .set(broadcast_recipients::read_at.eq(now))
                .execute(tx.connection())?;
        }
    }
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

fn error_of(error: Option<JsonText>, status: MessageStatus) -> Option<JsonText> {
    if status != MessageStatus::Expired || error.is_some() {
        return error;
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
