//! What becomes of messages that were handed to the network.

use crate::inbound::{StatusReport, apply_early, rise};
use crate::messages::{MessageError, MessageStatus, may_come_twice};
use crate::other_areas::OtherAreas;
use crate::schema::{message_outbox as outbox, messages};
use channels::{ChannelRow, ChannelStatus, NewChannelError, note_error};
use chatnet::{Refusal, RefusalCode, SendOutcome};
use diesel::prelude::*;
use model::{MessageId, Result, Timestamp};
use std::time::Duration;
use store::{Rows, Tx};

/// How often a message is handed to the network that asks to try again.
const MAX_ATTEMPTS: i64 = 6;
/// The longest wait between two attempts, in seconds.
const LONGEST_WAIT: i64 = 600;

/// Whether the network found the channel too fast.
pub(super) fn is_too_fast(outcome: &SendOutcome) -> bool {
    matches!(outcome, SendOutcome::Refused(refusal) if refusal.code == RefusalCode::RateLimited)
}

/// Whether an answer says something of the channel too.
fn changes_channel(channel: &ChannelRow, outcome: &SendOutcome) -> bool {
    match outcome {
        SendOutcome::Accepted { .. } => channel.status == ChannelStatus::Connecting,
        SendOutcome::Refused(refusal) => {
            matches!(refusal.code, RefusalCode::CredentialsInvalid | RefusalCode::AccountRestricted)
        }
        SendOutcome::Unknown { .. } => false,
    }
}

/// Writes down what the network answered.
pub(super) fn settle(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    answers: &[(MessageId, SendOutcome)],
) -> Result<()> {
    // A status must not miss the id that is written here.
    channels::share(tx, channel.id)?;
    // Whoever changes a channel and its messages locks the channel first.
    if answers.iter().any(|(_, outcome)| changes_channel(channel, outcome)) {
        channels::lock(tx, channel.id)?;
    }
    let accepted: Vec<(MessageId, &str)> = answers.iter().filter_map(provider_id).collect();
    self::accepted(tx, channel, areas, &accepted)?;
    for (id, outcome) in answers {
        match outcome {
            SendOutcome::Accepted { .. } => {}
            SendOutcome::Refused(refusal) => refused(tx, channel, areas, *id, refusal)?,
            SendOutcome::Unknown { reason } => {
                let error = NewChannelError {
                    code: "unknown",
                    message: reason,
                    about: Some(*id),
                    provider_code: None,
                };
                note_error(tx, channel.id, error)?;
                unanswered(tx, channel, areas, *id)?;
            }
        }
    }
    Ok(())
}

/// A message that the network took, and what the network calls it.
fn provider_id((id, outcome): &(MessageId, SendOutcome)) -> Option<(MessageId, &str)> {
    match outcome {
        SendOutcome::Accepted { provider_id } => Some((*id, provider_id)),
        _ => None,
    }
}

/// Messages that the network took.
fn accepted(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    messages: &[(MessageId, &str)],
) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    set_provider_ids(tx, messages)?;
    let ids: Vec<MessageId> = messages.iter().map(|(id, _)| *id).collect();
    finish(tx, channel, areas, &ids, MessageStatus::Sent, None)?;
    apply_early(tx, channel, areas, messages)?;
    if channel.status == ChannelStatus::Connecting {
        channels::set_status(tx, channel.id, ChannelStatus::Connected, None)?;
    }
    Ok(())
}

/// Notes what the network calls messages.
fn set_provider_ids(tx: &mut Tx, of: &[(MessageId, &str)]) -> Result<()> {
    Rows::of(of).big_int("id", |(id, _)| *id).text("provider_id", |(_, provider_id)| *provider_id).execute(
        tx,
        "UPDATE messages SET provider_message_id = accepted.provider_id FROM {accepted} WHERE messages.id = accepted.id",
    )?;
    Ok(())
}

fn refused(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    id: MessageId,
    refusal: &Refusal,
) -> Result<()> {
    let error = NewChannelError {
        code: refusal.code.as_str(),
        message: &refusal.message,
        provider_code: refusal.provider_code,
        about: Some(id),
    };
    note_error(tx, channel.id, error)?;
    let reason = Some(refusal.message.as_str());
    match refusal.code {
        RefusalCode::CredentialsInvalid => {
            channels::set_status(tx, channel.id, ChannelStatus::Disconnected, reason)?;
        }
        RefusalCode::AccountRestricted => {
            channels::set_status(tx, channel.id, ChannelStatus::Degraded, reason)?;
        }
        _ => {}
    }
    if let Some(attempts) = attempts_left(tx, id)?.filter(|_| refusal.is_retryable) {
        return try_again(tx, id, attempts, refusal.retry_after);
    }
    let error = MessageError {
        code: refusal.code,
        message: refusal.message.clone(),
        provider_code: refusal.provider_code,
        retryable: refusal.is_retryable,
    };
    fail(tx, channel, areas, id, error)
}

