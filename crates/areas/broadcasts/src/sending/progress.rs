//! Transitions between the states of a locked broadcast.

use crate::checks::limit;
use crate::model::{
    BroadcastPauseReason as Reason, BroadcastRecipientState as State, BroadcastStatus as Status,
};
use crate::recipients::retry;
use crate::recipients::withdraw;
use crate::rows::events::publish;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients;
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{BroadcastId, Cause, Chain, Code, Error, JsonText, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::{Read, Tx};

/// The job that prepares and sends broadcasts.
pub(crate) const JOB: &str = "broadcasts.run";
/// How often it is looked whether the last messages were sent.
pub(crate) const LOOK_SECONDS: i64 = 2;

/// The payload of the job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) workspace: WorkspaceId,
    pub(crate) broadcast: BroadcastId,
}

/// The next step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continue with another batch.
    Piece,
    /// End this run. The broadcast is over, or another run is enqueued.
    Over,
}

/// Enqueues a run at a time. Runs in the same second share a unique name, so that repeated requests do not add up.
pub(crate) fn enqueue(tx: &mut Tx, row: &BroadcastRow, at: Timestamp) -> Result<()> {
    let due = Due { workspace: row.workspace_id, broadcast: row.id };
    let now = tx.now();
    let (at, when) = if at <= now {
        (now, "now".to_owned())
    } else {
        let second = at.plus_seconds(1).seconds();
        let at = if at.millis() % 1_000 == 0 { at } else { Timestamp::from_millis(second * 1_000) };
        (at, at.seconds().to_string())
    };
    tx.enqueue(row.workspace_id, JOB, Some(&format!("broadcast:{}:{when}", row.id)), &due, at)
}

/// Returns the number of recipients whose messages are in the outbox or being sent.
pub(crate) fn count_claimed(read: &mut Read, id: BroadcastId) -> Result<i64> {
    Ok(broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(id))
        .filter(broadcast_recipients::state.eq(State::Claimed))
        .select(count_star())
        .get_result(read.connection())?)
}

/// Returns the pause reason for an error that waiting may resolve.
///
/// # Errors
/// The error itself, if it is not caused by the broadcast.
pub(crate) fn reason_of(error: Error) -> Result<Reason> {
    match error.code() {
        Code::ChannelDisconnected => Ok(Reason::ChannelDisconnected),
        Code::TemplateNotApproved | Code::TemplateNotFound | Code::TemplateParamsMismatch => {
            Ok(Reason::TemplateNotApproved)
        }
        Code::ValidationError | Code::NotFound => match error.param_name() {
            Some(param) if param.starts_with("template.media") => Ok(Reason::MediaInvalid),
            Some("channel_id") => Ok(Reason::ChannelDisconnected),
            _ => Ok(Reason::AudienceInvalid),
        },
        _ => Err(error),
    }
}

/// Pauses a broadcast. Messages that have not been handed to the network yet wait until it resumes.
pub(crate) fn pause(tx: &mut Tx, row: &mut BroadcastRow, cause: &Cause, reason: Reason) -> Result<()> {
    (row.status, row.pause_reason) = (Status::Paused, Some(reason));
    row.starts_at = match reason {
        Reason::MessagingLimit => Some(limit::resumes_at(tx, row)?),
        _ => None,
    };
    withdraw::postpone(tx, row)?;
    row.store(tx)?;
    look_again(tx, row)?;
    publish(tx, cause, row).map(drop)
}

/// Enqueues the next run of a paused broadcast: soon, while messages that are being sent could come back, and at the
/// time at which it resumes automatically.
pub(crate) fn look_again(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    if count_claimed(tx, row.id)? > 0 {
        let soon = tx.now().plus_seconds(LOOK_SECONDS);
        enqueue(tx, row, soon)?;
    }
    row.starts_at.map_or(Ok(()), |at| enqueue(tx, row, at))
}

/// Resumes a paused broadcast. Recipients that the network refused because of its daily limit of contacts are
/// retried.
pub(crate) fn resume(tx: &mut Tx, row: &mut BroadcastRow, cause: &Cause) -> Result<()> {
    if row.pause_reason == Some(Reason::MessagingLimit) {
        retry::beyond_the_limit(tx, row)?;
    }
    row.status = if row.prepared_at.is_some() { Status::Sending } else { Status::Preparing };
    start(tx, row, cause)
}

/// Stores a broadcast that starts now or at `starts_at`, and enqueues its next run.
pub(crate) fn start(tx: &mut Tx, row: &mut BroadcastRow, cause: &Cause) -> Result<()> {
    let now = tx.now();
    row.pause_reason = None;
    row.judged_from = Some(now);
    if row.status != Status::Scheduled {
        row.starts_at = None;
        row.started_at = row.started_at.or(Some(now));
    }
    row.store(tx)?;
    enqueue(tx, row, row.starts_at.unwrap_or(now))?;
    let event = publish(tx, cause, row)?;
    if let Some(event) = event.filter(|_| cause.request.is_some()) {
        row.chain = Some(JsonText::of(&Chain::after(&event, cause.chain.as_ref())));
        row.store_progress(tx)?;
    }
    Ok(())
}
