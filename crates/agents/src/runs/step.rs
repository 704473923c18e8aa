//! The steps of a run in the database: each is written before it is made, and its result with its price.

use super::engine::RunEngine;
use super::model::tier_of;
use super::tools::needs_approval;
use super::trace::{ASKED, CANCELLED, StepKind, StepRow, ToolInput, ToolOutput};
use super::work::{Asking, Work};
use super::{effect, fold, prompt, queries};
use crate::providers::{ToolCall, Usage};
use model::{Code, Error, JsonText, Random, Result, StepId, Timestamp};
use operation::ports::Settlement;
use serde_json::json;
use std::sync::Arc;
use store::Tx;

/// The fewest tokens of an answer that are worth asking for.
pub(super) const USEFUL_OUTPUT: i64 = 256;

/// What became of an attempt to go on.
pub(super) enum Advance {
    /// The next model step is written, and its Energy held.
    Begun(Box<StepRow>, Asking),
    /// Not even a short answer can be paid.
    Limit(&'static str),
    /// The run was ended by somebody else, or taken over.
    Stopped,
}

impl RunEngine {
    /// Runs a transaction that looks at `work`.
    pub(super) async fn write_with<T: Send + 'static>(
        &self,
        work: &Arc<Work>,
        change: impl Fn(&Self, &mut Tx, &Work) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (engine, work) = (self.clone(), work.clone());
        self.db().write(move |tx| change(&engine, tx, &work)).await
    }

    /// Holds Energy for the next model call and writes its step.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where not even a short answer can be paid.
    pub(super) fn begin_step(&self, tx: &mut Tx, work: &Work) -> Result<(StepRow, Asking)> {
        let setup = self.tiers().get(tier_of(&work.row));
        let settings = &work.plan.settings;
        let room = setup.context_tokens() - USEFUL_OUTPUT.min(settings.max_output_tokens);
        let (messages, input_tokens) =
            prompt::messages(settings, work.plan.spec_tokens, &work.memory, &work.said, room);
        let fits = (setup.context_tokens() - input_tokens).max(16);
        let mut max_output_tokens = settings.max_output_tokens.min(fits);
        if work.row.livemode {
            let price = |output_tokens| {
                setup.prices.energy(Usage { input_tokens, output_tokens, ..Usage::default() })
            };
            let least = price(max_output_tokens.min(USEFUL_OUTPUT));
            let mut wanted = price(max_output_tokens);
            if let Some(limit) = settings.energy_limit_per_run {
                wanted = wanted.min(limit - work.row.energy);
                if wanted < least {
                    let message =
                        format!("The run may use {limit} Energy, which does not pay for another answer.");
                    return Err(Error::new(Code::EnergyDepleted, message).param("energy_limit_per_run"));
                }
            }
            let held = self.0.parts.meter.hold(tx, &work.charge(), wanted, least)?;
            max_output_tokens =
                max_output_tokens.min(setup.prices.affordable_output(held, input_tokens)).max(1);
        }
        let input = JsonText::of(&json!({
            "messages": messages.len(),
            "tools": work.plan.specs.len(),
            "max_output_tokens": max_output_tokens,
        }));
        let step = running(tx, work, work.next_position(), StepKind::Model, setup.label(), input, None);
        queries::insert_step(tx, &step)?;
        Ok((step, Asking { messages, max_output_tokens }))
    }

    /// Debits a finished model step, and writes the tool calls that it asks for before they are made. `None`: the
    /// run was ended by somebody else, or taken over.
    pub(super) async fn settle_step(
        &self,
        work: &Arc<Work>,
        energy: i64,
        calls: Vec<ToolCall>,
    ) -> Result<Option<Vec<StepRow>>> {
        self.write_with(work, move |engine, tx, work| {
            if !queries::renew(tx, &work.row)? {
                return Ok(None);
            }
            engine.settle_written(tx, work, energy)?;
            let mut tools = Vec::with_capacity(calls.len());
            for (call, position) in calls.iter().zip(work.next_position()..) {
                let arguments = effect::arguments_of(call);
                let key = effect::key(&work.row, &call.name, &arguments);
                let input = ToolInput { call_id: call.id.clone(), arguments, approval: None };
                let (name, input) = (call.name.clone(), JsonText::of(&input));
                let mut step = running(tx, work, position, StepKind::Tool, name, input, Some(key));
                // Written so from the beginning: where this worker dies, it is known that the call was not begun.
                if work.plan.tool(&step.name).is_some_and(|tool| needs_approval(&tool.settings)) {
                    ASKED.clone_into(&mut step.status);
                }
                queries::insert_step(tx, &step)?;
                tools.push(step);
            }
            Ok(Some(tools))
        })
        .await
    }

