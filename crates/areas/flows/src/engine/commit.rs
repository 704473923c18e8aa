//! What a drive of a run writes: one transaction for all that happened since the last one.

use crate::runs::queries::LEASE_SECONDS;
use crate::runs::row::{FlowPauseReason, FlowRunStatus, RunRow};
use crate::runs::steps::{FlowStepStatus, StepRow};
use crate::runs::waits::WaitRow;
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::prelude::*;
use model::{ContactId, JsonText, Result, Timestamp};
use store::{Rows, Tx};

/// What happened since the last transaction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// New steps.
    pub(crate) begun: Vec<StepRow>,
    /// Steps that are stored and have changed.
    pub(crate) changed: Vec<StepRow>,
    /// New waits, or waits in the place of others of the same token.
    pub(crate) waits: Vec<WaitRow>,
    /// The tokens that wait no more.
    pub(crate) over: Vec<i64>,
}

/// What becomes of the run itself.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) status: FlowRunStatus,
    pub(crate) pause_reason: Option<FlowPauseReason>,
    pub(crate) state: JsonText,
    pub(crate) output: Option<JsonText>,
    pub(crate) error: Option<JsonText>,
    pub(crate) response: Option<JsonText>,
    pub(crate) contact: Option<ContactId>,
    pub(crate) step_count: i64,
    pub(crate) energy: i64,
    /// For how many days a run that has ended is kept.
    pub(crate) kept_days: i64,
    /// Whether this process goes on with the run.
    pub(crate) is_held: bool,
}

/// Writes what happened. Returns whether the run was still that of this worker: with this epoch, and not ended by others.
pub(crate) fn write(tx: &mut Tx, row: &RunRow, changes: &Changes, progress: &Progress) -> Result<bool> {
    let now = tx.now();
    let is_final = progress.status.is_final();
    let kept_until = now.plus_seconds(progress.kept_days.saturating_mul(86_400));
    let expires_at = if is_final { kept_until } else { row.expires_at };
    let lease = progress.is_held.then(|| now.plus_seconds(LEASE_SECONDS));
    let updated = diesel::update(
        flow_runs::table
            .find(&row.id)
            .filter(flow_runs::epoch.eq(row.epoch))
            .filter(flow_runs::ended_at.is_null()),
    )
    .set((
        flow_runs::status.eq(progress.status),
        flow_runs::pause_reason.eq(progress.pause_reason),
        flow_runs::state.eq(&progress.state),
        flow_runs::output.eq(&progress.output),
        flow_runs::error.eq(&progress.error),
        flow_runs::response.eq(&progress.response),
        flow_runs::contact_id.eq(progress.contact),
        flow_runs::step_count.eq(progress.step_count),
        flow_runs::energy.eq(progress.energy),
        flow_runs::started_at.eq(row.started_at.unwrap_or(now)),
        flow_runs::lease_until.eq(lease),
        flow_runs::ended_at.eq(is_final.then_some(now)),
        flow_runs::expires_at.eq(expires_at),
    ))
    .execute(tx.connection())?;
    if updated == 0 {
        return Ok(false);
    }
    write_steps(tx, changes)?;
    write_waits(tx, row, changes, is_final)?;
    if !progress.is_held {
        let wake_at = if is_final { None } else { Some(next_wake(tx, row, progress)?) };
        diesel::update(flow_runs::table.find(&row.id))
            .set(flow_runs::wake_at.eq(wake_at))
            .execute(tx.connection())?;
    }
    Ok(true)
}

fn write_steps(tx: &mut Tx, changes: &Changes) -> Result<()> {
    insert_steps(tx, &changes.begun)?;
    for step in &changes.changed {
        diesel::update(flow_steps::table.find((&step.run_id, step.position)))
            .set((
                flow_steps::status.eq(step.status),
                flow_steps::output.eq(&step.output),
                flow_steps::error.eq(&step.error),
                flow_steps::port.eq(&step.port),
                flow_steps::energy.eq(step.energy),
                flow_steps::ended_at.eq(step.ended_at),
            ))
            .execute(tx.connection())?;
    }
    Ok(())
}

fn insert_steps(tx: &mut Tx, steps: &[StepRow]) -> Result<()> {
    Rows::of(steps)
        .text("run_id", |row| &row.run_id)
        .big_int("position", |row| row.position)
        .text("id", |row| &row.id)
        .big_int("workspace_id", |row| row.workspace_id)
        .big_int("token", |row| row.token)
        .text("node_id", |row| &row.node_id)
        .text("node_type", |row| &row.node_type)
        .text("path", |row| &row.path)
        .big_int("attempt", |row| row.attempt)
        .text("status", |row| row.status)
        .text("input", |row| row.input.as_ref())
        .text("output", |row| row.output.as_ref())
        .text("error", |row| row.error.as_ref())
        .text("port", |row| row.port.as_deref())
        .big_int("energy", |row| row.energy)
        .time("started_at", |row| row.started_at)
        .time("ended_at", |row| row.ended_at)
        .insert(tx, "flow_steps")
}

fn write_waits(tx: &mut Tx, row: &RunRow, changes: &Changes, is_final: bool) -> Result<()> {
    let of_run = flow_waits::table.filter(flow_waits::run_id.eq(&row.id));
    if is_final {
        diesel::delete(of_run).execute(tx.connection())?;
        return Ok(());
    }
    let over: Vec<i64> =
        changes.over.iter().copied().chain(changes.waits.iter().map(|wait| wait.token)).collect();
    if !over.is_empty() {
        diesel::delete(of_run.filter(flow_waits::token.eq_any(over))).execute(tx.connection())?;
    }
    for wait in &changes.waits {
        diesel::insert_into(flow_waits::table).values(wait).execute(tx.connection())?;
    }
    Ok(())
}

/// Returns when a run that is given up has work again: at once if something has arrived, else when the first of its waits is
/// over. Whatever arrives later finds the row of the run unlocked, and sets the moment itself.
fn next_wake(tx: &mut Tx, row: &RunRow, progress: &Progress) -> Result<Timestamp> {
    let now = tx.now();
    let waits: Vec<(Option<Timestamp>, bool)> = flow_waits::table
        .filter(flow_waits::run_id.eq(&row.id))
        .select((flow_waits::due_at, flow_waits::arrived.is_not_null()))
        .load(tx.connection())?;
    if progress.status == FlowRunStatus::Paused {
        return Ok(row.expires_at);
    }
    let moments = waits.iter().filter_map(|(due, arrived)| if *arrived { Some(now) } else { *due });
    Ok(moments.chain([row.expires_at]).min().unwrap_or(now))
}

/// Records the end of a step of a run that was cancelled while the node acted.
pub(crate) fn write_late_step(tx: &mut Tx, step: &StepRow) -> Result<()> {
    let open = flow_steps::table
        .find((&step.run_id, step.position))
        .filter(flow_steps::status.eq(FlowStepStatus::Running));
    diesel::update(open)
        .set((
            flow_steps::status.eq(step.status),
            flow_steps::output.eq(&step.output),
            flow_steps::error.eq(&step.error),
            flow_steps::port.eq(&step.port),
            flow_steps::ended_at.eq(step.ended_at),
        ))
        .execute(tx.connection())?;
    Ok(())
}
