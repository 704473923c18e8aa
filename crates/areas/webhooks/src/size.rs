//! The size of deliveries: what is counted of them with their attempts and bodies, and which go first.

use crate::schema::{webhook_attempts, webhook_bodies, webhook_deliveries};
use crate::sending::send::Attempt;
use diesel::dsl::{exists, not, sql};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{DeliveryId, EventId, JsonText, Result, Timestamp, WorkspaceId};
use std::sync::Arc;
use store::logs::{self, BoundedLog, LogKind, LogLock, PerRow, Retention, Size, Sizes};
use store::{Read, Tx};

/// The name of deliveries, with their attempts and bodies, among the logs that have a size.
const LOG: &str = "webhook_deliveries";

/// What is locked while bodies are deleted, or kept from it.
const BODIES: &str = "bodies of deliveries";

/// Deliveries that one transaction deletes.
const PIECE: i64 = 100;

/// What a delivery takes. Its texts are ids and short words.
const DELIVERY_BYTES: PerRow = PerRow { sqlite: 560, postgres: 800 };
/// What an attempt takes beside what was sent and answered.
const ATTEMPT_BYTES: PerRow = PerRow { sqlite: 140, postgres: 200 };
/// What a body takes beside itself.
const BODY_BYTES: PerRow = PerRow { sqlite: 120, postgres: 200 };

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(0)
}

/// Counts deliveries that were added.
pub(super) fn count_deliveries(tx: &mut Tx, of: impl Iterator<Item = WorkspaceId>) {
    let size = Size::row(DELIVERY_BYTES.on(tx));
    logs::add(tx, LOG, &logs::sum(of.map(|workspace| (workspace, size))));
}

/// Counts bodies that were added, each with its `traceparent`.
pub(super) fn count_bodies<'a>(
    tx: &mut Tx,
    bodies: impl Iterator<Item = (WorkspaceId, &'a str, Option<&'a str>)>,
) {
    let fixed = BODY_BYTES.on(tx);
    let sizes = bodies.map(|(workspace, body, traceparent)| {
        (workspace, Size::part(fixed + length(body) + traceparent.map_or(0, length)))
    });
    logs::add(tx, LOG, &logs::sum(sizes));
}

/// Counts attempts that were added.
pub(super) fn count_attempts<'a>(tx: &mut Tx, attempts: impl Iterator<Item = (WorkspaceId, &'a Attempt)>) {
    let fixed = ATTEMPT_BYTES.on(tx);
    let sizes = attempts.map(|(workspace, attempt)| {
        let headers = [Some(&attempt.request_headers), attempt.response_headers.as_ref()];
        let texts = [attempt.response_body.as_deref(), attempt.error.as_deref()];
        let headers = headers.into_iter().flatten().map(JsonText::as_str);
        let bytes: i64 = headers.chain(texts.into_iter().flatten()).map(length).sum();
        (workspace, Size::part(fixed + bytes))
    });
    logs::add(tx, LOG, &logs::sum(sizes));
}

/// A delivery that may be deleted.
type Row = (i64, DeliveryId, WorkspaceId, EventId, Timestamp, Option<Timestamp>);

/// The job `events.purge` for deliveries: deletes some of those behind `after` that have ended before their time, in the
/// order in which they were made. Gives where to go on; `None` at the end of what is old.
pub(super) fn purge_old(tx: &mut Tx, retention: Retention, after: i64) -> Result<Option<i64>> {
    use webhook_deliveries as d;
    let horizon = tx.now().plus_seconds(-retention.seconds());
    let log = logs::lock(tx, LOG)?;
    let rows: Vec<Row> = d::table
        .filter(d::number.gt(after))
        .order(d::number)
        .limit(PIECE)
        .select((d::number, d::id, d::workspace_id, d::event_id, d::created_at, d::ended_at))
        .load(tx.connection())?;
    let mut old: Vec<Row> = rows.into_iter().take_while(|(.., created, _)| *created < horizon).collect();
    let last = old.last().map(|(number, ..)| *number);
    old.retain(|(.., ended)| ended.is_some_and(|ended| ended < horizon));
    delete(tx, &log, &old)?;
    Ok(last)
}

