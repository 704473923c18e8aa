//! Running one job: its handler, its lease and its end.

use crate::error::{JobError, Next, delay};
use crate::job::{Job, JobContext, When};
use crate::table::{self, Claimed, Settled, Verdict, later, next_slot};
use model::{Chain, Result};
use std::time::Duration;
use store::Db;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long a handler that was aborted may take to notice, which it does at its next `.await`.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// A job that was ended before it was done. It is due again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aborted {
    /// Its row.
    pub id: i64,
    /// Its kind.
    pub kind: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Settled,
    /// It is due again now.
    Again,
    Aborted(Aborted),
}

/// The tokens of a runner: `soft` asks handlers to end, `hard` ends them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    pub(crate) soft: CancellationToken,
    pub(crate) hard: CancellationToken,
}

/// What running a job takes.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) db: Db,
    /// How long a job stays ours without a sign of life.
    pub(crate) lease: Duration,
}

/// Runs a claimed job of this kind and settles it.
pub(crate) async fn run(worker: &Worker, kind: &Job, job: Claimed, tokens: &Tokens) -> Result<Ended> {
    if tokens.soft.is_cancelled() {
        return settle(worker, job, Verdict::HandBack).await;
    }
    // Its owners may have been ended by the job itself, so it must not come back for ever.
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
    // A task of its own keeps a panic apart, also one of the handler's first lines.
    let mut handle = AbortOnDropHandle::new(tokio::spawn(async move { handler(context).await }));
    let mut beat = tokio::time::interval(worker.lease / 3);
    beat.tick().await;
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
                    // It may go on for as long as the process does: nobody else may have it before its lease ends.
                    Err(_) => return Ok(Ended::Aborted(Aborted { id: job.id, kind: job.kind })),
                }
            }
            _ = beat.tick(), if !soft.is_cancelled() || tokens.soft.is_cancelled() => {
                if !still_ours(worker, &job).await {
                    soft.cancel();
                }
            }
        }
    };
    let result = result.unwrap_or_else(|error| Err(JobError::backoff(&panic_text(error))));
    let verdict = verdict_of(worker, kind, &job, result, tokens.soft.is_cancelled());
    settle(worker, job, verdict).await
}

/// Renews the lease. A database that does not answer now may do so at the next beat, before the lease is over.
async fn still_ours(worker: &Worker, job: &Claimed) -> bool {
    let (claimed, lease) = (job.clone(), worker.lease);
    match worker.db.write(move |tx| table::renew(tx, &claimed, lease)).await {
        Ok(true) => true,
        Ok(false) => {
            tracing::warn!(job.id, job.kind, "a job was taken over while it ran");
            false
        }
        Err(error) => {
            tracing::warn!(job.id, job.kind, ?error, "the lease of a job could not be renewed");
            true
        }
    }
}

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
