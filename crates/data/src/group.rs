//! What this group adds to the service.

use crate::exports::Exporter;
use crate::files::{DownloadRoute, Files, PermanentRoute, sweep};
use crate::imports::{self, Importer};
use crate::query::Planner;
use crate::shape::Shapes;
use crate::{Collections, ItemLinks, Items, collections};
use ::jobs::{Job, Runner};
use model::Result;
use operation::{Group, Registry};
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Collections>()?.with::<Items>()?.with::<ItemLinks>()
}

/// Collections, items and links, with their files.
pub fn group(db: &Db, files: &Arc<Files>) -> Group {
    let shapes = Arc::new(Shapes::default());
    let importer = Arc::new(Importer { files: files.clone(), shapes: shapes.clone() });
    let exporter = Arc::new(Exporter::new(db.clone(), shapes.clone()));
    let sweeping = files.clone();
    Group::default()
        .jobs(described(db, &shapes))
        .job(Job::every(
            "files.sweep",
            Duration::from_secs(3600),
            "gives up uploads that did not end within a day",
            move |job| {
                let files = sweeping.clone();
                async move {
                    sweep(&job.db, &files).await?;
                    Ok(())
                }
            },
        ))
        .job(
            Job::after(imports::JOB, "an import is confirmed", "imports", move |job| {
                imports::run(job, importer.clone())
            })
            .up_to(imports::ATTEMPTS),
        )
        .raw_route(PermanentRoute { db: db.clone(), files: files.clone() })
        .raw_route(DownloadRoute { db: db.clone(), files: files.clone(), exporter })
        .shared_service(files.clone())
        .shared_service(shapes)
        .service(Planner::new(db.clone()))
}

/// When the engine's jobs run, where they are enqueued, and what they do.
const DESCRIPTIONS: [(&str, &str, &str); 12] = [
    ("data.items.rewrite", "a field changes its type, its choices or goes", "brings the items after it"),
    ("data.collection.copy", "a collection is duplicated", "copies its items"),
    ("data.collection.purge", "a collection is deleted", "deletes its items"),
    ("data.collections.count", "", "counts items anew"),
    ("data.index.build", "an index is made", "builds it"),
    ("data.index.wish", "queries wish for an index", "makes it"),
    ("data.index.retire", "", "drops automatic indexes that nobody uses"),
    (
        "data.recompute",
        "values that others are computed from change",
        "computes rollups, lookups and formulas",
    ),
    ("data.links.cascade", "an item with many links is trashed", "takes its links along"),
    ("data.items.empty_trash", "the trash is emptied", "deletes its items for good"),
    ("data.items.purge", "", "deletes for good what was in the trash for its time"),
    ("data.activity.purge", "", "forgets old activity"),
];

/// The engine's jobs.
fn described(db: &Db, shapes: &Arc<Shapes>) -> Vec<Job> {
    let runner = collections::handle_index_jobs(Runner::new(db.clone()), shapes);
    let runner = crate::jobs::handle(collections::handle_jobs(runner, shapes), shapes);
    let described = runner.jobs().map(|job| {
        let description = DESCRIPTIONS.iter().find(|(kind, ..)| *kind == job.kind());
        description.map_or_else(|| job.clone(), |(_, cause, does)| job.clone().described(cause, does))
    });
    described.collect()
}
