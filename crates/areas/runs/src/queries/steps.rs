//! Queries of steps.

use crate::run::{StepRow, StepStatus};
use crate::schema::run_steps;
use diesel::prelude::*;
use model::{Result, RunId, Timestamp, WorkspaceId};
use store::{CachedChange, Read, Tx, each};

pub(crate) fn of_run(read: &mut Read, workspace: WorkspaceId, run: &RunId) -> Result<Vec<StepRow>> {
    Ok(run_steps::table
        .filter(run_steps::run_id.eq(run))
        .filter(run_steps::workspace_id.eq(workspace))
        .order(run_steps::position.asc())
        .load(read.connection())?)
}

pub(crate) fn insert(tx: &mut Tx, step: &StepRow) -> Result<()> {
    diesel::insert_into(run_steps::table).values(step.clone()).execute(tx.connection())?;
    Ok(())
}

pub(crate) fn finish(tx: &mut Tx, step: &StepRow, status: StepStatus, now: Timestamp) -> Result<()> {
    each!(tx.connection(), |connection| {
        let update = diesel::update(run_steps::table.find((&step.run_id, step.position))).set((
            run_steps::status.eq(status),
            run_steps::name.eq(&step.name),
            run_steps::output.eq(&step.output),
            run_steps::input_tokens.eq(step.input_tokens),
            run_steps::output_tokens.eq(step.output_tokens),
            run_steps::energy.eq(step.energy),
            run_steps::completed_at.eq(now),
        ));
        CachedChange(update).run(connection)
    })?;
    Ok(())
}

/// Writes the charged Energy of a step, where it is less than the price.
pub(crate) fn note_energy(tx: &mut Tx, step: &StepRow, energy: i64) -> Result<()> {
    diesel::update(run_steps::table.find((&step.run_id, step.position)))
        .set(run_steps::energy.eq(energy))
        .execute(tx.connection())?;
    Ok(())
}
