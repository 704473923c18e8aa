//! Logs: tables that grow with every request or change, and that are kept for a time and up to a size.
//!
//! What a log takes is counted in `log_sizes` as rows are written and deleted, so that nothing has to scan a log to know
//! its size. The rows that go when a log is too large are chosen in [`trim`].

mod changes;
mod sizes;
mod trim;

pub(crate) use changes::Changes;
pub use changes::{Size, Sizes, sum};
pub use sizes::{LogLock, Mark, PerRow, add, count_numbered, lock, purged_to, row_bytes, sizes_of, totals};
pub use trim::{BoundedLog, LogSize, Logs, up_to};

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
