//! The steps between the states of a broadcast that is locked.

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

/// The job that prepares and sends.
pub(crate) const JOB: &str = "broadcasts.run";
/// How often it is looked whether the last messages were sent.
pub(crate) const LOOK_SECONDS: i64 = 2;

/// A broadcast that is due.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Due {
    pub(crate) workspace: WorkspaceId,
    pub(crate) broadcast: BroadcastId,
}

/// How a broadcast goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// With another piece, at once.
    Piece,
    /// Not by this run: it is over, or another run is asked for.
    Over,
}

/// Asks for a run at a moment. Runs for the same second are one, so that however many are asked for they do not add up.
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

/// How many recipients' messages are in the outbox or being sent.
pub(crate) fn count_claimed(read: &mut Read, id: BroadcastId) -> Result<i64> {
    Ok(broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(id))
        .filter(broadcast_recipients::state.eq(State::Claimed))
        .select(count_star())
        .get_result(read.connection())?)
}

/// What keeps a broadcast from being sent, where waiting may help.
///
/// # Errors
/// The error, where it is none of the broadcast's.
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

/// Pauses a broadcast. Messages that are not being handed to the network yet wait until it goes on.
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

/// Asks for the next run of a paused broadcast: while messages are being sent that could come back, and when it goes on by
/// itself.
pub(crate) fn look_again(tx: &mut Tx, row: &BroadcastRow) -> Result<()> {
    if count_claimed(tx, row.id)? > 0 {
        let soon = tx.now().plus_seconds(LOOK_SECONDS);
        enqueue(tx, row, soon)?;
    }
    row.starts_at.map_or(Ok(()), |at| enqueue(tx, row, at))
}

/// Lets a paused broadcast go on. Those whom only the network's limit of contacts per day kept from being sent the message
/// are sent it now.
pub(crate) fn resume(tx: &mut Tx, row: &mut BroadcastRow, cause: &Cause) -> Result<()> {
    if row.pause_reason == Some(Reason::MessagingLimit) {
        retry::beyond_the_limit(tx, row)?;
    }
    row.status = if row.prepared_at.is_some() { Status::Sending } else { Status::Preparing };
    start(tx, row, cause)
}

/// Stores a broadcast that goes on from now or from `starts_at`, and asks for its next run.
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
