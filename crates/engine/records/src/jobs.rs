//! The engine's work in the background.

use crate::definitions::rewrite;
use crate::rows::purge;
use crate::shape::Shapes;
use crate::{columnar, compute, count, indexes, links};
use ::jobs::{Job, JobError};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct Rewrite {
    rewrite_id: i64,
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The engine's jobs.
pub fn jobs(shapes: &Arc<Shapes>) -> Vec<Job> {
    let [recomputing, cascading, emptying, purging, rewriting] = std::array::from_fn(|_| shapes.clone());
    let mut jobs = vec![
        Job::after(
            rewrite::JOB,
            "a field changes its type, its choices or goes",
            "converts the items",
            move |job| {
                let shapes = rewriting.clone();
                async move {
                    let Rewrite { rewrite_id } = job.payload.parse().map_err(JobError::give_up)?;
                    rewrite::run(&job.db, &shapes, rewrite_id).await?;
                    Ok(())
                }
            },
        ),
        Job::every("data.collections.count", HOUR, "recounts items", |job| async move {
            count::recount(&job.db).await?;
            Ok(())
        }),
        Job::after(
            compute::RECOMPUTE,
            "values that others are computed from change",
            "computes rollups, lookups and formulas",
            move |job| {
                let shapes = recomputing.clone();
                async move { Ok(compute::recompute(&shapes, job).await?) }
            },
        ),
        Job::after(
            links::CASCADE,
            "an item with many links is trashed",
            "moves the items that follow it to the trash",
            move |job| {
                let shapes = cascading.clone();
                async move { Ok(links::cascade(&shapes, job).await?) }
            },
        ),
        Job::after(purge::EMPTY, "the trash is emptied", "deletes its items permanently", move |job| {
            purge::empty(emptying.clone(), job)
        }),
        Job::every(
            purge::PURGE,
            HOUR,
            "permanently deletes what has been in the trash for 30 days",
            move |job| purge::purge_old(purging.clone(), job),
        ),
        Job::every(purge::FORGET, DAY, "deletes activity that its collection keeps no longer", purge::forget),
    ];
    jobs.push(columnar::job(shapes));
    jobs.push(indexes::build_job(shapes));
    jobs
}
