//! Queues of endpoints: what waits for an endpoint, in which order. A lane is what is delivered in order: the events of
//! one object, or all of them.

use super::rows::NewDelivery;
use super::size;
use crate::schema::webhook_queues;
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::{Result, Timestamp, WebhookEndpointId};
use std::collections::{BTreeSet, HashSet};
use store::{LockLevel, LockMode, Rows, Tx, each, lock_row};

/// Locks the queues of endpoints on PostgreSQL, always in the same order. Whoever settles or releases one of them does
/// so too, and so sees every delivery that was added, or adds to what was seen.
pub(crate) fn lock_queues(tx: &mut Tx, ids: &BTreeSet<&WebhookEndpointId>) -> Result<()> {
    tx.expect_lock_order(LockLevel::WebhookQueues, 0, LockMode::Exclusive)?;
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    let queues = webhook_queues::table
        .filter(webhook_queues::endpoint_id.eq_any(ids))
        .order(webhook_queues::endpoint_id)
        .select(webhook_queues::epoch);
    lock_row!(tx, queues, for_update);
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

/// Adds deliveries, numbered in the order of the rows.
pub(crate) fn insert_deliveries(tx: &mut Tx, rows: &[NewDelivery]) -> Result<()> {
    Rows::of(rows)
        .text("id", |row| &row.id)
        .big_int("workspace_id", |row| row.workspace_id)
        .text("endpoint_id", |row| &row.endpoint_id)
        .text("event_id", |row| &row.event_id)
        .text("form", |row| &row.form)
        .text("event_type", |row| &row.event_type)
        .bool("livemode", |row| row.livemode)
        .text("origin", |row| row.origin)
        .text("status", |row| row.status)
        .text("lane", |row| row.lane.as_deref())
        .time("due_at", |row| row.due_at)
        .big_int("attempts", |row| row.attempts)
        .time("created_at", |row| row.created_at)
        .insert(tx, "webhook_deliveries")?;
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
    let lanes: Vec<Lane<'_>> = lanes.iter().copied().collect();
    let open: Vec<OpenLane> = Rows::of(&lanes)
        .text("endpoint_id", |(endpoint, _)| *endpoint)
        .text("lane", |(_, lane)| *lane)
        .load(
            tx,
            "SELECT endpoint_id, lane FROM {wanted} WHERE EXISTS (
                SELECT 1 FROM webhook_deliveries AS one WHERE one.endpoint_id = wanted.endpoint_id
                AND one.lane = wanted.lane AND one.ended_at IS NULL)",
        )?;
    Ok(open.into_iter().map(|open| (open.endpoint_id, open.lane)).collect())
}

/// Makes the first open delivery of each lane due.
pub(crate) fn release_lanes(tx: &mut Tx, lanes: &BTreeSet<Lane<'_>>) -> Result<()> {
    let lanes: Vec<Lane<'_>> = lanes.iter().copied().collect();
    let now = tx.now();
    Rows::of(&lanes)
        .text("endpoint_id", |(endpoint, _)| *endpoint)
        .text("lane", |(_, lane)| *lane)
        .given_time("now", now)
        .execute(
            tx,
            "UPDATE webhook_deliveries AS head SET due_at = {now} FROM {ended}
            WHERE head.due_at IS NULL AND head.status = 'pending' AND head.number = (
                SELECT one.number FROM webhook_deliveries AS one
                WHERE one.endpoint_id = ended.endpoint_id AND one.lane = ended.lane AND one.ended_at IS NULL
                ORDER BY one.number LIMIT 1)",
        )?;
    Ok(())
}
