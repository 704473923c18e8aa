//! How many rows and bytes each workspace has in each log.

use crate::log_changes::{Size, Sizes};
use crate::schema::{log_marks, log_sizes};
use crate::{AnyConnection, Read, Tx};
use diesel::prelude::*;
use model::{Result, WorkspaceId};
use std::collections::BTreeMap;

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

/// The bytes of a row, in SQL: what it has beside its texts, and the texts in these columns, which may be `NULL`.
pub fn row_bytes(read: &mut Read, fixed: PerRow, texts: &[&str]) -> String {
    let texts: String = texts.iter().map(|text| format!(" + coalesce(octet_length({text}), 0)")).collect();
    format!("CAST({}{texts} AS BIGINT)", fixed.on(read))
}

/// Counts rows that this transaction adds.
pub fn add(tx: &mut Tx, log: &'static str, sizes: &Sizes) {
    for (workspace, size) in sizes {
        tx.log_changes().add(log, *workspace, *size);
    }
}

/// The right to delete rows of a log, and to count those whose writers do not count. One transaction has it at a time:
/// choose the rows once it is held, so that no row is counted twice.
#[derive(Debug)]
pub(super) struct LogLock(&'static str);

/// Waits for the right to delete rows of a log. The transaction keeps it to its end.
///
/// # Errors
/// When the database fails.
pub(super) fn lock(tx: &mut Tx, log: &'static str) -> Result<LogLock> {
    tx.lock(&format!("log {log}"))?;
    Ok(LogLock(log))
}

impl LogLock {
    /// Counts rows that this transaction deletes.
    pub(super) fn subtract(&self, tx: &mut Tx, sizes: &Sizes) {
        for (workspace, Size { rows, bytes }) in sizes {
            tx.log_changes().add(self.0, *workspace, Size { rows: -rows, bytes: -bytes });
        }
    }

    /// Notes that a workspace's rows are gone up to this position, for logs that are read on from a position.
    pub(super) fn note_purged(&self, tx: &mut Tx, workspace: WorkspaceId, position: i64) {
        tx.log_changes().note_purged(self.0, workspace, position);
    }

    /// How far the log is counted.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn mark(&self, read: &mut Read) -> Result<Mark> {
        let mark = log_marks::table.find(self.0).select((log_marks::counted_to, log_marks::seen_to));
        let (counted_to, seen_to) = mark.get_result(read.connection()).optional()?.unwrap_or_default();
        Ok(Mark { counted_to, seen_to })
    }

    /// Moves the mark of the log.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn advance(&self, tx: &mut Tx, mark: Mark) -> Result<()> {
        diesel::update(log_marks::table.find(self.0))
            .set((log_marks::counted_to.eq(mark.counted_to), log_marks::seen_to.eq(mark.seen_to)))
            .execute(tx.connection())?;
        Ok(())
    }
}

/// What each workspace has in a log.
///
/// # Errors
/// When the database fails.
pub(super) fn sizes_of(read: &mut Read, log: &str) -> Result<Sizes> {
    let rows: Vec<(WorkspaceId, i64, i64)> = log_sizes::table
        .filter(log_sizes::log.eq(log))
        .filter(log_sizes::row_count.gt(0))
        .select((log_sizes::workspace_id, log_sizes::row_count, log_sizes::bytes))
        .load(read.connection())?;
    Ok(rows.into_iter().map(|(workspace, rows, bytes)| (workspace, Size { rows, bytes })).collect())
}

/// What each log has, over all workspaces, by name. One row per workspace and log is read, and none of the logs.
///
/// # Errors
/// When the database fails.
pub fn totals(read: &mut Read) -> Result<BTreeMap<String, Size>> {
    let rows: Vec<(String, i64, i64)> = log_sizes::table
        .select((log_sizes::log, log_sizes::row_count, log_sizes::bytes))
        .load(read.connection())?;
    let mut totals = BTreeMap::<String, Size>::new();
    for (log, rows, bytes) in rows {
        *totals.entry(log).or_default() += Size { rows, bytes };
    }
    Ok(totals)
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
pub(super) struct Mark {
    /// Rows up to this number, or this time in milliseconds, are counted.
    pub(super) counted_to: i64,
    /// The newest row when the last count ended. PostgreSQL may commit rows in another order than it numbers them, so
    /// that rows are counted by the count after.
    pub(super) seen_to: i64,
}
