//! The queue of pending callbacks.

use super::log::pending;
use crate::schema::channel_callbacks as table;
use diesel::prelude::*;
use model::{ChannelId, Result};
use store::{Cached, Read, Tx};

/// The maximum number of attempts to apply a callback.
const MAX_ATTEMPTS: i64 = 8;

/// Returns the next callbacks of a channel, with their bodies and the number of attempts so far.
pub fn next(read: &mut Read, channel: ChannelId, most: i64) -> Result<Vec<(i64, Vec<u8>, i64)>> {
    let query = pending(read.now())
        .filter(table::channel_id.eq(channel))
        .order(table::id)
        .limit(most)
        .select((table::id, table::body, table::attempts));
    Ok(Cached(query).load(read.connection())?)
}

/// Returns the channels with due callbacks.
pub fn channels_with_pending(read: &mut Read, most: i64) -> Result<Vec<ChannelId>> {
    let due = pending(read.now()).select(table::channel_id).distinct().limit(most);
    Ok(due.load(read.connection())?)
}

/// Marks callbacks as applied.
pub fn mark_done(tx: &mut Tx, ids: Vec<i64>) -> Result<()> {
    diesel::update(table::table.filter(table::id.eq_any(ids)))
        .set(table::status.eq("done"))
        .execute(tx.connection())?;
    Ok(())
}

/// Retries a callback later, or marks it as failed after the last attempt.
pub fn put_off(tx: &mut Tx, id: i64, attempts: i64, error: &str) -> Result<()> {
    let is_over = attempts >= MAX_ATTEMPTS;
    // The delay doubles with each attempt.
    let due = tx.now().plus_seconds(1 << attempts.min(10));
    diesel::update(table::table.find(id))
        .set((
            table::attempts.eq(attempts),
            table::due_at.eq(due),
            table::last_error.eq(error),
            table::status.eq(if is_over { "failed" } else { "pending" }),
        ))
        .execute(tx.connection())?;
    Ok(())
}
