//! How long logs are kept.

use crate::log_changes::Size;
use crate::{Read, Tx};
use model::{Result, Timestamp, WorkspaceId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long the rows of a log are kept, and how many bytes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Rows that are older are deleted.
    pub days: i64,
    /// When the log has more bytes, its oldest rows are deleted. An estimate of what it takes on disk, with its indexes.
    pub bytes: i64,
}

impl Retention {
    /// So many days, and 1 GiB.
    pub const fn of_days(days: i64) -> Self {
        Self { days, bytes: 1 << 30 }
    }

    /// The same in seconds.
    pub fn seconds(&self) -> i64 {
        self.days * 24 * 3600
    }
}

/// A log that is kept up to a size.
pub trait BoundedLog: Send + Sync {
    /// Its name, as in `log_sizes` and in what operators see.
    fn name(&self) -> &'static str;

    /// How many bytes it may have.
    fn most_bytes(&self) -> i64;

    /// Counts some rows that their writers did not count. `true` where there are more.
    ///
    /// # Errors
    /// When the database fails.
    fn count(&self, _tx: &mut Tx) -> Result<bool> {
        Ok(false)
    }

    /// Deletes some of the oldest rows of a workspace, about `excess` bytes at most, and counts them out. Gives what is
    /// gone; no rows where none may go.
    ///
    /// # Errors
    /// When the database fails.
    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size>;

    /// When its oldest row was written.
    ///
    /// # Errors
    /// When the database fails.
    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>>;
}

/// A log of the service: what is known of it before the operator's settings are.
#[derive(Clone, Copy)]
pub struct LogKind {
    /// Its name, as in `log_sizes` and in what operators see.
    pub name: &'static str,
    /// For how many days it is kept by default.
    pub days: i64,
    /// The log with its retention.
    pub bounded: fn(Retention) -> Arc<dyn BoundedLog>,
}

/// How long each log is kept, by its name, where the operator has said so.
#[derive(Debug, Clone, Default)]
pub struct Retentions(BTreeMap<&'static str, Retention>);

impl Retentions {
    /// With another retention for the log of this name.
    #[must_use]
    pub fn with(mut self, log: &'static str, retention: Retention) -> Self {
        self.0.insert(log, retention);
        self
    }

    /// How long a log is kept.
    pub fn of(&self, log: &LogKind) -> Retention {
        self.0.get(log.name).copied().unwrap_or(Retention::of_days(log.days))
    }

    /// The first name that is not that of one of these logs.
    pub(super) fn unknown(&self, logs: &[LogKind]) -> Option<&'static str> {
        self.0.keys().find(|name| logs.iter().all(|log| log.name != **name)).copied()
    }
}
