//! Background jobs for deliveries: skipping what is not sent any more, and deleting what is old.

use super::endpoints::SkipPayload;
use super::rows::Status;
use crate::log::last_place;
use crate::schema::{event_hours, webhook_attempts, webhook_bodies, webhook_deliveries, webhook_hours};
use diesel::prelude::*;
use jobs::{JobContext, JobError};
use model::{DeliveryId, Result, Timestamp};
use store::schema::events;
use store::{Tx, each};

const CHUNK: i64 = 1000;
const DAY: i64 = 86_400;
/// Events, and deliveries that have ended, are kept for so long.
const KEPT_DAYS: i64 = 30;
/// A body is needed by deliveries of an event that is still kept, until they are forgotten themselves.
const BODIES_DAYS: i64 = 65;

/// The job `webhooks.skip`.
pub(crate) async fn skip(job: JobContext) -> Result<(), JobError> {
    let SkipPayload { workspace_id, endpoint_id, through } = job.payload.parse()?;
    let mut after = 0;
    loop {
        let endpoint = endpoint_id.clone();
        let last = job.db.write(move |tx| {
            use webhook_deliveries as d;
            let now = tx.now();
            let numbers: Vec<(i64, Status)> = d::table
                .filter(d::endpoint_id.eq(&endpoint))
                .filter(d::workspace_id.eq(workspace_id))
                .filter(d::number.gt(after))
                .filter(d::number.le(through))
                .order(d::number)
                .limit(CHUNK)
                .select((d::number, d::status))
                .load(tx.connection())?;
            let pending: Vec<i64> = numbers
                .iter()
                .filter(|(_, status)| *status == Status::Pending)
                .map(|(number, _)| *number)
                .collect();
            if !pending.is_empty() {
                each!(tx.connection(), |connection| diesel::update(
                    d::table.filter(d::number.eq_any(&pending)).filter(d::status.eq(Status::Pending))
                )
                .set((d::status.eq(Status::Skipped), d::due_at.eq(None::<Timestamp>), d::ended_at.eq(now),))
                .execute(connection))?;
            }
            Ok(numbers.last().map(|(number, _)| *number))
        });
        match last.await? {
            Some(last) => after = last,
            None => return Ok(()),
        }
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
}

/// The job `events.purge`: takes some at a time, so that no transaction is long.
pub(crate) async fn purge(job: JobContext) -> Result<(), JobError> {
    while job.db.write(purge_events).await? > 0 {}
    let mut after = 0;
    while let Some(last) = job.db.write(move |tx| purge_deliveries(tx, after)).await? {
        after = last;
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
    job.db.write(purge_rest).await?;
    Ok(())
}

/// Forgets old events. The newest one stays, because the next place follows from it.
fn purge_events(tx: &mut Tx) -> Result<usize> {
    let horizon = tx.now().plus_seconds(-KEPT_DAYS * DAY);
    let newest = last_place(tx)?;
    let oldest: Vec<(Option<i64>, Timestamp)> = events::table
        .filter(events::position.lt(newest))
        .order(events::position)
        .limit(CHUNK)
        .select((events::position, events::created_at))
        .load(tx.connection())?;
    let last =
        oldest.iter().take_while(|(_, created)| *created < horizon).filter_map(|(place, _)| *place).last();
    let Some(last) = last else { return Ok(0) };
    Ok(diesel::delete(events::table.filter(events::position.le(last))).execute(tx.connection())?)
}

/// Forgets old deliveries behind `after`, in the order in which they were made. `None` at the end of what is old.
fn purge_deliveries(tx: &mut Tx, after: i64) -> Result<Option<i64>> {
    use webhook_deliveries as d;
    let horizon = tx.now().plus_seconds(-KEPT_DAYS * DAY);
    let rows: Vec<(i64, DeliveryId, Timestamp, Option<Timestamp>)> = d::table
        .filter(d::number.gt(after))
        .order(d::number)
        .limit(CHUNK)
        .select((d::number, d::id, d::created_at, d::ended_at))
        .load(tx.connection())?;
    let old: Vec<_> = rows.into_iter().take_while(|(_, _, created, _)| *created < horizon).collect();
    let Some(last) = old.last().map(|(number, ..)| *number) else { return Ok(None) };
    let ended = old.into_iter().filter(|(.., ended)| ended.is_some_and(|ended| ended < horizon));
    let (numbers, ids): (Vec<i64>, Vec<DeliveryId>) = ended.map(|(number, id, ..)| (number, id)).unzip();
    each!(tx.connection(), |connection| {
        diesel::delete(webhook_attempts::table.filter(webhook_attempts::delivery_id.eq_any(&ids)))
            .execute(connection)?;
        diesel::delete(d::table.filter(d::number.eq_any(&numbers))).execute(connection)
    })?;
    Ok(Some(last))
}

fn purge_rest(tx: &mut Tx) -> Result<()> {
    let days = |days: i64| tx.now().plus_seconds(-days * DAY);
    let (bodies, hours, rates) = (days(BODIES_DAYS), days(KEPT_DAYS), days(2));
    diesel::delete(webhook_bodies::table.filter(webhook_bodies::created_at.lt(bodies)))
        .execute(tx.connection())?;
    diesel::delete(event_hours::table.filter(event_hours::hour.lt(hours))).execute(tx.connection())?;
    diesel::delete(webhook_hours::table.filter(webhook_hours::hour.lt(rates))).execute(tx.connection())?;
    Ok(())
}
