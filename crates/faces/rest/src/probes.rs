//! What process managers and load balancers ask.

use actix_web::HttpResponse;
use actix_web::web::Data;
use operation::Pipeline;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::Db;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long the database has for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an answer is given to further callers, who need no key.
const FRESH: Duration = Duration::from_secs(1);

/// Whether requests should be sent to this process.
pub struct Readiness {
    db: Db,
    is_stopping: AtomicBool,
    last: Mutex<Option<(Instant, Option<NotReady>)>>,
}

/// Why no requests should be sent here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotReady {
    Stopping,
    Database,
    Migrations,
    StorageFull,
}

impl Readiness {
    /// Of a process on this database.
    pub fn new(db: Db) -> Self {
        Self { db, is_stopping: AtomicBool::new(false), last: Mutex::new(None) }
    }

    /// Says that the process is about to end.
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

/// Says that the process serves, and whether it counts requests together with the other replicas. It asks nothing of
/// the database, so that a slow one does not get it restarted.
pub(crate) async fn health(pipeline: Data<Pipeline>) -> HttpResponse {
    let body = match pipeline.rates.redis_answers() {
        None => "{\"status\":\"ok\"}",
        Some(true) => "{\"status\":\"ok\",\"redis\":\"ok\"}",
        Some(false) => "{\"status\":\"ok\",\"redis\":\"down\"}",
    };
    HttpResponse::Ok().content_type("application/json").body(body)
}

/// Says whether requests should be sent here: the database answers, has this program's schema and room to write, and the
/// process is not stopping.
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
