//! Health of endpoints: the circuit breaker, the early warning, and when an endpoint is disabled.

use super::schedule;
use crate::schema::webhook_queues;
use diesel::prelude::*;
use model::{Random, Timestamp};

/// So many failures in a row open the breaker.
const OPENS_AFTER: i64 = 5;
const DAY_MS: i64 = 24 * 3600 * 1000;
/// An endpoint that fails for so long is switched off.
const PATIENCE_MS: i64 = 5 * DAY_MS;
/// Half of it: its owners are warned.
const WARNING_MS: i64 = PATIENCE_MS / 2;
/// The most requests to one endpoint at a time.
pub(crate) const ABREAST: usize = 10;

/// What an endpoint's last attempts say about it. Written as it is into its queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Queryable, Selectable, AsChangeset)]
#[diesel(table_name = webhook_queues, treat_none_as_null = true)]
pub(crate) struct Health {
    /// Failures since the last success.
    pub(crate) failures: i64,
    /// How often the breaker opened since then.
    pub(crate) breaker_step: i64,
    /// While it is open: when the next probe goes out.
    pub(crate) breaker_until: Option<Timestamp>,
    /// The first failure since the last success.
    pub(crate) failing_since: Option<Timestamp>,
    /// When the owners were warned.
    pub(crate) warned_at: Option<Timestamp>,
}

/// What follows from a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It has failed for half of our patience.
    Warn,
    /// It has failed for all of it.
    GiveUp,
}

impl Health {
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn failed(&mut self, now: Timestamp, random: &dyn Random) -> Option<Notice> {
        self.failures += 1;
        let since = *self.failing_since.get_or_insert(now);
        // Requests that were on their way when it opened are not probes.
        if self.failures >= OPENS_AFTER && self.breaker_until.is_none_or(|until| until <= now) {
            let pause = schedule::pause(self.breaker_step, random);
            self.breaker_until = Some(Timestamp::from_millis(now.millis() + pause));
            self.breaker_step += 1;
        }
        let failing = now.millis() - since.millis();
        if failing >= PATIENCE_MS {
            return Some(Notice::GiveUp);
        }
        if failing >= WARNING_MS && self.warned_at.is_none() {
            self.warned_at = Some(now);
            return Some(Notice::Warn);
        }
        None
    }

    /// How many requests may be on their way at once: none while the breaker is open, one probe after that.
    pub(crate) fn abreast(&self, now: Timestamp) -> usize {
        match self.breaker_until {
            Some(until) if now < until => 0,
            _ if self.failures >= OPENS_AFTER => 1,
            _ => ABREAST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;

    #[test]
    fn the_breaker_lets_one_probe_through_per_step() {
        let random = SeededRandom::new(1);
        let mut now = Timestamp::from_millis(0);
        let mut health = Health::default();
        for _ in 0..4 {
            assert_eq!(health.failed(now, &random), None);
            assert_eq!(health.abreast(now), ABREAST);
        }
        health.failed(now, &random);
        assert_eq!(health.abreast(now), 0);
        let until = health.breaker_until.unwrap();
        assert!((4250..=5750).contains(&until.millis()));
        health.failed(now, &random);
        assert_eq!(health.breaker_until, Some(until), "a straggler does not prolong it");
        now = until;
        assert_eq!(health.abreast(now), 1);
        health.failed(now, &random);
        let second = health.breaker_until.unwrap().millis() - now.millis();
        assert!((255_000..=345_000).contains(&second));
        health.succeeded();
        assert_eq!((health.abreast(now), &health), (ABREAST, &Health::default()));
    }

    #[test]
    fn patience_ends_after_five_days_with_one_warning() {
        let random = SeededRandom::new(1);
        let mut health = Health::default();
        let notices: Vec<(i64, Notice)> = (0..12)
            .filter_map(|half_day| {
                let now = Timestamp::from_millis(half_day * DAY_MS / 2);
                health.failed(now, &random).map(|notice| (half_day, notice))
            })
            .collect();
        assert_eq!(notices, [(5, Notice::Warn), (10, Notice::GiveUp), (11, Notice::GiveUp)]);
    }
}
