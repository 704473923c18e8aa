//! Main loop of a run: model, tools, model, until it has answered or a limit ends it.

use super::queue::Entered;
use crate::engine::RunEngine;
use crate::execution::{Asking, Start, Work};
use crate::memory::Fold;
use crate::queries::runs;
use crate::run::{Ended, Ending, StepRow};
use crate::steps::{Advance, Next, code_fence, evaluate};
use crate::tools::Called;
use crate::{approvals, spans};
use auth::idempotency::Claim;
use model::{Code, Result};
use providers::{Attempts, ModelAnswer, Prompt, ProviderError, ToolCall};
use std::sync::Arc;
use tracing::Instrument;

/// What comes after a step.
enum Course {
    Fold(Fold),
    Ask(Asking),
    /// People are asked.
    Wait,
    /// With the Energy of the last step where that is not debited yet.
    End(Ending, i64),
}

impl Course {
    fn of(start: Start) -> Self {
        match start {
            Start::Fold(fold) => Self::Fold(fold),
            Start::Answer(asking) => Self::Ask(asking),
            Start::Over(ending) => Self::End(ending, 0),
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
        mut work: Work,
        start: Option<Start>,
        claim: Option<Claim>,
    ) -> Result<Ended> {
        let id = work.row.id.clone();
        let mut part = spans::run(self.tracer(), &work);
        work.trace = part.trace().clone();
        let span = tracing::info_span!("run", run_id = %id, trace_id = work.trace.id());
        let result = self.drive_steps(work, start, claim).instrument(span).await;
        spans::note_run(&mut part, &result);
        if let Err(error) = &result
            && error.code() == Code::InternalError
        {
            tracing::error!(run_id = %id, ?error, "a run was left to be resumed");
        }
        result
    }

    async fn drive_steps(&self, work: Work, start: Option<Start>, claim: Option<Claim>) -> Result<Ended> {
        let mut work = Arc::new(work);
        let start = start.or_else(|| work.over.clone().map(Start::Over));
        let mut course = match start {
            Some(start) => Course::of(start),
            None if !work.pending.is_empty() => self.take_up(&mut work).await?,
            None if work.row.started_at.is_some() => self.go_on(&mut work, 0).await?,
            None => match self.await_turn(&mut work).await? {
                Entered::Begun(start) => Course::of(start),
                Entered::Over(row) => return self.keep_end(*row, claim).await,
            },
        };
        loop {
            if matches!(course, Course::Fold(_) | Course::Ask(_)) {
                work.publish_begun();
            }
            let asking = match course {
                Course::Fold(fold) => {
                    let energy = self.fold(&mut work, fold).await;
                    course = self.go_on(&mut work, energy).await?;
                    continue;
                }
                Course::Ask(asking) => asking,
                Course::Wait => return self.ask_people(work, claim).await,
                Course::End(ending, energy) => return self.finish(work, ending, energy, claim).await,
            };
            let attempts = Attempts::default();
            let (next, energy) = match self.ask(&work, asking, &attempts).await {
                Ok(answered) => {
                    let energy = self.tiers().get(work.row.model).prices.energy(answered.usage);
                    (self.take_answer(Arc::make_mut(&mut work), answered, &attempts, energy), energy)
                }
                Err(error) => {
                    Arc::make_mut(&mut work).note_failed(attempts.failed());
                    (Next::End(evaluate::give_up(&work, &error)), 0)
                }
            };
            course = match next {
                Next::End(ending) => return self.finish(work, ending, energy, claim).await,
                Next::Again => self.go_on(&mut work, energy).await?,
                Next::Tools(calls) => self.take_tools(&mut work, energy, calls).await?,
            };
        }
    }

    /// Takes in what the model said, as far as guardrails let it through.
    fn take_answer(
        &self,
        work: &mut Work,
        mut answered: ModelAnswer,
        attempts: &Attempts,
        energy: i64,
    ) -> Next {
        let has_schema = work.plan.answer.is_some();
        if has_schema {
            let text = &mut answered.completion.text;
            *text = code_fence::strip(text).to_owned();
        }
        let found = work.plan.guards.look_at_answer(&mut answered.completion, has_schema);
        work.publish_answer(&answered.completion.text);
        let next = evaluate::take_answer(work, answered, attempts.failed(), energy);
        match self.note_all(work, found) {
            Some(ending) => Next::End(ending),
            None => next,
        }
    }

    /// Calls tools and adds their results to the prompt.
    async fn take_tools(&self, work: &mut Arc<Work>, energy: i64, calls: Vec<ToolCall>) -> Result<Course> {
        let Some(steps) = self.settle_step(work, energy, calls).await? else {
            return Ok(Course::End(Ending::Stopped, energy));
        };
        let changed = Arc::make_mut(work);
        changed.row.tool_calls += i64::try_from(steps.len()).unwrap_or(0);
        changed.written = changed.steps.len();
        changed.publish_steps(&steps);
        self.call_tools(work, steps).await
    }

    /// Goes on with calls that an earlier worker held back for a person.
    async fn take_up(&self, work: &mut Arc<Work>) -> Result<Course> {
        let begun = self.write_with(work, |_, tx, work| {
            let ours = runs::renew(tx, &work.row)?;
            if ours {
                approvals::begin_approved(tx, &work.row)?;
            }
            Ok(ours)
        });
        if !begun.await? {
            return Ok(Course::End(Ending::Stopped, 0));
        }
        let steps = std::mem::take(&mut Arc::make_mut(work).pending);
        self.call_tools(work, steps).await
    }

    async fn call_tools(&self, work: &mut Arc<Work>, steps: Vec<StepRow>) -> Result<Course> {
        let Called { done, held_back, found } = self.run_tools(work, steps).await;
        let changed = Arc::make_mut(work);
        let waits = !held_back.is_empty();
        changed.pending = held_back;
        for step in done {
            changed.hear_tool(&step);
            changed.steps.push(step);
        }
        match self.note_all(changed, found) {
            Some(ending) => Ok(Course::End(ending, 0)),
            None if waits => Ok(Course::Wait),
            None => self.go_on(work, 0).await,
        }
    }

    /// Begins the next model step, as far as limits let it.
    async fn go_on(&self, work: &mut Arc<Work>, energy: i64) -> Result<Course> {
        Ok(match self.next_step(work, energy).await? {
            Advance::Begun(step, asking) => {
                let work = Arc::make_mut(work);
                work.written = work.steps.len();
                work.steps.push(*step);
                Course::Ask(asking)
            }
            Advance::Limit(reason) => {
                let text = work.last_text();
                let work = Arc::make_mut(work);
                work.written = work.steps.len();
                Course::End(Ending::Incomplete(reason, text), 0)
            }
            Advance::Stopped => Course::End(Ending::Stopped, energy),
        })
    }

    /// Calls the model, keeping the run's lease meanwhile.
    async fn ask(
        &self,
        work: &Arc<Work>,
        asking: Asking,
        attempts: &Attempts,
    ) -> std::result::Result<ModelAnswer, ProviderError> {
        let patience = work.time_left(self.db().clock().now());
        let settings = &work.plan.settings;
        let prompt = Prompt {
            model: String::new(),
            messages: asking.messages,
            tools: work.plan.specs.clone(),
            output_schema: settings.response_format.schema().cloned(),
            max_output_tokens: asking.max_output_tokens,
            temperature: settings.temperature,
            patience,
            cancel: work.working.cancel.clone(),
            sink: work.sink(),
            attempts: attempts.clone(),
            trace: Some(work.trace.clone()),
            tracer: self.tracer().clone(),
        };
        let tier = self.tiers().get(work.row.model);
        self.keeping_lease(work, self.complete(tier, prompt)).await
    }
}
