//! Which rows go when they are old, or when a log is too large.
//!
//! Rows go when they are older than the retention of their log. Where the rest is still too large, the space is shared fairly
//! (max-min fairness): there is a level such that the log fits if every workspace has at most that much, and only workspaces
//! above it lose rows, their oldest first. So a workspace that floods a log pushes out its own rows, and the history of one
//! that writes little stays for its full time.
//!
//! Trimming begins at nine tenths of the size and goes down to eight tenths, so that the log stays below its size between
//! two runs. It deletes in pieces, each a transaction of its own, between which others write.

use super::kind::{Counted, Key, LogKind};
use super::retention::{Retention, Retentions};
use super::rows::Row;
use super::sizes::{Mark, add, sizes_of};
use crate::log_changes::{Size, Sizes, sum};
use crate::{Db, Read, Tx};
use model::{Error, Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The first of some rows, oldest first, that have `excess` bytes together; all of them if they have fewer.
fn up_to<T>(rows: Vec<T>, excess: i64, bytes: impl Fn(&T) -> i64) -> Vec<T> {
    let mut before = 0;
    let needed = rows.into_iter().take_while(|row| {
        let is_needed = before < excess;
        before += bytes(row);
        is_needed
    });
    needed.collect()
}

/// The size of a log, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSize {
    /// Its name.
    pub log: &'static str,
    /// Its rows and bytes, of all workspaces.
    pub size: Size,
    /// How many bytes it may have.
    pub most_bytes: i64,
    /// When its oldest row was written.
    pub oldest: Option<Timestamp>,
}

/// A log with its retention.
#[derive(Debug, Clone, Copy)]
pub struct Log {
    kind: LogKind,
    retention: Retention,
}

/// All logs of the service.
#[derive(Clone)]
pub struct Logs(Arc<[Log]>);

impl Logs {
    /// Logs of these kinds.
    ///
    /// # Errors
    /// When a retention is given for another log.
    pub fn new(kinds: &[LogKind], retentions: &Retentions) -> Result<Self> {
        if let Some(name) = retentions.unknown(kinds) {
            return Err(Error::internal(format!("there is no log {name}")));
        }
        Ok(Self(kinds.iter().map(|kind| Log { kind: *kind, retention: retentions.of(kind) }).collect()))
    }

    /// One of them, by its name.
    pub fn find(&self, name: &str) -> Option<Log> {
        self.0.iter().find(|log| log.kind.name == name).copied()
    }

    /// How large each is. Reads a row per workspace and log, and none of the logs themselves but their oldest row.
    ///
    /// # Errors
    /// The database's.
    pub fn sizes(&self, read: &mut Read) -> Result<Vec<LogSize>> {
        let mut found = Vec::with_capacity(self.0.len());
        for log in self.0.iter() {
            let size = total(&sizes_of(read, log.kind.name)?);
            let (most_bytes, oldest) = (log.retention.bytes, log.oldest(read)?);
            found.push(LogSize { log: log.kind.name, size, most_bytes, oldest });
        }
        Ok(found)
    }

