//! Errors of handlers, which decide whether and when a job is retried.

use model::{Code, Error, Random};
use std::time::Duration;

/// The maximum delay after the first failure. It doubles with each further failure.
const FIRST_DELAY: Duration = Duration::from_secs(2);
/// The maximum delay between two attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);
/// The maximum length of an error text stored with a job, in characters.
const LONGEST_CAUSE: usize = 2000;

/// The error of a handler: a cause, and the decision what happens to the job.
///
/// A [`model::Error`] converted by `?` is a failure that is retried after an increasing delay.
#[derive(Debug)]
pub struct JobError {
    pub(crate) next: Next,
    pub(crate) cause: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Backoff,
    RetryIn(Duration),
    GiveUp,
    HandBack,
}

impl JobError {
    /// Retries after this time. Counts as an attempt, so a failure of the last attempt still gives up.
    pub fn retry_in(after: Duration, cause: impl Into<Error>) -> Self {
        Self { next: Next::RetryIn(after), cause: text(&cause.into()) }
    }

    /// Gives the job up. Its row stays, with the cause, for operators.
    pub fn give_up(cause: impl Into<Error>) -> Self {
        Self { next: Next::GiveUp, cause: text(&cause.into()) }
    }

    /// Returns the job unfinished, because its `soft` token was cancelled. The job is due again at once, possibly for
    /// another replica, and the attempt does not count. If the token was not cancelled, this is an ordinary failure.
    pub fn hand_back() -> Self {
        Self { next: Next::HandBack, cause: "handed back without having been asked to stop".to_owned() }
    }

    pub(crate) fn backoff(cause: &str) -> Self {
        Self { next: Next::Backoff, cause: shortened(cause) }
    }
}

impl<E: Into<Error>> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::backoff(&text(&error.into()))
    }
}

/// Prefers the internal cause, because the message for API clients says nothing to an operator.
fn text(error: &Error) -> String {
    let text = match (error.code(), error.cause()) {
        (Code::InternalError, Some(cause)) => cause.to_string(),
        (code, Some(cause)) => format!("{}: {} ({cause})", code.as_str(), error.message()),
        (code, None) => format!("{}: {}", code.as_str(), error.message()),
    };
    shortened(&text)
}

/// Shortens a text and removes NUL. PostgreSQL stores no NUL in text, so the job could never be settled and would be
/// retried forever.
fn shortened(text: &str) -> String {
    text.chars().filter(|char| *char != '\0').take(LONGEST_CAUSE).collect()
}

/// Returns the delay after the `attempt`th failure (from 1): a random time between half and all of 2, 4, 8 … seconds,
/// at most an hour. The randomness spreads jobs that failed at the same time.
pub(crate) fn delay(attempt: i64, random: &dyn Random) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1).clamp(0, 16)).unwrap_or(16);
    let most = (FIRST_DELAY * 2u32.saturating_pow(doublings)).min(LONGEST_DELAY);
    let mut bytes = [0; 4];
    random.fill(&mut bytes);
    most / 2 + (most / 2).mul_f64(f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;

    #[test]
    fn delays_double_up_to_an_hour_and_scatter() {
        let random = SeededRandom::new(1);
        for (attempt, most) in [(1, 2), (2, 4), (3, 8), (11, 2048), (12, 3600), (1000, 3600)] {
            let most = Duration::from_secs(most);
            let delays: Vec<_> = (0..50).map(|_| delay(attempt, &random)).collect();
            assert!(delays.iter().all(|delay| (most / 2..=most).contains(delay)), "{attempt}: {delays:?}");
            assert!(delays.iter().any(|delay| *delay != delays[0]), "{attempt}");
        }
    }

    #[test]
    fn a_cause_says_what_failed() {
        let broken = JobError::from(Error::internal("x".parse::<i64>().unwrap_err()));
        assert_eq!((broken.next, broken.cause.as_str()), (Next::Backoff, "invalid digit found in string"));
        assert_eq!(JobError::give_up(Error::internal("no\0 more")).cause, "no more");
        let missing = JobError::from(Error::not_found("contact"));
        assert_eq!(missing.cause, "not_found: The contact does not exist in this workspace.");
        assert_eq!(JobError::give_up(Error::internal("é".repeat(5000))).cause.chars().count(), LONGEST_CAUSE);
    }
}
