//! Queues of endpoints: what waits for an endpoint, in which order. A lane is what is delivered in order: the events of
//! one object, or all of them.

use super::rows::{NewDelivery, Status};
use super::size;
use crate::schema::{webhook_deliveries, webhook_queues};
use diesel::prelude::*;
use model::{Result, Timestamp, WebhookEndpointId};
use std::collections::{BTreeSet, HashSet};
use store::{AnyConnection, LockLevel, LockMode, Read, Tx, each};

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
    let mut lanes = Lanes::default();
    for row in &mut rows {
        if let Some(lane) = &row.lane
            && !lanes.enter(tx, &row.endpoint_id, lane)?
        {
            row.due_at = None;
        }
    }
    insert_deliveries(tx, &rows)?;
    wake_queues(tx, &queues, first)
}

pub(crate) fn insert_deliveries(tx: &mut Tx, rows: &[NewDelivery]) -> Result<()> {
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            diesel::insert_into(webhook_deliveries::table).values(rows).execute(connection)?;
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

/// Which lanes have an open delivery, as far as it was asked. The queues must be locked.
#[derive(Default)]
struct Lanes(HashSet<(WebhookEndpointId, String)>);

impl Lanes {
    /// Enters a lane. `true` where nothing is before it.
    fn enter(&mut self, read: &mut Read, endpoint: &WebhookEndpointId, lane: &str) -> Result<bool> {
        if !self.0.insert((endpoint.clone(), lane.to_owned())) {
            return Ok(false);
        }
        let open: Option<i64> = webhook_deliveries::table
            .filter(webhook_deliveries::endpoint_id.eq(endpoint))
            .filter(webhook_deliveries::lane.eq(lane))
            .filter(webhook_deliveries::ended_at.is_null())
            .select(webhook_deliveries::number)
            .limit(1)
            .get_result(read.connection())
            .optional()?;
        Ok(open.is_none())
    }
}

/// Makes the first open delivery of a lane due.
pub(crate) fn release_lane(tx: &mut Tx, endpoint: &WebhookEndpointId, lane: &str) -> Result<()> {
    let now = tx.now();
    let next: Option<(i64, Status, Option<Timestamp>)> = webhook_deliveries::table
        .filter(webhook_deliveries::endpoint_id.eq(endpoint))
        .filter(webhook_deliveries::lane.eq(lane))
        .filter(webhook_deliveries::ended_at.is_null())
        .order(webhook_deliveries::number)
        .select((webhook_deliveries::number, webhook_deliveries::status, webhook_deliveries::due_at))
        .limit(1)
        .get_result(tx.connection())
        .optional()?;
    if let Some((number, status, None)) = next
        && status == Status::Pending
    {
        diesel::update(webhook_deliveries::table.find(number))
            .set(webhook_deliveries::due_at.eq(now))
            .execute(tx.connection())?;
    }
    Ok(())
}
