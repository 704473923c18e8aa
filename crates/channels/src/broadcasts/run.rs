//! What broadcasts do in the background: one piece after another, each a transaction that knows how far the last one came.
//!
//! Whoever runs a piece holds the broadcast's row, so that two runners do nothing twice, and a runner that dies loses
//! nothing: the next one goes on from what is stored.

use super::check;
use super::events::publish;
use super::model::{BroadcastPauseReason, BroadcastRecipientState as State, BroadcastStatus as Status};
use super::prepare;
use super::row::{BroadcastRow, find, locked};
use super::send;
use crate::schema::broadcast_recipients;
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{BroadcastId, Cause, Code, Error, Result, Timestamp, WorkspaceId};
use operation::ports::People;
use serde::{Deserialize, Serialize};
use store::{Db, Tx};

const JOB: &str = "broadcasts.run";
/// The most recipients that become cancelled in one transaction.
const CANCELLED_AT_ONCE: i64 = 5_000;

/// A broadcast that is due.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Due {
    workspace: WorkspaceId,
    broadcast: BroadcastId,
}

/// How a broadcast goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// With another piece, at once.
    Piece,
    /// Not by this run: it is over, or another run is asked for.
    Over,
}

/// Asks for a run at a moment. Runs for the same second are one, so that however many are asked for they do not add up.
///
/// # Errors
/// When the database fails.
pub(super) fn enqueue(tx: &mut Tx, row: &BroadcastRow, at: Timestamp) -> Result<()> {
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

/// The job of broadcasts.
pub(crate) fn job(people: &People) -> Job {
    let people = people.clone();
    Job::after(
        JOB,
        "a broadcast is sent, or its next messages are due",
        "prepares its recipients, and puts messages into the outbox as fast as the rate allows",
        move |job| run(job, people.clone()),
    )
}

async fn run(job: JobContext, people: People) -> Result<(), JobError> {
    let due: Due = job.payload.parse().map_err(JobError::give_up)?;
    while piece(&job.db, &people, due).await? == Next::Piece {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
    Ok(())
}

async fn piece(db: &Db, people: &People, due: Due) -> Result<Next> {
    let found = db.read(move |read| find(read, due.workspace, due.broadcast)).await;
    let row = match found {
        Err(error) if error.code() == Code::NotFound => return Ok(Next::Over),
        found => found?,
    };
    let people = people.clone();
    match row.status {
        Status::Scheduled => db.write(move |tx| begin(tx, &people, due)).await,
        Status::Preparing => prepare::piece(db, people, row).await,
        Status::Sending => db.write(move |tx| send::piece(tx, &people, due.workspace, due.broadcast)).await,
        Status::Cancelling => db.write(move |tx| cancel(tx, due)).await,
        Status::Draft | Status::Paused | Status::Completed | Status::Cancelled => Ok(Next::Over),
    }
}

/// Starts a scheduled broadcast when its time has come.
fn begin(tx: &mut Tx, people: &People, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    let now = tx.now();
    let Some(starts_at) = row.starts_at.filter(|_| row.status == Status::Scheduled) else {
        return Ok(Next::Over);
    };
    if starts_at > now {
        enqueue(tx, &row, starts_at)?;
        return Ok(Next::Over);
    }
    row.started_at = Some(now);
    if let Err(error) = check::startable(tx, people, &row, true)
        && error.code() != Code::EmptyAudience
    {
        pause(tx, &mut row, reason_of(error)?)?;
        return Ok(Next::Over);
    }
    (row.status, row.starts_at, row.judged_from) = (Status::Preparing, None, Some(now));
    row.store(tx)?;
    publish(tx, &Cause::system("broadcasts"), &row)?;
    Ok(Next::Piece)
}

/// What keeps a broadcast from being sent, where waiting may help.
///
/// # Errors
/// The error, where it is none of the broadcast's.
pub(super) fn reason_of(error: Error) -> Result<BroadcastPauseReason> {
    match error.code() {
        Code::ChannelDisconnected => Ok(BroadcastPauseReason::ChannelDisconnected),
        Code::TemplateNotApproved | Code::TemplateNotFound | Code::TemplateParamsMismatch => {
            Ok(BroadcastPauseReason::TemplateNotApproved)
        }
        Code::ValidationError | Code::NotFound => Ok(BroadcastPauseReason::AudienceInvalid),
        _ => Err(error),
    }
}

/// Pauses a locked broadcast.
///
/// # Errors
/// When the database fails.
pub(super) fn pause(tx: &mut Tx, row: &mut BroadcastRow, reason: BroadcastPauseReason) -> Result<()> {
    (row.status, row.pause_reason) = (Status::Paused, Some(reason));
    row.store(tx)?;
    publish(tx, &Cause::system("broadcasts"), row)
}

/// Makes pending recipients of a cancelled broadcast cancelled.
fn cancel(tx: &mut Tx, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    if row.status != Status::Cancelling {
        return Ok(Next::Over);
    }
    let now = tx.now();
    let pending: Vec<model::BroadcastRecipientId> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::state.eq(State::Pending))
        .limit(CANCELLED_AT_ONCE)
        .select(broadcast_recipients::id)
        .load(tx.connection())?;
    if !pending.is_empty() {
        diesel::update(broadcast_recipients::table.filter(broadcast_recipients::id.eq_any(pending)))
            .set((broadcast_recipients::state.eq(State::Cancelled), broadcast_recipients::updated_at.eq(now)))
            .execute(tx.connection())?;
        return Ok(Next::Piece);
    }
    (row.status, row.completed_at) = (Status::Cancelled, Some(now));
    row.store(tx)?;
    publish(tx, &Cause::system("broadcasts"), &row)?;
    Ok(Next::Over)
}
