//! The drive of a run: from where its row says that it is, to its end or to where it waits.
//!
//! A drive holds the run's lease. Nodes that only compute are executed in memory. A node that acts has its row before it acts,
//! and one transaction writes the end of a node and the beginnings of those that follow. A drive that loses its lease writes
//! nothing any more: each transaction asks for the epoch of the run.

mod begin;
mod finish;
mod nodes;
mod trace;

pub(crate) use begin::{Left, Loaded};
pub(crate) use finish::cause_of;

use super::FlowEngine;
use super::commit::{self, Changes, Progress};
use super::content::Content;
use super::values::Surroundings;
use crate::nodes::{NodeFailure, Work};
use crate::runs::queries::LEASE_SECONDS;
use crate::runs::row::{FlowPauseReason, FlowRunStatus, RunContent, RunError, RunRow};
use crate::runs::steps::StepRow;
use crate::runs::waits::WaitRow;
use crate::waits;
use flow_machine::{Simulation, State, Task};
use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use model::{Caller, JsonText, Result};
use operation::BoxFuture;
use ports::FlowResponse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::HeldLease;

/// A run that this process executes.
pub(crate) struct Drive {
    engine: FlowEngine,
    row: RunRow,
    content: Arc<Content>,
    started_with: Arc<RunContent>,
    /// The flow as the caller of what its nodes call.
    caller: Caller,
    around: Surroundings,
    state: State,
    /// Steps that have not ended, by their tokens.
    open: HashMap<u32, OpenStep>,
    /// What the run waited for when it was left.
    left: Vec<WaitRow>,
    changes: Changes,
    /// Waits for which something may have happened before others could find them.
    look_back: Vec<WaitRow>,
    /// Answers for the nodes of a test run.
    simulation: Option<Simulation>,
    /// Why the run pauses as soon as no node acts any more.
    pause: Option<FlowPauseReason>,
    /// The answer of its `respond` node, and whether it is written.
    response: Option<(FlowResponse, bool)>,
}

/// A step that has not ended.
struct OpenStep {
    row: StepRow,
    task: Task,
}

/// What a handler has done at a token.
type Handled = (u32, std::result::Result<Work, NodeFailure>);

/// Nodes that act. None begins before it is polled.
type AtWork = FuturesUnordered<BoxFuture<Handled>>;

/// How a drive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// The run has ended.
    Ended,
    /// The run waits or pauses.
    Rests,
    /// Somebody else has the run, or has ended it.
    Lost,
}

impl Drive {
    /// Executes the run as far as it goes.
    ///
    /// # Errors
    /// When the database fails: the lease ends, and the run is claimed again.
    pub(crate) async fn go(mut self) -> Result<Driven> {
        let mut at_work = AtWork::new();
        if self.begin(&mut at_work).await? {
            return self.finish(FlowRunStatus::Cancelled, None, None).await;
        }
        loop {
            self.advance(&mut at_work).await?;
            if at_work.is_empty() {
                return match self.state.ending.clone() {
                    Some(ending) => self.end(ending).await,
                    None => self.rest().await,
                };
            }
            // The row before: nothing acts until it is written.
            if !self.write(self.progress(FlowRunStatus::Running, true)).await? {
                return Ok(Driven::Lost);
            }
            let Some(first) = self.next_of(&mut at_work).await else { return Ok(Driven::Lost) };
            let mut all = vec![first];
            while let Some(Some(next)) = at_work.next().now_or_never() {
                all.push(next);
            }
            for (token, result) in all {
                self.take(token, result, &mut at_work).await?;
            }
        }
    }

    /// Waits for the next node to end, and keeps the lease meanwhile. `None` if the lease is lost.
    async fn next_of(&self, at_work: &mut AtWork) -> Option<Handled> {
        let lease = HeldLease::new(Duration::from_secs(LEASE_SECONDS.unsigned_abs()));
        tokio::select! {
            next = at_work.next() => return next,
            () = lease.until_lost(|| self.engine.renew(&self.row)) => {}
        }
        // A run that was cancelled keeps what its nodes have done.
        while let Some((token, result)) = at_work.next().await {
            self.record_late(token, result).await;
        }
        None
    }

    /// The run gives up its lease: it waits for something, or it pauses.
    async fn rest(mut self) -> Result<Driven> {
        let fault = self.state.pauses().next().map(RunError::of);
        let waits = self.open.values().any(OpenStep::is_waiting);
        let reason = self.pause.or_else(|| {
            let fault = fault.as_ref().filter(|_| !waits)?;
            let is_unknown = fault.code == "outcome_unknown";
            Some(if is_unknown { FlowPauseReason::OutcomeUnknown } else { FlowPauseReason::NodeFailed })
        });
        let look_back = std::mem::take(&mut self.look_back);
        let look_back: Vec<WaitRow> =
            look_back.into_iter().filter(|wait| wait.token < 0 || self.waits_at(wait.token)).collect();
        if !look_back.is_empty() {
            // What is awaited may have happened before the wait was there for others to find.
            if !self.write(self.progress(FlowRunStatus::Running, true)).await? {
                return Ok(Driven::Lost);
            }
            for wait in look_back {
                waits::look_back(&self.engine, &self.row, wait).await?;
            }
        }
        let status = if reason.is_some() { FlowRunStatus::Paused } else { FlowRunStatus::Waiting };
        let mut progress = self.progress(status, false);
        progress.pause_reason = reason;
        progress.error = fault.filter(|_| reason.is_some()).map(|fault| JsonText::of(&fault));
        Ok(if self.write(progress).await? { Driven::Rests } else { Driven::Lost })
    }

    /// Returns whether the run still waits at a token.
    fn waits_at(&self, token: i64) -> bool {
        u32::try_from(token).is_ok_and(|token| self.open.get(&token).is_some_and(OpenStep::is_waiting))
    }

    fn progress(&self, status: FlowRunStatus, is_held: bool) -> Progress {
        Progress {
            status,
            pause_reason: None,
            state: JsonText::of(&self.state),
            output: None,
            error: None,
            response: self.response.as_ref().map(|(response, _)| JsonText::of(response)),
            contact: self.row.contact_id,
            step_count: self.row.step_count,
            energy: self.row.energy,
            kept_days: self.content.settings.retention_days,
            is_held,
        }
    }

    /// Writes what happened. Returns whether the run is still that of this drive.
    async fn write(&mut self, progress: Progress) -> Result<bool> {
        let changes = std::mem::take(&mut self.changes);
        let row = self.row.clone();
        let write = self.engine.db().write(move |tx| commit::write(tx, &row, &changes, &progress));
        let is_ours = write.await?;
        if let Some((response, is_written)) = &mut self.response
            && is_ours
            && !std::mem::replace(is_written, true)
        {
            self.engine.answered(&self.row.id, response);
        }
        Ok(is_ours)
    }
}
