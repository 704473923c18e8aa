//! The sequencer places committed events in the log, and makes their deliveries in the same transaction.

use crate::fanout::fan_out;
use events::{Catalogue, Feed, place};
use model::Result;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The most events that are placed in one transaction, and about how many deliveries it makes where there are more of
/// them: it holds the queues of their endpoints until it ends.
const BATCH: usize = 500;
/// How often to look for events that nobody was woken for: those of a process that died, or of a command.
const POLL: Duration = Duration::from_secs(1);

/// Gives events their places, and makes their deliveries. Every replica runs one; they take turns.
#[derive(Clone)]
pub struct Sequencer {
    db: Db,
    catalogue: Arc<Catalogue>,
    feed: Arc<Feed>,
    deliver: Arc<Notify>,
}

impl Sequencer {
    pub(crate) fn new(db: Db, catalogue: Arc<Catalogue>, feed: Arc<Feed>, deliver: Arc<Notify>) -> Self {
        Self { db, catalogue, feed, deliver }
    }

    /// Places what waits, and says how many events that were.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_due(&self) -> Result<usize> {
        let (mut placed, mut limit) = (0, BATCH);
        loop {
            let batch = self.batch(limit).await?;
            placed += batch.events;
            if batch.events < limit {
                return Ok(placed);
            }
            limit = (BATCH * batch.events / batch.deliveries.max(batch.events)).max(1);
        }
    }

    async fn batch(&self, limit: usize) -> Result<Batch> {
        let (catalogue, feed, deliver) = (self.catalogue.clone(), self.feed.clone(), self.deliver.clone());
        let placed = self.db.write(move |tx| {
            let places = place(tx, limit)?;
            if places.is_empty() {
                return Ok(Batch::default());
            }
            let (feed, news) =
                (feed.clone(), places.iter().map(|place| (place.position, place.workspace_id)));
            let news: Vec<_> = news.collect();
            tx.after_commit(move || feed.publish(&news));
            let deliveries = fan_out(tx, &catalogue, &places)?;
            if deliveries > 0 {
                let deliver = deliver.clone();
                tx.after_commit(move || deliver.notify_one());
            }
            Ok(Batch { events: places.len(), deliveries })
        });
        placed.await
    }

    /// Places events as they come, until it is stopped.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let emitted = self.db.emitted();
        while !stop.is_cancelled() {
            if let Err(error) = self.run_due().await {
                tracing::error!(?error, "events could not be placed");
                // Woken anew at once it would only fail again.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = emitted.notified() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }
}

/// What one transaction placed.
#[derive(Default)]
struct Batch {
    events: usize,
    deliveries: usize,
}
