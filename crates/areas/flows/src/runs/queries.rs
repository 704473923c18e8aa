//! Queries of runs: claims, leases, ends and lists.

use super::row::{FlowPauseReason, FlowRunStatus, RunError, RunRow};
use super::steps::FlowStepStatus;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{AutomationId, ContactId, FlowId, FlowRunId, JsonText, Result, Timestamp, WorkspaceId};
use std::collections::HashMap;
use store::{Read, Tx, for_update_skip_locked};

/// The length of a lease.
pub(crate) const LEASE_SECONDS: i64 = 30;
/// How many due runs are looked at for each that is claimed, so that one workspace with many does not keep others waiting.
const LOOKED_AT: i64 = 4;

/// After how many seconds a run is looked at again whose flow has as many under way as it allows.
const FULL_SECONDS: i64 = 1;

/// Claims runs that have work, the longest due first, and those of each workspace in turn. `limit` gives how many runs of a version
/// may be under way.
pub(crate) fn claim(
    tx: &mut Tx,
    most: i64,
    limit: impl Fn(&mut Tx, &Due) -> Result<i64>,
) -> Result<Vec<RunRow>> {
    let now = tx.now();
    let due = flow_runs::table
        .filter(flow_runs::wake_at.le(now))
        .filter(flow_runs::lease_until.is_null().or(flow_runs::lease_until.lt(now)))
        .order(flow_runs::wake_at.asc())
        .limit(most.saturating_mul(LOOKED_AT))
        .select(Due::as_select());
    let due: Vec<Due> = for_update_skip_locked(due).load(tx.connection())?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let mut held = held_by_flow(tx, &due)?;
    let (mut turns, mut full): (HashMap<WorkspaceId, usize>, Vec<FlowRunId>) = Default::default();
    let mut chosen: Vec<(usize, FlowRunId)> = Vec::new();
    for run in due {
        let under_way = held.entry(run.flow_id).or_default();
        if *under_way >= limit(tx, &run)? {
            full.push(run.id);
            continue;
        }
        *under_way += 1;
        let turn = turns.entry(run.workspace_id).or_default();
        *turn += 1;
        chosen.push((*turn, run.id));
    }
    // The sort is stable: within a turn the longest due comes first.
    chosen.sort_by_key(|(turn, _)| *turn);
    chosen.truncate(usize::try_from(most).unwrap_or_default());
    // Others come first meanwhile.
    diesel::update(flow_runs::table.filter(flow_runs::id.eq_any(full)))
        .set(flow_runs::wake_at.eq(now.plus_seconds(FULL_SECONDS)))
        .execute(tx.connection())?;
    let ids: Vec<FlowRunId> = chosen.into_iter().map(|(_, id)| id).collect();
    Ok(diesel::update(flow_runs::table.filter(flow_runs::id.eq_any(ids)))
        .set((
            flow_runs::epoch.eq(flow_runs::epoch + 1),
            flow_runs::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
        ))
        .returning(flow_runs::all_columns)
        .get_results(tx.connection())?)
}

/// A run that has work.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = flow_runs)]
pub(crate) struct Due {
    id: FlowRunId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) flow_id: FlowId,
    pub(crate) version: Option<i64>,
}

/// Counts the runs of flows that are under way.
fn held_by_flow(read: &mut Read, due: &[Due]) -> Result<HashMap<FlowId, i64>> {
    let flows: Vec<FlowId> = due.iter().map(|run| run.flow_id).collect();
    let now = read.now();
    let held: Vec<(FlowId, i64)> = flow_runs::table
        .filter(flow_runs::flow_id.eq_any(flows))
        .filter(flow_runs::lease_until.ge(now))
        .group_by(flow_runs::flow_id)
        .select((flow_runs::flow_id, count_star()))
        .load(read.connection())?;
    Ok(held.into_iter().collect())
}

/// The number of runs of a flow that are under way.
pub(crate) fn count_held(read: &mut Read, flow: FlowId) -> Result<i64> {
    let now = read.now();
    Ok(flow_runs::table
        .filter(flow_runs::flow_id.eq(flow))
        .filter(flow_runs::lease_until.ge(now))
        .count()
        .get_result(read.connection())?)
}

/// Renews a lease. Returns whether the epoch is still that of the worker, and the run has not been ended by others.
pub(crate) fn renew(tx: &mut Tx, row: &RunRow) -> Result<bool> {
    let lease = tx.now().plus_seconds(LEASE_SECONDS);
    let held = flow_runs::table
        .find(&row.id)
        .filter(flow_runs::epoch.eq(row.epoch))
        .filter(flow_runs::ended_at.is_null());
    Ok(diesel::update(held).set(flow_runs::lease_until.eq(lease)).execute(tx.connection())? == 1)
}

