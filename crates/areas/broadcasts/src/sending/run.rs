//! The job of broadcasts. It works in batches; each is a transaction that continues from the stored progress.
//!
//! A batch locks the row of the broadcast, so that two runners never do the same work. If a runner dies, the next one
//! continues from the stored progress.

use crate::checks::check::{self, Ready};
use crate::model::{BroadcastRecipientState as State, BroadcastStatus as Status};
use crate::recipients::withdraw;
use crate::rows::counts;
use crate::rows::events::publish;
use crate::rows::row::{find, locked};
use crate::schema::broadcast_recipients;
use crate::sending::prepare;
use crate::sending::progress::{
    Due, JOB, LOOK_SECONDS, Next, count_claimed, enqueue, look_again, pause, reason_of, resume, start,
};
use crate::sending::send;
use conversations::messages;
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::{BroadcastRecipientId, Code, MessageId, Result};
use sends::SendParts;
use store::{Db, Tx};

/// The most recipients to cancel in one transaction.
const CANCELLED_AT_ONCE: i64 = 5_000;

/// Builds the job.
pub(crate) fn job(parts: &SendParts) -> Job {
    let parts = parts.clone();
    Job::after(
        JOB,
        "a broadcast is sent, or its next messages are due",
        "prepares its recipients, and puts messages into the outbox as fast as the rate allows",
        move |job| run(job, parts.clone()),
    )
}

async fn run(job: JobContext, parts: SendParts) -> Result<(), JobError> {
    let due: Due = job.payload.parse().map_err(JobError::give_up)?;
    while piece(&job.db, &parts, due).await? == Next::Piece {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
    Ok(())
}

async fn piece(db: &Db, parts: &SendParts, due: Due) -> Result<Next> {
    let found = db.read(move |read| find(read, due.workspace, due.broadcast)).await;
    let row = match found {
        Err(error) if error.code() == Code::NotFound => return Ok(Next::Over),
        found => found?,
    };
    let parts = parts.clone();
    match row.status {
        Status::Scheduled => db.write(move |tx| begin(tx, &parts, due)).await,
        Status::Preparing => prepare::piece(db, parts, row).await,
        Status::Sending => db.write(move |tx| send::piece(tx, &parts, due)).await,
        Status::Paused => db.write(move |tx| wait(tx, &parts, due)).await,
        Status::Cancelling => db.write(move |tx| cancel(tx, due)).await,
        Status::Draft | Status::Completed | Status::Cancelled => Ok(Next::Over),
    }
}

/// Starts a scheduled broadcast when it is due.
fn begin(tx: &mut Tx, parts: &SendParts, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    let (now, cause) = (tx.now(), row.cause());
    let Some(starts_at) = row.starts_at.filter(|_| row.status == Status::Scheduled) else {
        return Ok(Next::Over);
    };
    if starts_at > now {
        enqueue(tx, &row, starts_at)?;
        return Ok(Next::Over);
    }
    if let Err(error) = check::startable(tx, parts, &row, true)
        && error.code() != Code::EmptyAudience
    {
        row.started_at = Some(now);
        pause(tx, &mut row, &cause, reason_of(error)?)?;
        return Ok(Next::Over);
    }
    row.status = Status::Preparing;
    start(tx, &mut row, &cause)?;
    Ok(Next::Piece)
}

/// Withdraws messages that came back to the outbox during a pause, and resumes the broadcast when it is due.
fn wait(tx: &mut Tx, parts: &SendParts, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    if row.status != Status::Paused {
        return Ok(Next::Piece);
    }
    let now = tx.now();
    if row.starts_at.is_none_or(|at| at > now) {
        withdraw::postpone(tx, &row)?;
        look_again(tx, &row)?;
        return Ok(Next::Over);
    }
    let obstacle = match Ready::of(tx, parts, &row) {
        Ok(ready) => ready.obstacle(),
        Err(error) => Some(reason_of(error)?),
    };
    let cause = row.cause();
    match obstacle {
        Some(reason) => pause(tx, &mut row, &cause, reason)?,
        None => resume(tx, &mut row, &cause)?,
    }
    Ok(Next::Piece)
}

/// Cancels the remaining recipients of a cancelled broadcast.
fn cancel(tx: &mut Tx, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    if row.status != Status::Cancelling {
        return Ok(Next::Over);
    }
    let now = tx.now();
    withdraw::cancel(tx, &row)?;
    let pending: Vec<(BroadcastRecipientId, Option<MessageId>)> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::state.eq(State::Pending))
        .limit(CANCELLED_AT_ONCE)
        .select((broadcast_recipients::id, broadcast_recipients::message_id))
        .load(tx.connection())?;
    if !pending.is_empty() {
        let (ids, messages): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
        diesel::update(broadcast_recipients::table.filter(broadcast_recipients::id.eq_any(ids)))
            .set((broadcast_recipients::state.eq(State::Cancelled), broadcast_recipients::updated_at.eq(now)))
            .execute(tx.connection())?;
        messages::cancel(tx, &messages.into_iter().flatten().collect::<Vec<_>>())?;
        counts::compact(tx, row.id)?;
        return Ok(Next::Piece);
    }
    // A message that is being sent could still come back to the outbox.
    if count_claimed(tx, row.id)? > 0 {
        enqueue(tx, &row, now.plus_seconds(LOOK_SECONDS))?;
        return Ok(Next::Over);
    }
    (row.status, row.completed_at) = (Status::Cancelled, Some(now));
    row.store(tx)?;
    publish(tx, &row.cause(), &row)?;
    Ok(Next::Over)
}