    /// Deletes rows that are older than their time, and the oldest rows of logs that are too large, until `stop`. Returns
    /// whether it came to its end.
    ///
    /// # Errors
    /// The database's.
    pub async fn trim(&self, db: &Db, stop: &CancellationToken) -> Result<bool> {
        for log in self.0.iter() {
            if !(log.purge(db, stop).await? && log.count_all(db, stop).await? && log.shrink(db, stop).await?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Bytes that one transaction deletes, about: it must not keep others waiting.
const PIECE: i64 = 1 << 20;

/// How many seconds after a row was written rows are counted by their time: by then they are committed.
const COUNTED_AFTER: i64 = 10;

impl Log {
    /// When its oldest row was written.
    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        Ok(self.kind.oldest(read, 0, 1)?.first().map(|row| row.written_at))
    }

    /// Deletes the rows that are older than their time, until `stop`. Returns whether it came to its end.
    async fn purge(self, db: &Db, stop: &CancellationToken) -> Result<bool> {
        let horizon = db.now().plus_seconds(-self.retention.seconds());
        let oldest = db.read(move |read| self.oldest(read)).await?;
        let mut after = oldest.filter(|oldest| *oldest < horizon).map(|_| 0);
        while let Some(last) = after {
            after = db.write(move |tx| self.purge_some(tx, horizon, last)).await?;
            if stop.is_cancelled() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes some of the rows after a number that were written before `horizon`, except those that may not be deleted.
    /// Returns the number to continue after, or `None` at the end of the old rows.
    fn purge_some(&self, tx: &mut Tx, horizon: Timestamp, after: i64) -> Result<Option<i64>> {
        let lock = self.kind.lock(tx)?;
        let mut rows = self.kind.oldest(tx, after, self.kind.piece)?;
        rows.retain(|row| row.written_at < horizon);
        let (last, is_full) = (rows.last().map(|row| row.number), self.is_piece(&rows));
        rows.retain(|row| row.is_deletable && row.ended_at.is_some_and(|ended| ended < horizon));
        self.kind.delete(tx, &lock, &rows)?;
        Ok(last.filter(|_| is_full))
    }

    /// Whether there are as many rows as one transaction takes, so that there may be more.
    fn is_piece(&self, rows: &[Row]) -> bool {
        i64::try_from(rows.len()).is_ok_and(|rows| rows >= self.kind.piece)
    }

    /// Counts the rows that their writers did not count, until `stop`. Returns whether it came to its end.
    async fn count_all(self, db: &Db, stop: &CancellationToken) -> Result<bool> {
        while self.kind.counted == Counted::Afterwards && db.write(move |tx| self.count(tx)).await? {
            if stop.is_cancelled() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts some rows that their writers did not count. Returns whether there are more.
    fn count(&self, tx: &mut Tx) -> Result<bool> {
        let lock = self.kind.lock(tx)?;
        let before = lock.mark(tx)?;
        let (rows, mark, has_more) = match self.kind.key {
            Key::Number(_) => self.uncounted_by_number(tx, before)?,
            Key::Id(_) | Key::IdInWorkspace(_) => self.uncounted_by_time(tx, before)?,
        };
        add(tx, self.kind.name, &sum(rows.iter().map(|row| (row.workspace, Size::row(row.bytes)))));
        if mark != before {
            lock.advance(tx, mark)?;
        }
        Ok(has_more)
    }

    /// Some uncounted rows, the mark after them, and whether there are more.
    fn uncounted_by_number(&self, tx: &mut Tx, mark: Mark) -> Result<(Vec<Row>, Mark, bool)> {
        let Mark { counted_to, seen_to } = mark;
        let mut rows = self.kind.oldest(tx, counted_to, self.kind.piece)?;
        rows.retain(|row| row.number <= seen_to);
        let has_more = self.is_piece(&rows);
        let mark = match rows.last() {
            Some(last) if has_more => Mark { counted_to: last.number, seen_to },
            _ => {
                Mark { counted_to: seen_to, seen_to: self.kind.newest_number(tx)?.unwrap_or(0).max(seen_to) }
            }
        };
        Ok((rows, mark, has_more))
    }

    /// The same by the time of the rows. Those of one moment are counted together.
    fn uncounted_by_time(&self, tx: &mut Tx, mark: Mark) -> Result<(Vec<Row>, Mark, bool)> {
        let from = Timestamp::from_millis(mark.counted_to);
        let until = tx.now().plus_seconds(-COUNTED_AFTER);
        let mut rows = self.kind.written_within(tx, from, until, self.kind.piece)?;
        let has_more = self.is_piece(&rows);
        if let Some(last) = rows.last().map(|row| row.written_at).filter(|_| has_more) {
            rows = self.kind.written_within(tx, from, last, i64::MAX)?;
        }
        let newest = rows.last().map_or(mark.counted_to, |row| row.written_at.millis());
        Ok((rows, Mark { counted_to: newest, seen_to: newest }, has_more))
    }

    /// Where the log is too large, deletes the oldest rows of the workspaces that have more than their share, until `stop`.
    /// Returns whether it came to its end.
    async fn shrink(self, db: &Db, stop: &CancellationToken) -> Result<bool> {
        let sizes = db.read(move |read| sizes_of(read, self.kind.name)).await?;
        let tenth = self.retention.bytes / 10;
        if total(&sizes).bytes <= tenth * 9 {
            return Ok(true);
        }
        let level = level(&sizes, tenth * 8);
        for (workspace, size) in sizes {
            let mut excess = size.bytes - level;
            while excess > 0 {
                let gone = db.write(move |tx| self.evict(tx, workspace, excess.min(PIECE))).await?;
                if stop.is_cancelled() {
                    return Ok(false);
                }
                if gone.rows == 0 {
                    break;
                }
                excess -= gone.bytes;
            }
        }
        Ok(true)
    }

    /// Deletes some of the oldest rows of a workspace, about `excess` bytes at most, and counts them out. Returns what is
    /// gone; no rows where none may go.
    ///
    /// # Errors
    /// The database's.
    pub fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        let lock = self.kind.lock(tx)?;
        let rows = up_to(self.kind.oldest_of(tx, workspace)?, excess, |row| row.bytes);
        Ok(self.kind.delete(tx, &lock, &rows)?.get(&workspace).copied().unwrap_or_default())
    }
}

fn total(sizes: &Sizes) -> Size {
    let mut total = Size::default();
    for size in sizes.values() {
        total += *size;
    }
    total
}

/// The most bytes that a workspace keeps, so that all have `budget` together: what small ones do not need of their equal
/// share is shared by the others.
fn level(sizes: &Sizes, budget: i64) -> i64 {
    let mut bytes: Vec<i64> = sizes.values().map(|size| size.bytes).collect();
    bytes.sort_unstable();
    let (mut left, mut sharing) = (budget, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    for own in bytes {
        let share = left / sharing;
        if own > share {
            return share;
        }
        left -= own;
        sharing -= 1;
    }
    i64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::WorkspaceId;

    fn sizes(bytes: &[i64]) -> Sizes {
        (1..).zip(bytes).map(|(id, bytes)| (WorkspaceId(id), Size::row(*bytes))).collect()
    }

    #[test]
    fn what_small_ones_leave_is_shared_by_the_others() {
        for (bytes, budget, expected) in [
            (&[10, 20, 30][..], 60, i64::MAX),
            (&[10, 20, 30], 59, 29),
            (&[5, 1_000], 100, 95),
            (&[5, 1_000, 1_000], 105, 50),
            (&[1_000, 1_000, 1_000, 1_000], 100, 25),
            (&[], 100, i64::MAX),
            (&[7], 0, 0),
        ] {
            let sizes = sizes(bytes);
            let level = level(&sizes, budget);
            assert_eq!(level, expected, "{bytes:?} in {budget}");
            assert!(sizes.values().map(|size| size.bytes.min(level)).sum::<i64>() <= budget);
        }
    }

    #[test]
    fn rows_go_until_enough_are_gone() {
        assert_eq!(up_to(vec![4, 4, 4], 5, |bytes| *bytes), [4, 4]);
        assert_eq!(up_to(vec![4, 4, 4], 100, |bytes| *bytes), [4, 4, 4]);
        assert_eq!(up_to(vec![4, 4, 4], 0, |bytes| *bytes), [0; 0]);
    }
}
