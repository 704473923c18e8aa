//! What happens to collections in the background.

use super::definitions::rewrite;
use super::{copy, count, purge};
use crate::shape::Shapes;
use jobs::{JobError, Runner};
use model::CollectionId;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct Rewrite {
    rewrite_id: i64,
}

#[derive(Deserialize)]
struct Copy {
    copy_id: i64,
}

#[derive(Deserialize)]
struct Purge {
    collection_id: CollectionId,
}

/// Gives a runner the handlers of this module's jobs.
#[must_use]
pub fn handle_jobs(runner: Runner, shapes: &Arc<Shapes>) -> Runner {
    let (shapes, copying) = (shapes.clone(), shapes.clone());
    runner
        .handle(copy::JOB, move |job| {
            let shapes = copying.clone();
            async move {
                let Copy { copy_id } = job.payload.parse().map_err(JobError::give_up)?;
                copy::run(&job.db, &shapes, copy_id).await?;
                Ok(())
            }
        })
        .handle(rewrite::JOB, move |job| {
            let shapes = shapes.clone();
            async move {
                let Rewrite { rewrite_id } = job.payload.parse().map_err(JobError::give_up)?;
                rewrite::run(&job.db, &shapes, rewrite_id).await?;
                Ok(())
            }
        })
        .handle(purge::JOB, |job| async move {
            let Purge { collection_id } = job.payload.parse().map_err(JobError::give_up)?;
            purge::run(&job.db, collection_id).await?;
            Ok(())
        })
        .every("data.collections.count", Duration::from_secs(3600), |job| async move {
            count::recount(&job.db).await?;
            Ok(())
        })
}
