//! The job that deletes early statuses and changes that are no longer needed.

use crate::schema::{early_statuses, identity_changes, message_changes};
use diesel::prelude::*;
use jobs::{Job, JobContext, JobError};
use model::Result;
use std::time::Duration;
use store::Tx;

/// The job that deletes.
const PURGE: &str = "messages.purge";
/// The most rows that are deleted in one transaction.
const PIECE: i64 = 1_000;
/// For how many days a status waits for its message.
const STATUS_DAYS: i64 = 1;
/// For how many days changes of messages and identities are known. Networks repeat callbacks for a week.
const CHANGE_DAYS: i64 = 14;

/// The job.
pub(crate) fn job() -> Job {
    Job::every(
        PURGE,
        Duration::from_secs(3_600),
        "deletes old changes of messages, and statuses of messages that nobody knows",
        purge,
    )
}

async fn purge(job: JobContext) -> Result<(), JobError> {
    while job.db.write(purge_piece).await? > 0 {}
    Ok(())
}

/// Deletes some early statuses and changes, and returns how many.
fn purge_piece(tx: &mut Tx) -> Result<usize> {
    let before = |days: i64| tx.now().plus_seconds(-days * 86_400);
    let (statuses, changes) = (before(STATUS_DAYS), before(CHANGE_DAYS));
    let lost: Vec<i64> = early_statuses::table
        .filter(early_statuses::created_at.lt(statuses))
        .limit(PIECE)
        .select(early_statuses::id)
        .load(tx.connection())?;
    let lost = diesel::delete(early_statuses::table.filter(early_statuses::id.eq_any(lost)))
        .execute(tx.connection())?;
    let known: Vec<i64> = message_changes::table
        .filter(message_changes::created_at.lt(changes))
        .limit(PIECE)
        .select(message_changes::id)
        .load(tx.connection())?;
    let known = diesel::delete(message_changes::table.filter(message_changes::id.eq_any(known)))
        .execute(tx.connection())?;
    let moved: Vec<i64> = identity_changes::table
        .filter(identity_changes::created_at.lt(changes))
        .limit(PIECE)
        .select(identity_changes::id)
        .load(tx.connection())?;
    let moved = diesel::delete(identity_changes::table.filter(identity_changes::id.eq_any(moved)))
        .execute(tx.connection())?;
    Ok(lost + known + moved)
}