    /// Writes what is finished and its price, and begins the next model step. What is finished is written even where
    /// the next step cannot be paid.
    pub(super) async fn next_step(&self, work: &Arc<Work>, energy: i64) -> Result<Advance> {
        self.write_with(work, move |engine, tx, work| {
            if !queries::renew(tx, &work.row)? {
                return Ok(Advance::Stopped);
            }
            engine.settle_written(tx, work, energy)?;
            match engine.begin_step(tx, work) {
                Ok((step, asking)) => Ok(Advance::Begun(Box::new(step), asking)),
                Err(error) => limit_reason(&error).map(Advance::Limit).ok_or(error),
            }
        })
        .await
    }

    fn settle_written(&self, tx: &mut Tx, work: &Work, energy: i64) -> Result<()> {
        write_finished(tx, work)?;
        if energy > 0 && work.row.livemode {
            let (step, model) = work.charged_step();
            let settlement = Settlement { step, energy, model, close: None };
            self.0.parts.meter.settle(tx, &work.charge(), &settlement)?;
        }
        Ok(())
    }
}

/// Writes the results of steps that are not written yet. A step without one has failed.
pub(super) fn write_finished(tx: &mut Tx, work: &Work) -> Result<()> {
    let now = tx.now();
    for step in work.steps.iter().skip(work.written) {
        // Nothing is begun with it, so it is written only now.
        if step.kind() == StepKind::Guardrail {
            queries::insert_step(tx, step)?;
            continue;
        }
        let status = if step.status == "running" { "failed" } else { step.status.as_str() };
        queries::finish_step(tx, step, status, now)?;
        fold::keep(tx, work, step)?;
    }
    Ok(())
}

/// Closes the calls that were held back for a person, because the run ends and none of them is made.
pub(super) fn drop_pending(tx: &mut Tx, work: &Work) -> Result<()> {
    let now = tx.now();
    for step in &work.pending {
        let output = JsonText::of(&ToolOutput::error("the run ended before the call was made"));
        queries::finish_step(tx, &StepRow { output: Some(output), ..step.clone() }, CANCELLED, now)?;
    }
    Ok(())
}

pub(super) fn running(
    tx: &Tx,
    work: &Work,
    position: i64,
    kind: StepKind,
    name: String,
    input: JsonText,
    effect_key: Option<String>,
) -> StepRow {
    let step = step_at(tx.now(), &*tx.random(), work, kind);
    StepRow { position, name, input: Some(input), effect_key, ..step }
}

/// The next step of a run, of which nothing is known yet.
pub(super) fn step_at(now: Timestamp, random: &dyn Random, work: &Work, kind: StepKind) -> StepRow {
    StepRow {
        run_id: work.row.id.clone(),
        position: work.next_position(),
        workspace_id: work.row.workspace_id,
        id: StepId::new(now, random),
        kind: kind.as_str().to_owned(),
        status: "running".to_owned(),
        name: String::new(),
        input: None,
        output: None,
        effect_key: None,
        input_tokens: 0,
        output_tokens: 0,
        energy: 0,
        started_at: now,
        completed_at: None,
    }
}

/// Why a run that has begun ends when it cannot go on; `None` for errors that are not about limits.
fn limit_reason(error: &Error) -> Option<&'static str> {
    match (error.code(), error.param_name()) {
        (Code::EnergyDepleted, Some("energy_limit_per_run")) => Some("energy_limit"),
        (Code::EnergyDepleted, _) => Some("energy_depleted"),
        (Code::BudgetExceeded, _) => Some("budget_exceeded"),
        _ => None,
    }
}
