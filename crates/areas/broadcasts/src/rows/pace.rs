//! The rate at which broadcasts are sent.

use crate::rows::row::BroadcastRow;
use channels::ChannelRow;
use model::Timestamp;

/// The share of a channel's rate that a broadcast may use. The rest is reserved for replies to people.
const SHARE: f64 = 0.8;
/// The number of messages that can wait in the outbox, unless two seconds of sending are more.
const LEAST_WAITING: i64 = 20;
/// The assumed rate of a channel without a limit, such as a simulated one. It is more than such a channel can send.
const UNLIMITED: f64 = 5_000.0;

/// Returns the messages per second that a broadcast may send.
pub(crate) fn messages_per_second(row: &BroadcastRow, channel: &ChannelRow) -> f64 {
    let number = |value: i64| f64::from(i32::try_from(value.max(1)).unwrap_or(i32::MAX));
    let channel = match channel.messages_per_second {
        0 => UNLIMITED,
        limit => number(limit) * SHARE,
    };
    row.rate_per_minute.map_or(channel, |rate| channel.min(number(rate) / 60.0))
}

/// The rate limiter of a broadcast.
pub(crate) struct Pace {
    per_second: f64,
    /// The time at which the next message may be written.
    pub(crate) next: Timestamp,
    /// The number of messages that may be written now.
    room: i64,
    is_full: bool,
}

impl Pace {
    /// Creates the limiter. `waiting` is the number of its messages that wait to be sent.
    #[expect(clippy::cast_possible_truncation, reason = "messages of two seconds")]
    pub(crate) fn new(row: &BroadcastRow, channel: &ChannelRow, waiting: i64, now: Timestamp) -> Self {
        let per_second = messages_per_second(row, channel);
        // Unused capacity older than a second is dropped, so that at most the messages of one second are sent at
        // once.
        let unused = (1_000.0 - 1_000.0 / per_second).max(0.0).ceil() as i64;
        let earliest = Timestamp::from_millis(now.millis() - unused);
        let next = row.next_send_at.unwrap_or(earliest).max(earliest);
        let passed = f64::from(i32::try_from(now.millis() - next.millis()).unwrap_or(i32::MAX)) / 1_000.0;
        let allowed = if next > now { 0 } else { (passed * per_second).floor() as i64 + 1 };
        let most_waiting = LEAST_WAITING.max((2.0 * per_second).ceil() as i64);
        let free = (most_waiting - waiting).max(0);
        Self { per_second, next, room: allowed.min(free), is_full: free == 0 }
    }

    /// Returns the time until which nothing may be written.
    pub(crate) fn wait(&self, now: Timestamp) -> Option<Timestamp> {
        (self.room == 0).then(|| if self.is_full { now.plus_seconds(1) } else { self.next })
    }

    /// Returns the number of messages that may be written now.
    pub(crate) fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(0)
    }

    /// Counts written messages.
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a piece")]
    pub(crate) fn take(&mut self, sent: usize) {
        let sent = f64::from(u32::try_from(sent).unwrap_or(u32::MAX));
        let millis = (1_000.0 * sent / self.per_second).ceil() as i64;
        self.next = Timestamp::from_millis(self.next.millis() + millis);
    }
}
