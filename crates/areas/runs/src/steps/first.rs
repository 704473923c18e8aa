//! First step of a run: a summary of older turns, or the first model call.

use crate::engine::RunEngine;
use crate::execution::{Start, Work};
use crate::queries::steps;
use crate::run::StepKind;
use model::{JsonText, Result};
use serde_json::json;
use store::Tx;

impl RunEngine {
    /// Begins a run: with what is to be folded, else with its first answer.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where not even a short answer can be paid.
    pub(crate) fn begin(&self, tx: &mut Tx, work: &mut Work) -> Result<Start> {
        if let Some(fold) = self.fold_for(work)
            && self.hold_for(tx, work, &fold)?
        {
            let input = JsonText::of(&json!({
                "turns": fold.turns,
                "max_output_tokens": fold.max_output_tokens,
            }));
            let name = self.tiers().fast.label();
            let step = work.running_step(tx, work.next_position(), StepKind::Memory, name, input, None);
            steps::insert(tx, &step)?;
            work.steps.push(step);
            return Ok(Start::Fold(fold));
        }
        let (step, asking) = self.begin_step(tx, work)?;
        work.steps.push(step);
        Ok(Start::Answer(asking))
    }
}
