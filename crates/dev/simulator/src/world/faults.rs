//! Faults of the network.

use serde::{Deserialize, Serialize};

/// The faults, with their frequencies. A share is a fraction: 0.05 means one of twenty. The seed decides which
/// messages are affected, so the same sequence of requests meets the same faults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Share of messages and statuses delivered twice.
    pub duplicate: f64,
    /// Share delivered after a later one.
    pub reorder: f64,
    /// Share that wait to be delivered in one callback with the next.
    pub batch: f64,
    /// Share delivered `delay_ms` later.
    pub delay: f64,
    /// The delay, by the simulator's clock.
    pub delay_ms: u64,
    /// Share not delivered at first, but `redeliver_after_ms` later.
    pub drop: f64,
    /// The delay, by the simulator's clock.
    pub redeliver_after_ms: u64,
    /// Share delivered with a wrong signature first, and then again with the right one.
    pub bad_signature: f64,
    /// Share of sends whose first status is delivered before the response.
    pub early_status: f64,
    /// Share of messages without the status `delivered`.
    pub skip_delivered: f64,
    /// Share of messages that fail after `sent`.
    pub fail_after_sent: f64,
    /// The network's error number of that failure.
    pub failure_code: i64,
    /// Share of failed messages that are `delivered` afterwards.
    pub deliver_after_failed: f64,
    /// Accept messages outside the window or to unreachable users, and report them by the status `failed`, as the
    /// network sometimes does.
    pub late_refusals: bool,
    /// Share of sends refused with 429.
    pub rate_limited: f64,
    /// The value of `Retry-After` in such a response.
    pub retry_after_seconds: u64,
    /// Share of sends refused with 500 and a body of the network.
    pub server_error: f64,
    /// Share of sends not accepted and answered with the 502 of a gateway.
    pub gateway_error: f64,
    /// Share of sends neither accepted nor answered.
    pub timeout_before: f64,
    /// Share of sends accepted but not answered.
    pub timeout_after: f64,
    /// How long an unanswered send is kept open, in real time.
    pub silence_ms: u64,
    /// Faults of files.
    pub media: MediaFaults,
    /// The duration of a transcription, by the simulator's clock.
    pub transcription_delay_ms: u64,
    /// The number of next transcriptions that fail with 500.
    pub transcription_failures: u32,
}

/// The faults of files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaFaults {
    /// The number of next downloads that fail with 404.
    pub not_found: u32,
    /// A wrong MIME type to report.
    pub wrong_mime: Option<String>,
    /// The delay before the second half of a file, in real time.
    pub slow_ms: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            duplicate: 0.0,
            reorder: 0.0,
            batch: 0.0,
            delay: 0.0,
            delay_ms: 2_000,
            drop: 0.0,
            redeliver_after_ms: 5_000,
            bad_signature: 0.0,
            early_status: 0.0,
            skip_delivered: 0.0,
            fail_after_sent: 0.0,
            failure_code: 131_026,
            deliver_after_failed: 0.0,
            late_refusals: false,
            rate_limited: 0.0,
            retry_after_seconds: 1,
            server_error: 0.0,
            gateway_error: 0.0,
            timeout_before: 0.0,
            timeout_after: 0.0,
            silence_ms: 120_000,
            media: MediaFaults::default(),
            transcription_delay_ms: 0,
            transcription_failures: 0,
        }
    }
}

/// The fault of one send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum SendFault {
    /// No fault.
    None,
    /// 429 with `Retry-After`.
    RateLimited,
    /// 500 with the network's own body.
    ServerError,
    /// 502 of a gateway; not accepted.
    GatewayError,
    /// Neither accepted nor answered.
    TimeoutBefore,
    /// Accepted, not answered.
    TimeoutAfter,
    /// Accepted, and answered with an unreadable body.
    GarbledAfter,
    /// Refused with this error number of the network.
    Refuse {
        /// The number, such as 131048.
        code: i64,
    },
}

/// A reproducible random generator (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns whether an event with this share happens. Draws nothing for a share of 0.
    pub(crate) fn hits(&mut self, share: f64) -> bool {
        share > 0.0 && (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= share
    }
}

pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Faults {
    /// Returns the fault of the next send.
    pub(crate) fn of_send(&self, dice: &mut Dice) -> SendFault {
        for (share, fault) in [
            (self.rate_limited, SendFault::RateLimited),
            (self.server_error, SendFault::ServerError),
            (self.gateway_error, SendFault::GatewayError),
            (self.timeout_before, SendFault::TimeoutBefore),
            (self.timeout_after, SendFault::TimeoutAfter),
        ] {
            if dice.hits(share) {
                return fault;
            }
        }
        SendFault::None
    }
}
