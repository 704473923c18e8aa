//! A group of areas, which declares in one place everything that it adds to the service.

use crate::log::REQUEST_LOG;
use crate::metrics::{TableGauge, logs};
use crate::request_hours;
use crate::{Domain, RawRoute, Registry, Services};
use accounts::{AUDIT_LOG, Passwords, SignIn};
use auth::SealedTable;
use jobs::{Job, JobError};
use model::{Error, Result};
use prometheus::core::Collector;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::logs::{LogKind, Logs};

/// A group of areas, as the list of the program has it.
#[derive(Clone, Copy)]
pub struct Group {
    /// Adds the group's declarations. The database is not open yet.
    pub declare: fn(Declarations) -> Result<Declarations>,
    /// Creates the running parts from the services of the program and of the groups before it in the list.
    pub start: fn(&Services) -> Result<Parts>,
}

/// The declarations of all groups.
#[derive(Default)]
pub struct Declarations {
    areas: Vec<(u16, AddArea)>,
    /// The tables with sealed values. Values cannot be sealed for any other table.
    pub sealed: Vec<&'static SealedTable>,
    /// The logs that are bounded by age and size.
    pub logs: Vec<LogKind>,
    /// Services that need no database: ports that groups earlier in the list use, and kinds of records.
    pub services: Services,
}

type AddArea = fn(Registry) -> Result<Registry>;

impl Declarations {
    /// Adds an area.
    #[must_use]
    pub fn area<D: Domain>(mut self) -> Self {
        self.areas.push((D::ORDER, Registry::with::<D>));
        self
    }

    /// Adds tables with sealed values.
    #[must_use]
    pub fn sealed(mut self, tables: impl IntoIterator<Item = &'static SealedTable>) -> Self {
        self.sealed.extend(tables);
        self
    }

    /// Adds a log that is bounded by age and size.
    #[must_use]
    pub fn log(mut self, log: LogKind) -> Self {
        self.logs.push(log);
        self
    }

    /// Adds a service that needs no database.
    #[must_use]
    pub fn service<T: Any + Send + Sync>(mut self, service: T) -> Self {
        self.services = self.services.with(service);
        self
    }

    /// Adds one of several services of a type, such as a kind of records.
    #[must_use]
    pub fn one_of<T: Any + Send + Sync>(mut self, service: T) -> Self {
        self.services = self.services.with_one_of(service);
        self
    }

    /// Returns the operations of all areas, in the order of the published documents.
    ///
    /// # Errors
    /// `internal_error` when two operations have the same address or id.
    pub fn registry(&self) -> Result<Registry> {
        let mut areas = self.areas.clone();
        areas.sort_by_key(|(order, _)| *order);
        areas.into_iter().try_fold(Registry::new(), |registry, (_, add)| add(registry))
    }
}

/// The parts that a group adds to the running service.
#[derive(Default)]
pub struct Parts {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The routes outside the API. No prefix may be the beginning of another.
    pub raw_routes: Vec<Arc<dyn RawRoute>>,
    /// The services that operations and later groups request by type.
    pub services: Services,
    /// The metrics that are counted while the service works.
    pub metrics: Vec<Box<dyn Collector>>,
    /// The metrics that are read from the group's tables.
    pub table_gauges: Vec<TableGauge>,
}

impl Parts {
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

    /// Adds a route outside the API.
    #[must_use]
    pub fn raw_route(mut self, route: impl RawRoute + 'static) -> Self {
        self.raw_routes.push(Arc::new(route));
        self
    }

    /// Adds a service.
    #[must_use]
    pub fn service<T: Any + Send + Sync>(self, service: T) -> Self {
        self.shared_service(Arc::new(service))
    }

    /// Adds a service that is already shared.
    #[must_use]
    pub fn shared_service<T: Any + Send + Sync>(mut self, service: Arc<T>) -> Self {
        self.services = self.services.with_shared(service);
        self
    }

    /// Adds one of several services of a type, such as the objects of one type to which links can point.
    #[must_use]
    pub fn one_of<T: Any + Send + Sync>(mut self, service: T) -> Self {
        self.services = self.services.with_one_of(service);
        self
    }

    /// Adds metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: impl IntoIterator<Item = Box<dyn Collector>>) -> Self {
        self.metrics.extend(metrics);
        self
    }

    /// Adds a metric that is read from the database.
    #[must_use]
    pub fn table_gauge(mut self, gauge: TableGauge) -> Self {
        self.table_gauges.push(gauge);
        self
    }

    /// Adds all parts of another group.
    ///
    /// # Errors
    /// `internal_error` when two jobs have the same name: the runner would run one of them for the rows of both.
    pub fn and(mut self, others: Self) -> Result<Self> {
        for job in others.jobs {
            if self.jobs.iter().any(|other| other.kind() == job.kind()) {
                return Err(Error::internal(format!("two jobs have the name {}", job.kind())));
            }
            self.jobs.push(job);
        }
        self.raw_routes.extend(others.raw_routes);
        self.services = self.services.and(others.services);
        self.metrics.extend(others.metrics);
        self.table_gauges.extend(others.table_gauges);
        Ok(self)
    }
}

/// The group of the foundation crates, which all other groups use.
pub const FOUNDATION: Group = Group {
    declare: |declarations| {
        Ok(declarations.sealed(auth::SEALED.iter().copied()).log(REQUEST_LOG).log(AUDIT_LOG))
    },
    start: foundation,
};

fn foundation(services: &Services) -> Result<Parts> {
    let seconds = Duration::from_secs;
    let bounded: Logs = services.cloned()?;
    let parts = database_jobs(Parts::default())
        .service(sign_in(services)?)
        .jobs(accounts::jobs())
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
            "request_hours.purge",
            seconds(3600),
            "deletes the hourly sums of requests after 90 days",
            |job| async move {
                while job.db.write(request_hours::purge).await? > 0 {}
                Ok(())
            },
        ))
        .job(Job::every(
            "logs.trim",
            seconds(10),
            "deletes rows of logs after their time, and the oldest rows of logs that are too large",
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
        .table_gauge(logs::BYTES);
    Ok(parts)
}

/// Creates the service that signs people in.
fn sign_in(services: &Services) -> Result<SignIn> {
    let db: Db = services.cloned()?;
    let passwords = Arc::new(Passwords::new(db.random()));
    Ok(SignIn::new(db, passwords, services.get()?, services.get()?))
}

/// Adds the jobs that maintain the database.
fn database_jobs(parts: Parts) -> Parts {
    parts
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_one_job() {
        let parts = |kind| Parts::default().job(Job::after(kind, "", "", |_| async { Ok(()) }));
        let both = parts("a").and(parts("b")).unwrap();
        assert_eq!(both.jobs.len(), 2);
        let error = both.and(parts("a")).err().unwrap();
        assert_eq!(error.cause().unwrap().to_string(), "two jobs have the name a");
    }
}
