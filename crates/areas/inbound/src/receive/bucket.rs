//! Rate limit of an inbound webhook: so many requests per minute, and a burst at once.
//!
//! A bucket is one number, the time at which it would be full again (the generic cell rate algorithm).

use crate::rows::RateLimit;
use model::Timestamp;
use std::sync::atomic::{AtomicI64, Ordering};

/// What a webhook's requests are counted in. It outlives changes of the webhook.
#[derive(Debug, Default)]
pub(crate) struct Bucket(AtomicI64);

const MINUTE_MICROS: i64 = 60_000_000;

impl Bucket {
    /// Counts a request.
    ///
    /// # Errors
    /// After how many seconds there is room, where there is none now.
    pub(crate) fn take(&self, limit: RateLimit, now: Timestamp) -> Result<(), i64> {
        let now = now.millis().saturating_mul(1000);
        let step = MINUTE_MICROS / limit.per_minute.max(1);
        let slack = step.saturating_mul(limit.burst().max(1) - 1);
        let taken = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |full_at| {
            // Beyond what it can hold it is of a clock that was set back since, or of a larger limit.
            let full_at = if full_at > now + slack + step { now } else { full_at.max(now) };
            (full_at - now <= slack).then_some(full_at + step)
        });
        taken.map(drop).map_err(|full_at| ((full_at - now - slack + 999_999) / 1_000_000).max(1))
    }

    /// Whether it is full, so that a new one would be the same.
    pub(crate) fn is_full(&self, now: Timestamp) -> bool {
        self.0.load(Ordering::Acquire) <= now.millis().saturating_mul(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let bucket = Bucket::default();
        let limit = RateLimit { per_minute: 60, burst: Some(3) };
        let at = |ms: i64| Timestamp::from_millis(1_800_000_000_000 + ms);
        for _ in 0..3 {
            assert_eq!(bucket.take(limit, at(0)), Ok(()));
        }
        assert_eq!(bucket.take(limit, at(0)), Err(1));
        assert_eq!(bucket.take(limit, at(999)), Err(1));
        assert_eq!(bucket.take(limit, at(1000)), Ok(()));
        assert_eq!(bucket.take(limit, at(1000)), Err(1));
        assert!(!bucket.is_full(at(3900)) && bucket.is_full(at(4000)));
        assert_eq!((0..9).filter(|_| bucket.take(limit, at(600_000)).is_ok()).count(), 3);
    }

    #[test]
    fn a_slow_rate_says_how_long_to_wait() {
        let bucket = Bucket::default();
        let limit = RateLimit { per_minute: 1, burst: Some(1) };
        let now = Timestamp::from_millis(1_800_000_000_000);
        assert_eq!((bucket.take(limit, now), bucket.take(limit, now)), (Ok(()), Err(60)));
        assert_eq!(bucket.take(limit, now.plus_seconds(58)), Err(2));
        assert_eq!(bucket.take(limit, now.plus_seconds(-3600)), Ok(()));
    }
}
