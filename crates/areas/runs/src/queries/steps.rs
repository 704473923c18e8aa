//! Queries of steps.

use crate::run::{StepRow, StepStatus};
use crate::schema::run_steps;
use diesel::prelude::*;
use model::{Result, RunId, Timestamp, WorkspaceId};
use store::{Read, Rows, Tx};

pub(crate) fn of_run(read: &mut Read, workspace: WorkspaceId, run: &RunId) -> Result<Vec<StepRow>> {
    Ok(run_steps::table
        .filter(run_steps::run_id.eq(run))
        .filter(run_steps::workspace_id.eq(workspace))
        .order(run_steps::position.asc())
        .load(read.connection())?)
}

/// Inserts steps.
pub(crate) fn insert_all(tx: &mut Tx, steps: &[&StepRow]) -> Result<()> {
    Rows::of(steps)
        .text("run_id", |step| &step.run_id)
        .big_int("position", |step| step.position)
        .big_int("workspace_id", |step| step.workspace_id)
        .text("id", |step| &step.id)
        .text("kind", |step| step.kind)
        .text("status", |step| step.status)
        .text("name", |step| step.name.as_str())
        .text("input", |step| step.input.as_ref())
        .text("output", |step| step.output.as_ref())
        .text("effect_key", |step| step.effect_key.as_deref())
        .big_int("input_tokens", |step| step.input_tokens)
        .big_int("output_tokens", |step| step.output_tokens)
        .big_int("energy", |step| step.energy)
        .time("started_at", |step| step.started_at)
        .time("completed_at", |step| step.completed_at)
        .insert(tx, "run_steps")
}

/// Inserts a step.
pub(crate) fn insert(tx: &mut Tx, step: &StepRow) -> Result<()> {
    insert_all(tx, &[step])
}

/// Writes the results of steps, each with its status from now on.
pub(crate) fn finish_all(tx: &mut Tx, steps: &[(&StepRow, StepStatus)], now: Timestamp) -> Result<()> {
    Rows::of(steps)
        .text("run", |(step, _)| &step.run_id)
        .big_int("position", |(step, _)| step.position)
        .text("status", |(_, status)| *status)
        .text("name", |(step, _)| step.name.as_str())
        .text("output", |(step, _)| step.output.as_ref())
        .big_int("input_tokens", |(step, _)| step.input_tokens)
        .big_int("output_tokens", |(step, _)| step.output_tokens)
        .big_int("energy", |(step, _)| step.energy)
        .given_time("now", now)
        .execute(
            tx,
            "UPDATE run_steps AS s SET status = ended.status, name = ended.name, output = ended.output,
                input_tokens = ended.input_tokens, output_tokens = ended.output_tokens, energy = ended.energy,
                completed_at = {now}
            FROM {ended} WHERE s.run_id = ended.run AND s.position = ended.position",
        )?;
    Ok(())
}

/// Writes the result of a step.
pub(crate) fn finish(tx: &mut Tx, step: &StepRow, status: StepStatus, now: Timestamp) -> Result<()> {
    finish_all(tx, &[(step, status)], now)
}

/// Writes the charged Energy of a step, where it is less than the price.
pub(crate) fn note_energy(tx: &mut Tx, step: &StepRow, energy: i64) -> Result<()> {
    diesel::update(run_steps::table.find((&step.run_id, step.position)))
        .set(run_steps::energy.eq(energy))
        .execute(tx.connection())?;
    Ok(())
}
