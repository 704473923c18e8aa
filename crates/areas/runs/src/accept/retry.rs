//! Retry of a failed run: a request that is sent again with its `Idempotency-Key` starts a new attempt of the same run.
//!
//! The Energy of the failed attempt was refunded; its steps stay in the trace. The new attempt starts with the first model
//! call, but keeps the tool calls of earlier attempts, so that no side effect happens twice.

use super::agent::narrowed;
use crate::engine::{RunEngine, superseded};
use crate::execution::{Execution, FirstStep, Plan};
use crate::memory;
use crate::queries::{runs, steps};
use crate::run::{NewRun, OnBusy, RunRow, conversation};
use ::guardrails::CompiledGuardrails;
use agents::AgentStatus;
use auth::idempotency::{self, Claim};
use model::{Caller, Code, Error, JsonText, Result, RunId};
use operation::Resource;
use std::sync::Arc;
use store::Tx;

impl RunEngine {
    /// Starts a new attempt of a failed run.
    pub(crate) async fn retry(
        &self,
        caller: Caller,
        new: NewRun,
        id: RunId,
        claim: Claim,
    ) -> Result<(Execution, FirstStep)> {
        let engine = self.clone();
        self.db().write(move |tx| engine.retry_in(tx, &caller, &new, &id, &claim)).await
    }

    fn retry_in(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        new: &NewRun,
        id: &RunId,
        claim: &Claim,
    ) -> Result<(Execution, FirstStep)> {
        // The claim is this request's alone, and so is the run that it names.
        idempotency::attach(tx, claim, id.as_str())?;
        let row = runs::by_id(tx, caller.workspace_id(), id)?;
        conversation::lock(tx, conversation::key(&row))?;
        let mut row = runs::locked(tx, row.workspace_id, id)?;
        let status = agents::AgentRow::find(tx, row.workspace_id, &row.agent_id)?.status;
        if status != AgentStatus::Active && !row.options()?.draft {
            return Err(Error::new(Code::AgentInactive, "The agent is not active. Activate it first."));
        }
        // Its place in the conversation is behind it, so it cannot wait for another turn.
        let on_busy = if new.on_busy == OnBusy::Enqueue { OnBusy::Reject } else { new.on_busy };
        self.must_wait(tx, on_busy, &row)?;
        let mut options = row.options()?;
        let version =
            agents::queries::version_settings(tx, row.workspace_id, row.agent_id, row.agent_version)?;
        let (settings, tools) = narrowed(version, options.reading_tier);
        self.tiers().expect_model(settings.model)?;
        let guardrails = Arc::new(CompiledGuardrails::new(&settings.guardrails)?);
        let memory = memory::read(self.turns(), tx, &row, &settings, &guardrails)?;
        let earlier = steps::of_run(tx, row.workspace_id, &row.id)?;
        options.attempt_from = Some(earlier.last().map_or(0, |step| step.position) + 1);
        options.idempotency_key.clone_from(&caller.idempotency_key);
        options.trace.clone_from(&caller.trace);
        // The timeout and the number of workers count per attempt.
        options.questions.waited_ms = 0;
        options.handed_over = row.epoch;
        row.options = JsonText::of(&options);
        row.epoch += 1;
        row.error = None;
        row.completed_at = None;
        row.key_id = caller.key.id.clone();
        row.request_id = caller.request.clone();
        row.lease_until = Some(tx.now().plus_seconds(runs::LEASE_SECONDS));
        fresh_counts(&mut row);
        let kept = self.versions().kept(tx, row.workspace_id, tools, &options.versions)?;
        let plan = Arc::new(Plan::new(caller.clone(), settings, kept, guardrails, options)?);
        let active = self.active().register(&row.id, conversation::key(&row));
        let mut execution = Execution::new(plan, active, row, memory);
        execution.earlier = earlier;
        execution.start(tx.now());
        if !runs::reopen(tx, &execution.row)? {
            return Err(superseded());
        }
        if execution.row.livemode {
            self.0.parts.meter.reopen(tx, &execution.charge(), execution.next_position())?;
        }
        let start = self.begin(tx, &mut execution)?;
        if new.stream {
            self.store_outcome(tx, claim, &execution.row, true)?;
        }
        Ok((execution, start))
    }
}

/// Resets the usage, which was that of the failed attempt.
fn fresh_counts(row: &mut RunRow) {
    row.input_tokens = 0;
    row.cached_tokens = 0;
    row.output_tokens = 0;
    row.reasoning_tokens = 0;
    row.model_calls = 0;
    row.tool_calls = 0;
    row.energy = 0;
    row.simulated_energy = 0;
}
