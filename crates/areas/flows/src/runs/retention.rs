//! Retention: runs that have ended are deleted with their steps after the time that their flow says.

use super::queries::LEASE_SECONDS;
use crate::schema::{flow_runs, flow_steps};
use diesel::prelude::*;
use jobs::{JobContext, JobError};
use model::{FlowRunId, Result};
use store::Tx;

/// The most runs that one transaction deletes.
const BATCH: i64 = 100;

/// Deletes runs whose time is over.
pub(crate) async fn purge(job: JobContext) -> std::result::Result<(), JobError> {
    while job.db.write(purge_some).await? > 0 {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
    Ok(())
}

fn purge_some(tx: &mut Tx) -> Result<usize> {
    // A worker of a run that was cancelled may still record what a node has done.
    let ended_before = tx.now().plus_seconds(-LEASE_SECONDS);
    let over: Vec<FlowRunId> = flow_runs::table
        .filter(flow_runs::ended_at.le(ended_before))
        .filter(flow_runs::expires_at.le(tx.now()))
        .order(flow_runs::expires_at)
        .limit(BATCH)
        .select(flow_runs::id)
        .load(tx.connection())?;
    diesel::delete(flow_steps::table.filter(flow_steps::run_id.eq_any(&over))).execute(tx.connection())?;
    Ok(diesel::delete(flow_runs::table.filter(flow_runs::id.eq_any(&over))).execute(tx.connection())?)
}
