//! Batched completion on PostgreSQL: one statement each for the rows, steps and settlements of many runs. Runs that need more
//! than that are completed one by one.

use super::finish::ended_row;
use crate::engine::{Completion, RunEngine};
use crate::execution::write_absorbed;
use crate::queries::{runs, steps};
use crate::run::{Ended, Ending, RunRow, StepKind, StepRow, StepStatus};
use model::Result;
use ports::{Charge, Closing, Settlement};
use store::{Batched, Tx};

/// A run whose end is written.
struct Finished<'a> {
    /// Its index in the batch.
    place: usize,
    completion: &'a Completion,
    row: RunRow,
}

impl Batched for Completion {
    type Maker = RunEngine;
    type Output = Ended;

    fn alone(&self, engine: &RunEngine, tx: &mut Tx) -> Result<Ended> {
        engine.finish_in(tx, self)
    }

    fn together(engine: &RunEngine, completions: &[&Self], tx: &mut Tx) -> Result<Vec<Option<Ended>>> {
        let finished = finished(tx, completions)?;
        let done = finished.iter().flat_map(Finished::steps).map(|step| (step, step.final_status()));
        let done: Vec<(&StepRow, StepStatus)> = done.collect();
        let now = tx.now();
        steps::finish_all(tx, &done, now)?;
        let charged = settle(engine, tx, &finished)?;
        let mut ended: Vec<Option<Ended>> = completions.iter().map(|_| None).collect();
        for (Finished { place, completion, mut row }, charged) in finished.into_iter().zip(charged) {
            let absorbed = completion.energy - charged;
            if absorbed > 0 {
                write_absorbed(tx, &completion.execution, absorbed)?;
                row.energy -= absorbed;
                runs::note_energy(tx, &row)?;
            }
            engine.emit_end(tx, &row)?;
            if let Some(ended) = ended.get_mut(place) {
                *ended = Some(Ended { row, stored: false });
            }
        }
        Ok(ended)
    }
}

/// Settles the last steps of runs. Returns the charged Energy of each.
fn settle(engine: &RunEngine, tx: &mut Tx, finished: &[Finished<'_>]) -> Result<Vec<i64>> {
    let settlements: Vec<(Charge, Settlement<'_>)> = finished.iter().map(Finished::settlement).collect();
    if settlements.is_empty() { Ok(Vec::new()) } else { engine.0.parts.meter.settle_all(tx, &settlements) }
}

/// Writes the ends of the runs that the batch can end, and returns those that had not ended before.
fn finished<'a>(tx: &mut Tx, completions: &[&'a Completion]) -> Result<Vec<Finished<'a>>> {
    let mut finished = Vec::with_capacity(completions.len());
    for (place, completion) in completions.iter().copied().enumerate() {
        if completion.is_ordinary()?
            && let Some(row) = ended_row(&completion.execution, &completion.ending, tx.now())
        {
            finished.push(Finished { place, completion, row });
        }
    }
    let rows: Vec<&RunRow> = finished.iter().map(|finished| &finished.row).collect();
    let written = runs::finish_all(tx, &rows)?;
    finished.retain(|finished| written.contains(&finished.row.id));
    Ok(finished)
}

impl Finished<'_> {
    /// The steps whose results are not written yet, as they now stand.
    fn steps(&self) -> impl Iterator<Item = &StepRow> {
        let execution = &self.completion.execution;
        execution.steps.iter().skip(execution.written)
    }

    fn settlement(&self) -> (Charge, Settlement<'_>) {
        let execution = &self.completion.execution;
        let (step, model) = execution.charged_step();
        let last_step = Some(execution.last_position()).filter(|last| *last > 0);
        let close = Some(Closing { status: self.row.status.as_str(), refund: false, last_step });
        (
            execution.charge(),
            Settlement { step, energy: self.completion.energy, model: model.as_str(), close },
        )
    }
}

impl Completion {
    /// Returns whether the batch can write it: an answer with a price, without an outcome of a request or pending calls.
    fn is_ordinary(&self) -> Result<bool> {
        let execution = &self.execution;
        let is_plain = |step: &StepRow| matches!(step.kind, StepKind::Model | StepKind::Tool);
        Ok(execution.row.livemode
            && matches!(self.ending, Ending::Completed(_) | Ending::Incomplete(..))
            && self.energy > 0
            && self.claim.is_none()
            && execution.pending.is_empty()
            && execution.steps.iter().skip(execution.written).all(is_plain)
            && execution.row.options()?.idempotency_key.is_none())
    }
}
