//! Memory step of a run: older turns of its conversation are summarized before its first answer.

use crate::engine::RunEngine;
use crate::execution::Work;
use crate::memory::Fold;
use crate::prompt::{self, USEFUL_OUTPUT};
use crate::run::{MemoryOutput, StepStatus};
use model::{JsonText, Result};
use providers::{Attempts, ModelAnswer, Prompt, Usage, estimated_tokens};
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    pub(crate) fn fold_for(&self, work: &Work) -> Option<Fold> {
        let (settings, memory) = (&work.plan.settings, &work.memory);
        let instructions = prompt::instructions(settings, work.plan.spec_tokens > 0, memory);
        let others = work.plan.spec_tokens + estimated_tokens(&instructions) + estimated_tokens(&work.said);
        let context = self.tiers().get(work.row.model).context_tokens();
        memory.fold(settings, others, context, self.tiers().fast.context_tokens())
    }

    /// Sets Energy aside for folding and for a short answer after it. `false`: there is too little for both, and what
    /// there is goes into the answer.
    pub(crate) fn hold_for(&self, tx: &mut Tx, work: &Work, fold: &Fold) -> Result<bool> {
        if !work.row.livemode {
            return Ok(true);
        }
        let (tiers, settings) = (self.tiers(), &work.plan.settings);
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let answer = usage(fold.rest_tokens, settings.max_output_tokens.min(USEFUL_OUTPUT));
        let price = tiers.fast.prices.energy(usage(fold.input_tokens, fold.max_output_tokens))
            + tiers.get(work.row.model).prices.energy(answer);
        match self.0.parts.meter.hold(tx, &work.charge(), price, price) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code().status(), 402 | 429) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Folds turns with the fast tier. Where that fails, the memory stays as it is. Gives the Energy it cost.
    pub(crate) async fn fold(&self, work: &mut Arc<Work>, fold: Fold) -> i64 {
        let patience = work.time_left(self.db().clock().now());
        let prompt = Prompt {
            model: String::new(),
            messages: fold.messages,
            tools: Vec::new(),
            output_schema: None,
            max_output_tokens: fold.max_output_tokens,
            temperature: None,
            patience,
            cancel: work.working.cancel.clone(),
            sink: None,
            attempts: Attempts::default(),
            trace: Some(work.trace.clone()),
            tracer: self.tracer().clone(),
        };
        let answer = self.keeping_lease(work, self.complete(&self.tiers().fast, prompt)).await;
        let work = Arc::make_mut(work);
        match answer {
            Ok(answered) => self.take_summary(work, answered, fold.turns),
            Err(error) => {
                tracing::info!(run_id = %work.row.id, %error, "a conversation could not be folded");
                0
            }
        }
    }

    fn take_summary(&self, work: &mut Work, answered: ModelAnswer, turns: usize) -> i64 {
        let ModelAnswer { completion, usage, usage_estimated, label } = answered;
        let energy = self.tiers().fast.prices.energy(usage);
        // What models print may hold NUL, which PostgreSQL cannot store.
        let summary = completion.text.replace('\0', "").trim().to_owned();
        if let Some(step) = work.steps.last_mut() {
            step.status = if summary.is_empty() { StepStatus::Failed } else { StepStatus::Completed };
            step.name = label;
            step.input_tokens = usage.input_tokens;
            step.output_tokens = usage.output_tokens;
            step.energy = if work.row.livemode { energy } else { 0 };
            let summary = summary.clone();
            step.output = Some(JsonText::of(&MemoryOutput { summary, usage, usage_estimated }));
        }
        if !summary.is_empty() {
            work.memory.take(summary, turns);
        }
        work.use_up(usage, energy);
        energy
    }
}
