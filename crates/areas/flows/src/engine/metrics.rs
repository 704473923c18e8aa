//! Metrics of runs.

use crate::runs::row::FlowRunStatus;
use crate::schema::flow_runs;
use diesel::prelude::*;
use model::{Result, Timestamp};
use operation::{Counts, TableGauge};
use store::{MOST_COUNTED, Read};

/// Runs that have not ended.
pub(crate) const OPEN_RUNS: TableGauge =
    TableGauge::new("svc_flow_runs_open", "Runs of flows that have not ended, by status.", open_by_status)
        .by("status");

/// How late the engine is.
pub(crate) const LATENESS: TableGauge = TableGauge::new(
    "svc_flow_runs_late_seconds",
    "For how many seconds the longest due run of a flow has had work that nobody has begun.",
    lateness,
);

fn open_by_status(read: &mut Read) -> Result<Counts> {
    #[derive(QueryableByName)]
    struct Open {
        #[diesel(sql_type = diesel::sql_types::Text)]
        status: FlowRunStatus,
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        runs: i64,
    }
    let sql = format!(
        "SELECT status, COUNT(*) AS runs FROM
            (SELECT status FROM flow_runs WHERE ended_at IS NULL LIMIT {MOST_COUNTED}) AS open GROUP BY status"
    );
    let open: Vec<Open> = diesel::sql_query(sql).load(read.connection())?;
    let count =
        |status: FlowRunStatus| open.iter().find(|row| row.status == status).map_or(0, |row| row.runs);
    let statuses = FlowRunStatus::ALL.into_iter().filter(|status| !status.is_final());
    Ok(statuses.map(|status| (status.as_str().into(), count(status))).collect())
}

fn lateness(read: &mut Read) -> Result<Counts> {
    let now = read.now();
    let due: Option<Option<Timestamp>> = flow_runs::table
        .filter(flow_runs::wake_at.le(now))
        .filter(flow_runs::lease_until.is_null().or(flow_runs::lease_until.lt(now)))
        .order(flow_runs::wake_at)
        .select(flow_runs::wake_at)
        .first(read.connection())
        .optional()?;
    let late = due.flatten().map_or(0, |due| (now.millis() - due.millis()) / 1000);
    Ok(vec![("".into(), late)])
}
