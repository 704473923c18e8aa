//! Main loop of a run: model, tools, model, until it has answered or a limit ends it.

use super::queue::QueueOutcome;
use crate::engine::RunEngine;
use crate::execution::{Execution, FirstStep, ModelRequest, TopicCheck};
use crate::guardrails::GuardrailFinding;
use crate::memory::Summarization;
use crate::queries::runs;
use crate::run::{Ended, Ending, RunRow, StepRow};
use crate::steps::{Advance, Checked, Next, evaluate};
use crate::tools::ToolResults;
use crate::{approvals, spans};
use ::guardrails::GuardrailStage;
use auth::idempotency::Claim;
use model::{Code, Result};
use providers::{Attempts, ModelAnswer, Prompt, ProviderError, ToolCall};
use std::sync::Arc;
use tracing::Instrument;

/// Phase of the main loop.
enum Phase {
    /// Functions are asked about the input.
    Ask,
    /// The topics of the input are checked.
    Check(TopicCheck),
    Summarize(Summarization),
    CallModel(ModelRequest),
    /// A person must approve calls first.
    AwaitApproval,
    /// With the Energy of the last step where that is not debited yet.
    End(Ending, i64),
}

impl Phase {
    fn of(start: FirstStep) -> Self {
        match start {
            FirstStep::Ask => Self::Ask,
            FirstStep::Check(check) => Self::Check(check),
            FirstStep::Summarize(summarization) => Self::Summarize(summarization),
            FirstStep::Answer(model_request) => Self::CallModel(model_request),
            FirstStep::End(ending) => Self::End(ending, 0),
        }
    }
}

impl RunEngine {
    /// Drives a run to its end, and stores the outcome of `claim` with it. Where that fails, the run's lease runs out
    /// and the run is resumed.
    ///
    /// # Errors
    /// `internal_error`.
    pub(crate) async fn drive(
        &self,
        mut execution: Execution,
        start: Option<FirstStep>,
        claim: Option<Claim>,
    ) -> Result<Ended> {
        let id = execution.row.id.clone();
        let mut part = spans::run(self.tracer(), &execution);
        execution.trace = part.trace().clone();
        let span = tracing::info_span!("run", run_id = %id, trace_id = execution.trace.id());
        let result = self.drive_steps(execution, start, claim).instrument(span).await;
        spans::note_run(&mut part, &result);
        if let Err(error) = &result
            && error.code() == Code::InternalError
        {
            tracing::error!(run_id = %id, ?error, "a run was left to be resumed");
        }
        result
    }

    async fn drive_steps(
        &self,
        execution: Execution,
        start: Option<FirstStep>,
        claim: Option<Claim>,
    ) -> Result<Ended> {
        let mut execution = Arc::new(execution);
        let mut phase = match self.first_phase(&mut execution, start).await? {
            Ok(phase) => phase,
            Err(row) => return self.keep_end(*row, claim).await,
        };
        loop {
            if matches!(phase, Phase::Check(_) | Phase::Summarize(_) | Phase::CallModel(_)) {
                execution.publish_begun();
            }
            let model_request = match phase {
                Phase::Ask => {
                    phase = match self.ask_about_input(&mut execution).await {
                        Some(ending) => Phase::End(ending, 0),
                        None => self.continue_checked(&mut execution, 0).await?,
                    };
                    continue;
                }
                Phase::Check(check) => {
                    phase = match self.check_input(&mut execution, check).await {
                        (Some(ending), energy) => Phase::End(ending, energy),
                        (None, energy) => self.continue_checked(&mut execution, energy).await?,
                    };
                    continue;
                }
                Phase::Summarize(summarization) => {
                    let energy = self.summarize(&mut execution, summarization).await;
                    phase = self.continue_with_model(&mut execution, energy).await?;
                    continue;
                }
                Phase::CallModel(model_request) => model_request,
                Phase::AwaitApproval => return self.request_approval(execution, claim).await,
                Phase::End(ending, energy) => return self.finish(execution, ending, energy, claim).await,
            };
            let attempts = Attempts::default();
            let (next, energy) = match self.call_model(&execution, model_request, &attempts).await {
                Ok(mut answered) => {
                    let found = self.inspect_answer(&execution, &mut answered).await;
                    let energy = self.tiers().get(execution.row.model).prices.energy(answered.usage);
                    (
                        self.take_answer(Arc::make_mut(&mut execution), answered, found, &attempts, energy),
                        energy,
                    )
                }
                Err(error) => {
                    Arc::make_mut(&mut execution).record_failed_attempts(attempts.failed());
                    (Next::End(evaluate::give_up(&execution, &error)), 0)
                }
            };
            phase = match next {
                Next::End(ending) => {
                    let ending = self.ask_about_output(&mut execution, ending).await;
                    let (ending, energy) = self.check_output(&mut execution, ending, energy).await?;
                    Phase::End(ending, energy)
                }
                Next::CallModel => self.continue_with_model(&mut execution, energy).await?,
                Next::Tools(calls) => self.call_requested_tools(&mut execution, energy, calls).await?,
            };
        }
    }

