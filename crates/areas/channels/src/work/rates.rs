//! Send rates of a channel: a token bucket for the number, and one for each contact.

use model::{ConversationId, Timestamp};
use std::collections::HashMap;
use std::time::Duration;

/// The number of messages that may be sent to one contact without delay.
const PAIR_BURST: f64 = 10.0;
/// The maximum number of buckets for contacts. Full buckets are removed first.
const MAX_PAIRS: usize = 10_000;
/// Tolerance for rounding errors when fractions of a token are added.
const ROUNDING: f64 = 1e-6;
/// The share of the number's rate that broadcasts leave for replies.
const LIVE_SHARE: f64 = 0.2;

/// The token buckets of a channel.
pub struct Rates {
    /// Messages per second; `None` for no limit.
    rate: Option<f64>,
    number: Bucket,
    pair_interval: Duration,
    pairs: HashMap<ConversationId, Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl Bucket {
    /// Returns the bucket with the tokens added since its last change, up to `most`.
    fn filled(self, per_second: f64, most: f64, now: Timestamp) -> Self {
        let millis = (now.millis() - self.at.millis()).max(0);
        let added = millis as f64 / 1_000.0 * per_second;
        Self { tokens: (self.tokens + added).min(most), at: now }
    }
}

impl Rates {
    /// Creates full buckets. A channel with 0 messages per second, such as a simulated one, has no limits.
    pub fn new(messages_per_second: i64, pair_interval: Duration, now: Timestamp) -> Self {
        let rate = (messages_per_second > 0).then_some(messages_per_second as f64);
        Self {
            rate,
            number: Bucket { tokens: rate.unwrap_or_default(), at: now },
            pair_interval,
            pairs: HashMap::new(),
        }
    }

    /// Returns how many messages can be sent now. Unless `is_live`, leaves a share of the rate for replies.
    pub fn available(&mut self, now: Timestamp, is_live: bool) -> usize {
        let Some(rate) = self.rate else { return usize::MAX };
        self.number = self.number.filled(rate, rate, now);
        let kept = if is_live { 0.0 } else { rate * LIVE_SHARE };
        (self.number.tokens - kept).max(0.0) as usize
    }

    /// Takes a token of the number and one of the contact. Returns `false` and takes none if either is missing.
    pub fn take(&mut self, conversation: ConversationId, now: Timestamp) -> bool {
        let Some(rate) = self.rate else { return true };
        self.number = self.number.filled(rate, rate, now);
        let per_second = 1.0 / self.pair_interval.as_secs_f64().max(0.001);
        // A full bucket is the same as none.
        if self.pairs.len() >= MAX_PAIRS {
            self.pairs.retain(|_, bucket| bucket.filled(per_second, PAIR_BURST, now).tokens < PAIR_BURST);
        }
        let full = Bucket { tokens: PAIR_BURST, at: now };
        let pair = self.pairs.entry(conversation).or_insert(full);
        *pair = pair.filled(per_second, PAIR_BURST, now);
        let whole = 1.0 - ROUNDING;
        if pair.tokens < whole || self.number.tokens < whole {
            return false;
        }
        pair.tokens -= 1.0;
        self.number.tokens -= 1.0;
        true
    }

    /// Empties the number's bucket. Called when the network reports that the channel sends too fast.
    pub fn drain(&mut self, now: Timestamp) {
        self.number = Bucket { tokens: 0.0, at: now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_sends_no_faster_than_its_rate_and_answers_come_first() {
        let start = Timestamp::from_millis(0);
        let mut rates = Rates::new(10, Duration::from_secs(6), start);
        assert_eq!((rates.available(start, true), rates.available(start, false)), (10, 8));
        let sent = (0..20).filter(|id| rates.take(ConversationId(*id), start)).count();
        assert_eq!(sent, 10);
        assert_eq!(rates.available(Timestamp::from_millis(500), true), 5);
        rates.drain(Timestamp::from_millis(500));
        assert_eq!(rates.available(Timestamp::from_millis(500), true), 0);
    }

    #[test]
    fn one_contact_gets_one_message_in_six_seconds_after_a_burst() {
        let mut rates = Rates::new(1_000, Duration::from_secs(6), Timestamp::from_millis(0));
        let sent_in = |rates: &mut Rates, millis| {
            (0..50).filter(|_| rates.take(ConversationId(1), Timestamp::from_millis(millis))).count()
        };
        assert_eq!(sent_in(&mut rates, 0), 10);
        assert_eq!(sent_in(&mut rates, 5_000), 0);
        assert_eq!(sent_in(&mut rates, 6_000), 1);
        assert_eq!(sent_in(&mut rates, 66_000), 10);
    }

    #[test]
    fn without_a_rate_there_are_no_limits() {
        let mut rates = Rates::new(0, Duration::from_secs(6), Timestamp::from_millis(0));
        assert!((0..1_000).all(|_| rates.take(ConversationId(1), Timestamp::from_millis(0))));
    }
}
