//! Runs that pause because their workspace had no Energy: a recharge wakes them, the oldest first.

use crate::engine::FlowEngine;
use crate::runs::row::{FlowPauseReason, FlowRunStatus};
use crate::schema::flow_runs;
use diesel::prelude::*;
use jobs::Job;
use model::{FlowRunId, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::Tx;

/// The kind of job that wakes those that one transaction does not.
const JOB: &str = "flows.resume_paused";
/// The most runs that a transaction wakes.
const BATCH: i64 = 100;
/// After how many seconds the next ones are woken.
const PAUSE_SECONDS: i64 = 1;

/// Where to go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Woken {
    workspace: WorkspaceId,
    /// The moment and the id of the last run that was woken.
    created_at: Timestamp,
    run: FlowRunId,
}

/// Wakes paused runs of a workspace. Those behind the first ones are left to a job, so that they do not keep other workspaces
/// waiting. A run for which the Energy is still missing pauses again, and is not woken twice by the same recharge.
pub(super) fn wake_paused(
    engine: &FlowEngine,
    tx: &mut Tx,
    workspace: WorkspaceId,
    after: Option<&Woken>,
) -> Result<()> {
    let now = tx.now();
    let mut query = flow_runs::table
        .filter(flow_runs::workspace_id.eq(workspace))
        .filter(flow_runs::status.eq(FlowRunStatus::Paused))
        .filter(flow_runs::pause_reason.eq(FlowPauseReason::EnergyDepleted))
        .order((flow_runs::created_at, flow_runs::id))
        .limit(BATCH)
        .select((flow_runs::id, flow_runs::created_at))
        .into_boxed();
    if let Some(after) = after {
        let is_same = flow_runs::created_at.eq(after.created_at).and(flow_runs::id.gt(&after.run));
        query = query.filter(flow_runs::created_at.gt(after.created_at).or(is_same));
    }
    let paused: Vec<(FlowRunId, Timestamp)> = query.load(tx.connection())?;
    let ids = paused.iter().map(|(id, _)| id);
    diesel::update(flow_runs::table.filter(flow_runs::id.eq_any(ids)))
        .filter(flow_runs::status.eq(FlowRunStatus::Paused))
        .set(flow_runs::wake_at.eq(now))
        .execute(tx.connection())?;
    if !paused.is_empty() {
        engine.wake_after(tx);
    }
    let is_all = i64::try_from(paused.len()).is_ok_and(|woken| woken < BATCH);
    if let Some((run, created_at)) = paused.into_iter().next_back().filter(|_| !is_all) {
        let next = Woken { workspace, created_at, run };
        let key = workspace.to_string();
        tx.enqueue(workspace, JOB, Some(&key), &next, now.plus_seconds(PAUSE_SECONDS))?;
    }
    Ok(())
}

/// The job that goes on.
pub(crate) fn job(engine: &FlowEngine) -> Job {
    let engine = engine.clone();
    Job::after(
        JOB,
        "a recharge continues more than 100 runs",
        "wakes runs that pause without Energy",
        move |job| {
            let engine = engine.clone();
            async move {
                let from: Woken = job.payload.parse()?;
                job.db.write(move |tx| wake_paused(&engine, tx, from.workspace, Some(&from))).await?;
                Ok(())
            }
        },
    )
}
