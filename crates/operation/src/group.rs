//! A group of areas: what it adds to the service, declared once.

use crate::log::purge_request_logs;
use crate::metrics::{TableGauge, logs};
use crate::ports::{ContactReferences, FileReferences, LinkTargets, OpenWork, VariableUsers};
use crate::{RawRoute, Registry, Services};
use jobs::{Job, JobError};
use model::Result;
use prometheus::core::Collector;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use store::logs::{Logs, Retention};

/// Adds a group's areas to a registry, in the order of the published documents.
pub type Areas = fn(Registry) -> Result<Registry>;

/// What a group adds to the service beside its areas. A function of the group makes it, of the ports and settings that the
/// group needs; the composition puts all groups together.
#[derive(Default)]
pub struct Group {
    /// What it does in the background.
    pub jobs: Vec<Job>,
    /// What it serves beside the API. No prefix may begin that of another.
    pub raw_routes: Vec<Arc<dyn RawRoute>>,
    /// What its operations ask for by type.
    pub services: Services,
    /// Its objects that links may point at.
    pub link_targets: Vec<Arc<dyn LinkTargets>>,
    /// Its objects that can be assigned to members of the team.
    pub open_work: Vec<Arc<dyn OpenWork>>,
    /// Its objects that can refer to variables.
    pub variable_users: Vec<Arc<dyn VariableUsers>>,
    /// Which of its objects refer to files.
    pub file_references: Vec<Arc<dyn FileReferences>>,
    /// Which of its objects refer to contacts.
    pub contact_references: Vec<Arc<dyn ContactReferences>>,
    /// What it counts while it works.
    pub metrics: Vec<Box<dyn Collector>>,
    /// What of its tables is counted for the metrics.
    pub table_gauges: Vec<TableGauge>,
}

impl Group {
    /// Adds a job.
    #[must_use]
    pub fn job(mut self, job: Job) -> Self {
        self.jobs.push(job);
        self
    }

    /// Adds jobs.
    #[must_use]
    pub fn jobs(mut self, jobs: impl IntoIterator<Item = Job>) -> Self {
        self.jobs.extend(jobs);
        self
    }

    /// Adds something that is served beside the API.
    #[must_use]
    pub fn raw_route(mut self, route: impl RawRoute + 'static) -> Self {
        self.raw_routes.push(Arc::new(route));
        self
    }

    /// Adds something that operations ask for by its type.
    #[must_use]
    pub fn service<T: Any + Send + Sync>(self, service: T) -> Self {
        self.shared_service(Arc::new(service))
    }

    /// Adds something that operations ask for by its type, and that is shared with somebody else already.
    #[must_use]
    pub fn shared_service<T: Any + Send + Sync>(mut self, service: Arc<T>) -> Self {
        self.services = self.services.with_shared(service);
        self
    }

    /// Adds objects that links may point at.
    #[must_use]
    pub fn link_target(mut self, targets: impl LinkTargets + 'static) -> Self {
        self.link_targets.push(Arc::new(targets));
        self
    }

    /// Adds objects that can be assigned to members of the team.
    #[must_use]
    pub fn open_work(mut self, work: impl OpenWork + 'static) -> Self {
        self.open_work.push(Arc::new(work));
        self
    }

    /// Adds objects that can refer to variables.
    #[must_use]
    pub fn variable_users(mut self, users: impl VariableUsers + 'static) -> Self {
        self.variable_users.push(Arc::new(users));
        self
    }

    /// Adds objects that refer to files.
    #[must_use]
    pub fn file_references(mut self, references: impl FileReferences + 'static) -> Self {
        self.file_references.push(Arc::new(references));
        self
    }

    /// Adds objects that refer to contacts.
    #[must_use]
    pub fn contact_references(mut self, references: impl ContactReferences + 'static) -> Self {
        self.contact_references.push(Arc::new(references));
        self
    }

    /// Adds metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: impl IntoIterator<Item = Box<dyn Collector>>) -> Self {
        self.metrics.extend(metrics);
        self
    }

    /// Adds a metric of what is in the database.
    #[must_use]
    pub fn table_gauge(mut self, gauge: TableGauge) -> Self {
        self.table_gauges.push(gauge);
        self
    }
}

/// What the database itself needs.
fn database_jobs(group: Group) -> Group {
    group
        .job(Job::every(
            "database.analyze",
            Duration::from_secs(5),
            "PostgreSQL: analyzes tables that have doubled",
            |job| async move {
                job.db.analyze_grown().await?;
                Ok(())
            },
        ))
        .job(Job::every(
            "database.tidy",
            Duration::from_secs(3600),
            "SQLite: checkpoints the write-ahead log",
            |job| async move {
                job.db.tidy().await?;
                Ok(())
            },
        ))
}

/// What the crates below the groups do in the background. `bounded` are the logs of the whole service.
pub fn foundation(request_log: Retention, bounded: Logs) -> Group {
    let seconds = Duration::from_secs;
    database_jobs(Group::default())
        .job(Job::every(
            "idempotency.purge",
            seconds(600),
            "deletes stored responses after 24 hours",
            |job| async move {
                while job.db.write(auth::idempotency::purge).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "jobs.purge",
            seconds(24 * 3600),
            "deletes jobs that were given up 30 days ago",
            |job| async move {
                while job.db.write(jobs::purge_failed).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "request_logs.purge",
            seconds(3600),
            "deletes rows after their time",
            move |job| async move {
                while job.db.write(move |tx| purge_request_logs(tx, request_log)).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "logs.trim",
            seconds(10),
            "deletes the oldest rows of logs that are too large",
            move |job| {
                let logs = bounded.clone();
                async move {
                    let done = logs.trim(&job.db, &job.soft).await?;
                    if done { Ok(()) } else { Err(JobError::hand_back()) }
                }
            },
        ))
        .table_gauge(TableGauge::new("svc_jobs_due", "Jobs that are due and not running.", |read| {
            Ok(vec![("".into(), jobs::due_before(read, read.now())?)])
        }))
        .table_gauge(TableGauge::new(
            "svc_jobs_late",
            "Jobs that have been due for more than a minute and are not running.",
            |read| Ok(vec![("".into(), jobs::due_before(read, read.now().plus_seconds(-60))?)]),
        ))
        .table_gauge(logs::ROWS)
        .table_gauge(logs::BYTES)
}
