//! Readers at work: each takes its turns in a task of its own.

use super::EventConsumer;
use super::turn::{EventReader, Turn};
use crate::{Catalogue, Feed};
use model::Result;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often to look for events that another process has placed, and for a lease that has become free.
const POLL: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The readers of all consumers. Cheap to clone; [`Readers::start`] makes them work.
#[derive(Clone)]
pub struct Readers {
    db: Db,
    catalogue: Arc<Catalogue>,
    feed: Arc<Feed>,
    consumers: Vec<Arc<dyn EventConsumer>>,
}

impl Readers {
    /// Readers for these consumers.
    pub fn new(
        db: Db,
        catalogue: Arc<Catalogue>,
        feed: Arc<Feed>,
        consumers: Vec<Arc<dyn EventConsumer>>,
    ) -> Self {
        Self { db, catalogue, feed, consumers }
    }

    fn readers(&self) -> impl Iterator<Item = EventReader> {
        let reader = |consumer: &Arc<dyn EventConsumer>| {
            EventReader::new(self.db.clone(), self.catalogue.clone(), consumer.clone())
        };
        self.consumers.iter().map(reader)
    }

    /// Reads all that is placed, and gives the leases back. Returns how many events were taken. For tests, and for tools.
    ///
    /// # Errors
    /// Those of consumers, or the database's.
    pub async fn run_due(&self) -> Result<usize> {
        let mut all = 0;
        for mut reader in self.readers() {
            all += reader.run_due().await?;
            reader.hand_back().await?;
        }
        Ok(all)
    }

    /// Reads on this runtime, until [`Reading::stop`].
    pub fn start(&self) -> Reading {
        let stop = CancellationToken::new();
        let tasks = self
            .readers()
            .map(|reader| tokio::spawn(serve(reader, self.feed.clone(), stop.clone())))
            .collect();
        Reading { stop, tasks }
    }
}

async fn serve(mut reader: EventReader, feed: Arc<Feed>, stop: CancellationToken) {
    let mut placed = feed.placed();
    let mut failures = 0_u32;
    while !stop.is_cancelled() {
        placed.mark_unchanged();
        let wait = match reader.turn().await {
            Ok(turn) => {
                failures = 0;
                if matches!(turn, Turn::Taken(_)) {
                    continue;
                }
                POLL
            }
            Err(error) => {
                tracing::error!(reader = reader.name(), ?error, "events could not be taken");
                failures = failures.saturating_add(1);
                LONGEST_WAIT.min(POLL * 2_u32.saturating_pow(failures.min(10)))
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = placed.changed(), if failures == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
    if let Err(error) = reader.hand_back().await {
        tracing::warn!(reader = reader.name(), ?error, "a lease was not given back: it ends by itself");
    }
}

/// Readers at work. Dropped, they end where they stand, and others go on when their leases have ended.
#[must_use = "dropped, the readers end"]
pub struct Reading {
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Reading {
    /// Ends after the batches that are being taken, for which it waits for at most `patience`.
    pub async fn stop(mut self, patience: Duration) {
        self.stop.cancel();
        let all = async {
            for task in &mut self.tasks {
                let _ = task.await;
            }
        };
        if tokio::time::timeout(patience, all).await.is_err() {
            tracing::warn!("readers of the log were cut off; what they read is read again");
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
