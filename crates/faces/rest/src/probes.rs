//! Health and readiness probes for process managers and load balancers.

use actix_web::HttpResponse;
use actix_web::web::Data;
use operation::Pipeline;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Db;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Timeout of the database check.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a result is cached, because callers need no key.
const FRESH: Duration = Duration::from_secs(1);

/// The readiness of this process to receive requests.
pub struct Readiness {
    db: Db,
    is_stopping: AtomicBool,
    last: Mutex<Option<(Instant, Option<NotReady>)>>,
}

/// The reason why the process should receive no requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotReady {
    Stopping,
    Database,
    Migrations,
    StorageFull,
}

impl Readiness {
    /// Creates the readiness of a process with this database.
    pub fn new(db: Db) -> Self {
        Self { db, is_stopping: AtomicBool::new(false), last: Mutex::new(None) }
    }

    /// Marks the process as stopping.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    async fn problem(&self) -> Option<NotReady> {
        if self.is_stopping.load(Ordering::Acquire) {
            return Some(NotReady::Stopping);
        }
        let mut last = self.last.lock().await;
        if let Some((at, problem)) = *last
            && at.elapsed() < FRESH
        {
            return problem;
        }
        let problem = match timeout(PATIENCE, self.look()).await {
            Ok(Ok(problem)) => problem,
            Ok(Err(error)) => {
                tracing::warn!(?error, "not ready: the database failed");
                Some(NotReady::Database)
            }
            Err(_) => {
                tracing::warn!("not ready: the database took too long");
                Some(NotReady::Database)
            }
        };
        *last = Some((Instant::now(), problem));
        problem
    }

    async fn look(&self) -> model::Result<Option<NotReady>> {
        if !self.db.is_current().await? {
            return Ok(Some(NotReady::Migrations));
        }
        Ok(if self.db.has_room().await? { None } else { Some(NotReady::StorageFull) })
    }
}

/// Responds that the process is running, and whether Redis works. Does not use the database, so that a slow database
/// does not cause restarts.
pub(crate) async fn health(pipeline: Data<Pipeline>) -> HttpResponse {
    let body = match pipeline.rates.redis_answers() {
        None => "{\"status\":\"ok\"}",
        Some(true) => "{\"status\":\"ok\",\"redis\":\"ok\"}",
        Some(false) => "{\"status\":\"ok\",\"redis\":\"down\"}",
    };
    HttpResponse::Ok().content_type("application/json").body(body)
}

/// Responds whether the process should receive requests: the database responds, has the schema of this version and
/// free space, and the process is not stopping.
pub(crate) async fn ready(readiness: Data<Readiness>) -> HttpResponse {
    let reason = match readiness.problem().await {
        None => {
            let body = "{\"status\":\"ready\"}";
            return HttpResponse::Ok().content_type("application/json").body(body);
        }
        Some(NotReady::Stopping) => "stopping",
        Some(NotReady::Database) => "database_unavailable",
        Some(NotReady::Migrations) => "migrations_pending",
        Some(NotReady::StorageFull) => "storage_full",
    };
    let body = format!("{{\"status\":\"not_ready\",\"reason\":\"{reason}\"}}");
    HttpResponse::ServiceUnavailable().content_type("application/json").body(body)
}
