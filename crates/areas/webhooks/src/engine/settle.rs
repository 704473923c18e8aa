//! Results of attempts, written to the database.

use super::super::queues::release_lanes;
use super::super::rows::Status;
use super::super::size::count_attempts;
use super::rows::{Finished, Verdict};
use crate::schema::{webhook_attempts, webhook_deliveries, webhook_hours};
use crate::sending::send::Attempt;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamp as SqlTimestamp};
use diesel::upsert::excluded;
use events::hour;
use model::{DeliveryId, JsonText, Result, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::BTreeMap;
use store::{AnyConnection, CachedChange, Tx, column};

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
    keep_outcomes(tx, finished)?;
    let ended = finished.iter().filter(|done| !matches!(done.verdict, Verdict::Retry(_)));
    let lanes = ended.filter_map(|done| Some((&done.delivery.endpoint_id, done.delivery.lane.as_deref()?)));
    release_lanes(tx, &lanes.collect())?;
    count(tx, finished)
}

fn keep_attempts(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    let rows = column(finished, |done| {
        let delivery = &done.delivery;
        NewAttempt::new(&delivery.id, delivery.attempts + 1, delivery.workspace_id, &done.attempt)
    });
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let insert = diesel::sql_query(
                "INSERT INTO webhook_attempts (delivery_id, n, workspace_id, attempted_at, duration_ms, status_code, error,
                    request_headers, response_headers, response_body)
                SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
            )
            .bind::<Array<Text>, _>(column(&rows, |row| row.delivery_id))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.n))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.workspace_id))
            .bind::<Array<SqlTimestamp>, _>(column(&rows, |row| row.attempted_at))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.duration_ms))
            .bind::<Array<Nullable<BigInt>>, _>(column(&rows, |row| row.status_code))
            .bind::<Array<Nullable<Text>>, _>(column(&rows, |row| row.error))
            .bind::<Array<Text>, _>(column(&rows, |row| row.request_headers))
            .bind::<Array<Nullable<Text>>, _>(column(&rows, |row| row.response_headers))
            .bind::<Array<Nullable<Text>>, _>(column(&rows, |row| row.response_body));
            CachedChange(insert).run(connection)?;
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

/// What becomes of a delivery.
struct Outcome {
    number: i64,
    status: Status,
    due_at: Option<Timestamp>,
    attempts: i64,
    first_attempt_at: Timestamp,
    ended_at: Option<Timestamp>,
}

impl Outcome {
    fn of(done: &Finished, now: Timestamp) -> Self {
        let (status, due_at, ended_at) = match done.verdict {
            Verdict::Succeeded => (Status::Succeeded, None, Some(now)),
            Verdict::Retry(at) => (Status::Pending, Some(at), None),
            Verdict::Failed => (Status::Failed, None, Some(now)),
        };
        let delivery = &done.delivery;
        let first_attempt_at = delivery.first_attempt_at.unwrap_or(done.attempt.at);
        let attempts = delivery.attempts + 1;
        Self { number: delivery.number, status, due_at, attempts, first_attempt_at, ended_at }
    }
}

fn keep_outcomes(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    use webhook_deliveries as d;
    let now = tx.now();
    let rows = column(finished, |done| Outcome::of(done, now));
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let update = diesel::sql_query(
                "UPDATE webhook_deliveries AS one SET status = outcome.status, due_at = outcome.due_at,
                    attempts = outcome.attempts, first_attempt_at = outcome.first_attempt_at, ended_at = outcome.ended_at
                FROM unnest($1, $2, $3, $4, $5, $6)
                    AS outcome (number, status, due_at, attempts, first_attempt_at, ended_at)
                WHERE one.number = outcome.number",
            )
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.number))
            .bind::<Array<Text>, _>(column(&rows, |row| row.status))
            .bind::<Array<Nullable<SqlTimestamp>>, _>(column(&rows, |row| row.due_at))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.attempts))
            .bind::<Array<SqlTimestamp>, _>(column(&rows, |row| row.first_attempt_at))
            .bind::<Array<Nullable<SqlTimestamp>>, _>(column(&rows, |row| row.ended_at));
            CachedChange(update).run(connection)?;
        }
        AnyConnection::Sqlite(connection) => {
            for row in rows {
                CachedChange(diesel::update(d::table.find(row.number)).set((
                    d::status.eq(row.status),
                    d::due_at.eq(row.due_at),
                    d::attempts.eq(row.attempts),
                    d::first_attempt_at.eq(Some(row.first_attempt_at)),
                    d::ended_at.eq(row.ended_at),
                )))
                .run(connection)?;
            }
        }
    }
    Ok(())
}

/// Attempts of an endpoint in an hour.
struct HourCount<'a> {
    endpoint: &'a WebhookEndpointId,
    hour: Timestamp,
    succeeded: i64,
    failed: i64,
}

/// Adds to the counts by endpoint and hour.
fn count(tx: &mut Tx, finished: &[&Finished]) -> Result<()> {
    let mut counts: BTreeMap<(&WebhookEndpointId, i64), (i64, i64)> = BTreeMap::new();
    for done in finished {
        let key = (&done.delivery.endpoint_id, hour(done.attempt.at).millis());
        let count = counts.entry(key).or_default();
        if done.attempt.succeeded() { count.0 += 1 } else { count.1 += 1 }
    }
    let rows: Vec<HourCount<'_>> = counts
        .into_iter()
        .map(|((endpoint, hour), (succeeded, failed))| HourCount {
            endpoint,
            hour: Timestamp::from_millis(hour),
            succeeded,
            failed,
        })
        .collect();
    match tx.connection() {
        AnyConnection::Postgres(connection) => {
            let upsert = diesel::sql_query(
                "INSERT INTO webhook_hours AS sum (endpoint_id, hour, succeeded, failed)
                SELECT * FROM unnest($1, $2, $3, $4) ON CONFLICT (endpoint_id, hour) DO UPDATE
                SET succeeded = sum.succeeded + excluded.succeeded, failed = sum.failed + excluded.failed",
            )
            .bind::<Array<Text>, _>(column(&rows, |row| row.endpoint))
            .bind::<Array<SqlTimestamp>, _>(column(&rows, |row| row.hour))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.succeeded))
            .bind::<Array<BigInt>, _>(column(&rows, |row| row.failed));
            CachedChange(upsert).run(connection)?;
        }
        AnyConnection::Sqlite(connection) => {
            for row in rows {
                let insert = diesel::insert_into(webhook_hours::table).values((
                    webhook_hours::endpoint_id.eq(row.endpoint),
                    webhook_hours::hour.eq(row.hour),
                    webhook_hours::succeeded.eq(row.succeeded),
                    webhook_hours::failed.eq(row.failed),
                ));
                let sums = (
                    webhook_hours::succeeded
                        .eq(webhook_hours::succeeded + excluded(webhook_hours::succeeded)),
                    webhook_hours::failed.eq(webhook_hours::failed + excluded(webhook_hours::failed)),
                );
                let key = (webhook_hours::endpoint_id, webhook_hours::hour);
                insert.on_conflict(key).do_update().set(sums).execute(connection)?;
            }
        }
    }
    Ok(())
}
