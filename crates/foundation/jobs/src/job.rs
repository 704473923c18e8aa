//! The declaration of a job: its name, its schedule, its description and its handler.

use crate::error::JobError;
use model::{Chain, JsonText};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio_util::sync::CancellationToken;

/// Default maximum number of attempts. With the increasing delays they last about an hour.
const MAX_ATTEMPTS: i64 = 12;

pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

/// The schedule of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once per period across all replicas, starting at once. Missed runs are skipped. A failure is retried within
    /// the period and does not affect the next run.
    Every(Duration),
    /// After an event, such as `an import is confirmed`. The code that causes the event enqueues the job.
    After(&'static str),
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = match self {
            Self::After(cause) => return f.write_str(cause),
            Self::Every(period) => period.as_secs(),
        };
        match seconds {
            60 => f.write_str("every minute"),
            3600 => f.write_str("every hour"),
            86_400 => f.write_str("daily"),
            seconds if seconds.is_multiple_of(60) => write!(f, "every {} min", seconds / 60),
            seconds => write!(f, "every {seconds} s"),
        }
    }
}

/// The input of a handler.
#[derive(Clone)]
pub struct JobContext {
    /// The database, limited to background work's share of connections ([`Db::background`]). Its transactions continue the
    /// job's chain of causes.
    pub db: Db,
    /// The chain of causes of the transaction that requested the job.
    pub chain: Option<Chain>,
    /// The payload passed to [`store::Tx::enqueue`]; `null` for periodic jobs.
    pub payload: JsonText,
    /// The number of this attempt, from 1. Attempts whose owner died count; those handed back do not.
    pub attempts: i64,
    /// Cancelled when the handler should stop: the service shuts down, or another replica has taken the job over. A
    /// handler that stops early returns [`JobError::hand_back`].
    pub soft: CancellationToken,
}

/// A kind of background work. Cheap to clone.
#[derive(Clone)]
pub struct Job {
    kind: &'static str,
    when: When,
    does: &'static str,
    max_attempts: i64,
    pub(crate) handler: Arc<dyn Fn(JobContext) -> Outcome + Send + Sync>,
}

impl Job {
    /// Declares a periodic job. `does` describes it for `docs/internals/jobs.md`. The handler must be idempotent.
    pub fn every<F, Fut>(kind: &'static str, period: Duration, does: &'static str, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        Self::new(kind, When::Every(period), does, handler)
    }

    /// Declares a job that is enqueued after `cause`. `does` describes it for `docs/internals/jobs.md`. The handler
    /// must be idempotent.
    pub fn after<F, Fut>(kind: &'static str, cause: &'static str, does: &'static str, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        Self::new(kind, When::After(cause), does, handler)
    }

    fn new<F, Fut>(kind: &'static str, when: When, does: &'static str, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let handler: Arc<dyn Fn(JobContext) -> Outcome + Send + Sync> =
            Arc::new(move |context| Box::pin(handler(context)));
        Self { kind, when, does, max_attempts: MAX_ATTEMPTS, handler }
    }

    /// Sets the maximum number of attempts. The default is 12.
    #[must_use]
    pub fn up_to(mut self, attempts: i64) -> Self {
        self.max_attempts = attempts.max(1);
        self
    }

    /// Returns the name, as used in [`store::Tx::enqueue`].
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the schedule.
    pub fn when(&self) -> When {
        self.when
    }

    /// Returns the description.
    pub fn does(&self) -> &'static str {
        self.does
    }

    pub(crate) fn max_attempts(&self) -> i64 {
        self.max_attempts
    }
}
