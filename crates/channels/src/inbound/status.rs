//! Statuses of messages: they come in any order, twice, and sometimes before the answer to the send.

use crate::broadcasts;
use crate::channels::ChannelRow;
use crate::events::MessageEvent;
use crate::messages::{self, MessageError, MessageRow, MessageStatus};
use crate::schema::{
    early_statuses as early, message_outbox as outbox, message_statuses as history, messages as table,
};
use chatnet::{NetworkStatus, RefusalCode, StatusUpdate};
use diesel::prelude::*;
use model::{Cause, JsonText, MessageId, Result, Timestamp, whole_number};
use operation::ports::People;
use store::{Tx, lock_row};

/// What the network says of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusReport {
    pub(crate) provider_id: String,
    /// The id of the message, where the network echoes it.
    pub(crate) reference: Option<MessageId>,
    pub(crate) status: MessageStatus,
    pub(crate) error: Option<MessageError>,
    pub(crate) at: Timestamp,
}

impl StatusReport {
    pub(crate) fn of(update: &StatusUpdate) -> Self {
        let status = match update.status {
            NetworkStatus::Sent => MessageStatus::Sent,
            NetworkStatus::Delivered => MessageStatus::Delivered,
            NetworkStatus::Read => MessageStatus::Read,
            NetworkStatus::Failed => MessageStatus::Failed,
        };
        let error = update.error.as_ref().map(|error| MessageError {
            code: error.code,
            message: error.message.clone(),
            provider_code: error.provider_code,
            retryable: false,
        });
        let unexplained = || MessageError {
            code: RefusalCode::NetworkError,
            message: "The network gave no reason.".to_owned(),
            provider_code: None,
            retryable: false,
        };
        Self {
            provider_id: update.provider_id.clone(),
            reference: update.reference.as_deref().and_then(whole_number).map(MessageId),
            status,
            error: error.or_else(|| (status == MessageStatus::Failed).then(unexplained)),
            at: update.at,
        }
    }
}

/// Applies a status to its message. One whose message is not known yet waits for it.
pub(crate) fn report(
    tx: &mut Tx,
    channel: &ChannelRow,
    people: &People,
    report: &StatusReport,
) -> Result<()> {
    let mut found = messages::by_provider_id(tx, channel.id, &report.provider_id)?;
    if found.is_none()
        && let Some(id) = report.reference
    {
        // The answer to the send was lost, or is on its way: the echo says which message it was.
        found = table::table
            .find(id)
            .filter(table::channel_id.eq(channel.id))
            .filter(table::provider_message_id.is_null())
            .select(MessageRow::as_select())
            .first(tx.connection())
            .optional()?;
        if let Some(row) = &found {
            diesel::update(table::table.find(row.id))
                .set(table::provider_message_id.eq(&report.provider_id))
                .execute(tx.connection())?;
            // The network has it, though it may have answered that it has not: it is not to be sent again.
            let waiting = outbox::table.find(row.id).filter(outbox::claimed_epoch.is_null());
            diesel::delete(waiting).execute(tx.connection())?;
        }
    }
    match found {
        Some(row) => rise(tx, channel, people, row.id, report),
        None => park(tx, channel, report),
    }
}

/// Applies the statuses that came before the answer to the send.
pub(crate) fn apply_early(
    tx: &mut Tx,
    channel: &ChannelRow,
    people: &People,
    row: &MessageRow,
) -> Result<()> {
    let Some(provider_id) = &row.provider_message_id else { return Ok(()) };
    let of = early::table
        .filter(early::channel_id.eq(channel.id))
        .filter(early::provider_message_id.eq(provider_id));
    let waiting: Vec<(MessageStatus, Option<JsonText>, Timestamp)> = of
        .order(early::id)
        .select((early::status, early::error, early::reported_at))
        .load(tx.connection())?;
    if waiting.is_empty() {
        return Ok(());
    }
    diesel::delete(of).execute(tx.connection())?;
    for (status, error, at) in waiting {
        let error = error.as_ref().map(JsonText::parse).transpose()?;
        let parked = StatusReport { provider_id: provider_id.clone(), reference: None, status, error, at };
        rise(tx, channel, people, row.id, &parked)?;
    }
    Ok(())
}

/// Notes a status, and gives it to the message if it is further than what the message has.
pub(crate) fn rise(
    tx: &mut Tx,
    channel: &ChannelRow,
    people: &People,
    id: MessageId,
    report: &StatusReport,
) -> Result<()> {
    let row = table::table.find(id);
    lock_row!(tx, row.select(table::id), for_no_key_update);
    let row: MessageRow = row.select(MessageRow::as_select()).get_result(tx.connection())?;
    let now = tx.now();
    let error = report.error.as_ref().map(JsonText::of);
    let is_known: bool = diesel::select(diesel::dsl::exists(
        history::table
            .filter(history::message_id.eq(id))
            .filter(history::status.eq(report.status))
            .filter(history::reported_at.eq(report.at)),
    ))
    .get_result(tx.connection())?;
    if is_known {
        return Ok(());
    }
    diesel::insert_into(history::table)
        .values((
            history::message_id.eq(id),
            history::status.eq(report.status),
            history::error.eq(&error),
            history::reported_at.eq(report.at),
            history::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    let (before, before_rank) = (row.status.unwrap_or(MessageStatus::Queued), row.status_rank);
    if !report.status.follows(before) {
        return Ok(());
    }
    let row: MessageRow = diesel::update(table::table.find(id))
        .set((
            table::status.eq(report.status),
            table::status_rank.eq(report.status.rank()),
            table::error.eq(&error),
            table::updated_at.eq(now),
        ))
        .returning(table::all_columns)
        .get_result(tx.connection())?;
    broadcasts::message_changed(tx, &row)?;
    let is_failure =
        matches!(report.status, MessageStatus::Failed | MessageStatus::Unknown | MessageStatus::Expired);
    let was_unsent = before_rank < MessageStatus::Sent.rank();
    let is_sent = was_unsent && !is_failure && report.status.rank() >= MessageStatus::Sent.rank();
    if (is_failure || is_sent)
        && let Some(card) = people.cards(tx, row.workspace_id, &[row.contact_id])?.into_iter().next()
    {
        let event = if is_sent {
            MessageEvent::sent(&row, channel.channel_type, card.app_url)
        } else {
            MessageEvent::failed(&row, report.error.clone(), card.app_url)
        };
        tx.emit(row.workspace_id, &Cause::system("channels"), true, &event)?;
    }
    Ok(())
}

fn park(tx: &mut Tx, channel: &ChannelRow, report: &StatusReport) -> Result<()> {
    let now = tx.now();
    diesel::insert_into(early::table)
        .values((
            early::channel_id.eq(channel.id),
            early::provider_message_id.eq(&report.provider_id),
            early::status.eq(report.status),
            early::error.eq(report.error.as_ref().map(JsonText::of)),
            early::reported_at.eq(report.at),
            early::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}
