//! Calls whose process is gone.

use super::model::InvocationStatus;
use super::rows::InvocationRow;
use crate::schema::function_invocations as table;
use diesel::prelude::*;
use jobs::{JobContext, JobError};
use model::Result;
use store::Tx;

/// The most rows that one transaction ends.
const PIECE: i64 = 100;

/// Ends calls that run longer than any call can: their process is gone.
pub(crate) async fn end_interrupted(job: JobContext) -> std::result::Result<(), JobError> {
    while job.db.write(end_some).await? > 0 {
        if job.soft.is_cancelled() {
            return Err(JobError::hand_back());
        }
    }
    Ok(())
}

fn end_some(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    let rows: Vec<InvocationRow> = table::table
        .filter(table::status.eq(InvocationStatus::Running))
        .filter(table::lease_until.le(now))
        .order(table::lease_until)
        .limit(PIECE)
        .select(InvocationRow::as_select())
        .load(tx.connection())?;
    for row in &rows {
        row.interrupted(now).end(row, tx)?;
    }
    Ok(rows.len())
}