/// Pauses a run that cannot be executed.
pub(crate) fn park(tx: &mut Tx, row: &RunRow, reason: FlowPauseReason, error: &RunError) -> Result<()> {
    diesel::update(flow_runs::table.find(&row.id).filter(flow_runs::epoch.eq(row.epoch)))
        .set((
            flow_runs::status.eq(FlowRunStatus::Paused),
            flow_runs::pause_reason.eq(reason),
            flow_runs::error.eq(JsonText::of(error)),
            flow_runs::lease_until.eq(None::<Timestamp>),
            flow_runs::wake_at.eq(row.expires_at),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Ends a run from outside, with its waits, in whatever state it is. Nodes that act are left to end. Returns whether it had not
/// ended.
pub(crate) fn end_from_outside(
    tx: &mut Tx,
    id: &FlowRunId,
    status: FlowRunStatus,
    kept_days: i64,
) -> Result<bool> {
    let now = tx.now();
    let open = flow_runs::table.find(id).filter(flow_runs::ended_at.is_null());
    let ended = diesel::update(open)
        .set((
            flow_runs::status.eq(status),
            flow_runs::ended_at.eq(now),
            flow_runs::expires_at.eq(now.plus_seconds(kept_days.saturating_mul(86_400))),
            flow_runs::pause_reason.eq(None::<FlowPauseReason>),
            flow_runs::wake_at.eq(None::<Timestamp>),
            flow_runs::lease_until.eq(None::<Timestamp>),
        ))
        .execute(tx.connection())?;
    if ended == 0 {
        return Ok(false);
    }
    diesel::delete(flow_waits::table.filter(flow_waits::run_id.eq(id))).execute(tx.connection())?;
    let idle = [FlowStepStatus::Pending, FlowStepStatus::Waiting];
    diesel::update(
        flow_steps::table.filter(flow_steps::run_id.eq(id)).filter(flow_steps::status.eq_any(idle)),
    )
    .set((flow_steps::status.eq(FlowStepStatus::Cancelled), flow_steps::ended_at.eq(now)))
    .execute(tx.connection())?;
    Ok(true)
}

/// The runs of a flow that have not ended, oldest first.
pub(crate) fn open_of(read: &mut Read, flow: FlowId, contact: Option<ContactId>) -> Result<Vec<RunRow>> {
    let mut query = flow_runs::table
        .filter(flow_runs::flow_id.eq(flow))
        .filter(flow_runs::ended_at.is_null())
        .order(flow_runs::id)
        .select(RunRow::as_select())
        .into_boxed();
    if let Some(contact) = contact {
        query = query.filter(flow_runs::contact_id.eq(contact));
    }
    Ok(query.load(read.connection())?)
}

/// The number of runs of a flow that have not ended, counted up to `most`.
pub(crate) fn count_open(read: &mut Read, flow: FlowId, most: i64) -> Result<usize> {
    let ids: Vec<FlowRunId> = flow_runs::table
        .filter(flow_runs::flow_id.eq(flow))
        .filter(flow_runs::ended_at.is_null())
        .limit(most)
        .select(flow_runs::id)
        .load(read.connection())?;
    Ok(ids.len())
}

/// The run that a start with this name made.
pub(crate) fn by_once_key(read: &mut Read, flow: FlowId, key: &str) -> Result<Option<FlowRunId>> {
    Ok(flow_runs::table
        .filter(flow_runs::flow_id.eq(flow))
        .filter(flow_runs::once_key.eq(key))
        .select(flow_runs::id)
        .first(read.connection())
        .optional()?)
}

/// The runs that a run has started and that have not ended.
pub(crate) fn open_children(read: &mut Read, parent: &FlowRunId) -> Result<Vec<RunRow>> {
    Ok(flow_runs::table
        .filter(flow_runs::parent_run_id.eq(parent))
        .filter(flow_runs::ended_at.is_null())
        .select(RunRow::as_select())
        .load(read.connection())?)
}

/// The runs that an automation has started and that have not ended.
pub(crate) fn open_of_automation(
    read: &mut Read,
    workspace: WorkspaceId,
    automation: AutomationId,
) -> Result<Vec<RunRow>> {
    Ok(flow_runs::table
        .filter(flow_runs::automation_id.eq(automation))
        .filter(flow_runs::ended_at.is_null())
        .filter(flow_runs::workspace_id.eq(workspace))
        .select(RunRow::as_select())
        .load(read.connection())?)
}

/// The runs that wait for a reply of a contact.
pub(crate) fn awaiting_reply(
    read: &mut Read,
    workspace: WorkspaceId,
    contact: ContactId,
) -> Result<Vec<RunRow>> {
    let waits = flow_waits::table
        .filter(flow_waits::workspace_id.eq(workspace))
        .filter(flow_waits::contact_id.eq(contact))
        .filter(flow_waits::kind.eq(super::waits::FlowWaitType::Reply))
        .select(flow_waits::run_id);
    Ok(flow_runs::table
        .filter(flow_runs::id.eq_any(waits))
        .filter(flow_runs::ended_at.is_null())
        .select(RunRow::as_select())
        .load(read.connection())?)
}
