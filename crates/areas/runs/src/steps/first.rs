//! First step of a run: a check of the input's topics, a summary of older turns, or the first model call.

use crate::engine::RunEngine;
use crate::execution::{Execution, FirstStep};
use crate::queries::steps;
use crate::run::StepKind;
use model::{JsonText, Result};
use serde_json::json;
use store::Tx;

impl RunEngine {
    /// Begins the first step of a run: a check of the input's topics or a summary of older turns if one is due, else the first
    /// model call.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where not even a short answer can be paid.
    pub(crate) fn begin(&self, tx: &mut Tx, execution: &mut Execution) -> Result<FirstStep> {
        if Self::is_input_unasked(execution) {
            self.admit(tx, execution)?;
            return Ok(FirstStep::Ask);
        }
        if let Some(check) = self.due_input_check(execution) {
            self.begin_check(tx, execution, &check)?;
            return Ok(FirstStep::Check(check));
        }
        if let Some(summarization) = self.due_summarization(execution)
            && self.hold_for_summarization(tx, execution, &summarization)?
        {
            let input = JsonText::of(&json!({
                "turns": summarization.turns,
                "max_output_tokens": summarization.max_output_tokens,
            }));
            let name = self.tiers().fast.label();
            let step =
                execution.running_step(tx, execution.next_position(), StepKind::Memory, name, input, None);
            steps::insert(tx, &step)?;
            execution.steps.push(step);
            return Ok(FirstStep::Summarize(summarization));
        }
        let (step, model_request) = self.begin_step(tx, execution)?;
        execution.steps.push(step);
        Ok(FirstStep::Answer(model_request))
    }
}
