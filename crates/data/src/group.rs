//! What this group adds to the service.

use crate::imports::ItemImports;
use crate::items::ITEMS;
use crate::{Collections, ItemLinks, Items, collections};
use ::jobs::Job;
use files::{DownloadRoute, FileTargets, Files, PermanentRoute, sweep};
use model::Result;
use operation::{Group, Registry};
use records::query::Planner;
use records::shape::Shapes;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::Retention;
use transfer::exports::Exporter;
use transfer::imports::{self, Importer, Target};

/// Adds the areas.
///
/// # Errors
/// When two operations claim the same address or id.
pub fn areas(registry: Registry) -> Result<Registry> {
    registry.with::<Collections>()?.with::<Items>()?.with::<ItemLinks>()
}

/// Collections, items and links, with the engine and the files that they stand on.
pub fn group(db: &Db, files: &Arc<Files>, activity: Retention) -> Group {
    let shapes = Arc::new(Shapes::new([&ITEMS]));
    let targets: Vec<Arc<dyn Target>> = vec![Arc::new(ItemImports)];
    let importer = Arc::new(Importer::new(files.clone(), shapes.clone(), targets));
    let exporter = Arc::new(Exporter::new(db.clone(), shapes.clone()));
    let sweeping = files.clone();
    Group::default()
        .jobs(records::jobs(&shapes, activity))
        .jobs(collections::jobs(&shapes))
        .job(Job::every(
            "files.sweep",
            Duration::from_secs(3600),
            "deletes uploads that were not completed within a day",
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
        .shared_service(shapes)
        .service(Planner::new(db.clone()))
}
