//! Health and readiness probes for process managers and load balancers.

use actix_web::HttpResponse;
use actix_web::web::Data;
use model::Result;
use operation::Pipeline;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use store::{Db, Read};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Timeout of the database check.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a result is cached, because callers need no key.
const FRESH: Duration = Duration::from_secs(1);

/// The readiness of this process to receive requests.
pub struct Readiness {
    db: Db,
    behind: fn(&mut Read) -> Result<Vec<String>>,
    is_stopping: AtomicBool,
    last: Mutex<Option<(Instant, Found)>>,
}

/// The result of a check: the readers of the event log that are far behind, or the reason to receive no requests.
type Found = std::result::Result<Vec<String>, NotReady>;

/// The reason why the process should receive no requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotReady {
    Stopping,
    Database,
    Migrations,
    StorageFull,
}

impl Readiness {
    /// Creates the readiness of a process with this database. `behind` names the readers of the event log that are far
    /// behind. They do not keep the process from serving requests.
    pub fn new(db: Db, behind: fn(&mut Read) -> Result<Vec<String>>) -> Self {
        Self { db, behind, is_stopping: AtomicBool::new(false), last: Mutex::new(None) }
    }

    /// Marks the process as stopping.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    async fn found(&self) -> Found {
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(NotReady::Stopping);
        }
        let mut last = self.last.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < FRESH
        {
            return found.clone();
        }
        let found = match timeout(PATIENCE, self.look()).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                tracing::warn!(?error, "not ready: the database failed");
                Err(NotReady::Database)
            }
            Err(_) => {
                tracing::warn!("not ready: the database took too long");
                Err(NotReady::Database)
            }
        };
        *last = Some((Instant::now(), found.clone()));
        found
    }

    async fn look(&self) -> Result<Found> {
        if !self.db.is_current().await? {
            return Ok(Err(NotReady::Migrations));
        }
        if !self.db.has_room().await? {
            return Ok(Err(NotReady::StorageFull));
        }
        let behind = self.behind;
        self.db.read(behind).await.map(Ok)
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
/// free space, and the process is not stopping. The response names the readers of the event log that are far behind.
pub(crate) async fn ready(readiness: Data<Readiness>) -> HttpResponse {
    let reason = match readiness.found().await {
        Ok(behind) => {
            let body = if behind.is_empty() {
                json!({ "status": "ready" })
            } else {
                json!({ "status": "ready", "event_readers_behind": behind })
            };
            return HttpResponse::Ok().content_type("application/json").body(body.to_string());
        }
        Err(NotReady::Stopping) => "stopping",
        Err(NotReady::Database) => "database_unavailable",
        Err(NotReady::Migrations) => "migrations_pending",
        Err(NotReady::StorageFull) => "storage_full",
    };
    let body = format!("{{\"status\":\"not_ready\",\"reason\":\"{reason}\"}}");
    HttpResponse::ServiceUnavailable().content_type("application/json").body(body)
}
