//! How many recipients a broadcast has, counted from their rows.

use super::model::{BroadcastCounts, BroadcastRecipientState as State, BroadcastStatus};
use super::row::BroadcastRow;
use super::send::messages_per_second;
use crate::channels;
use crate::schema::broadcast_recipients;
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{BroadcastId, Result, Timestamp};
use std::collections::HashMap;
use store::Read;

/// The counts of some broadcasts, in one pass over an index; none of those without recipients.
///
/// # Errors
/// When the database fails.
pub(super) fn of(read: &mut Read, ids: &[BroadcastId]) -> Result<HashMap<BroadcastId, BroadcastCounts>> {
    let mut all: HashMap<BroadcastId, BroadcastCounts> = HashMap::new();
    let states: Vec<(BroadcastId, State, i64)> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq_any(ids))
        .group_by((broadcast_recipients::broadcast_id, broadcast_recipients::state))
        .select((broadcast_recipients::broadcast_id, broadcast_recipients::state, count_star()))
        .load(read.connection())?;
    for (id, state, count) in states {
        let counts = all.entry(id).or_default();
        counts.total += count;
        *counts.of_state(state) += count;
    }
    let replied: Vec<(BroadcastId, i64)> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq_any(ids))
        .filter(broadcast_recipients::replied_at.is_not_null())
        .group_by(broadcast_recipients::broadcast_id)
        .select((broadcast_recipients::broadcast_id, count_star()))
        .load(read.connection())?;
    for (id, count) in replied {
        all.entry(id).or_default().replied = count;
    }
    Ok(all)
}

impl BroadcastCounts {
    fn of_state(&mut self, state: State) -> &mut i64 {
        match state {
            State::Pending => &mut self.pending,
            State::Claimed => &mut self.sending,
            State::Sent => &mut self.sent,
            State::Delivered => &mut self.delivered,
            State::Read => &mut self.read,
            State::Failed => &mut self.failed,
            State::Skipped => &mut self.skipped,
            State::Unknown => &mut self.unknown,
            State::Cancelled => &mut self.cancelled,
        }
    }
}

/// When a broadcast that is being sent is likely to be completed.
///
/// # Errors
/// When the database fails.
pub(super) fn eta(
    read: &mut Read,
    row: &BroadcastRow,
    counts: &BroadcastCounts,
) -> Result<Option<Timestamp>> {
    let Some(channel) = row.channel_id.filter(|_| row.status == BroadcastStatus::Sending) else {
        return Ok(None);
    };
    let rate = messages_per_second(row, &channels::live(read, row.workspace_id, channel)?);
    let left = u32::try_from(counts.pending + counts.sending).unwrap_or(u32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "a number of seconds")]
    let seconds = (f64::from(left) / rate).ceil() as i64;
    Ok(Some(read.now().plus_seconds(seconds)))
}
