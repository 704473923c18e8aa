//! Schedule of retries (decision 24), and of the pauses of an endpoint that fails.

use model::{Random, Timestamp};

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// From one attempt to the next, in milliseconds. With the first, which is made at once, ten attempts.
const STEPS: [i64; 9] =
    [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// Of events that are not real: three attempts in an hour.
const TEST_STEPS: [i64; 2] = [5 * SECOND, 50 * MINUTE];

/// The most that an endpoint may ask us to wait.
const LONGEST_WAIT: i64 = 24 * HOUR;

/// ±15 %.
const JITTER: i64 = 15;

/// How long after the `attempts`th attempt the next one is made, in milliseconds; `None` after the last.
pub(crate) fn wait(attempts: i64, livemode: bool, random: &dyn Random) -> Option<i64> {
    let step = usize::try_from(attempts.max(1) - 1).unwrap_or(usize::MAX);
    let steps: &[i64] = if livemode { &STEPS } else { &TEST_STEPS };
    steps.get(step).map(|wait| jittered(*wait, random))
}

/// How long an endpoint is left alone after the breaker opened for the `step`th time in a row.
pub(crate) fn pause(step: i64, random: &dyn Random) -> i64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX).min(STEPS.len() - 1);
    jittered(STEPS.get(step).copied().unwrap_or(LONGEST_WAIT), random)
}

fn jittered(wait: i64, random: &dyn Random) -> i64 {
    let mut bytes = [0; 2];
    random.fill(&mut bytes);
    let part = i64::from(u16::from_be_bytes(bytes)); // 0 to 65535
    wait + wait * JITTER / 100 * (2 * part - 65_535) / 65_535
}

/// How many of `most` deliveries an endpoint with this many requests per second can use.
pub(crate) fn pace_limit(rate: Option<i64>, most: usize) -> usize {
    rate.map_or(most, |rate| usize::try_from(rate).unwrap_or(1).min(most))
}

/// What a `Retry-After` header asks for, in milliseconds from `now`: seconds, or a date.
pub(crate) fn retry_after(header: &str, now: Timestamp) -> Option<i64> {
    let wait = egress::retry_after(header, now.millis())?;
    let wait = i64::try_from(wait.as_millis()).unwrap_or(LONGEST_WAIT);
    (wait > 0).then(|| wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{SeededRandom, SystemRandom};

    #[test]
    fn ten_attempts_over_three_days() {
        let random = SystemRandom::default();
        let waits: Vec<i64> = (1..).map_while(|n| wait(n, true, &random)).collect();
        assert_eq!(waits.len(), 9);
        for (wait, step) in waits.iter().zip(STEPS) {
            assert!((step * 85 / 100..=step * 115 / 100).contains(wait), "{wait} of {step}");
        }
        assert_eq!(STEPS.iter().sum::<i64>(), 75 * HOUR + 35 * MINUTE + 5 * SECOND);
        let tests: Vec<i64> = (1..).map_while(|n| wait(n, false, &random)).collect();
        assert_eq!(tests.len(), 2);
        assert!(tests.iter().sum::<i64>() <= HOUR);
    }

    #[test]
    fn jitter_differs() {
        let random = SeededRandom::new(3);
        let waits: std::collections::BTreeSet<i64> =
            (0..100).filter_map(|_| wait(2, true, &random)).collect();
        assert!(waits.len() > 90);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::parse("2026-01-15T12:00:00Z").unwrap();
        assert_eq!(retry_after("7", now), Some(7 * SECOND));
        assert_eq!(retry_after(" 9999999 ", now), Some(LONGEST_WAIT));
        assert_eq!(retry_after("Thu, 15 Jan 2026 12:01:00 GMT", now), Some(MINUTE));
        for nothing in ["", "0", "-5", "soon", "Thu, 15 Jan 2026 11:01:00 GMT", "99999999999999999999"] {
            assert_eq!(retry_after(nothing, now), None, "{nothing}");
        }
    }
}
