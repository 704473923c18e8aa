//! Sequencer: assigns events their positions in the log.
//!
//! The database numbers events as they are written, and PostgreSQL lets transactions commit in another order: whoever
//! reads on from a number could pass one that commits late. So the number that the world sees, an event's `position`,
//! is given afterwards, by one transaction at a time, to events that are committed. Positions become visible in their
//! order and without gaps, and a reader who goes on after the last one that it saw never misses any.
//!
//! The order agrees with that of changes to one object: the second change waited for the first one's row, so its event
//! was written later and committed later. Events that are committed together keep the order in which they were written.
//!
//! Deliveries are made in the same transaction. SQLite has one writer and would not need this, but takes the same way.

use super::feed::Feed;
use super::queries::last_place;
use super::rows::{NewPosition, hour};
use super::{Catalogue, size};
use crate::outbound::fan_out;
use crate::schema::event_hours;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{AnyConnection, Db, Tx};
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
            count(tx, &places)?;
            size::count_in(tx, &places);
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

/// Gives the next places to what has none, in the order in which it was written.
fn place(tx: &mut Tx, limit: usize) -> Result<Vec<NewPosition>> {
    tx.lock("places of events")?;
    walk_index(tx)?;
    let last = last_place(tx)?;
    let bytes = size::size_of_row(tx);
    let place = diesel::sql_query(format!(
        "UPDATE events SET position = $1 + waiting.place FROM (
            SELECT sequence AS written, row_number() OVER (ORDER BY sequence) AS place FROM events
            WHERE position IS NULL ORDER BY sequence LIMIT {limit}
        ) AS waiting WHERE sequence = waiting.written
        RETURNING position, workspace_id, kind, created_at, {bytes} AS bytes"
    ));
    // The limit is text: SQLite prepares a statement anew whenever one is bound.
    let mut placed: Vec<NewPosition> = place.bind::<BigInt, _>(last.unwrap_or(0)).load(tx.connection())?;
    placed.sort_unstable_by_key(|place| place.position);
    Ok(placed)
}

/// Has PostgreSQL walk the index of events without a place for the rest of the transaction. It holds an entry for each
/// event that has got one since the table was last vacuumed: walking leaves marks by which the next one skips them, and
/// a bitmap scan would look at all of their rows each time.
fn walk_index(tx: &mut Tx) -> Result<()> {
    if let AnyConnection::Postgres(connection) = tx.connection() {
        connection.batch_execute("SET LOCAL enable_bitmapscan = off")?;
    }
    Ok(())
}

/// Adds to the counts by type and hour.
fn count(tx: &mut Tx, placed: &[NewPosition]) -> Result<()> {
    use diesel::upsert::excluded;
    let mut counts: BTreeMap<(i64, i64, &str), i64> = BTreeMap::new();
    for place in placed {
        let key = (place.workspace_id.0, hour(place.created_at).millis(), place.kind.as_str());
        *counts.entry(key).or_default() += 1;
    }
    let rows: Vec<_> = counts
        .into_iter()
        .map(|((workspace, hour, kind), count)| {
            (
                event_hours::workspace_id.eq(workspace),
                event_hours::hour.eq(Timestamp::from_millis(hour)),
                event_hours::kind.eq(kind),
                event_hours::events.eq(count),
            )
        })
        .collect();
    let add = event_hours::events.eq(event_hours::events + excluded(event_hours::events));
    let key = (event_hours::workspace_id, event_hours::hour, event_hours::kind);
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let insert = diesel::insert_into(event_hours::table).values(&rows);
            insert.on_conflict(key).do_update().set(add).execute(connection)?;
        }
        AnyConnection::Sqlite(connection) => {
            for row in rows {
                let insert = diesel::insert_into(event_hours::table).values(row);
                insert.on_conflict(key).do_update().set(add).execute(connection)?;
            }
        }
    }
    Ok(())
}
