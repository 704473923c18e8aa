//! Background jobs for deliveries: skipping what is not sent any more, and deleting what is old.

use super::endpoints::SkipPayload;
use super::rows::Status;
use crate::schema::{webhook_deliveries, webhook_hours};
use diesel::prelude::*;
use events::purge_counts;
use jobs::{JobContext, JobError};
use model::{Result, Timestamp};
use store::{Tx, each};

const CHUNK: i64 = 1000;
/// How long the counts of deliveries by hour are kept.
const COUNTED_SECONDS: i64 = 2 * 86_400;

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

/// The job `events.purge`: deletes the counts of events and deliveries by hour.
pub(crate) async fn purge(job: JobContext) -> Result<(), JobError> {
    job.db.write(purge_counts).await?;
    job.db.write(purge_hours).await?;
    Ok(())
}

fn purge_hours(tx: &mut Tx) -> Result<()> {
    let horizon = tx.now().plus_seconds(-COUNTED_SECONDS);
    diesel::delete(webhook_hours::table.filter(webhook_hours::hour.lt(horizon))).execute(tx.connection())?;
    Ok(())
}
