//! Submission of a run: acceptance, and the response to its request, which is sent at once, at the end of the run, or as a
//! stream.

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
    /// The run.
    Run(Box<Submission>),
    /// A stream of its events.
    Events(EventStream),
}

impl Submitted {
    fn run(submission: Submission) -> Self {
        Self::Run(Box::new(submission))
    }
}

/// A run for the response to its request.
pub(crate) struct Submission {
    pub(crate) row: RunRow,
    /// It executes longer than the request waits.
    pub(crate) still_running: bool,
    /// The response is stored as the outcome of the request.
    stored: bool,
}

impl RunEngine {
    /// Creates a run and waits for its end, unless it executes in the background or is streamed. The response is stored as the
    /// outcome of the request, by the last transaction of the run or here. The outcome of a streamed run is "in progress" until
    /// its end replaces it.
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
        let (progress, receiver) = new.stream.then(ProgressSender::new).unzip();
        let (accepted, acceptance) = oneshot::channel();
        let (engine, caller, kept) = (self.clone(), caller.clone(), claim.clone());
        // The run continues if the caller disconnects, so it must not live in the future of the request.
        let driving = self.0.parts.runtime.spawn(async move {
            let (mut execution, start) = match (failed, kept.clone()) {
                (Some(id), Some(claim)) => {
                    let (execution, start) = engine.retry(caller, new, id, claim).await?;
                    (execution, Some(start))
                }
                (_, claim) => engine.accept(caller, new, claim, RunOptions::default()).await?,
            };
            execution.progress = progress;
            // The receiver is gone if the caller has disconnected.
            let _ = accepted.send(execution.row.clone());
            engine.drive(execution, start, kept.filter(|_| !background)).await
        });
        match (acceptance.await, receiver) {
            (Ok(row), Some(receiver)) => {
                Ok(Submitted::Events(RunStream::events(self, row, receiver, driving)?))
            }
            (Ok(row), None) if background => {
                Ok(Submitted::run(Submission { row, still_running: false, stored: true }))
            }
            (Ok(row), None) => self.await_end(row, driving, claim).await,
            // The run was refused.
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

    /// Returns the run that an earlier request with the same `Idempotency-Key` created.
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

    /// Waits for a run that another worker executes. If that worker is dead, the run will be resumed.
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

    /// Returns the response for a run that executes longer than the request waits. It is the outcome of the request until the end
    /// of the run replaces it. It is stored under the lock of the run, so that it never replaces the end.
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
