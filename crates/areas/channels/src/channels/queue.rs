//! The messages of a channel, as far as its health shows them.

use model::{ChannelId, Result, Timestamp};
use store::Read;

/// The messages that wait to be sent over channels. `conversations` implements it.
pub trait MessageQueue: Send + Sync {
    /// Returns how the messages of a channel are doing, counting at most `most` that wait.
    fn state(&self, read: &mut Read, channel: ChannelId, most: i64) -> Result<QueueState>;
}

/// How the messages of a channel are doing.
#[derive(Debug, Clone, Copy)]
pub struct QueueState {
    /// How many messages wait to be sent.
    pub waiting: i64,
    /// When the oldest of them was written.
    pub oldest: Option<Timestamp>,
    /// How many of the last 1,000 messages may or may not have been sent.
    pub unknown: i64,
}
