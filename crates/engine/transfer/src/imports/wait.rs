//! Waiting for the end of an import, for requests with `wait_seconds`.

use super::model::ImportRow;
use super::queries;
use model::{Error, ImportId, Result};
use std::time::Duration;
use store::Db;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// The poll interval for imports that another replica may run.
const LOOK: Duration = Duration::from_secs(1);

/// Notifications about imports that end in this process.
#[derive(Debug, Default)]
pub struct ImportEnds(Notify);

impl ImportEnds {
    pub(super) fn notify(&self) {
        self.0.notify_waiters();
    }

    /// Returns the import once it has ended, or as it is after `seconds`.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn wait(&self, db: &Db, id: &ImportId, seconds: u8) -> Result<ImportRow> {
        let until = Instant::now() + Duration::from_secs(seconds.into());
        loop {
            let mut ended = std::pin::pin!(self.0.notified());
            // Register before the query, so that no notification between the query and the wait is missed.
            ended.as_mut().enable();
            let wanted = id.clone();
            let row = db.read(move |read| queries::by_id(read, &wanted)).await?;
            let row = row.ok_or_else(|| Error::not_found("import"))?;
            let now = Instant::now();
            if row.status.is_final() || now >= until {
                return Ok(row);
            }
            // On SQLite there is only this process, so the notification suffices.
            let next = if db.backend().is_postgres() { until.min(now + LOOK) } else { until };
            let _ = timeout_at(next, ended).await;
        }
    }
}
