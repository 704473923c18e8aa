//! Which rows go when a log is too large.
//!
//! The space is shared fairly (max-min fairness): there is a level such that the log fits if every workspace has at most
//! that much, and only workspaces above it lose rows, their oldest first. So a workspace that floods a log pushes out its
//! own rows, and the history of one that writes little stays for its full time.
//!
//! Trimming begins at nine tenths of the size and goes down to eight tenths, so that the log stays below its size between
//! two runs. It deletes in pieces, each a transaction of its own, between which others write.

use super::retention::{BoundedLog, LogKind, Retentions};
use super::sizes::sizes_of;
use crate::log_changes::{Size, Sizes};
use crate::{Db, Read};
use model::{Error, Result, Timestamp};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The first of some rows, oldest first, that have `excess` bytes together; all of them if they have fewer.
pub fn up_to<T>(rows: Vec<T>, excess: i64, bytes: impl Fn(&T) -> i64) -> Vec<T> {
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

/// All logs of the service.
#[derive(Clone)]
pub struct Logs(Arc<[Arc<dyn BoundedLog>]>);

impl Logs {
    /// Logs of these kinds.
    ///
    /// # Errors
    /// When a retention is given for another log.
    pub fn new(kinds: &[LogKind], retentions: &Retentions) -> Result<Self> {
        if let Some(name) = retentions.unknown(kinds) {
            return Err(Error::internal(format!("there is no log {name}")));
        }
        Ok(Self(kinds.iter().map(|kind| (kind.bounded)(retentions.of(kind))).collect()))
    }

    /// One of them, by its name.
    pub fn find(&self, name: &str) -> Option<Arc<dyn BoundedLog>> {
        self.0.iter().find(|log| log.name() == name).cloned()
    }

    /// How large each is. Reads a row per workspace and log, and none of the logs themselves but their oldest row.
    ///
    /// # Errors
    /// When the database fails.
    pub fn sizes(&self, read: &mut Read) -> Result<Vec<LogSize>> {
        let mut found = Vec::with_capacity(self.0.len());
        for log in self.0.iter() {
            let size = total(&sizes_of(read, log.name())?);
            let (most_bytes, oldest) = (log.most_bytes(), log.oldest(read)?);
            found.push(LogSize { log: log.name(), size, most_bytes, oldest });
        }
        Ok(found)
    }

    /// Deletes the oldest rows of logs that are too large, until `stop`. Gives whether it came to its end.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn trim(&self, db: &Db, stop: &CancellationToken) -> Result<bool> {
        for log in self.0.iter() {
            if !trim_one(log, db, stop).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Bytes that one transaction deletes, about: it must not keep others waiting.
const PIECE: i64 = 1 << 20;

async fn trim_one(log: &Arc<dyn BoundedLog>, db: &Db, stop: &CancellationToken) -> Result<bool> {
    loop {
        let own = log.clone();
        let has_more = db.write(move |tx| own.count(tx)).await?;
        if stop.is_cancelled() {
            return Ok(false);
        }
        if !has_more {
            break;
        }
    }
    let name = log.name();
    let sizes = db.read(move |read| sizes_of(read, name)).await?;
    let tenth = log.most_bytes() / 10;
    if total(&sizes).bytes <= tenth * 9 {
        return Ok(true);
    }
    let level = level(&sizes, tenth * 8);
    for (workspace, size) in sizes {
        let mut excess = size.bytes - level;
        while excess > 0 {
            let own = log.clone();
            let gone = db.write(move |tx| own.evict(tx, workspace, excess.min(PIECE))).await?;
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
