//! What the record engine and the files below all groups add to the service.

use crate::exports::Exporter;
use crate::imports::{self, Importer, Target};
use files::{DownloadRoute, FileTargets, Files, PermanentRoute, sweep};
use jobs::Job;
use operation::Group;
use query::Planner;
use records::shape::Shapes;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::Retention;

/// The record engine with its imports and exports, and the files. `shapes` has the kinds of all groups, and `targets` what
/// each of them adds to imports and exports.
pub fn group(
    db: &Db,
    files: &Arc<Files>,
    shapes: &Arc<Shapes>,
    targets: Vec<Arc<dyn Target>>,
    activity: Retention,
) -> Group {
    let exporter = Arc::new(Exporter::new(db.clone(), shapes.clone(), &targets));
    let importer = Arc::new(Importer::new(files.clone(), shapes.clone(), targets));
    let import_ends = importer.ends();
    let sweeping = files.clone();
    Group::default()
        .jobs(records::jobs(shapes, activity))
        .jobs(query::jobs(shapes))
        .job(Job::every(
            "files.sweep",
            Duration::from_secs(3600),
            "deletes unfinished uploads after a day, and deleted files after 30 days",
            move |job| {
                let files = sweeping.clone();
                async move {
                    sweep(&job.db, &files).await?;
                    Ok(())
                }
            },
        ))
        .job(imports::job(importer))
        .raw_route(PermanentRoute { db: db.clone(), files: files.clone() })
        .raw_route(DownloadRoute { db: db.clone(), files: files.clone(), generator: exporter })
        .link_target(FileTargets)
        .shared_service(files.clone())
        .shared_service(shapes.clone())
        .shared_service(import_ends)
        .service(Planner::with_cache(db.clone()))
}
