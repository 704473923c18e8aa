//! The messages that wait to be sent, for the health of their channel.

use crate::messages::MessageStatus;
use crate::schema::{message_outbox, messages};
use channels::{MessageQueue, QueueState};
use diesel::prelude::*;
use model::{ChannelId, MessageId, Result, Timestamp};
use store::Read;

/// The messages in the outbox.
pub struct Outbox;

impl MessageQueue for Outbox {
    fn state(&self, read: &mut Read, channel: ChannelId, most: i64) -> Result<QueueState> {
        let waiting: Vec<(MessageId, Timestamp)> = message_outbox::table
            .filter(message_outbox::channel_id.eq(channel))
            .inner_join(messages::table.on(messages::id.eq(message_outbox::message_id)))
            .order(message_outbox::message_id)
            .limit(most)
            .select((message_outbox::message_id, messages::created_at))
            .load(read.connection())?;
        let statuses: Vec<Option<MessageStatus>> = messages::table
            .filter(messages::channel_id.eq(channel))
            .order(messages::id.desc())
            .limit(1_000)
            .select(messages::status)
            .load(read.connection())?;
        let unknown = statuses.iter().filter(|status| **status == Some(MessageStatus::Unknown)).count();
        Ok(QueueState {
            waiting: i64::try_from(waiting.len()).unwrap_or(most),
            oldest: waiting.first().map(|(_, at)| *at),
            unknown: i64::try_from(unknown).unwrap_or_default(),
        })
    }
}
