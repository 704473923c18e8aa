//! Queues of endpoints: what waits for an endpoint, in which order. A lane is what is delivered in order: the events of
//! one object, or all of them.

use super::rows::{NewDelivery, Status};
use super::size;
use crate::schema::{webhook_deliveries, webhook_queues};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{Result, Timestamp, WebhookEndpointId};
use std::collections::{BTreeSet, HashSet};
use store::{AnyConnection, Cached, CachedChange, LockLevel, LockMode, Read, Tx, column, each};

/// Locks the queues of endpoints on PostgreSQL, always in the same order. Whoever settles or releases one of them does
/// so too, and so sees every delivery that was added, or adds to what was seen.
pub(crate) fn lock_queues(tx: &mut Tx, ids: &BTreeSet<&WebhookEndpointId>) -> Result<()> {
    tx.expect_lock_order(LockLevel::WebhookQueues, 0, LockMode::Exclusive)?;
    if let AnyConnection::Postgres(connection) = tx.connection() {
        webhook_queues::table
            .filter(webhook_queues::endpoint_id.eq_any(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>()))
            .order(webhook_queues::endpoint_id)
            .select(webhook_queues::epoch)
            .for_update()
            .load::<i64>(connection)?;
    }
    Ok(())
}

/// Puts deliveries into the queues of their endpoints. One whose lane has an earlier open one waits for that, whenever it
/// was due.
pub(crate) fn enqueue(tx: &mut Tx, mut rows: Vec<NewDelivery>) -> Result<()> {
    let Some(first) = rows.iter().filter_map(|row| row.due_at).min() else { return Ok(()) };
    let ids: BTreeSet<WebhookEndpointId> = rows.iter().map(|row| row.endpoint_id.clone()).collect();
    let queues: BTreeSet<&WebhookEndpointId> = ids.iter().collect();
    lock_queues(tx, &queues)?;
    let lanes: BTreeSet<(&WebhookEndpointId, &str)> =
        rows.iter().filter_map(|row| Some((&row.endpoint_id, row.lane.as_deref()?))).collect();
    let mut taken = open_lanes(tx, &lanes)?;
    for row in &mut rows {
        if let Some(lane) = &row.lane
            && !taken.insert((row.endpoint_id.clone(), lane.clone()))
        {
            row.due_at = None;
        }
    }
    insert_deliveries(tx, &rows)?;
    wake_queues(tx, &queues, first)
}

const INSERT: &str = "INSERT INTO webhook_deliveries (id, workspace_id, endpoint_id, event_id, form, event_type, livemode,
        origin, status, lane, due_at, attempts, created_at)
    SELECT id, workspace_id, endpoint_id, event_id, form, event_type, livemode, origin, status, lane, due_at, attempts,
        created_at
    FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) WITH ORDINALITY
        AS new (id, workspace_id, endpoint_id, event_id, form, event_type, livemode, origin, status, lane, due_at, attempts,
            created_at, place)
    ORDER BY place";

/// Adds deliveries, numbered in the order of the rows.
pub(crate) fn insert_deliveries(tx: &mut Tx, rows: &[NewDelivery]) -> Result<()> {
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let insert = diesel::sql_query(INSERT)
                .bind::<Array<Text>, _>(column(rows, |row| &row.id))
                .bind::<Array<BigInt>, _>(column(rows, |row| row.workspace_id))
                .bind::<Array<Text>, _>(column(rows, |row| &row.endpoint_id))
                .bind::<Array<Text>, _>(column(rows, |row| &row.event_id))
                .bind::<Array<Text>, _>(column(rows, |row| &row.form))
                .bind::<Array<Text>, _>(column(rows, |row| &row.event_type))
                .bind::<Array<Bool>, _>(column(rows, |row| row.livemode))
                .bind::<Array<Text>, _>(column(rows, |row| row.origin))
                .bind::<Array<Text>, _>(column(rows, |row| row.status))
                .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.lane.as_deref()))
                .bind::<Array<Nullable<SqlTimestamp>>, _>(column(rows, |row| row.due_at))
                .bind::<Array<BigInt>, _>(column(rows, |row| row.attempts))
                .bind::<Array<SqlTimestamp>, _>(column(rows, |row| row.created_at));
            CachedChange(insert).run(connection)?;
        }
        AnyConnection::Sqlite(connection) => {
            // A statement of one row is prepared once; one of many rows anew for every number of them.
            for row in rows {
                diesel::insert_into(webhook_deliveries::table).values(row).execute(connection)?;
            }
        }
    }
    size::count_deliveries(tx, rows.iter().map(|row| row.workspace_id));
    Ok(())
}