/// A message of which it is not known whether the network has it. It is sent again only where that was asked for.
fn unanswered(tx: &mut Tx, channel: &ChannelRow, areas: &OtherAreas, id: MessageId) -> Result<()> {
    match attempts_left(tx, id)? {
        Some(attempts) if may_come_twice(tx, id)? => try_again(tx, id, attempts, None),
        _ => finish(tx, channel, areas, &[id], MessageStatus::Unknown, None),
    }
}

/// How often a message was handed to the network, if it may be once more.
fn attempts_left(tx: &mut Tx, id: MessageId) -> Result<Option<i64>> {
    let attempts: Option<i64> =
        outbox::table.find(id).select(outbox::attempts).first(tx.connection()).optional()?;
    Ok(attempts.filter(|attempts| *attempts < MAX_ATTEMPTS))
}

/// Puts a message back into the outbox, for later: twice as late each time, with chance, so that not all come at once.
fn try_again(tx: &mut Tx, id: MessageId, attempts: i64, retry_after: Option<Duration>) -> Result<()> {
    let mut chance = [0_u8; 2];
    tx.random().fill(&mut chance);
    let asked = retry_after.map_or(0, |wait| i64::try_from(wait.as_secs()).unwrap_or(LONGEST_WAIT));
    let wait = (1_i64 << attempts.min(9)).max(asked).min(LONGEST_WAIT.max(asked));
    let jitter = i64::from(u16::from_le_bytes(chance)) * wait / i64::from(u16::MAX) / 4;
    let due = tx.now().plus_seconds(wait + jitter);
    let expires_at = outbox::table.find(id).select(outbox::expires_at);
    let expires_at: Timestamp = expires_at.get_result(tx.connection())?;
    let waits = diesel::update(messages::table.find(id).filter(messages::status.eq(MessageStatus::Sending)))
        .set((
            messages::status.eq(MessageStatus::Queued),
            messages::status_rank.eq(MessageStatus::Queued.rank()),
        ))
        .execute(tx.connection())?;
    let row = outbox::table.find(id);
    if waits == 0 {
        // A status has said meanwhile that the network has it.
        diesel::delete(row).execute(tx.connection())?;
        return Ok(());
    }
    diesel::update(row)
        // When it may no longer be sent, that is to be said.
        .set((outbox::due_at.eq(due.min(expires_at)), outbox::claimed_epoch.eq(None::<i64>)))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends a message that is not sent.
pub(super) fn fail(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    id: MessageId,
    error: MessageError,
) -> Result<()> {
    let is_expired = error.code == RefusalCode::Expired;
    let status = if is_expired { MessageStatus::Expired } else { MessageStatus::Failed };
    finish(tx, channel, areas, &[id], status, Some(error))
}

/// Takes messages out of the outbox with the status that they have from now on.
fn finish(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    ids: &[MessageId],
    status: MessageStatus,
    error: Option<MessageError>,
) -> Result<()> {
    let report = StatusReport { provider_id: String::new(), reference: None, status, error, at: tx.now() };
    let reports: Vec<(MessageId, &StatusReport)> = ids.iter().map(|id| (*id, &report)).collect();
    rise(tx, channel, areas, &reports)?;
    diesel::delete(outbox::table.filter(outbox::message_id.eq_any(ids))).execute(tx.connection())?;
    Ok(())
}

/// Messages that an earlier worker was handing to the network when it ended: whether the network has them is not known.
pub(super) fn forget_interrupted(tx: &mut Tx, areas: &OtherAreas, channel: &ChannelRow) -> Result<()> {
    let interrupted: Vec<MessageId> = outbox::table
        .filter(outbox::channel_id.eq(channel.id))
        .filter(outbox::claimed_epoch.lt(channel.lease_epoch))
        .order(outbox::message_id)
        .select(outbox::message_id)
        .load(tx.connection())?;
    for id in interrupted {
        let message = "The service ended while the message was being sent.";
        let error = NewChannelError { code: "unknown", message, about: Some(id), provider_code: None };
        note_error(tx, channel.id, error)?;
        unanswered(tx, channel, areas, id)?;
    }
    Ok(())
}
