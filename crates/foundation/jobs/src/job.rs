//! A job as a group declares it: its name, when it runs, what it does, and the work itself.

use crate::error::JobError;
use model::{Chain, JsonText};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio_util::sync::CancellationToken;

/// How often a job is tried unless it says otherwise: with the growing delays, for about an hour.
const MAX_ATTEMPTS: i64 = 12;

pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

/// When a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once in every such period over all replicas, for the first time at once. Times that were missed are not made up
    /// for. A failure is tried again within the period; the next time comes whatever happened.
    Every(Duration),
    /// After this, such as `an import is confirmed`: whoever does it enqueues the job.
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

/// What a handler is given.
#[derive(Clone)]
pub struct JobContext {
    /// The database, within the bound on what background work may hold of it ([`Db::background`]), at the job's place in the
    /// chain of causes.
    pub db: Db,
    /// That place: the one of the transaction that asked for the job.
    pub chain: Option<Chain>,
    /// What [`store::Tx::enqueue`] was given; `null` for periodic work.
    pub payload: JsonText,
    /// Which attempt this is, from 1. Owners that vanished count, those that were stopped don't.
    pub attempts: i64,
    /// Cancelled when the handler should come to an end: the service stops, or the job is no longer ours. One that
    /// heeds it answers [`JobError::hand_back`].
    pub soft: CancellationToken,
}

/// A kind of work in the background. Cheap to clone.
#[derive(Clone)]
pub struct Job {
    kind: &'static str,
    when: When,
    does: &'static str,
    max_attempts: i64,
    pub(crate) handler: Arc<dyn Fn(JobContext) -> Outcome + Send + Sync>,
}

impl Job {
    /// Work that is done once in every `period`. `does` says what it does, for `docs/internals/jobs.md`. The handler must be
    /// idempotent.
    pub fn every<F, Fut>(kind: &'static str, period: Duration, does: &'static str, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        Self::new(kind, When::Every(period), does, handler)
    }

    /// Work that is enqueued after `cause`. `does` says what it does, for `docs/internals/jobs.md`. The handler must be
    /// idempotent.
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

    /// How often it is tried in all: 12 times unless said here.
    #[must_use]
    pub fn up_to(mut self, attempts: i64) -> Self {
        self.max_attempts = attempts.max(1);
        self
    }

    /// Its name, as in [`store::Tx::enqueue`].
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// When it runs.
    pub fn when(&self) -> When {
        self.when
    }

    /// What it does.
    pub fn does(&self) -> &'static str {
        self.does
    }

    pub(crate) fn max_attempts(&self) -> i64 {
        self.max_attempts
    }
}
