//! Memory step: older turns of the conversation are summarized before the first answer.

use crate::engine::RunEngine;
use crate::execution::Execution;
use crate::memory::Summarization;
use crate::prompt::{self, USEFUL_OUTPUT};
use crate::run::{MemoryOutput, StepStatus};
use model::{JsonText, Result};
use providers::{Attempts, ModelAnswer, Prompt, Usage, estimated_tokens};
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    pub(crate) fn due_summarization(&self, execution: &Execution) -> Option<Summarization> {
        let (settings, memory) = (&execution.plan.settings, &execution.memory);
        let spec_tokens = execution.spec_tokens();
        let instructions = prompt::instructions(settings, spec_tokens > 0, memory);
        let others = spec_tokens + estimated_tokens(&instructions) + estimated_tokens(&execution.transcript);
        let context = self.tiers().get(execution.row.model).context_tokens();
        memory.due_summarization(settings, others, context, self.tiers().fast.context_tokens())
    }

    /// Holds Energy for the summary and for a short answer after it. Returns `false` if the Energy is not enough for both; it is
    /// then used for the answer.
    pub(crate) fn hold_for_summarization(
        &self,
        tx: &mut Tx,
        execution: &Execution,
        summarization: &Summarization,
    ) -> Result<bool> {
        if !execution.row.livemode {
            return Ok(true);
        }
        let (tiers, settings) = (self.tiers(), &execution.plan.settings);
        let usage = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        let answer = usage(summarization.rest_tokens, settings.max_output_tokens.min(USEFUL_OUTPUT));
        let price =
            tiers.fast.prices.energy(usage(summarization.input_tokens, summarization.max_output_tokens))
                + tiers.get(execution.row.model).prices.energy(answer);
        match self.0.parts.meter.hold(tx, &execution.charge(), price, price) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code().status(), 402 | 429) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Summarizes turns with the fast tier. If that fails, the memory stays unchanged. Returns the Energy that it cost.
    pub(crate) async fn summarize(
        &self,
        execution: &mut Arc<Execution>,
        summarization: Summarization,
    ) -> i64 {
        let patience = execution.time_left(self.db().clock().now());
        let prompt = Prompt {
            model: String::new(),
            messages: summarization.messages,
            tools: Vec::new(),
            output_schema: None,
            max_output_tokens: summarization.max_output_tokens,
            temperature: None,
            patience,
            cancel: execution.active.cancel.clone(),
            sink: None,
            attempts: Attempts::default(),
            trace: Some(execution.trace.clone()),
            tracer: self.tracer().clone(),
        };
        let answer = self.keeping_lease(execution, self.complete(&self.tiers().fast, prompt)).await;
        let execution = Arc::make_mut(execution);
        match answer {
            Ok(answered) => self.take_summary(execution, answered, summarization.turns),
            Err(error) => {
                tracing::info!(run_id = %execution.row.id, %error, "a conversation could not be folded");
                0
            }
        }
    }

    fn take_summary(&self, execution: &mut Execution, answered: ModelAnswer, turns: usize) -> i64 {
        let ModelAnswer { completion, usage, usage_estimated, label } = answered;
        let energy = self.tiers().fast.prices.energy(usage);
        // The text may contain NUL, which PostgreSQL cannot store.
        let summary = completion.text.replace('\0', "").trim().to_owned();
        if let Some(step) = execution.steps.last_mut() {
            step.status = if summary.is_empty() { StepStatus::Failed } else { StepStatus::Completed };
            step.name = label;
            step.input_tokens = usage.input_tokens;
            step.output_tokens = usage.output_tokens;
            step.energy = if execution.row.livemode { energy } else { 0 };
            let summary = summary.clone();
            step.output = Some(JsonText::of(&MemoryOutput { summary, usage, usage_estimated }));
        }
        if !summary.is_empty() {
            execution.memory.take(summary, turns);
        }
        execution.add_usage(usage, energy);
        energy
    }
}
