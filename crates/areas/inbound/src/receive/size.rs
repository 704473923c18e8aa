//! The size of received requests: what is counted of them, and which go first.

use crate::schema::inbound_requests as r;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{ReceivedRequestId, Result, Timestamp, WorkspaceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::logs::{self, BoundedLog, LogKind, LogLock, Mark, PerRow, Retention, Size, Sizes};
use store::{Read, Tx};

/// Their name among the logs that have a size.
const LOG: &str = "inbound_requests";

/// Rows that one transaction deletes.
pub(crate) const PIECE: i64 = 200;

/// What a row takes beside its long texts and its body.
const ROW_BYTES: PerRow = PerRow { sqlite: 330, postgres: 450 };

/// Requests are counted so many seconds after they were received: by then they are committed.
const COUNTED_AFTER: i64 = 10;

/// A request that may be deleted.
pub(crate) type Row = (ReceivedRequestId, WorkspaceId, Timestamp, i64);

/// What is read of requests that may be deleted.
type Columns = (r::id, r::workspace_id, r::received_at, SqlLiteral<BigInt>);

pub(crate) fn columns(read: &mut Read) -> Columns {
    let bytes = logs::row_bytes(read, ROW_BYTES, &["peer", "query", "headers", "body"]);
    (r::id, r::workspace_id, r::received_at, sql(&bytes))
}

/// The right to delete requests; they are chosen once it is held.
pub(crate) fn lock(tx: &mut Tx) -> Result<LogLock> {
    logs::lock(tx, LOG)
}

/// Up to when requests are counted.
fn counted_to(read: &mut Read, log: &LogLock) -> Result<Timestamp> {
    Ok(Timestamp::from_millis(log.mark(read)?.counted_to))
}

/// Deletes requests.
pub(crate) fn delete(tx: &mut Tx, log: &LogLock, rows: &[Row]) -> Result<Sizes> {
    let counted_to = counted_to(tx, log)?;
    let mut ids: BTreeMap<WorkspaceId, Vec<&ReceivedRequestId>> = BTreeMap::new();
    for (id, workspace, ..) in rows {
        ids.entry(*workspace).or_default().push(id);
    }
    for (workspace, ids) in ids {
        let gone = r::table.filter(r::workspace_id.eq(workspace)).filter(r::id.eq_any(ids));
        diesel::delete(gone).execute(tx.connection())?;
    }
    let counted = rows.iter().filter(|(_, _, received, _)| *received <= counted_to);
    let sizes = logs::sum(counted.map(|(_, workspace, _, bytes)| (*workspace, Size::row(*bytes))));
    log.subtract(tx, &sizes);
    Ok(sizes)
}

/// Requests that inbound webhooks received, among the logs that have a size.
pub const INBOUND_LOG: LogKind =
    LogKind { name: LOG, days: 14, bounded: |retention| Arc::new(BoundedRequests(retention)) };

/// Received requests, as something that has a size. Its writers do not count: all requests of a workspace would wait for each
/// other.
struct BoundedRequests(Retention);

impl BoundedLog for BoundedRequests {
    fn name(&self) -> &'static str {
        LOG
    }

    fn most_bytes(&self) -> i64 {
        self.0.bytes
    }

    fn count(&self, tx: &mut Tx) -> Result<bool> {
        let log = lock(tx)?;
        let (from, until) = (counted_to(tx, &log)?, tx.now().plus_seconds(-COUNTED_AFTER));
        let new = r::table.filter(r::received_at.gt(from)).filter(r::received_at.le(until));
        // Those of one moment are counted together.
        let last: Option<Timestamp> = new
            .order(r::received_at)
            .offset(PIECE)
            .select(r::received_at)
            .first(tx.connection())
            .optional()?;
        let to = last.unwrap_or(until);
        let columns = columns(tx);
        let rows: Vec<Row> = new.filter(r::received_at.le(to)).select(columns).load(tx.connection())?;
        if let Some(newest) = rows.iter().map(|(_, _, received, _)| *received).max() {
            let sizes = rows.iter().map(|(_, workspace, _, bytes)| (*workspace, Size::row(*bytes)));
            logs::add(tx, LOG, &logs::sum(sizes));
            let counted_to = newest.millis();
            log.advance(tx, Mark { counted_to, seen_to: counted_to })?;
        }
        Ok(last.is_some())
    }

    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        let (log, columns) = (lock(tx)?, columns(tx));
        let oldest: Vec<Row> = r::table
            .filter(r::workspace_id.eq(workspace))
            .order(r::id.asc())
            .limit(PIECE)
            .select(columns)
            .load(tx.connection())?;
        let rows = logs::up_to(oldest, excess, |(.., bytes)| *bytes);
        Ok(delete(tx, &log, &rows)?.get(&workspace).copied().unwrap_or_default())
    }

    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        let first = r::table.order(r::received_at).select(r::received_at).first(read.connection());
        Ok(first.optional()?)
    }
}
