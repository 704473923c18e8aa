//! Rate limits: messages per second, and recipients per day.

use super::refused::Refused;
use model::Timestamp;
use std::collections::{HashMap, VecDeque};

const PER_SECOND: f64 = 80.0;
/// Average interval between two messages to the same recipient.
const PAIR_SECONDS: f64 = 6.0;
/// The number of messages to one recipient that may be sent at once.
const PAIR_BURST: f64 = 45.0;
/// The maximum number of recipients with a bucket. Beyond it, full buckets are removed.
const PAIRS: usize = 100_000;
const DAY: i64 = 24 * 3600;

struct Bucket {
    tokens: f64,
    at: Timestamp,
}

impl Bucket {
    fn full(tokens: f64, at: Timestamp) -> Self {
        Self { tokens, at }
    }

    fn refill(&mut self, now: Timestamp, per_second: f64, most: f64) {
        let seconds = (now.millis() - self.at.millis()).max(0) as f64 / 1000.0;
        self.tokens = (self.tokens + seconds * per_second).min(most);
        self.at = now;
    }
}

/// The rates of one number.
#[derive(Default)]
pub(crate) struct Rates {
    number: Option<Bucket>,
    pairs: HashMap<String, Bucket>,
}

impl Rates {
    /// Counts a message to a recipient, or refuses it.
    pub(crate) fn take(&mut self, recipient: &str, now: Timestamp) -> Result<(), Refused> {
        let number = self.number.get_or_insert_with(|| Bucket::full(PER_SECOND, now));
        number.refill(now, PER_SECOND, PER_SECOND);
        if number.tokens < 1.0 {
            let details = "Cloud API message throughput has been reached.";
            return Err(Refused { retry_after: Some(1), ..Refused::new(130_429, details) });
        }
        if self.pairs.len() >= PAIRS {
            self.pairs.retain(|_, pair| {
                pair.refill(now, 1.0 / PAIR_SECONDS, PAIR_BURST);
                pair.tokens < PAIR_BURST
            });
        }
        let pair = match self.pairs.get_mut(recipient) {
            Some(pair) => pair,
            None => self.pairs.entry(recipient.to_owned()).or_insert(Bucket::full(PAIR_BURST, now)),
        };
        pair.refill(now, 1.0 / PAIR_SECONDS, PAIR_BURST);
        if pair.tokens < 1.0 {
            return Err(Refused::new(
                131_056,
                "Too many messages sent from this number to the same recipient.",
            ));
        }
        pair.tokens -= 1.0;
        number.tokens -= 1.0;
        Ok(())
    }
}

/// The recipients that a number wrote to first within a day.
#[derive(Default)]
pub(crate) struct Daily {
    order: VecDeque<(Timestamp, String)>,
    since: HashMap<String, Timestamp>,
}

impl Daily {
    pub(crate) fn take(&mut self, recipient: &str, most: usize, now: Timestamp) -> Result<(), Refused> {
        while self.order.front().is_some_and(|(at, _)| at.plus_seconds(DAY) <= now) {
            if let Some((_, recipient)) = self.order.pop_front() {
                self.since.remove(&recipient);
            }
        }
        if self.since.contains_key(recipient) {
            return Ok(());
        }
        if self.since.len() >= most {
            let details = "The limit of recipients within 24 hours has been reached.";
            return Err(Refused::new(131_048, details));
        }
        self.since.insert(recipient.to_owned(), now);
        self.order.push_back((now, recipient.to_owned()));
        Ok(())
    }
}
