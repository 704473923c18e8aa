//! The declaration of activity as a log.

use store::logs::{Counted, LogKind, PerRow};

/// The activity of items. Its writers do not count, because all changes of a workspace's items would wait for each other.
pub const ACTIVITY_LOG: LogKind = LogKind {
    days: 3650,
    texts: &["changed", "actor", "source", "operation_id"],
    row_bytes: PerRow { sqlite: 100, postgres: 220 },
    counted: Counted::Afterwards,
    ..LogKind::of("item_activity")
};
