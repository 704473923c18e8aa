//! Submission of a run: everything that can refuse it, then the row and its first step, in one transaction.

use super::stream::RunStream;
use crate::end::outcome;
use crate::engine::{RunEngine, is_superseded};
use crate::execution::ProgressSender;
use crate::queries::runs;
use crate::run::{Ended, NewRun, RunOptions, RunRow, RunStatus};
use agents::check_metadata;
use auth::idempotency::Claim;
use model::{Caller, Error, Result, RunId};
use operation::EventStream;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// Poll interval for a run that another worker executes.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Response to a request for a run.
pub(crate) enum Submitted {
    /// With the run.
    Run(Box<Submission>),
    /// With what happens in it.
    Events(EventStream),
}

impl Submitted {
    fn run(submission: Submission) -> Self {
        Self::Run(Box::new(submission))
    }
}

/// A run as its request is answered.
pub(crate) struct Submission {
    pub(crate) row: RunRow,
    /// It goes on longer than a request should wait.
    pub(crate) still_running: bool,
    /// The response is stored as the outcome of the request.
    stored: bool,
}

impl RunEngine {
    /// Makes a run and, unless it is to go on in the background or is streamed, waits for its end. The answer is
    /// stored as the outcome of the request, if not with the run's last transaction then here. A streamed run is
    /// accepted with the outcome that it goes on, which its end replaces.
    pub(crate) async fn submit(
        &self,
        caller: &Caller,
        new: NewRun,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let submitted = self.make_or_find(caller, new, claim.clone()).await?;
        let unstored = match &submitted {
            Submitted::Run(run) if !run.stored => Some(run.row.clone()),
            _ => None,
        };
        if let (Some(row), Some(claim)) = (unstored, claim) {
            let engine = self.clone();
            self.db().write(move |tx| engine.store_outcome(tx, &claim, &row, false)).await?;
        }
        Ok(submitted)
    }

    async fn make_or_find(&self, caller: &Caller, new: NewRun, claim: Option<Claim>) -> Result<Submitted> {
        check_metadata(new.metadata.as_ref())?;
        if new.stream && new.background {
            return Err(Error::invalid("stream", "cannot be true together with `background`"));
        }
        if let Some(format) = &new.response_format {
            format.check()?;
        }
        let begun = self.begun_before(caller, claim.as_ref()).await?;
        let failed = match begun {
            Some(row) if row.status == RunStatus::Failed => Some(row.id),
            Some(row) => return self.wait_for(row, self.patience(), claim).await,
            None => None,
        };
        let background = new.background;
        let (progress, heard) = new.stream.then(ProgressSender::new).unzip();
        let (accepted, told_accepted) = oneshot::channel();
        let (engine, caller, kept) = (self.clone(), caller.clone(), claim.clone());
        // The run goes on when its caller hangs up, so no part of it lives in the request's future.
        let driving = self.0.parts.runtime.spawn(async move {
            let (mut execution, start) = match (failed, kept.clone()) {
                (Some(id), Some(claim)) => {
                    let (execution, start) = engine.retry(caller, new, id, claim).await?;
                    (execution, Some(start))
                }
                (_, claim) => engine.accept(caller, new, claim, RunOptions::default()).await?,
            };
            execution.progress = progress;
            // Nobody listens any more where the caller hung up.
            let _ = accepted.send(execution.row.clone());
            engine.drive(execution, start, kept.filter(|_| !background)).await
        });
        match (told_accepted.await, heard) {
            (Ok(row), Some(heard)) => Ok(Submitted::Events(RunStream::events(self, row, heard, driving)?)),
            (Ok(row), None) if background => {
                Ok(Submitted::run(Submission { row, still_running: false, stored: true }))
            }
            (Ok(row), None) => self.await_end(row, driving, claim).await,
            // It was refused.
            (Err(_), _) => driving.await.map_err(Error::internal)??.submitted(),
        }
    }

    async fn await_end(
        &self,
        row: RunRow,
        driving: JoinHandle<Result<Ended>>,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let began = Instant::now();
        match timeout(self.patience(), driving).await {
            Ok(ended) => match ended.map_err(Error::internal)? {
                Err(error) if is_superseded(&error) => {
                    let left = self.patience().saturating_sub(began.elapsed());
                    self.wait_for(row, left, claim).await
                }
                ended => ended?.submitted(),
            },
            Err(_) => self.still_running(row, claim).await,
        }
    }

    /// The run that an earlier request with the same `Idempotency-Key` has begun.
    pub(crate) async fn begun_before(
        &self,
        caller: &Caller,
        claim: Option<&Claim>,
    ) -> Result<Option<RunRow>> {
        let Some(resource) = claim.and_then(|claim| claim.resource.as_deref()) else { return Ok(None) };
        let id = RunId::parse(resource).ok_or_else(|| Error::internal("a claim names no run"))?;
        let workspace = caller.workspace_id();
        Ok(Some(self.db().read(move |read| runs::by_id(read, workspace, &id)).await?))
    }

    /// Waits for a run that another worker drives; if that worker is dead, the run will be resumed.
    pub(crate) async fn wait_for(
        &self,
        row: RunRow,
        patience: Duration,
        claim: Option<Claim>,
    ) -> Result<Submitted> {
        let deadline = Instant::now() + patience;
        loop {
            let (workspace, id) = (row.workspace_id, row.id.clone());
            let now = self.db().read(move |read| runs::by_id(read, workspace, &id)).await?;
            if now.status.is_at_rest() {
                return Ended { row: now, stored: false }.submitted();
            }
            if Instant::now() >= deadline {
                return self.still_running(row, claim).await;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The answer for a run that goes on longer than a request should wait. Stored as the outcome of its request until
    /// the run's end replaces it, and under the run's lock, so that it never replaces the run's end.
    async fn still_running(&self, row: RunRow, claim: Option<Claim>) -> Result<Submitted> {
        let engine = self.clone();
        let row = self.db().write(move |tx| {
            let row = runs::locked(tx, row.workspace_id, &row.id)?;
            if let Some(claim) = claim.as_ref().filter(|_| !row.status.is_at_rest()) {
                engine.store_outcome(tx, claim, &row, true)?;
            }
            Ok(row)
        });
        let row = row.await?;
        if row.status.is_at_rest() {
            return Ended { row, stored: false }.submitted();
        }
        Ok(Submitted::run(Submission { row, still_running: true, stored: true }))
    }
}

impl Ended {
    pub(crate) fn submitted(self) -> Result<Submitted> {
        let (row, stored) = (outcome(self.row)?, self.stored);
        Ok(Submitted::run(Submission { row, still_running: false, stored }))
    }
}