    /// Returns the phase with which a run begins, or goes on where its last worker left it. The inner error is the row of a run
    /// that ended in the queue.
    async fn first_phase(
        &self,
        execution: &mut Arc<Execution>,
        start: Option<FirstStep>,
    ) -> Result<std::result::Result<Phase, Box<RunRow>>> {
        let start = start.or_else(|| execution.early_end.clone().map(FirstStep::End));
        let has_started = execution.row.started_at.is_some();
        Ok(Ok(match start {
            Some(start) => Phase::of(start),
            None if !execution.pending.is_empty() => self.resume_pending_calls(execution).await?,
            // Its worker died before the input was checked.
            None if has_started && Self::is_input_unasked(execution) => Phase::Ask,
            None if has_started && self.due_input_check(execution).is_some() => {
                self.continue_checked(execution, 0).await?
            }
            None if has_started => self.continue_with_model(execution, 0).await?,
            None => match self.await_turn(execution).await? {
                QueueOutcome::Begun(start) => Phase::of(start),
                QueueOutcome::Ended(row) => return Ok(Err(row)),
            },
        }))
    }

    /// Takes in what the model said, as far as guardrails let it through.
    fn take_answer(
        &self,
        execution: &mut Execution,
        answered: ModelAnswer,
        found: Vec<GuardrailFinding>,
        attempts: &Attempts,
        energy: i64,
    ) -> Next {
        // An answer that is checked by more than patterns is published after that.
        let guardrails = &execution.plan.guardrails;
        let stage = GuardrailStage::Output;
        if guardrails.topics(stage).is_none() && guardrails.functions(stage).is_empty() {
            execution.publish_answer(&answered.completion.text);
        }
        let next = evaluate::take_answer(execution, answered, attempts.failed(), energy);
        match self.add_findings(execution, found) {
            Some(ending) => Next::End(ending),
            None => next,
        }
    }

    /// Calls tools and adds their results to the prompt.
    async fn call_requested_tools(
        &self,
        execution: &mut Arc<Execution>,
        energy: i64,
        calls: Vec<ToolCall>,
    ) -> Result<Phase> {
        let Some(steps) = self.settle_step(execution, energy, calls).await? else {
            return Ok(Phase::End(Ending::Stopped, energy));
        };
        let changed = Arc::make_mut(execution);
        changed.row.tool_calls += i64::try_from(steps.len()).unwrap_or(0);
        changed.written = changed.steps.len();
        changed.publish_steps(&steps);
        self.call_tools(execution, steps).await
    }

    /// Goes on with calls that an earlier worker held back for a person.
    async fn resume_pending_calls(&self, execution: &mut Arc<Execution>) -> Result<Phase> {
        let begun = self.write_with(execution, |engine, tx, execution| {
            let ours = runs::renew(tx, &execution.row)? && !engine.is_orphan(tx, execution)?;
            if ours {
                approvals::begin_approved(tx, &execution.row)?;
            }
            Ok(ours)
        });
        if !begun.await? {
            return Ok(Phase::End(Ending::Stopped, 0));
        }
        let steps = std::mem::take(&mut Arc::make_mut(execution).pending);
        self.call_tools(execution, steps).await
    }

    async fn call_tools(&self, execution: &mut Arc<Execution>, steps: Vec<StepRow>) -> Result<Phase> {
        let ToolResults { done, held_back, found } = self.run_tools(execution, steps).await;
        let changed = Arc::make_mut(execution);
        let waits = !held_back.is_empty();
        changed.pending = held_back;
        for step in done {
            changed.record_tool_result(&step);
            changed.steps.push(step);
        }
        match self.add_findings(changed, found) {
            Some(ending) => Ok(Phase::End(ending, 0)),
            None if waits => Ok(Phase::AwaitApproval),
            None => self.continue_with_model(execution, 0).await,
        }
    }

    /// Begins what follows the check of the input.
    async fn continue_checked(&self, execution: &mut Arc<Execution>, energy: i64) -> Result<Phase> {
        Ok(match self.begin_checked(execution, energy).await? {
            Checked::Begun(begun, start) => {
                *execution = Arc::new(*begun);
                Phase::of(start)
            }
            Checked::Limit(reason) => {
                let execution = Arc::make_mut(execution);
                execution.written = execution.steps.len();
                Phase::End(Ending::Incomplete(reason, None), 0)
            }
            Checked::Stopped => Phase::End(Ending::Stopped, energy),
        })
    }

    /// Begins the next model step, as far as limits let it.
    async fn continue_with_model(&self, execution: &mut Arc<Execution>, energy: i64) -> Result<Phase> {
        Ok(match self.next_step(execution, energy).await? {
            Advance::Begun(step, model_request) => {
                let execution = Arc::make_mut(execution);
                execution.written = execution.steps.len();
                execution.steps.push(*step);
                Phase::CallModel(model_request)
            }
            Advance::Limit(reason) => {
                let text = execution.last_text();
                let execution = Arc::make_mut(execution);
                execution.written = execution.steps.len();
                Phase::End(Ending::Incomplete(reason, text), 0)
            }
            Advance::Stopped => Phase::End(Ending::Stopped, energy),
        })
    }

    /// Calls the model, keeping the run's lease meanwhile.
    async fn call_model(
        &self,
        execution: &Arc<Execution>,
        model_request: ModelRequest,
        attempts: &Attempts,
    ) -> std::result::Result<ModelAnswer, ProviderError> {
        let patience = execution.time_left(self.db().clock().now());
        let settings = &execution.plan.settings;
        let prompt = Prompt {
            model: String::new(),
            messages: model_request.messages,
            tools: execution.specs(),
            output_schema: settings.response_format.schema().cloned(),
            max_output_tokens: model_request.max_output_tokens,
            temperature: settings.temperature,
            patience,
            cancel: execution.active.cancel.clone(),
            sink: execution.sink(),
            attempts: attempts.clone(),
            trace: Some(execution.trace.clone()),
            tracer: self.tracer().clone(),
        };
        let tier = self.tiers().get(execution.row.model);
        self.keeping_lease(execution, self.complete(tier, prompt)).await
    }
}
