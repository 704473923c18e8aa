//! Results of attempts, written to the database.

use super::super::queues::release_lane;
use super::super::rows::Status;
use super::super::size::count_attempts;
use super::rows::{Finished, Verdict};
use super::send::Attempt;
use crate::log::hour;
use crate::schema::{webhook_attempts, webhook_deliveries, webhook_hours};
use diesel::prelude::*;
use diesel::upsert::excluded;
use model::{DeliveryId, JsonText, Result, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::{AnyConnection, Tx, each};

#[derive(Insertable)]
#[diesel(table_name = webhook_attempts)]
struct NewAttempt<'a> {
    delivery_id: &'a DeliveryId,
    n: i64,
    workspace_id: WorkspaceId,
    attempted_at: Timestamp,
    duration_ms: i64,
    status_code: Option<i64>,
    error: Option<&'a str>,
    request_headers: &'a JsonText,
    response_headers: Option<&'a JsonText>,
    response_body: Option<&'a str>,
}

impl<'a> NewAttempt<'a> {
    fn new(id: &'a DeliveryId, n: i64, workspace_id: WorkspaceId, attempt: &'a Attempt) -> Self {
        Self {
            delivery_id: id,
            n,
            workspace_id,
            attempted_at: attempt.at,
            duration_ms: attempt.duration_ms,
            status_code: attempt.status_code,
            error: attempt.error.as_deref(),
            request_headers: &attempt.request_headers,
            response_headers: attempt.response_headers.as_ref(),
            response_body: attempt.response_body.as_deref(),
        }
    }
}

/// Keeps one attempt.
pub(crate) fn keep_attempt(
    tx: &mut Tx,
    id: &DeliveryId,
    n: i64,
    workspace: WorkspaceId,
    attempt: &Attempt,
) -> Result<()> {
    let row = NewAttempt::new(id, n, workspace, attempt);
    diesel::insert_into(webhook_attempts::table).values(row).execute(tx.connection())?;
    count_attempts(tx, std::iter::once((workspace, attempt)));
    Ok(())
}

/// Writes attempts and what becomes of their deliveries, and lets the next of each lane go.
pub(crate) fn settle(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    if finished.is_empty() {
        return Ok(());
    }
    keep_attempts(tx, finished)?;
    let now = tx.now();
    let succeeded: Vec<i64> = finished
        .iter()
        .filter(|done| done.verdict == Verdict::Succeeded)
        .map(|done| done.delivery.number)
        .collect();
    if !succeeded.is_empty() {
        each!(tx.connection(), |connection| diesel::update(
            webhook_deliveries::table.filter(webhook_deliveries::number.eq_any(&succeeded))
        )
        .set((
            webhook_deliveries::status.eq(Status::Succeeded),
            webhook_deliveries::due_at.eq(None::<Timestamp>),
            webhook_deliveries::attempts.eq(webhook_deliveries::attempts + 1),
            webhook_deliveries::ended_at.eq(now),
        ))
        .execute(connection))?;
    }
    for done in finished.iter().filter(|done| done.verdict != Verdict::Succeeded) {
        let (status, due, ended) = match done.verdict {
            Verdict::Retry(at) => (Status::Pending, Some(at), None),
            _ => (Status::Failed, None, Some(now)),
        };
        diesel::update(webhook_deliveries::table.find(done.delivery.number))
            .set((
                webhook_deliveries::status.eq(status),
                webhook_deliveries::due_at.eq(due),
                webhook_deliveries::attempts.eq(done.delivery.attempts + 1),
                webhook_deliveries::first_attempt_at
                    .eq(Some(done.delivery.first_attempt_at.unwrap_or(done.attempt.at))),
                webhook_deliveries::ended_at.eq(ended),
            ))
            .execute(tx.connection())?;
    }
    let lanes: BTreeSet<(&WebhookEndpointId, &str)> = finished
        .iter()
        .filter(|done| !matches!(done.verdict, Verdict::Retry(_)))
        .filter_map(|done| Some((&done.delivery.endpoint_id, done.delivery.lane.as_deref()?)))
        .collect();
    for (endpoint, lane) in lanes {
        release_lane(tx, endpoint, lane)?;
    }
    count(tx, finished)
}

fn keep_attempts(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    let rows: Vec<NewAttempt<'_>> = finished
        .iter()
        .map(|done| {
            let delivery = &done.delivery;
            NewAttempt::new(&delivery.id, delivery.attempts + 1, delivery.workspace_id, &done.attempt)
        })
        .collect();
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            diesel::insert_into(webhook_attempts::table)
                .values(&rows)
                .on_conflict_do_nothing()
                .execute(connection)?;
        }
        AnyConnection::Sqlite(connection) => {
            for row in &rows {
                diesel::insert_into(webhook_attempts::table)
                    .values(row)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
            }
        }
    }
    count_attempts(tx, finished.iter().map(|done| (done.delivery.workspace_id, &done.attempt)));
    Ok(())
}

/// Adds to the counts by endpoint and hour.
fn count(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    let mut counts: BTreeMap<(&WebhookEndpointId, i64), (i64, i64)> = BTreeMap::new();
    for done in finished {
        let key = (&done.delivery.endpoint_id, hour(done.attempt.at).millis());
        let count = counts.entry(key).or_default();
        if done.attempt.succeeded() { count.0 += 1 } else { count.1 += 1 }
    }
    for ((endpoint, hour), (succeeded, failed)) in counts {
        each!(tx.connection(), |connection| diesel::insert_into(webhook_hours::table)
            .values((
                webhook_hours::endpoint_id.eq(endpoint.as_str()),
                webhook_hours::hour.eq(Timestamp::from_millis(hour)),
                webhook_hours::succeeded.eq(succeeded),
                webhook_hours::failed.eq(failed),
            ))
            .on_conflict((webhook_hours::endpoint_id, webhook_hours::hour))
            .do_update()
            .set((
                webhook_hours::succeeded.eq(webhook_hours::succeeded + excluded(webhook_hours::succeeded)),
                webhook_hours::failed.eq(webhook_hours::failed + excluded(webhook_hours::failed)),
            ))
            .execute(connection))?;
    }
    Ok(())
}
