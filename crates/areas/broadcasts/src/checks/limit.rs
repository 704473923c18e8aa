//! The network's limit of how many contacts a number may write to in 24 hours.

use crate::model::BroadcastRecipientState as State;
use crate::rows::row::BroadcastRow;
use crate::schema::broadcast_recipients;
use channels::ChannelRow;
use diesel::prelude::*;
use model::{Result, Timestamp};
use store::Read;

/// For how long the network counts a contact, in seconds.
const WINDOW_SECONDS: i64 = 24 * 3_600;
/// After so many seconds it is tried again where the end is not known.
const PATIENCE_SECONDS: i64 = 3_600;

/// When the number may write to another contact, as far as it was this broadcast that used the limit up.
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

/// When a broadcast that reached the limit goes on.
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
