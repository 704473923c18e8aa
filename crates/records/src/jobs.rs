//! The engine's work in the background.

use crate::definitions::rewrite;
use crate::indexes::jobs::handle_index_jobs;
use crate::rows::purge;
use crate::shape::Shapes;
use crate::{compute, count, links};
use ::jobs::{JobError, Runner};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct Rewrite {
    rewrite_id: i64,
}

/// Gives a runner the handlers of the engine's jobs.
#[must_use]
pub fn handle_jobs(runner: Runner, shapes: &Arc<Shapes>) -> Runner {
    let [recomputing, cascading, emptying, purging, rewriting] = std::array::from_fn(|_| shapes.clone());
    handle_index_jobs(runner, shapes)
        .handle(rewrite::JOB, move |job| {
            let shapes = rewriting.clone();
            async move {
                let Rewrite { rewrite_id } = job.payload.parse().map_err(JobError::give_up)?;
                rewrite::run(&job.db, &shapes, rewrite_id).await?;
                Ok(())
            }
        })
        .every("data.collections.count", Duration::from_secs(3600), |job| async move {
            count::recount(&job.db).await?;
            Ok(())
        })
        .handle(compute::RECOMPUTE, move |job| {
            let shapes = recomputing.clone();
            async move { Ok(compute::recompute(&shapes, job).await?) }
        })
        .handle(links::CASCADE, move |job| {
            let shapes = cascading.clone();
            async move { Ok(links::cascade(&shapes, job).await?) }
        })
        .handle(purge::EMPTY, move |job| purge::empty(emptying.clone(), job))
        .every(purge::PURGE, Duration::from_secs(3600), move |job| purge::purge_old(purging.clone(), job))
        .every(purge::FORGET, Duration::from_secs(24 * 3600), purge::forget)
}
