//! The channels that have work.

use crate::schema::{
    conversations, held_message_events as held, message_attachments as attachments, message_outbox as outbox,
    messages,
};
use channels::callbacks;
use diesel::prelude::*;
use model::{ChannelId, Result};
use std::collections::BTreeSet;
use store::Read;

/// The most channels with work that are looked at together.
const MOST: i64 = 1_000;

/// The channels that have something to do now.
pub(super) fn with_work(read: &mut Read) -> Result<BTreeSet<ChannelId>> {
    let now = read.now();
    let mut all: BTreeSet<ChannelId> = BTreeSet::new();
    all.extend(callbacks::channels_with_pending(read, MOST)?);
    let unsent = outbox::table.filter(outbox::due_at.le(now));
    let found: Vec<ChannelId> =
        unsent.select(outbox::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let due = conversations::table.filter(conversations::reply_due_at.le(now));
    let found: Vec<ChannelId> =
        due.select(conversations::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let answering = conversations::table.filter(conversations::reply_run_id.is_not_null());
    let found: Vec<ChannelId> =
        answering.select(conversations::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let waiting = held::table.filter(held::due_at.le(now));
    let found: Vec<ChannelId> =
        waiting.select(held::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let unread = attachments::table
        .inner_join(messages::table.on(messages::id.eq(attachments::message_id)))
        .filter(attachments::next_attempt_at.le(now));
    let found: Vec<ChannelId> =
        unread.select(messages::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    Ok(all)
}

/// Whether a channel has something to do now.
pub(super) fn has_work(read: &mut Read, channel: ChannelId) -> Result<bool> {
    Ok(with_work(read)?.contains(&channel))
}
