//! The background jobs of collections.

use super::{copy, purge};
use ::jobs::{Job, JobError};
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

/// Builds the jobs that copy and purge collections.
pub fn jobs(shapes: &Arc<Shapes>) -> Vec<Job> {
    let copying = shapes.clone();
    vec![
        Job::after(copy::JOB, "a collection is duplicated", "copies its items", move |job| {
            let shapes = copying.clone();
            async move {
                let Copy { copy_id } = job.payload.parse().map_err(JobError::give_up)?;
                copy::run(&job.db, &shapes, copy_id).await?;
                Ok(())
            }
        }),
        Job::after(purge::JOB, "a collection is deleted", "deletes its items", |job| async move {
            let Purge { collection_id } = job.payload.parse().map_err(JobError::give_up)?;
            purge::run(&job.db, collection_id).await?;
            Ok(())
        }),
    ]
}
