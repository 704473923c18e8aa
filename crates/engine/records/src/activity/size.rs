//! The size of activity: what is counted of it, and which entries go first.

use crate::schema::item_activity;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use store::logs::{self, BoundedLog, LogKind, PerRow, Retention, Size, Sizes};
use store::{Read, Tx};

/// Its name among the logs that have a size.
const LOG: &str = "item_activity";

/// Rows that one transaction counts or deletes.
const PIECE: i64 = 500;

/// What a row takes beside its long texts.
const ROW_BYTES: PerRow = PerRow { sqlite: 100, postgres: 220 };

/// The bytes of a row.
fn size_column(read: &mut Read) -> SqlLiteral<BigInt> {
    sql(&logs::row_bytes(read, ROW_BYTES, &["changed", "actor", "source", "operation_id"]))
}

/// Deletes entries, which are not many.
///
/// # Errors
/// When the database fails.
pub fn delete(tx: &mut Tx, ids: &[i64]) -> Result<Sizes> {
    if ids.is_empty() {
        return Ok(Sizes::new());
    }
    let log = logs::lock(tx, LOG)?;
    let mark = log.mark(tx)?;
    let bytes = size_column(tx);
    let counted: Vec<(WorkspaceId, i64)> = item_activity::table
        .filter(item_activity::id.eq_any(ids))
        .filter(item_activity::id.le(mark.counted_to))
        .select((item_activity::workspace_id, bytes))
        .load(tx.connection())?;
    diesel::delete(item_activity::table.filter(item_activity::id.eq_any(ids))).execute(tx.connection())?;
    let sizes = logs::sum(counted.into_iter().map(|(workspace, bytes)| (workspace, Size::row(bytes))));
    log.subtract(tx, &sizes);
    Ok(sizes)
}

/// The activity of items, among the logs that have a size.
pub const ACTIVITY_LOG: LogKind =
    LogKind { name: LOG, days: 3650, bounded: |retention| Arc::new(BoundedActivity(retention)) };

/// The activity of items, as something that has a size. Its writers do not count: all changes of a workspace's items would
/// wait for each other.
struct BoundedActivity(Retention);

impl BoundedLog for BoundedActivity {
    fn name(&self) -> &'static str {
        LOG
    }

    fn most_bytes(&self) -> i64 {
        self.0.bytes
    }

    fn count(&self, tx: &mut Tx) -> Result<bool> {
        let newest = |tx: &mut Tx| {
            let newest = item_activity::table.order(item_activity::id.desc()).select(item_activity::id);
            Ok(newest.first(tx.connection()).optional()?)
        };
        let rows = |tx: &mut Tx, after, to| {
            let bytes = size_column(tx);
            Ok(item_activity::table
                .filter(item_activity::id.gt(after))
                .filter(item_activity::id.le(to))
                .order(item_activity::id)
                .limit(PIECE)
                .select((item_activity::id, item_activity::workspace_id, bytes))
                .load(tx.connection())?)
        };
        logs::count_numbered(tx, LOG, PIECE, rows, newest)
    }

    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        logs::lock(tx, LOG)?;
        let bytes = size_column(tx);
        let oldest: Vec<(i64, i64)> = item_activity::table
            .filter(item_activity::workspace_id.eq(workspace))
            .order(item_activity::id)
            .limit(PIECE)
            .select((item_activity::id, bytes))
            .load(tx.connection())?;
        let gone = logs::up_to(oldest, excess, |(_, bytes)| *bytes);
        let ids: Vec<i64> = gone.iter().map(|(id, _)| *id).collect();
        Ok(delete(tx, &ids)?.get(&workspace).copied().unwrap_or_default())
    }

    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        let first = item_activity::table.order(item_activity::id).select(item_activity::created_at);
        Ok(first.first(read.connection()).optional()?)
    }
}
