//! The group of the record engine and files, which are the basis of all areas.

use crate::exports::Exporter;
use crate::imports::{self, Importer, Target};
use files::{DownloadRoute, FileTargets, Files, PermanentRoute, sweep};
use jobs::Job;
use operation::{Group, Parts, Services};
use ports::LinkTargets;
use query::Planner;
use records::activity::ACTIVITY_LOG;
use records::shape::Shapes;
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// The record engine with its imports and exports, and the files.
pub const ENGINE: Group = Group { declare: |declarations| Ok(declarations.log(ACTIVITY_LOG)), start };

fn start(services: &Services) -> model::Result<Parts> {
    let (db, files) = (services.cloned::<Db>()?, services.get::<Files>()?);
    let (shapes, targets) = (services.get::<Shapes>()?, services.all::<Arc<dyn Target>>());
    let exporter = Arc::new(Exporter::new(db.clone(), shapes.clone(), &targets));
    let importer = Arc::new(Importer::new(files.clone(), shapes.clone(), targets));
    let import_ends = importer.ends();
    let parts = Parts::default()
        .jobs(records::jobs(&shapes))
        .jobs(query::jobs(&shapes))
        .job(sweep_job(files.clone()))
        .job(imports::job(importer))
        .raw_route(PermanentRoute { db: db.clone(), files: files.clone() })
        .raw_route(DownloadRoute { db: db.clone(), files, generator: exporter })
        .one_of::<Arc<dyn LinkTargets>>(Arc::new(FileTargets))
        .shared_service(import_ends)
        .service(Planner::with_cache(db));
    Ok(parts)
}

fn sweep_job(files: Arc<Files>) -> Job {
    Job::every(
        "files.sweep",
        Duration::from_secs(3600),
        "deletes unfinished uploads after a day, and deleted files after 30 days",
        move |job| {
            let files = files.clone();
            async move {
                sweep(&job.db, &files).await?;
                Ok(())
            }
        },
    )
}
