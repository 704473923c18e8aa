//! How many rows and bytes each workspace has in each log.

use crate::schema::{log_marks, log_sizes};
use crate::{AnyConnection, CachedChange, Read, Tx, lock_row};
use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::upsert::excluded;
use model::{Result, WorkspaceId};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Rows of a log, and the bytes that they take on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// How many rows.
    pub rows: i64,
    /// How many bytes, indexes included.
    pub bytes: i64,
}

impl Size {
    /// One row of so many bytes.
    pub const fn row(bytes: i64) -> Self {
        Self { rows: 1, bytes }
    }

    /// Bytes of a row that is counted elsewhere.
    pub const fn part(bytes: i64) -> Self {
        Self { rows: 0, bytes }
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

/// Sizes by workspace. What belongs to none counts for workspace 0.
pub type Sizes = BTreeMap<WorkspaceId, Size>;

/// The sizes of rows together.
pub fn sum(rows: impl IntoIterator<Item = (WorkspaceId, Size)>) -> Sizes {
    let mut sizes = Sizes::new();
    for (workspace, size) in rows {
        *sizes.entry(workspace).or_default() += size;
    }
    sizes
}

/// What a row takes beside its long texts: columns of a fixed size, the entries of its indexes, what the database adds.
#[derive(Debug, Clone, Copy)]
pub struct PerRow {
    /// On SQLite.
    pub sqlite: i64,
    /// On PostgreSQL.
    pub postgres: i64,
}

impl PerRow {
    /// On the database that this is.
    pub fn on(self, read: &mut Read) -> i64 {
        match read.connection() {
            AnyConnection::Sqlite(_) => self.sqlite,
            AnyConnection::Postgres(_) => self.postgres,
        }
    }
}

/// What a transaction changes of the sizes of logs. It is written at its end, in the order of the keys, because other
/// transactions change the same rows: none of them waits for long, and never for each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(BTreeMap<(&'static str, WorkspaceId), Change>);

#[derive(Debug, Clone, Copy, Default)]
struct Change {
    size: Size,
    purged_to: i64,
}

impl Changes {
    fn of(&mut self, log: &'static str, workspace: WorkspaceId) -> &mut Change {
        self.0.entry((log, workspace)).or_default()
    }

    /// Writes them.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn write(self, read: &mut Read) -> Result<()> {
        use log_sizes as s;
        if self.0.is_empty() {
            return Ok(());
        }
        let rows = self.0.into_iter().map(|((log, workspace), change)| {
            (
                s::log.eq(log),
                s::workspace_id.eq(workspace),
                s::row_count.eq(change.size.rows),
                s::bytes.eq(change.size.bytes),
                s::purged_to.eq(change.purged_to),
            )
        });
        let farther = excluded(s::purged_to).gt(s::purged_to);
        let sums = (
            s::row_count.eq(s::row_count + excluded(s::row_count)),
            s::bytes.eq(s::bytes + excluded(s::bytes)),
            s::purged_to.eq(case_when(farther, excluded(s::purged_to)).otherwise(s::purged_to)),
        );
        match read.connection() {
            AnyConnection::Postgres(connection) => {
                let rows: Vec<_> = rows.collect();
                // In pieces, because the number of values in a statement is bounded.
                for rows in rows.chunks(1_000) {
                    let insert = diesel::insert_into(s::table).values(rows);
                    insert
                        .on_conflict((s::log, s::workspace_id))
                        .do_update()
                        .set(sums)
                        .execute(connection)?;
                }
            }
            AnyConnection::Sqlite(connection) => {
                for row in rows {
                    let insert = diesel::insert_into(s::table).values(row);
                    let insert = insert.on_conflict((s::log, s::workspace_id)).do_update().set(sums);
                    CachedChange(insert).run(connection)?;
                }
            }
        }
        Ok(())
    }
}

/// Counts rows that this transaction adds.
pub fn add(tx: &mut Tx, log: &'static str, sizes: &Sizes) {
    for (workspace, size) in sizes {
        tx.log_changes().of(log, *workspace).size += *size;
    }
}

/// Counts rows that this transaction deletes.
pub fn subtract(tx: &mut Tx, log: &'static str, sizes: &Sizes) {
    for (workspace, Size { rows, bytes }) in sizes {
        tx.log_changes().of(log, *workspace).size += Size { rows: -rows, bytes: -bytes };
    }
}

/// Notes that a workspace's rows are gone up to this position, for logs that are read on from a position.
pub fn note_purged(tx: &mut Tx, log: &'static str, workspace: WorkspaceId, position: i64) {
    let change = tx.log_changes().of(log, workspace);
    change.purged_to = change.purged_to.max(position);
}

/// What each workspace has in a log.
///
/// # Errors
/// When the database fails.
pub fn sizes_of(read: &mut Read, log: &str) -> Result<Sizes> {
    let rows: Vec<(WorkspaceId, i64, i64)> = log_sizes::table
        .filter(log_sizes::log.eq(log))
        .filter(log_sizes::row_count.gt(0))
        .select((log_sizes::workspace_id, log_sizes::row_count, log_sizes::bytes))
        .load(read.connection())?;
    Ok(rows.into_iter().map(|(workspace, rows, bytes)| (workspace, Size { rows, bytes })).collect())
}

/// Up to which position a workspace's rows are gone; 0 where all are there.
///
/// # Errors
/// When the database fails.
pub fn purged_to(read: &mut Read, log: &str, workspace: WorkspaceId) -> Result<i64> {
    let found = log_sizes::table.find((log, workspace)).select(log_sizes::purged_to);
    Ok(found.get_result(read.connection()).optional()?.unwrap_or(0))
}

/// How far a log is counted whose writers do not count: requests of one workspace would wait for each other there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Rows up to this number, or this time in milliseconds, are counted.
    pub counted_to: i64,
    /// The newest row when the last count ended. PostgreSQL may commit rows in another order than it numbers them, so
    /// that rows are counted by the count after.
    pub seen_to: i64,
}

/// The mark of a log, locked: who counts and who deletes take turns.
///
/// # Errors
/// When the database fails.
pub fn locked_mark(tx: &mut Tx, log: &str) -> Result<Mark> {
    let row = || log_marks::table.find(log);
    lock_row!(tx, row().select(log_marks::log), for_update);
    let mark = row().select((log_marks::counted_to, log_marks::seen_to)).get_result(tx.connection());
    let (counted_to, seen_to) = mark.optional()?.unwrap_or_default();
    Ok(Mark { counted_to, seen_to })
}

/// Moves the mark of a log.
///
/// # Errors
/// When the database fails.
pub fn advance(tx: &mut Tx, log: &str, mark: Mark) -> Result<()> {
    diesel::update(log_marks::table.find(log))
        .set((log_marks::counted_to.eq(mark.counted_to), log_marks::seen_to.eq(mark.seen_to)))
        .execute(tx.connection())?;
    Ok(())
}
