//! The size of the log of events: what is counted of them, and which go first.

use super::queries::last_place;
use super::reader::trim_bound;
use super::rows::NewPosition;
use crate::schema::event_hours;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use store::logs::{self, BoundedLog, LogKind, LogLock, PerRow, Retention, Size, Sizes};
use store::schema::events;
use store::{Read, Tx};

/// Its name among the logs that have a size.
pub(super) const LOG: &str = "events";

/// Rows that one transaction deletes.
const PIECE: i64 = 200;

/// What a row takes beside its long texts.
const ROW_BYTES: PerRow = PerRow { sqlite: 220, postgres: 420 };

/// The bytes of a row, in SQL.
pub(super) fn size_of_row(read: &mut Read) -> String {
    let texts = [
        "data",
        "kind",
        "actor",
        "request_id",
        "key_id",
        "idempotency_key",
        "root_event_id",
        "traceparent",
        "automations",
    ];
    logs::row_bytes(read, ROW_BYTES, &texts)
}

/// Counts events that have got their places.
pub(super) fn count_in(tx: &mut Tx, places: &[NewPosition]) {
    let sizes = logs::sum(places.iter().map(|place| (place.workspace_id, Size::row(place.bytes))));
    logs::add(tx, LOG, &sizes);
}

/// An event that may be deleted.
type Row = (i64, WorkspaceId, Timestamp, i64);

/// The oldest events, of all workspaces or of one. The newest of all stays, because the next place follows from it, and so do
/// events that a reader has before it.
fn oldest(tx: &mut Tx, workspace: Option<WorkspaceId>) -> Result<Vec<Row>> {
    let newest = last_place(tx)?;
    let bytes = sql::<BigInt>(&size_of_row(tx));
    let mut rows = events::table
        .filter(events::position.lt(newest))
        .order(events::position)
        .limit(PIECE)
        .select((events::position.assume_not_null(), events::workspace_id, events::created_at, bytes))
        .into_boxed();
    if let Some(bound) = trim_bound(tx)? {
        rows = rows.filter(events::position.le(bound));
    }
    if let Some(workspace) = workspace {
        rows = rows.filter(events::workspace_id.eq(workspace));
    }
    Ok(rows.load(tx.connection())?)
}

/// Deletes events, and notes how far the log of their workspaces is gone.
fn delete(tx: &mut Tx, log: &LogLock, rows: &[Row]) -> Result<Sizes> {
    let positions: Vec<i64> = rows.iter().map(|(position, ..)| *position).collect();
    diesel::delete(events::table.filter(events::position.eq_any(positions))).execute(tx.connection())?;
    let sizes = logs::sum(rows.iter().map(|(_, workspace, _, bytes)| (*workspace, Size::row(*bytes))));
    log.subtract(tx, &sizes);
    for (position, workspace, ..) in rows {
        log.note_purged(tx, *workspace, *position);
    }
    Ok(sizes)
}

/// Deletes some of the events that are older than their time; gives how many.
///
/// # Errors
/// When the database fails.
pub fn purge_old(tx: &mut Tx, retention: Retention) -> Result<usize> {
    let horizon = tx.now().plus_seconds(-retention.seconds());
    let log = logs::lock(tx, LOG)?;
    let mut rows = oldest(tx, None)?;
    let old = rows.iter().take_while(|(_, _, created, _)| *created < horizon).count();
    rows.truncate(old);
    delete(tx, &log, &rows)?;
    Ok(old)
}

/// Deletes the counts of hours that are older than 30 days.
///
/// # Errors
/// When the database fails.
pub fn purge_counts(tx: &mut Tx) -> Result<()> {
    let horizon = tx.now().plus_seconds(-30 * 86_400);
    diesel::delete(event_hours::table.filter(event_hours::hour.lt(horizon))).execute(tx.connection())?;
    Ok(())
}

/// Events, among the logs that have a size.
pub const EVENT_LOG: LogKind =
    LogKind { name: LOG, days: 30, bounded: |retention| Arc::new(BoundedEvents(retention)) };

/// The log of events, as something that has a size.
struct BoundedEvents(Retention);

impl BoundedLog for BoundedEvents {
    fn name(&self) -> &'static str {
        LOG
    }

    fn most_bytes(&self) -> i64 {
        self.0.bytes
    }

    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        let log = logs::lock(tx, LOG)?;
        let rows = logs::up_to(oldest(tx, Some(workspace))?, excess, |(.., bytes)| *bytes);
        Ok(delete(tx, &log, &rows)?.get(&workspace).copied().unwrap_or_default())
    }

    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        let placed = events::table.filter(events::position.is_not_null());
        let first = placed.order(events::position).select(events::created_at).first(read.connection());
        Ok(first.optional()?)
    }
}
