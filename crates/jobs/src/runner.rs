//! The runner: what it knows to do, its loop, and its end.

use crate::error::JobError;
use crate::table::{self, Claimed};
use crate::work::{self, Ended, JobContext, Tokens};
use model::Result;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

/// How often a job is tried unless its kind says otherwise: with the growing delays, for about an hour.
const MAX_ATTEMPTS: i64 = 12;

type Outcome = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send>>;

#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) handler: Arc<dyn Fn(JobContext) -> Outcome + Send + Sync>,
    pub(crate) period: Option<Duration>,
    pub(crate) max_attempts: i64,
}

/// Runs the jobs of the kinds that it was given handlers for, and leaves other kinds to other versions of the
/// program. Cheap to clone.
#[derive(Clone)]
pub struct Runner {
    pub(crate) db: Db,
    pub(crate) lease: Duration,
    kinds: BTreeMap<&'static str, Kind>,
    concurrency: usize,
    poll: Duration,
    waker: Waker,
}

/// Wakes a runner before its next look at the table. Independent of the database, and cheap to clone:
/// `tx.after_commit(move || waker.wake())`.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<Notify>);

impl Waker {
    /// There may be work now.
    pub fn wake(&self) {
        self.0.notify_one();
    }
}

/// A job that was ended before it was done. It is due again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aborted {
    /// Its row.
    pub id: i64,
    /// Its kind.
    pub kind: String,
}

impl Runner {
    /// A runner that knows nothing to do yet: eight jobs at a time, a look at the table every second, leases of a
    /// minute.
    pub fn new(db: Db) -> Self {
        Self {
            db,
            kinds: BTreeMap::new(),
            concurrency: 8,
            poll: Duration::from_secs(1),
            lease: Duration::from_secs(60),
            waker: Waker::default(),
        }
    }

    /// Runs jobs of this kind with `handler`, which must be idempotent.
    #[must_use]
    pub fn handle<F, Fut>(self, kind: &'static str, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        self.know(kind, None, handler)
    }

    /// Runs `handler` once in every `period` over all replicas, for the first time at once. Times that were missed
    /// are not made up for. A failure is tried again within the period; the next time comes whatever happened.
    #[must_use]
    pub fn every<F, Fut>(self, kind: &'static str, period: Duration, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        self.know(kind, Some(period), handler)
    }

    /// The kinds that it has handlers for.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.keys().copied()
    }

    fn know<F, Fut>(mut self, kind: &'static str, period: Option<Duration>, handler: F) -> Self
    where
        F: Fn(JobContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        let handler: Arc<dyn Fn(JobContext) -> Outcome + Send + Sync> =
            Arc::new(move |context| Box::pin(handler(context)));
        self.kinds.insert(kind, Kind { handler, period, max_attempts: MAX_ATTEMPTS });
        self
    }

    /// How often jobs of a kind are tried in all, 12 unless said here, after its handler was given.
    #[must_use]
    pub fn max_attempts(mut self, kind: &str, attempts: i64) -> Self {
        if let Some(kind) = self.kinds.get_mut(kind) {
            kind.max_attempts = attempts.max(1);
        }
        self
    }

    /// How many jobs run at a time.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }

    /// How often to look at the table when nobody wakes the runner.
    #[must_use]
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(1));
        self
    }

    /// How long a job stays ours without a sign of life. It is renewed three times as often.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_millis(3));
        self
    }

    /// What wakes this runner.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(crate) fn kind(&self, kind: &str) -> Option<&Kind> {
        self.kinds.get(kind)
    }

    /// Begins to run jobs, on this runtime, until [`Running::stop`].
    pub fn start(&self) -> Running {
        let tokens = Tokens::default();
        let task = tokio::spawn(serve(Arc::new(self.clone()), tokens.clone()));
        Running { tokens, task: AbortOnDropHandle::new(task) }
    }

    /// Runs everything that is due by the database's clock, one after another, until nothing is; says how many times
    /// a handler was called. For tests, which move the clock, and for tools.
    ///
    /// # Errors
    /// When the database fails. What a job fails with stays with the job.
    pub async fn run_due(&self) -> Result<usize> {
        let tokens = Tokens::default();
        self.plan().await?;
        for runs in 0.. {
            let Some(job) = self.claim(1).await?.pop() else { return Ok(runs) };
            work::run(self, job, &tokens).await?;
        }
        Ok(0)
    }

    async fn plan(&self) -> Result<()> {
        for (&kind, Kind { period, .. }) in &self.kinds {
            if let Some(period) = *period {
                self.db.write(move |tx| table::plan(tx, kind, period)).await?;
            }
        }
        Ok(())
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>> {
        let kinds: Vec<&'static str> = self.kinds.keys().copied().collect();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let lease = self.lease;
        self.db.write(move |tx| table::claim(tx, &kinds, limit, lease)).await
    }
}

