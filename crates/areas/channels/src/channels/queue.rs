//! The state of a channel's outgoing messages, for its health.

use model::{ChannelId, Result, Timestamp};
use store::Read;

/// The outgoing messages of channels. The crate `conversations` implements this.
pub trait MessageQueue: Send + Sync {
    /// Returns the state of a channel's messages. Counts at most `most` waiting messages.
    fn state(&self, read: &mut Read, channel: ChannelId, most: i64) -> Result<QueueState>;
}

/// The state of a channel's outgoing messages.
#[derive(Debug, Clone, Copy)]
pub struct QueueState {
    /// The number of messages that wait to be sent.
    pub waiting: i64,
    /// When the oldest waiting message was written.
    pub oldest: Option<Timestamp>,
    /// The number of messages among the last 1,000 whose send had an unknown outcome.
    pub unknown: i64,
}
