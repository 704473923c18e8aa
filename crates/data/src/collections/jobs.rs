//! What happens to collections in the background.

use super::{copy, purge};
use jobs::{JobError, Runner};
use model::CollectionId;
use records::shape::Shapes;
use serde::Deserialize;
use std::sync::Arc;

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
    let copying = shapes.clone();
    runner
        .handle(copy::JOB, move |job| {
            let shapes = copying.clone();
            async move {
                let Copy { copy_id } = job.payload.parse().map_err(JobError::give_up)?;
                copy::run(&job.db, &shapes, copy_id).await?;
                Ok(())
            }
        })
        .handle(purge::JOB, |job| async move {
            let Purge { collection_id } = job.payload.parse().map_err(JobError::give_up)?;
            purge::run(&job.db, collection_id).await?;
            Ok(())
        })
}
