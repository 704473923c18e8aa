//! Placing of events in the log.
//!
//! The database numbers events as they are written, and PostgreSQL lets transactions commit in another order: a reader
//! who continues from a number could pass one that commits late. So the number that callers see, an event's `position`,
//! is assigned afterwards, by one transaction at a time, to events that are committed. Positions become visible in their
//! order and without gaps, and a reader who continues after the last one that it saw never misses any.
//!
//! The order agrees with that of changes to one object: the second change waited for the first one's row, so its event
//! was written later and committed later. Events that are committed together keep the order in which they were written.
//!
//! SQLite has one writer and would not need this, but uses the same way.

use super::queries::last_place;
use super::rows::{NewPosition, hour};
use super::size;
use crate::schema::event_hours;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, Timestamp};
use std::collections::BTreeMap;
use store::{AnyConnection, Tx};

/// Places the next `limit` events that have no place, in the order in which they were written, and counts them.
///
/// # Errors
/// When the database fails.
pub fn place(tx: &mut Tx, limit: usize) -> Result<Vec<NewPosition>> {
    let places = assign(tx, limit)?;
    if !places.is_empty() {
        count(tx, &places)?;
        size::count_in(tx, &places);
    }
    Ok(places)
}

/// Gives the next places to what has none, in the order in which it was written.
fn assign(tx: &mut Tx, limit: usize) -> Result<Vec<NewPosition>> {
    tx.lock("places of events")?;
    walk_index(tx)?;
    let last = last_place(tx)?;
    let bytes = size::EVENT_LOG.bytes_of_row(tx);
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
