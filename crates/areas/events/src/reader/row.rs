//! The row of a reader: its position, and the lease of the process that reads.

use crate::queries::last_place;
use crate::schema::event_readers;
use diesel::prelude::*;
use model::{Result, Timestamp};
use operation::TableGauge;
use store::{Read, Tx, each, lock_row};

/// For how long a process may read without renewing its lease, in seconds.
pub(super) const LEASE_SECONDS: i64 = 30;
/// `/ready` names readers that have more events than this before them.
const FAR_BEHIND: i64 = 100_000;

/// The lag of each reader.
pub(crate) const LAG: TableGauge = TableGauge::new(
    "svc_event_reader_lag",
    "Events of the log that a reader has before it. A reader that wants none of them moves every few seconds.",
    |read| Ok(lags(read)?.into_iter().map(|(name, lag)| (name.into(), lag)).collect()),
)
.by("reader");

/// The right of a process to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) epoch: i64,
    pub(super) until: Timestamp,
    /// All events up to here were taken, or are not wanted.
    pub(super) position: i64,
}

fn until(now: Timestamp) -> Timestamp {
    now.plus_seconds(LEASE_SECONDS)
}

/// Adds the row of a reader where there is none. It begins behind the last event.
pub(super) fn declare(tx: &mut Tx, name: &str) -> Result<()> {
    let (now, last) = (tx.now(), last_place(tx)?.unwrap_or(0));
    each!(tx.connection(), |connection| diesel::insert_into(event_readers::table)
        .values((
            event_readers::name.eq(name),
            event_readers::position.eq(last),
            event_readers::epoch.eq(0),
            event_readers::updated_at.eq(now),
        ))
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(())
}

/// Takes the lease of a reader, unless another process has it.
pub(super) fn claim(tx: &mut Tx, name: &str) -> Result<Option<Lease>> {
    let now = tx.now();
    let free = event_readers::lease_until.is_null().or(event_readers::lease_until.le(now));
    let claimed: Option<(i64, i64)> = diesel::update(event_readers::table.find(name).filter(free))
        .set((
            event_readers::epoch.eq(event_readers::epoch + 1),
            event_readers::lease_until.eq(until(now)),
            event_readers::updated_at.eq(now),
        ))
        .returning((event_readers::epoch, event_readers::position))
        .get_result(tx.connection())
        .optional()?;
    Ok(claimed.map(|(epoch, position)| Lease { epoch, until: until(now), position }))
}

/// Locks the row of a reader, so that nobody else reads until the transaction ends. Returns its position, or `None` if another
/// process has claimed it.
pub(super) fn hold(tx: &mut Tx, name: &str, epoch: i64) -> Result<Option<i64>> {
    let row = || event_readers::table.find(name).filter(event_readers::epoch.eq(epoch));
    lock_row!(tx, row().select(event_readers::position), for_update);
    Ok(row().select(event_readers::position).get_result(tx.connection()).optional()?)
}

/// Moves the position of a reader, and renews its lease. Returns `None` if another process has claimed it.
pub(super) fn advance(tx: &mut Tx, name: &str, epoch: i64, position: i64) -> Result<Option<Lease>> {
    let now = tx.now();
    let moved = set(tx, name, epoch, position, Some(until(now)))?;
    Ok(moved.then(|| Lease { epoch, until: until(now), position }))
}

/// Gives the lease back, with the position that was reached.
pub(super) fn hand_back(tx: &mut Tx, name: &str, lease: &Lease) -> Result<()> {
    set(tx, name, lease.epoch, lease.position, None).map(drop)
}

fn set(tx: &mut Tx, name: &str, epoch: i64, position: i64, lease: Option<Timestamp>) -> Result<bool> {
    let now = tx.now();
    let own = event_readers::table.find(name).filter(event_readers::epoch.eq(epoch));
    let changed = diesel::update(own.filter(event_readers::position.le(position)))
        .set((
            event_readers::position.eq(position),
            event_readers::lease_until.eq(lease),
            event_readers::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(changed > 0)
}

/// The readers that are far behind the end of the log.
///
/// # Errors
/// When the database fails.
pub fn readers_behind(read: &mut Read) -> Result<Vec<String>> {
    let behind = lags(read)?.into_iter().filter(|(_, lag)| *lag > FAR_BEHIND);
    Ok(behind.map(|(name, _)| name).collect())
}

fn lags(read: &mut Read) -> Result<Vec<(String, i64)>> {
    let rows: Vec<(String, i64)> = event_readers::table
        .order(event_readers::name)
        .select((event_readers::name, event_readers::position))
        .load(read.connection())?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let last = last_place(read)?.unwrap_or(0);
    Ok(rows.into_iter().map(|(name, position)| (name, (last - position).max(0))).collect())
}
