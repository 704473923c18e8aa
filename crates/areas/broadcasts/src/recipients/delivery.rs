//! Updates recipients when their messages change.

use crate::model::{
    BroadcastRecipientState as State, BroadcastSkipReason as Skip, BroadcastStatus as Status,
};
use crate::schema::{broadcast_recipients as recipients, broadcasts};
use chatnet::RefusalCode;
use conversations::messages::{Alike, BroadcastRecipients, MessageError, MessageRow, MessageStatus};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, SingleValue};
use model::{
    BroadcastId, BroadcastRecipientId, ContactId, JsonText, MessageId, Result, Timestamp, WorkspaceId,
};
use std::collections::{BTreeSet, HashSet};
use store::{Read, Tx, lock_row};

diesel::define_sql_function! {
    /// The first of two values that is not null.
    fn coalesce<T: SingleValue>(value: Nullable<T>, otherwise: Nullable<T>) -> Nullable<T>;
}

/// The time within which a message of a contact counts as a reply, in seconds.
const REPLY_SECONDS: i64 = 7 * 86_400;

/// The port by which messages update recipients.
pub struct Recipients;

impl BroadcastRecipients for Recipients {
    fn messages_changed(&self, tx: &mut Tx, rows: &[&MessageRow]) -> Result<()> {
        messages_changed(tx, rows)
    }

    fn messages_deleted(&self, tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
        messages_deleted(tx, ids)
    }

    fn contact_deleted(&self, tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
        contact_deleted(tx, ids)
    }

    fn contacts_replied(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        contacts: &[ContactId],
        at: Timestamp,
    ) -> Result<()> {
        contacts_replied(tx, workspace, contacts, at)
    }

    fn unfinished(&self, read: &mut Read, ids: BTreeSet<BroadcastId>) -> Result<HashSet<BroadcastId>> {
        unfinished(read, ids)
    }
}

/// Copies the statuses of messages to the recipients of broadcasts. It must be called in the transaction that changes
/// the messages. Messages that belong to no broadcast are ignored.
fn messages_changed(tx: &mut Tx, rows: &[&MessageRow]) -> Result<()> {
    let now = tx.now();
    for Alike { status, error, ids } in
        Alike::among(rows.iter().copied().filter(|row| row.broadcast_id.is_some()))
    {
        let state = state_of(status);
        // Set everything in one statement. `state` is indexed, so each update of a row writes to every index.
        let first = |is_reached: bool| is_reached.then_some(now);
        let is_read = status == MessageStatus::Read;
        let came = is_read || status == MessageStatus::Delivered;
        let went = came || status == MessageStatus::Sent;
        diesel::update(recipients::table.filter(recipients::message_id.eq_any(ids)))
            .set((
                recipients::state.eq(state),
                recipients::error.eq(error_of(error, status)),
                recipients::settled_at.eq(first(state != State::Claimed)),
                recipients::updated_at.eq(now),
                recipients::sent_at.eq(coalesce(recipients::sent_at, first(went))),
                recipients::delivered_at.eq(coalesce(recipients::delivered_at, first(came))),
                recipients::read_at.eq(coalesce(recipients::read_at, first(is_read))),
            ))
            .execute(tx.connection())?;
    }
    Ok(())
}

/// Clears the content and the address of recipients whose messages are deleted. Their states remain.
fn messages_deleted(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
    let now = tx.now();
    diesel::update(recipients::table.filter(recipients::message_id.eq_any(ids)))
        .set((
            recipients::message_id.eq(None::<MessageId>),
            recipients::address.eq(None::<String>),
            recipients::params.eq(None::<JsonText>),
            recipients::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Marks recipients as skipped, because their contact was deleted before the messages were sent.
fn contact_deleted(tx: &mut Tx, ids: &[MessageId]) -> Result<()> {
    let now = tx.now();
    diesel::update(recipients::table.filter(recipients::message_id.eq_any(ids)))
        .set((
            recipients::state.eq(State::Skipped),
            recipients::skip_reason.eq(Skip::NoAddress),
            recipients::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Returns those of the broadcasts that are not over, so that messages of theirs may still be sent.
fn unfinished(read: &mut Read, ids: BTreeSet<BroadcastId>) -> Result<HashSet<BroadcastId>> {
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let going_on: Vec<BroadcastId> = broadcasts::table
        .filter(broadcasts::id.eq_any(ids))
        .filter(broadcasts::status.ne_all([Status::Completed, Status::Cancelled]))
        .select(broadcasts::id)
        .load(read.connection())?;
    Ok(going_on.into_iter().collect())
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

/// Records replies of contacts. A reply counts for the last broadcast that was sent to the contact.
fn contacts_replied(
    tx: &mut Tx,
    workspace: WorkspaceId,
    contacts: &[ContactId],
    at: Timestamp,
) -> Result<()> {
    let recent: Vec<(BroadcastRecipientId, ContactId, Option<Timestamp>)> = recipients::table
        .filter(recipients::contact_id.eq_any(contacts))
        .filter(recipients::workspace_id.eq(workspace))
        .filter(recipients::sent_at.ge(at.plus_seconds(-REPLY_SECONDS)))
        .order(recipients::sent_at.desc())
        .select((recipients::id, recipients::contact_id, recipients::replied_at))
        .load(tx.connection())?;
    let mut seen = HashSet::new();
    let last = recent.into_iter().filter(|(_, contact, _)| seen.insert(*contact));
    let answered: Vec<BroadcastRecipientId> =
        last.filter_map(|(id, _, replied_at)| replied_at.is_none().then_some(id)).collect();
    if answered.is_empty() {
        return Ok(());
    }
    let answered = recipients::table.filter(recipients::id.eq_any(answered));
    // Lock the rows in the order of their messages, as concurrent statuses of another channel do, to avoid deadlocks.
    lock_row!(tx, answered.clone().order(recipients::message_id).select(recipients::id), for_no_key_update);
    diesel::update(answered)
        .set((recipients::replied_at.eq(at), recipients::updated_at.eq(tx.now())))
        .execute(tx.connection())?;
    Ok(())
}
