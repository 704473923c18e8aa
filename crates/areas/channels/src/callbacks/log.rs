//! The log of callbacks. Rows are deleted when they are old, and the oldest ones also when the log is too large.

use crate::schema::{channel_callbacks as table, channels};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use model::{ChannelId, Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use store::logs::{self, BoundedLog, LogKind, PerRow, Retention, Size, Sizes};
use store::{Read, Tx};

/// The name of the log among those with a maximum size.
const LOG: &str = "channel_callbacks";

/// Rows that a transaction counts or deletes.
const PIECE: i64 = 500;

/// The size of a row without its body, in bytes.
const ROW_BYTES: PerRow = PerRow { sqlite: 110, postgres: 170 };

/// Returns the condition for callbacks that are not done. It is SQL without parameters: SQLite cannot infer from
/// `status = ?` the condition `status <> 'done'` of their partial index, and would scan all callbacks.
pub(crate) fn not_done() -> SqlLiteral<Bool> {
    sql("channel_callbacks.status <> 'done'")
}

/// Returns the query for pending callbacks that are due.
#[diesel::dsl::auto_type(no_type_alias)]
pub(crate) fn pending(now: Timestamp) -> _ {
    let not_done: SqlLiteral<Bool> = not_done();
    table::table.filter(table::status.eq("pending")).filter(not_done).filter(table::due_at.le(now))
}

/// Returns the condition for callbacks that were applied or have failed, in the form of their partial index.
fn ended() -> SqlLiteral<Bool> {
    sql("channel_callbacks.status <> 'pending'")
}

/// Returns the SQL for the size of a row.
fn size_column(read: &mut Read) -> SqlLiteral<BigInt> {
    sql(&logs::row_bytes(read, ROW_BYTES, &["body", "last_error"]))
}

/// Deletes some callbacks and returns their sizes. All of their keys are in one statement, so there must not be many.
fn delete(tx: &mut Tx, ids: &[i64]) -> Result<Sizes> {
    if ids.is_empty() {
        return Ok(Sizes::new());
    }
    let log = logs::lock(tx, LOG)?;
    let mark = log.mark(tx)?;
    let bytes = size_column(tx);
    let counted: Vec<(WorkspaceId, i64)> = table::table
        .inner_join(channels::table.on(channels::id.eq(table::channel_id)))
        .filter(table::id.eq_any(ids))
        .filter(table::id.le(mark.counted_to))
        .select((channels::workspace_id, bytes))
        .load(tx.connection())?;
    diesel::delete(table::table.filter(table::id.eq_any(ids))).execute(tx.connection())?;
    let sizes = logs::sum(counted.into_iter().map(|(workspace, bytes)| (workspace, Size::row(bytes))));
    log.subtract(tx, &sizes);
    Ok(sizes)
}

/// Deletes some callbacks after `after` that are older than the retention, except pending ones. Returns where to
/// continue, or `None` after the last old one.
pub(crate) fn purge_old(tx: &mut Tx, retention: Retention, after: i64) -> Result<Option<i64>> {
    logs::lock(tx, LOG)?;
    let horizon = tx.now().plus_seconds(-retention.seconds());
    let rows: Vec<(i64, Timestamp, String)> = table::table
        .filter(table::id.gt(after))
        .order(table::id)
        .limit(PIECE)
        .select((table::id, table::received_at, table::status))
        .load(tx.connection())?;
    let old: Vec<_> = rows.into_iter().take_while(|(_, received, _)| *received < horizon).collect();
    let ids: Vec<i64> = old.iter().filter(|(.., status)| status != "pending").map(|(id, ..)| *id).collect();
    delete(tx, &ids)?;
    Ok(old.last().map(|(id, ..)| *id))
}

/// The log of chat networks' callbacks.
pub const CALLBACK_LOG: LogKind =
    LogKind { name: LOG, days: 14, bounded: |retention| Arc::new(BoundedCallbacks(retention)) };

/// The log of callbacks with its maximum size. Pending callbacks are never deleted. The size is measured by the job
/// instead of by inserts, because a shared counter would serialize all callbacks of a workspace.
struct BoundedCallbacks(Retention);

impl BoundedLog for BoundedCallbacks {
    fn name(&self) -> &'static str {
        LOG
    }

    fn most_bytes(&self) -> i64 {
        self.0.bytes
    }

    fn count(&self, tx: &mut Tx) -> Result<bool> {
        let newest = |tx: &mut Tx| {
            let newest = table::table.order(table::id.desc()).select(table::id);
            Ok(newest.first(tx.connection()).optional()?)
        };
        let rows = |tx: &mut Tx, after, to| {
            let bytes = size_column(tx);
            Ok(table::table
                .inner_join(channels::table.on(channels::id.eq(table::channel_id)))
                .filter(table::id.gt(after))
                .filter(table::id.le(to))
                .order(table::id)
                .limit(PIECE)
                .select((table::id, channels::workspace_id, bytes))
                .load(tx.connection())?)
        };
        logs::count_numbered(tx, LOG, PIECE, rows, newest)
    }

    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        logs::lock(tx, LOG)?;
        let own: Vec<ChannelId> = channels::table
            .filter(channels::workspace_id.eq(workspace))
            .select(channels::id)
            .load(tx.connection())?;
        let mut oldest: Vec<(i64, i64)> = Vec::new();
        // Query the channels separately, because the index orders the callbacks of each.
        for channel in own {
            let bytes = size_column(tx);
            let rows: Vec<(i64, i64)> = table::table
                .filter(table::channel_id.eq(channel))
                .filter(ended())
                .order(table::id)
                .limit(PIECE)
                .select((table::id, bytes))
                .load(tx.connection())?;
            oldest.extend(rows);
        }
        oldest.sort_unstable();
        oldest.truncate(usize::try_from(PIECE).unwrap_or(usize::MAX));
        let gone = logs::up_to(oldest, excess, |(_, bytes)| *bytes);
        let ids: Vec<i64> = gone.iter().map(|(id, _)| *id).collect();
        Ok(delete(tx, &ids)?.get(&workspace).copied().unwrap_or_default())
    }

    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        let first = table::table.order(table::id).select(table::received_at).first(read.connection());
        Ok(first.optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diesel::debug_query;
    use diesel::sqlite::Sqlite;
    use testkit::{Kind, TestDb, expect_indexes};

    #[tokio::test]
    async fn sqlite_finds_callbacks_by_their_indexes() {
        let data = TestDb::new(Kind::Sqlite);
        let now = data.db.now();
        let of_channel = pending(now).filter(table::channel_id.eq(ChannelId(1))).order(table::id);
        let of_all = pending(now).select(table::channel_id).distinct();
        let oldest = table::table.filter(table::channel_id.eq(ChannelId(1))).filter(ended()).order(table::id);
        let queries = [
            (debug_query::<Sqlite, _>(&of_channel).to_string(), "channel_callbacks_waiting"),
            (debug_query::<Sqlite, _>(&of_all).to_string(), "channel_callbacks_waiting"),
            (debug_query::<Sqlite, _>(&oldest).to_string(), "channel_callbacks_ended"),
        ];
        expect_indexes(&data, queries).await;
    }
}
