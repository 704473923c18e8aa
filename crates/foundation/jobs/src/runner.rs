//! The runner: its jobs, its main loop and its shutdown.

use crate::job::{Job, When};
use crate::table::{self, Claimed, Room};
use crate::work::{self, Aborted, Ended, Tokens, Worker};
use model::{Result, WorkspaceId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// The least time between two queries of the table that enqueued jobs cause. Without it, a thousand transactions that enqueue a job
/// each would cause a thousand queries.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// Runs the jobs that it has handlers for. Rows of other kinds are left to other versions of the program. Cheap to
/// clone.
#[derive(Clone)]
pub struct Runner {
    worker: Worker,
    jobs: BTreeMap<&'static str, Job>,
    concurrency: usize,
    per_workspace: usize,
    poll: Duration,
}

impl Runner {
    /// Creates a runner without jobs. By default it runs eight jobs at a time, at most three of them of one
    /// workspace, polls every second, and holds leases of a minute.
    pub fn new(db: Db) -> Self {
        Self {
            worker: Worker { db, lease: Duration::from_secs(60) },
            jobs: BTreeMap::new(),
            concurrency: 8,
            per_workspace: 3,
            poll: Duration::from_secs(1),
        }
    }

    /// Adds these jobs.
    #[must_use]
    pub fn with(mut self, jobs: impl IntoIterator<Item = Job>) -> Self {
        self.jobs.extend(jobs.into_iter().map(|job| (job.kind(), job)));
        self
    }

    /// Returns the jobs, ordered by name.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// Sets how many jobs run at a time.
    #[must_use]
    pub fn concurrency(mut self, jobs: usize) -> Self {
        self.concurrency = jobs.max(1);
        self
    }

    /// Sets how many jobs of one workspace run at a time. Jobs without a workspace are not limited.
    #[must_use]
    pub fn per_workspace(mut self, jobs: usize) -> Self {
        self.per_workspace = jobs.max(1);
        self
    }

    /// Sets the interval at which the table is polled, for jobs that become due and those of other replicas. What this
    /// process enqueues wakes the runner.
    #[must_use]
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the duration of leases. A lease is renewed after each third of it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.worker.lease = lease.max(Duration::from_millis(3));
        self
    }

    /// Starts running jobs on the current runtime, until [`Running::stop`].
    pub fn start(&self) -> Running {
        let tokens = Tokens::default();
        let task = tokio::spawn(serve(Arc::new(self.clone()), tokens.clone()));
        Running { tokens, task: AbortOnDropHandle::new(task) }
    }

    /// Runs all jobs that are due by the database's clock, one after another, and returns the number of runs. For
    /// tests, which set the clock, and for tools. Errors of handlers are not returned but stored with their jobs.
    pub async fn run_due(&self) -> Result<usize> {
        let tokens = Tokens::default();
        self.plan().await?;
        for runs in 0.. {
            let Some(job) = self.claim(1, HashMap::new()).await?.pop() else { return Ok(runs) };
            self.run(job, &tokens).await?;
        }
        Ok(0)
    }

    async fn run(&self, job: Claimed, tokens: &Tokens) -> Result<Ended> {
        match self.jobs.get(job.kind.as_str()) {
            Some(kind) => work::run(&self.worker, kind, job, tokens).await,
            // `claim` selects known kinds only.
            None => Ok(Ended::Settled),
        }
    }

    async fn plan(&self) -> Result<()> {
        for (&kind, job) in &self.jobs {
            if let When::Every(period) = job.when() {
                self.worker.db.write(move |tx| table::plan(tx, kind, period)).await?;
            }
        }
        Ok(())
    }

    async fn claim(&self, all: usize, running: HashMap<WorkspaceId, usize>) -> Result<Vec<Claimed>> {
        let kinds: Vec<&'static str> = self.jobs.keys().copied().collect();
        let room = Room { all, per_workspace: self.per_workspace, running };
        let lease = self.worker.lease;
        self.worker.db.write(move |tx| table::claim(tx, &kinds, room.clone(), lease)).await
    }
}

/// The jobs that are running.
#[derive(Default)]
struct InFlight {
    tasks: JoinSet<Result<Ended>>,
    /// The workspaces of the tasks that have one.
    workspaces: HashMap<tokio::task::Id, WorkspaceId>,
}

impl InFlight {
    fn spawn(
        &mut self,
        workspace: Option<WorkspaceId>,
        work: impl Future<Output = Result<Ended>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(work);
        self.workspaces.extend(workspace.map(|workspace| (task.id(), workspace)));
    }

