//! What the data engine does in the background.

use crate::items::purge;
use crate::shape::Shapes;
use crate::{compute, links};
use ::jobs::Runner;
use std::sync::Arc;
use std::time::Duration;

/// Adds it to a runner.
#[must_use]
pub fn handle(runner: Runner, shapes: &Arc<Shapes>) -> Runner {
    let [recomputing, cascading, emptying, purging] = std::array::from_fn(|_| shapes.clone());
    runner
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