/// Keeps bodies from being deleted until the transaction ends, for whoever delivers once more what was delivered.
pub(super) fn hold_bodies(tx: &mut Tx) -> Result<()> {
    tx.lock_shared(BODIES)
}

/// Deletes deliveries with their attempts and, where no other delivery needs them, their bodies.
fn delete(tx: &mut Tx, log: &LogLock, rows: &[Row]) -> Result<Sizes> {
    use {webhook_attempts as a, webhook_bodies as b, webhook_deliveries as d};
    tx.lock(BODIES)?;
    let numbers: Vec<i64> = rows.iter().map(|(number, ..)| *number).collect();
    let ids: Vec<&DeliveryId> = rows.iter().map(|(_, id, ..)| id).collect();
    let events: Vec<&str> = rows.iter().map(|(.., event, _, _)| event.as_str()).collect();
    let of_delivery = Size::row(DELIVERY_BYTES.on(tx));
    let texts = ["request_headers", "response_headers", "response_body", "error"];
    let of_attempt = sql::<BigInt>(&logs::row_bytes(tx, ATTEMPT_BYTES, &texts));
    let of_body = sql::<BigInt>(&logs::row_bytes(tx, BODY_BYTES, &["body", "traceparent"]));
    let connection = tx.connection();
    let attempts = || a::table.filter(a::delivery_id.eq_any(&ids));
    let gone: Vec<(WorkspaceId, i64)> = attempts().select((a::workspace_id, of_attempt)).load(connection)?;
    diesel::delete(attempts()).execute(connection)?;
    diesel::delete(d::table.filter(d::number.eq_any(numbers))).execute(connection)?;
    let needed = d::table.filter(d::event_id.eq(b::event_id)).filter(d::form.eq(b::form));
    let bodies: Vec<(String, String, WorkspaceId, i64)> = b::table
        .filter(b::event_id.eq_any(events))
        .filter(not(exists(needed)))
        .select((b::event_id, b::form, b::workspace_id, of_body))
        .load(connection)?;
    for (event, form, ..) in &bodies {
        diesel::delete(b::table.find((event, form))).execute(connection)?;
    }
    let deliveries = rows.iter().map(|(_, _, workspace, ..)| (*workspace, of_delivery));
    let bodies = bodies.iter().map(|(_, _, workspace, bytes)| (*workspace, Size::part(*bytes)));
    let attempts = gone.iter().map(|(workspace, bytes)| (*workspace, Size::part(*bytes)));
    let sizes = logs::sum(deliveries.chain(bodies).chain(attempts));
    log.subtract(tx, &sizes);
    Ok(sizes)
}

/// Deliveries with their attempts and bodies, among the logs that have a size.
pub const DELIVERY_LOG: LogKind =
    LogKind { name: LOG, days: 30, bounded: |retention| Arc::new(BoundedDeliveries(retention)) };

/// Deliveries with their attempts and bodies, as something that has a size.
struct BoundedDeliveries(Retention);

impl BoundedLog for BoundedDeliveries {
    fn name(&self) -> &'static str {
        LOG
    }

    fn most_bytes(&self) -> i64 {
        self.0.bytes
    }

    fn evict(&self, tx: &mut Tx, workspace: WorkspaceId, excess: i64) -> Result<Size> {
        use webhook_deliveries as d;
        // What has not ended is still to be delivered. What else goes with a row is unknown until it is gone.
        let log = logs::lock(tx, LOG)?;
        let piece = (excess / DELIVERY_BYTES.on(tx) + 1).min(PIECE);
        let rows: Vec<Row> = d::table
            .filter(d::workspace_id.eq(workspace))
            .filter(d::ended_at.is_not_null())
            .order(d::number)
            .limit(piece)
            .select((d::number, d::id, d::workspace_id, d::event_id, d::created_at, d::ended_at))
            .load(tx.connection())?;
        Ok(delete(tx, &log, &rows)?.get(&workspace).copied().unwrap_or_default())
    }

    fn oldest(&self, read: &mut Read) -> Result<Option<Timestamp>> {
        let rows = webhook_deliveries::table.order(webhook_deliveries::number);
        Ok(rows.select(webhook_deliveries::created_at).first(read.connection()).optional()?)
    }
}
