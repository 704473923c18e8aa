//! Results of attempts, written to the database.

use super::super::queues::release_lanes;
use super::super::rows::Status;
use super::super::size::count_attempts;
use super::rows::{Finished, Verdict};
use crate::sending::send::Attempt;
use events::hour;
use model::{DeliveryId, Result, Timestamp, WebhookEndpointId, WorkspaceId};
use std::collections::BTreeMap;
use store::{OnConflict, Rows, Tx, column};

/// An attempt at a delivery.
struct NewAttempt<'a> {
    delivery: &'a DeliveryId,
    /// From 1.
    n: i64,
    workspace: WorkspaceId,
    attempt: &'a Attempt,
}

/// Attempts as rows of `webhook_attempts`.
fn attempt_rows<'a>(attempts: &'a [NewAttempt<'a>]) -> Rows<'a, NewAttempt<'a>> {
    Rows::of(attempts)
        .text("delivery_id", |row| row.delivery)
        .big_int("n", |row| row.n)
        .big_int("workspace_id", |row| row.workspace)
        .time("attempted_at", |row| row.attempt.at)
        .big_int("duration_ms", |row| row.attempt.duration_ms)
        .big_int("status_code", |row| row.attempt.status_code)
        .text("error", |row| row.attempt.error.as_deref())
        .text("request_headers", |row| &row.attempt.request_headers)
        .text("response_headers", |row| row.attempt.response_headers.as_ref())
        .text("response_body", |row| row.attempt.response_body.as_deref())
}

/// Keeps one attempt.
pub(crate) fn keep_attempt(
    tx: &mut Tx,
    delivery: &DeliveryId,
    n: i64,
    workspace: WorkspaceId,
    attempt: &Attempt,
) -> Result<()> {
    attempt_rows(&[NewAttempt { delivery, n, workspace, attempt }]).insert(tx, "webhook_attempts")?;
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
        NewAttempt {
            delivery: &delivery.id,
            n: delivery.attempts + 1,
            workspace: delivery.workspace_id,
            attempt: &done.attempt,
        }
    });
    attempt_rows(&rows).insert_or(tx, "webhook_attempts", OnConflict::Ignore)?;
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
    let now = tx.now();
    let rows = column(finished, |done| Outcome::of(done, now));
    Rows::of(&rows)
        .big_int("number", |row| row.number)
        .text("status", |row| row.status)
        .time("due_at", |row| row.due_at)
        .big_int("attempts", |row| row.attempts)
        .time("first_attempt_at", |row| row.first_attempt_at)
        .time("ended_at", |row| row.ended_at)
        .execute(
            tx,
            "UPDATE webhook_deliveries AS one SET status = outcome.status, due_at = outcome.due_at,
                attempts = outcome.attempts, first_attempt_at = outcome.first_attempt_at, ended_at = outcome.ended_at
            FROM {outcome} WHERE one.number = outcome.number",
        )?;
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
    let sum = OnConflict::Update {
        key: &["endpoint_id", "hour"],
        set: "succeeded = sum.succeeded + excluded.succeeded, failed = sum.failed + excluded.failed",
    };
    Rows::of(&rows)
        .text("endpoint_id", |row| row.endpoint)
        .time("hour", |row| row.hour)
        .big_int("succeeded", |row| row.succeeded)
        .big_int("failed", |row| row.failed)
        .insert_or(tx, "webhook_hours AS sum", sum)?;
    Ok(())
}
