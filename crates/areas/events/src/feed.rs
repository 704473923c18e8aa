//! Notification of requests that wait for events.

use super::queries;
use model::{Result, WorkspaceId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Db;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// How often the database is polled while a request waits: another replica may have added to the log.
const POLL: Duration = Duration::from_millis(25);
/// The most positions that are read at a time.
const MOST_READ: i64 = 1000;

/// Wakes requests that wait for a workspace's events. One per process.
pub struct Feed {
    waiting: Mutex<HashMap<WorkspaceId, watch::Sender<i64>>>,
    /// The last position that was published; 0 before the first.
    published: AtomicI64,
    /// The last position, for those who read the events of all workspaces.
    placed: watch::Sender<i64>,
    /// Held by the one that polls the database on behalf of all that wait here.
    polling: tokio::sync::Mutex<()>,
}

impl Feed {
    /// A feed of a log of which nothing is known yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            published: AtomicI64::new(0),
            placed: watch::Sender::new(0),
            polling: tokio::sync::Mutex::default(),
        })
    }

    /// Wakes those that wait for these workspaces: the log has these positions now.
    pub fn publish(&self, positions: &[(i64, WorkspaceId)]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for (position, workspace) in positions {
            if let Some(sender) = waiting.get(workspace) {
                sender.send_if_modified(|last| *position > std::mem::replace(last, (*last).max(*position)));
            }
            self.mark_published(*position);
        }
        waiting.retain(|_, sender| sender.receiver_count() > 0);
    }

    /// Notes that the log has this position.
    pub(super) fn mark_published(&self, position: i64) {
        self.published.fetch_max(position, Ordering::AcqRel);
        self.placed.send_if_modified(|last| position > std::mem::replace(last, (*last).max(position)));
    }

    /// Changes when this process has placed events, or has seen those of others.
    pub(crate) fn placed(&self) -> watch::Receiver<i64> {
        self.placed.subscribe()
    }

    pub(super) fn subscribe(&self, workspace: WorkspaceId) -> watch::Receiver<i64> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(workspace).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Waits until the workspace has new events, or `until`. On PostgreSQL one of those that wait polls the database for
    /// all of them, so that what other replicas add to the log is seen within [`POLL`], and nobody polls while nobody waits.
    pub(super) async fn wait(
        &self,
        db: &Db,
        receiver: &mut watch::Receiver<i64>,
        until: Instant,
    ) -> Result<()> {
        let polling = async {
            if !db.backend().is_postgres() {
                std::future::pending::<()>().await;
            }
            let _guard = self.polling.lock().await;
            loop {
                sleep(POLL).await;
                let after = self.published.load(Ordering::Acquire);
                let positions = db.read(move |read| queries::positions(read, after, MOST_READ)).await?;
                self.publish(&positions);
            }
        };
        tokio::select! {
            changed = timeout_at(until, receiver.changed()) => {
                let _ = changed;
                Ok(())
            }
            failed = polling => failed,
        }
    }
}