    fn by_workspace(&self) -> HashMap<WorkspaceId, usize> {
        let mut counts = HashMap::new();
        for workspace in self.workspaces.values() {
            *counts.entry(*workspace).or_default() += 1;
        }
        counts
    }

    /// Waits for a task to end. Returns `None` if none is running, and `Some(None)` if the result could not be
    /// stored. Such a job is claimed again when its lease has expired.
    async fn next(&mut self) -> Option<Option<Ended>> {
        let ended = self.tasks.join_next_with_id().await?;
        let task = ended.as_ref().map_or_else(tokio::task::JoinError::id, |(task, _)| *task);
        self.workspaces.remove(&task);
        Some(match ended {
            Ok((_, Ok(ended))) => Some(ended),
            Ok((_, Err(error))) => {
                tracing::error!(?error, "the end of a job could not be written down");
                None
            }
            Err(error) => {
                tracing::error!(?error, "a job's task failed");
                None
            }
        })
    }
}

/// Claims and runs jobs until the soft token is cancelled. Returns the jobs that are still running then.
async fn serve(runner: Arc<Runner>, tokens: Tokens) -> InFlight {
    let mut running = InFlight::default();
    let mut planned = false;
    // A wake-up that comes while the table is queried is kept.
    let enqueued = runner.worker.db.enqueued();
    while !tokens.soft.is_cancelled() {
        let free = runner.concurrency.saturating_sub(running.tasks.len());
        let mut more = false;
        if free > 0 {
            match look(&runner, &mut planned, free, running.by_workspace()).await {
                Ok(claimed) => {
                    // A full batch suggests that more jobs are due, so look again as soon as one ends.
                    more = claimed.len() == free;
                    for job in claimed {
                        let (runner, tokens) = (runner.clone(), tokens.clone());
                        running.spawn(job.workspace, async move { runner.run(job, &tokens).await });
                    }
                    // A workspace that has reached its limit may have more jobs due.
                    more |= running.by_workspace().values().any(|jobs| *jobs >= runner.per_workspace);
                }
                // The next poll tries again.
                Err(error) => tracing::error!(?error, "jobs could not be claimed"),
            }
        }
        // Wait until another query can find something: a wake-up, the next poll, or room for more jobs.
        let pause = tokio::time::sleep(runner.poll);
        tokio::pin!(pause);
        let rested_at = Instant::now() + LEAST_PAUSE;
        let woken = async || {
            tokio::time::sleep_until(rested_at).await;
            enqueued.notified().await;
        };
        loop {
            let full = running.tasks.len() >= runner.concurrency;
            tokio::select! {
                () = tokens.soft.cancelled() => break,
                () = woken(), if !full => break,
                () = &mut pause, if !full => break,
                Some(ended) = running.next() => {
                    if more || ended == Some(Ended::Again) {
                        break;
                    }
                }
            }
        }
    }
    running
}

async fn look(
    runner: &Runner,
    planned: &mut bool,
    free: usize,
    running: HashMap<WorkspaceId, usize>,
) -> Result<Vec<Claimed>> {
    if !*planned {
        runner.plan().await?;
        *planned = true;
    }
    runner.claim(free, running).await
}

/// A running runner. If it is dropped, it is aborted, and its jobs are claimed again after their leases have expired.
#[must_use = "dropped, the runner ends"]
pub struct Running {
    tokens: Tokens,
    task: AbortOnDropHandle<InFlight>,
}

impl Running {
    /// Stops claiming, asks the handlers to stop, and aborts those that still run at the deadline. Releases their
    /// jobs and returns them.
    pub async fn stop(mut self, soft_deadline: Duration) -> Vec<Aborted> {
        self.tokens.soft.cancel();
        let mut running = match (&mut self.task).await {
            Ok(running) => running,
            Err(error) => {
                tracing::error!(?error, "the runner of jobs had failed");
                return Vec::new();
            }
        };
        // Wait for handlers that stop by themselves until the deadline, then abort the others.
        let all = async { while running.next().await.is_some() {} };
        let _ = tokio::time::timeout(soft_deadline, all).await;
        self.tokens.hard.cancel();
        let mut aborted = Vec::new();
        while let Some(ended) = running.next().await {
            if let Some(Ended::Aborted(job)) = ended {
                aborted.push(job);
            }
        }
        aborted
    }
}