type InFlight = JoinSet<Result<Ended>>;

/// Claims and runs until it is asked to stop, and hands out what still runs then.
async fn serve(runner: Arc<Runner>, tokens: Tokens) -> InFlight {
    let mut running = InFlight::new();
    let mut planned = false;
    while !tokens.soft.is_cancelled() {
        let free = runner.concurrency.saturating_sub(running.len());
        let mut more = false;
        if free > 0 {
            match look(&runner, &mut planned, free).await {
                Ok(claimed) => {
                    more = claimed.len() == free;
                    for job in claimed {
                        let (runner, tokens) = (runner.clone(), tokens.clone());
                        running.spawn(async move { work::run(&runner, job, &tokens).await });
                    }
                }
                Err(error) => tracing::error!(?error, "jobs could not be claimed"),
            }
        }
        // Until a look makes sense: the table is read anew only where that may find something.
        let pause = tokio::time::sleep(runner.poll);
        tokio::pin!(pause);
        loop {
            let full = running.len() >= runner.concurrency;
            tokio::select! {
                () = tokens.soft.cancelled() => break,
                () = runner.waker.0.notified(), if !full => break,
                () = &mut pause, if !full => break,
                Some(ended) = running.join_next() => {
                    let again = note(ended).is_some_and(|ended| ended == Ended::Again);
                    if again || more {
                        break;
                    }
                }
            }
        }
    }
    running
}

async fn look(runner: &Runner, planned: &mut bool, free: usize) -> Result<Vec<Claimed>> {
    if !*planned {
        runner.plan().await?;
        *planned = true;
    }
    runner.claim(free).await
}

/// A run whose end could not be written down comes back when its lease has run out.
fn note(ended: Result<Result<Ended>, tokio::task::JoinError>) -> Option<Ended> {
    match ended {
        Ok(Ok(ended)) => Some(ended),
        Ok(Err(error)) => {
            tracing::error!(?error, "the end of a job could not be written down");
            None
        }
        Err(error) => {
            tracing::error!(?error, "a job's task failed");
            None
        }
    }
}

/// A runner at work. Dropped, it ends where it stands, and its jobs are free when their leases have run out.
#[must_use = "dropped, the runner ends"]
pub struct Running {
    tokens: Tokens,
    task: AbortOnDropHandle<InFlight>,
}

impl Running {
    /// Claims nothing more, asks the handlers to end, aborts those that have not by the deadline, and gives their
    /// jobs back. Says which those were.
    pub async fn stop(mut self, soft_deadline: Duration) -> Vec<Aborted> {
        self.tokens.soft.cancel();
        let mut running = match (&mut self.task).await {
            Ok(running) => running,
            Err(error) => {
                tracing::error!(?error, "the runner of jobs had failed");
                return Vec::new();
            }
        };
        let all = async { while running.join_next().await.map(note).is_some() {} };
        let _ = tokio::time::timeout(soft_deadline, all).await;
        self.tokens.hard.cancel();
        let mut aborted = Vec::new();
        while let Some(ended) = running.join_next().await {
            if let Some(Ended::Aborted(job)) = note(ended) {
                aborted.push(job);
            }
        }
        aborted
    }
}
