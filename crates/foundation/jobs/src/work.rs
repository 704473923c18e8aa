//! Runs one job: its handler, its lease and its verdict.

use crate::error::{JobError, Next, delay};
use crate::job::{Job, JobContext, When};
use crate::table::{self, Claimed, Settled, Verdict, later, next_slot};
use model::{Chain, Result};
use std::time::Duration;
use store::{Db, HeldLease};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long to wait for an aborted handler, which stops at its next `.await`.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// A job that was aborted at shutdown. It is due again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aborted {
    /// The id of its row.
    pub id: i64,
    /// The kind of the job.
    pub kind: String,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Settled,
    /// The job is due again now.
    Again,
    Aborted(Aborted),
}

/// The tokens of a runner: `soft` asks handlers to stop, `hard` aborts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    pub(crate) soft: CancellationToken,
    pub(crate) hard: CancellationToken,
}

/// The dependencies of a run.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) db: Db,
    /// Duration of a lease.
    pub(crate) lease: Duration,
}

/// Runs a claimed job of this kind and settles it.
pub(crate) async fn run(worker: &Worker, kind: &Job, job: Claimed, tokens: &Tokens) -> Result<Ended> {
    if tokens.soft.is_cancelled() {
        return settle(worker, job, Verdict::HandBack).await;
    }
    // The job itself may have crashed its owners, so the attempts of dead owners are limited too.
    if job.stale_lease.is_some() && job.attempts > kind.max_attempts() {
        let error = JobError::backoff("its owner vanished, and no attempts are left");
        let verdict = verdict_of(worker, kind, &job, Err(error), false);
        return settle(worker, job, verdict).await;
    }
    let soft = tokens.soft.child_token();
    let chain = Chain::stored(job.chain.as_ref());
    let context = JobContext {
        db: worker.db.background().caused_by(chain.as_ref()),
        chain,
        payload: job.payload.clone(),
        attempts: job.attempts,
        soft: soft.clone(),
    };
    let handler = kind.handler.clone();
    // A separate task isolates panics, including one before the handler's first `.await`.
    let mut handle = AbortOnDropHandle::new(tokio::spawn(async move { handler(context).await }));
    let lost = until_lost(worker.clone(), job.clone());
    tokio::pin!(lost);
    let mut is_ours = true;
    let result = loop {
        tokio::select! {
            result = &mut handle => break result,
            () = tokens.hard.cancelled() => {
                handle.abort();
                match tokio::time::timeout(ABORT_GRACE, &mut handle).await {
                    Ok(Err(error)) if error.is_cancelled() => {
                        let aborted = Aborted { id: job.id, kind: job.kind.clone() };
                        settle(worker, job, Verdict::HandBack).await?;
                        return Ok(Ended::Aborted(aborted));
                    }
                    Ok(result) => break result,
                    // The handler did not stop and may continue as long as the process, so keep the lease instead of
                    // releasing the job.
                    Err(_) => return Ok(Ended::Aborted(Aborted { id: job.id, kind: job.kind })),
                }
            }
            // The lease is also renewed while the service stops, because the handler may need until the deadline.
            () = &mut lost, if is_ours => {
                is_ours = false;
                tracing::warn!(job.id, job.kind, "the lease of a job was lost while it ran");
                soft.cancel();
            }
        }
    };
    let result = result.unwrap_or_else(|error| Err(JobError::backoff(&panic_text(error))));
    let verdict = verdict_of(worker, kind, &job, result, tokens.soft.is_cancelled());
    settle(worker, job, verdict).await
}

/// Renews the lease of a job until another runner has claimed it, or may have.
async fn until_lost(worker: Worker, job: Claimed) {
    let Worker { db, lease } = worker;
    let renewal = || {
        let job = job.clone();
        db.write(move |tx| table::renew(tx, &job, lease))
    };
    HeldLease::new(lease).until_lost(renewal).await;
}

/// Decides what happens to a job after a run. A periodic job always gets its next slot. It is retried before that
/// only if the delay ends earlier.
fn verdict_of(
    worker: &Worker,
    kind: &Job,
    job: &Claimed,
    result: Result<(), JobError>,
    asked_to_stop: bool,
) -> Verdict {
    let now = worker.db.clock().now();
    let slot = match kind.when() {
        When::Every(period) => Some(next_slot(job.run_at, period, now)),
        When::After(_) => None,
    };
    let error = match (result, slot) {
        (Ok(()), None) => return Verdict::Done,
        (Ok(()), Some(slot)) => return Verdict::Next(slot, None),
        (Err(error), _) => error,
    };
    let wait = match error.next {
        Next::HandBack if asked_to_stop => return Verdict::HandBack,
        // A hand-back without a request to stop counts as a failure. Otherwise such a handler would run in a loop.
        Next::HandBack | Next::Backoff => Some(delay(job.attempts, &*worker.db.random())),
        Next::RetryIn(wait) => Some(wait),
        Next::GiveUp => None,
    };
    let retry_at = wait.filter(|_| job.attempts < kind.max_attempts()).map(|wait| later(now, wait));
    let cause = &error.cause;
    match (retry_at, slot) {
        (Some(at), slot) if slot.is_none_or(|slot| at < slot) => {
            tracing::warn!(job.id, job.kind, job.attempts, cause, "a job failed and will be tried again");
            Verdict::Retry(at, error.cause)
        }
        (_, Some(slot)) => {
            tracing::error!(
                job.id,
                job.kind,
                job.attempts,
                cause,
                "periodic work failed until its next time"
            );
            Verdict::Next(slot, Some(error.cause))
        }
        (_, None) => {
            tracing::error!(job.id, job.kind, job.attempts, cause, "a job was given up");
            Verdict::GiveUp(error.cause)
        }
    }
}

/// Stores a verdict and returns how the run ended.
async fn settle(worker: &Worker, job: Claimed, verdict: Verdict) -> Result<Ended> {
    let (id, kind) = (job.id, job.kind.clone());
    match worker.db.write(move |tx| table::settle(tx, &job, &verdict)).await? {
        Settled::Written => Ok(Ended::Settled),
        Settled::AskedAgain => Ok(Ended::Again),
        Settled::Lost => {
            tracing::warn!(id, kind, "a job ended that somebody else had taken over");
            Ok(Ended::Settled)
        }
    }
}

fn panic_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            format!("panicked: {text}")
        }
        Err(error) => error.to_string(),
    }
}