/// Makes queues due, those that are paused excepted.
fn wake_queues(tx: &mut Tx, ids: &BTreeSet<&WebhookEndpointId>, due: Timestamp) -> Result<()> {
    let now = tx.now();
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    each!(tx.connection(), |connection| diesel::update(
        webhook_queues::table
            .filter(webhook_queues::endpoint_id.eq_any(ids))
            .filter(webhook_queues::due_at.is_null().or(webhook_queues::due_at.gt(due)))
            .filter(webhook_queues::breaker_until.is_null().or(webhook_queues::breaker_until.le(now)))
    )
    .set(webhook_queues::due_at.eq(due))
    .execute(connection))?;
    Ok(())
}

/// A lane of an endpoint.
type Lane<'a> = (&'a WebhookEndpointId, &'a str);

#[derive(QueryableByName)]
struct OpenLane {
    #[diesel(sql_type = Text)]
    endpoint_id: WebhookEndpointId,
    #[diesel(sql_type = Text)]
    lane: String,
}

/// Those of the lanes that have an open delivery. The queues must be locked.
fn open_lanes(tx: &mut Tx, lanes: &BTreeSet<Lane<'_>>) -> Result<HashSet<(WebhookEndpointId, String)>> {
    if lanes.is_empty() {
        return Ok(HashSet::new());
    }
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let (endpoints, names): (Vec<_>, Vec<_>) = lanes.iter().copied().unzip();
            let open = diesel::sql_query(
                "SELECT endpoint_id, lane FROM unnest($1, $2) AS wanted (endpoint_id, lane) WHERE EXISTS (
                    SELECT 1 FROM webhook_deliveries AS one WHERE one.endpoint_id = wanted.endpoint_id
                    AND one.lane = wanted.lane AND one.ended_at IS NULL)",
            )
            .bind::<Array<Text>, _>(endpoints)
            .bind::<Array<Text>, _>(names);
            let open: Vec<OpenLane> = Cached(open).load(connection)?;
            Ok(open.into_iter().map(|open| (open.endpoint_id, open.lane)).collect())
        }
        AnyConnection::Sqlite(_) => {
            let mut open = HashSet::new();
            for (endpoint, lane) in lanes {
                if head(tx, (endpoint, lane))?.is_some() {
                    open.insert(((*endpoint).clone(), (*lane).to_owned()));
                }
            }
            Ok(open)
        }
    }
}

/// The first open delivery of a lane.
fn head(read: &mut Read, (endpoint, lane): Lane<'_>) -> Result<Option<(i64, Status, Option<Timestamp>)>> {
    Ok(webhook_deliveries::table
        .filter(webhook_deliveries::endpoint_id.eq(endpoint))
        .filter(webhook_deliveries::lane.eq(lane))
        .filter(webhook_deliveries::ended_at.is_null())
        .order(webhook_deliveries::number)
        .select((webhook_deliveries::number, webhook_deliveries::status, webhook_deliveries::due_at))
        .limit(1)
        .get_result(read.connection())
        .optional()?)
}

/// Makes the first open delivery of each lane due.
pub(crate) fn release_lanes(tx: &mut Tx, lanes: &BTreeSet<Lane<'_>>) -> Result<()> {
    if lanes.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let (endpoints, names): (Vec<_>, Vec<_>) = lanes.iter().copied().unzip();
            let release = diesel::sql_query(
                "UPDATE webhook_deliveries SET due_at = $3 WHERE number = ANY (ARRAY(
                    SELECT head.number FROM unnest($1, $2) AS ended (endpoint_id, lane) CROSS JOIN LATERAL (
                        SELECT number, status, due_at FROM webhook_deliveries AS one
                        WHERE one.endpoint_id = ended.endpoint_id AND one.lane = ended.lane AND one.ended_at IS NULL
                        ORDER BY number LIMIT 1
                    ) AS head WHERE head.due_at IS NULL AND head.status = 'pending'))",
            )
            .bind::<Array<Text>, _>(endpoints)
            .bind::<Array<Text>, _>(names)
            .bind::<SqlTimestamp, _>(now);
            CachedChange(release).run(connection)?;
        }
        AnyConnection::Sqlite(_) => {
            for lane in lanes {
                if let Some((number, Status::Pending, None)) = head(tx, *lane)? {
                    diesel::update(webhook_deliveries::table.find(number))
                        .set(webhook_deliveries::due_at.eq(now))
                        .execute(tx.connection())?;
                }
            }
        }
    }
    Ok(())
}
