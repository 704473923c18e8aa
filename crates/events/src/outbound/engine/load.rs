//! Loading of due deliveries.

use super::super::queues::release_lane;
use super::super::rows::Status;
use super::rows::{LoadedDelivery, QueueRow};
use crate::log::Catalogue;
use crate::schema::{webhook_bodies, webhook_deliveries as d};
use diesel::prelude::*;
use model::{DeliveryId, EventId, Result, ScopeSet, Timestamp};
use store::{Tx, each};

/// When the queue has something to do next: `None` where nothing waits. What is due already is due from now on, behind
/// the queues that have waited meanwhile.
pub(super) fn next_due(
    tx: &mut Tx,
    queue: &QueueRow,
    not_before: [Option<Timestamp>; 2],
) -> Result<Option<Timestamp>> {
    let due: Option<Option<Timestamp>> = d::table
        .filter(d::endpoint_id.eq(&queue.endpoint_id))
        .filter(d::due_at.is_not_null())
        .filter(d::number.gt(queue.skip_through))
        .order((d::due_at, d::number))
        .select(d::due_at)
        .limit(1)
        .get_result(tx.connection())
        .optional()?;
    let now = tx.now();
    Ok(due.flatten().map(|due| not_before.into_iter().flatten().fold(due.max(now), Timestamp::max)))
}

/// A due delivery, with its body where that is still kept.
#[derive(Queryable)]
struct DueRow {
    number: i64,
    id: DeliveryId,
    event_id: EventId,
    event_type: String,
    livemode: bool,
    lane: Option<String>,
    attempts: i64,
    first_attempt_at: Option<Timestamp>,
    body: Option<String>,
    traceparent: Option<String>,
}

fn due(tx: &mut Tx, queue: &QueueRow, limit: usize) -> Result<Vec<DueRow>> {
    let now = tx.now();
    Ok(d::table
        .left_join(
            webhook_bodies::table
                .on(webhook_bodies::event_id.eq(d::event_id).and(webhook_bodies::form.eq(d::form))),
        )
        .filter(d::endpoint_id.eq(&queue.endpoint_id))
        .filter(d::due_at.le(now))
        .filter(d::number.gt(queue.skip_through))
        .order((d::due_at, d::number))
        .limit(i64::try_from(limit).unwrap_or(1))
        .select((
            d::number,
            d::id,
            d::event_id,
            d::event_type,
            d::livemode,
            d::lane,
            d::attempts,
            d::first_attempt_at,
            webhook_bodies::body.nullable(),
            webhook_bodies::traceparent.nullable(),
        ))
        .load(tx.connection())?)
}

/// Loads up to `limit` due deliveries of a queue, and marks them as on their way.
pub(super) fn load(
    tx: &mut Tx,
    catalogue: &Catalogue,
    queue: &QueueRow,
    scopes: ScopeSet,
    limit: usize,
) -> Result<Vec<LoadedDelivery>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let rows = due(tx, queue, limit)?;
    let (mut deliveries, mut unsendable) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        // A pattern stands for what its key may see, whatever that is by now.
        match row.body.filter(|_| catalogue.may_see(scopes, &row.event_type)) {
            Some(body) => deliveries.push(LoadedDelivery {
                number: row.number,
                id: row.id,
                workspace_id: queue.workspace_id,
                endpoint_id: queue.endpoint_id.clone(),
                event_id: row.event_id,
                livemode: row.livemode,
                lane: row.lane,
                attempts: row.attempts,
                first_attempt_at: row.first_attempt_at,
                body,
                traceparent: row.traceparent,
            }),
            None => unsendable.push((row.number, row.lane)),
        }
    }
    let numbers: Vec<i64> = deliveries.iter().map(|delivery| delivery.number).collect();
    if !numbers.is_empty() {
        each!(tx.connection(), |connection| diesel::update(d::table.filter(d::number.eq_any(&numbers)))
            .set((d::status.eq(Status::Delivering), d::due_at.eq(None::<Timestamp>)))
            .execute(connection))?;
    }
    for (number, lane) in unsendable {
        skip(tx, queue, number, lane.as_deref())?;
    }
    Ok(deliveries)
}

/// Ends a delivery that may not, or cannot, be sent.
fn skip(tx: &mut Tx, queue: &QueueRow, number: i64, lane: Option<&str>) -> Result<()> {
    let now = tx.now();
    diesel::update(d::table.find(number))
        .set((d::status.eq(Status::Skipped), d::due_at.eq(None::<Timestamp>), d::ended_at.eq(now)))
        .execute(tx.connection())?;
    match lane {
        Some(lane) => release_lane(tx, &queue.endpoint_id, lane),
        None => Ok(()),
    }
}
