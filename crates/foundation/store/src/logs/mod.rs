//! Logs: tables that grow with every request or change, and that are kept for a time and up to a size.
//!
//! A group declares its logs ([`LogKind`]), and one job deletes their rows ([`Logs::trim`]) by statements that are built from the
//! declarations. The rows and bytes of a log are counted in `log_sizes` as they are written and deleted, so that nothing has
//! to scan a log to know its size.

mod kind;
mod retention;
mod rows;
mod sizes;
mod trim;

pub use crate::log_changes::{Size, Sizes, sum};
pub use kind::{Counted, DeleteParts, Key, LogKind, Owner};
pub use retention::{Retention, Retentions};
pub use sizes::{PerRow, add, purged_to, row_bytes, totals};
pub use trim::{Log, LogSize, Logs};
