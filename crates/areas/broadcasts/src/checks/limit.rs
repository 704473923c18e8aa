//! The network's limit on the number of contacts to which a number may write in 24 hours.

use crate::model::BroadcastRecipientState as State;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients;
use channels::ChannelRow;
use diesel::prelude::*;
use model::{Result, Timestamp};
use store::Read;

/// The time for which the network counts a contact, in seconds.
const WINDOW_SECONDS: i64 = 24 * 3_600;
/// The delay before the next attempt if the end of the limit is unknown, in seconds.
const PATIENCE_SECONDS: i64 = 3_600;

/// Returns the time at which the number may write to another contact, assuming that this broadcast alone has used up
/// the limit.
pub(crate) fn frees_at(
    read: &mut Read,
    row: &BroadcastRow,
    channel: &ChannelRow,
) -> Result<Option<Timestamp>> {
    let Some(limit) = channel.messaging_limit.filter(|limit| *limit > 0) else { return Ok(None) };
    let first_counted: Option<Option<Timestamp>> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::settled_at.is_not_null())
        .filter(broadcast_recipients::state.eq_any([State::Sent, State::Delivered, State::Read]))
        .order(broadcast_recipients::settled_at.desc())
        .offset(limit - 1)
        .select(broadcast_recipients::sent_at)
        .first(read.connection())
        .optional()?;
    Ok(first_counted.flatten().map(|at| at.plus_seconds(WINDOW_SECONDS)))
}

/// Returns the time at which a broadcast that reached the limit continues.
pub(crate) fn resumes_at(read: &mut Read, row: &BroadcastRow) -> Result<Timestamp> {
    let now = read.now();
    let frees_at = match row.channel_id {
        Some(channel) => {
            let channel = channels::live(read, row.workspace_id, channel)?;
            frees_at(read, row, &channel)?
        }
        None => None,
    };
    Ok(frees_at.filter(|at| *at > now).unwrap_or_else(|| now.plus_seconds(PATIENCE_SECONDS)))
}
