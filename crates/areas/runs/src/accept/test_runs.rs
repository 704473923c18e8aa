//! Daily quota of test runs.

use crate::schema::test_run_days;
use diesel::prelude::*;
use model::{Code, Error, Result, Timestamp, WorkspaceId};
use store::{Tx, each};

/// Counts a test run against the day's cap.
///
/// # Errors
/// `test_run_daily_cap`; the transaction is then rolled back, and the count with it.
pub(crate) fn count(tx: &mut Tx, workspace: WorkspaceId, cap: i64) -> Result<()> {
    let now = tx.now();
    let day = now.day().to_string();
    each!(tx.connection(), |connection| diesel::insert_into(test_run_days::table)
        .values((
            test_run_days::workspace_id.eq(workspace),
            test_run_days::day.eq(&day),
            test_run_days::runs.eq(1),
        ))
        .on_conflict((test_run_days::workspace_id, test_run_days::day))
        .do_update()
        .set(test_run_days::runs.eq(test_run_days::runs + 1))
        .execute(connection))?;
    let runs: i64 =
        test_run_days::table.find((workspace, &day)).select(test_run_days::runs).first(tx.connection())?;
    if runs <= cap {
        return Ok(());
    }
    let tomorrow = Timestamp::day_start(now.day()).plus_seconds(86_400);
    Err(Error::new(Code::TestRunDailyCap, format!("The workspace has used its {cap} test runs of today."))
        .resets_at(tomorrow))
}
