//! Queries of open questions.

use crate::queries::LEASE_SECONDS;
use crate::run::{RunOptions, RunRow, RunStatus, StepRow, StepStatus};
use crate::schema::{run_steps, runs};
use diesel::prelude::*;
use model::{JsonText, Result, RunId, Timestamp, WorkspaceId};
use store::{Read, Tx};

/// Sets a run in progress to `requires_action` until `until`, and returns its row. Returns `None` if another worker has taken
/// the run over.
pub(crate) fn wait_for_people(
    tx: &mut Tx,
    row: &RunRow,
    options: &RunOptions,
    until: Timestamp,
) -> Result<Option<RunRow>> {
    Ok(diesel::update(
        runs::table
            .find((row.workspace_id, &row.id))
            .filter(runs::epoch.eq(row.epoch))
            .filter(runs::status.eq(RunStatus::InProgress)),
    )
    .set((
        runs::status.eq(RunStatus::RequiresAction),
        runs::options.eq(JsonText::of(options)),
        // The search for expired leases also finds requests that nobody answered.
        runs::lease_until.eq(until),
    ))
    .returning(runs::all_columns)
    .get_result(tx.connection())
    .optional()?)
}

/// Lets a locked run that waited for a person go on under `options`, for a worker that begins now.
pub(crate) fn go_on_answered(tx: &mut Tx, row: &RunRow, options: &RunOptions) -> Result<RunRow> {
    let now = tx.now();
    Ok(diesel::update(runs::table.find((row.workspace_id, &row.id)))
        .set((
            runs::status.eq(RunStatus::InProgress),
            runs::options.eq(JsonText::of(options)),
            runs::epoch.eq(row.epoch + 1),
            runs::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
        ))
        .returning(runs::all_columns)
        .get_result(tx.connection())?)
}

/// The calls that runs ask people about, in their order.
pub(crate) fn steps_requiring_action(
    read: &mut Read,
    workspace: WorkspaceId,
    runs: &[&RunId],
) -> Result<Vec<StepRow>> {
    Ok(run_steps::table
        .filter(run_steps::run_id.eq_any(runs.iter().copied()))
        .filter(run_steps::workspace_id.eq(workspace))
        .filter(run_steps::status.eq(StepStatus::RequiresAction))
        .order((run_steps::run_id.asc(), run_steps::position.asc()))
        .load(read.connection())?)
}

/// The step of a run at a position.
pub(crate) fn step_at(
    read: &mut Read,
    workspace: WorkspaceId,
    run: &RunId,
    position: i64,
) -> Result<Option<StepRow>> {
    Ok(run_steps::table
        .find((run, position))
        .filter(run_steps::workspace_id.eq(workspace))
        .get_result(read.connection())
        .optional()?)
}

/// Writes the state and the input of a call that has not been made yet.
pub(crate) fn decide_step(tx: &mut Tx, step: &StepRow) -> Result<()> {
    diesel::update(run_steps::table.find((&step.run_id, step.position)))
        .set((run_steps::status.eq(step.status), run_steps::input.eq(&step.input)))
        .execute(tx.connection())?;
    Ok(())
}

/// Begins the calls of a run that were allowed.
pub(crate) fn begin_approved(tx: &mut Tx, row: &RunRow) -> Result<()> {
    let now = tx.now();
    diesel::update(
        run_steps::table
            .filter(run_steps::run_id.eq(&row.id))
            .filter(run_steps::workspace_id.eq(row.workspace_id))
            .filter(run_steps::status.eq(StepStatus::Approved)),
    )
    .set((run_steps::status.eq(StepStatus::Running), run_steps::started_at.eq(now)))
    .execute(tx.connection())?;
    Ok(())
}
