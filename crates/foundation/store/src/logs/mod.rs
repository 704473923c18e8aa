//! Logs: tables that grow with every request or change, and that are kept for a time and up to a size.
//!
//! What a log takes is counted in `log_sizes` as rows are written and deleted, so that nothing has to scan a log to know
//! its size. The rows that go when a log is too large are chosen in [`trim`].

mod retention;
mod sizes;
mod trim;

pub use crate::log_changes::{Size, Sizes, sum};
pub use retention::{BoundedLog, LogKind, Retention, Retentions};
pub use sizes::{LogLock, Mark, PerRow, add, count_numbered, lock, purged_to, row_bytes, sizes_of, totals};
pub use trim::{LogSize, Logs, up_to};
