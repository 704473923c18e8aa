//! Model steps: each is written before the call, and its result together with its price.

use super::evaluate;
use crate::engine::RunEngine;
use crate::execution::{Execution, ModelRequest, write_absorbed, write_finished};
use crate::prompt::{self, Assembled, USEFUL_OUTPUT};
use crate::queries::{runs, steps};
use crate::run::{StepKind, StepRow, StepStatus, ToolInput, effect_key};
use crate::trace::ModelInput;
use model::{Code, Error, JsonText, Result};
use ports::Settlement;
use providers::{Message, Prices, Role, ToolCall, Usage};
use std::borrow::Cow;
use std::sync::Arc;
use store::Tx;

/// Outcome of an attempt to begin the next model step.
pub(crate) enum Advance {
    /// The next model step is written, and its Energy held.
    Begun(Box<StepRow>, ModelRequest),
    /// Not even a short answer can be paid.
    Limit(&'static str),
    /// The run was cancelled, or another worker took it over.
    Stopped,
}

/// A planned model call, with its price.
pub(crate) struct ModelCall {
    prompt: Assembled,
    /// The warning against repeating calls.
    warning: Option<&'static str>,
    max_output_tokens: i64,
}

impl ModelCall {
    fn price(&self, prices: Prices, output_tokens: i64) -> i64 {
        prices.energy(Usage { input_tokens: self.prompt.tokens, output_tokens, ..Usage::default() })
    }

    /// The Energy of the longest answer.
    pub(crate) fn most(&self, prices: Prices) -> i64 {
        self.price(prices, self.max_output_tokens)
    }

    /// The Energy of the shortest answer that is worth asking for.
    fn least(&self, prices: Prices) -> i64 {
        self.price(prices, self.max_output_tokens.min(USEFUL_OUTPUT))
    }
}

impl RunEngine {
    /// Holds Energy for the next model call and writes its step.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where not even a short answer can be paid.
    pub(crate) fn begin_step(&self, tx: &mut Tx, execution: &Execution) -> Result<(StepRow, ModelRequest)> {
        let setup = self.tiers().get(execution.row.model);
        let prices = setup.prices;
        let model_call = self.next_model_call(execution);
        let held = match execution.row.livemode {
            true => {
                let meter = &self.0.parts.meter;
                Some(meter.hold(
                    tx,
                    &execution.charge(),
                    model_call.most(prices),
                    model_call.least(prices),
                )?)
            }
            false => None,
        };
        let (step, model_request) = self.model_step(tx, execution, model_call, held);
        steps::insert(tx, &step)?;
        Ok((step, model_request))
    }

    /// Returns the next model step, within the held Energy. `None` is for runs that cost nothing.
    pub(crate) fn model_step(
        &self,
        tx: &Tx,
        execution: &Execution,
        mut model_call: ModelCall,
        held: Option<i64>,
    ) -> (StepRow, ModelRequest) {
        let setup = self.tiers().get(execution.row.model);
        if let Some(held) = held {
            let affordable = setup.prices.affordable_output(held, model_call.prompt.tokens);
            model_call.max_output_tokens = model_call.max_output_tokens.min(affordable).max(1);
        }
        let input =
            ModelInput::of(execution, &model_call.prompt, model_call.warning, model_call.max_output_tokens);
        let (position, input) = (execution.next_position(), JsonText::of(&input));
        let step = execution.running_step(tx, position, StepKind::Model, setup.label(), input, None);
        (
            step,
            ModelRequest {
                messages: model_call.prompt.messages,
                max_output_tokens: model_call.max_output_tokens,
            },
        )
    }

    /// Refuses a run that would be queued, if not even a short answer could be paid now.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded`.
    pub(crate) fn admit(&self, tx: &mut Tx, execution: &Execution) -> Result<()> {
        if !execution.row.livemode {
            return Ok(());
        }
        let least = self.next_model_call(execution).least(self.tiers().get(execution.row.model).prices);
        self.0.parts.meter.admit(tx, &execution.charge(), least)
    }

    /// Plans the next model call.
    pub(crate) fn next_model_call(&self, execution: &Execution) -> ModelCall {
        let context = self.tiers().get(execution.row.model).context_tokens();
        let settings = &execution.plan.settings;
        let room = context - USEFUL_OUTPUT.min(settings.max_output_tokens);
        let mut transcript = Cow::from(&execution.transcript);
        let warning = evaluate::warning(execution);
        if let Some(warning) = warning {
            transcript.to_mut().push(Message::text(Role::User, warning));
        }
        let prompt =
            prompt::assemble(settings, execution.spec_tokens(), &execution.memory, &transcript, room);
        let fits = (context - prompt.tokens).max(16);
        ModelCall { prompt, warning, max_output_tokens: settings.max_output_tokens.min(fits) }
    }

    /// Settles a finished model step, and writes the steps of its tool calls before they are made. Returns `None` if the run was
    /// cancelled or taken over.
    pub(crate) async fn settle_step(
        &self,
        execution: &mut Arc<Execution>,
        energy: i64,
        calls: Vec<ToolCall>,
    ) -> Result<Option<Vec<StepRow>>> {
        let written = self.write_with(execution, move |engine, tx, execution| {
            if !runs::renew(tx, &execution.row)? || engine.is_orphan(tx, execution)? {
                return Ok((None, 0));
            }
            let absorbed = engine.settle_written(tx, execution, energy)?;
            let mut tools = Vec::with_capacity(calls.len());
            for (call, position) in calls.iter().zip(execution.next_position()..) {
                let arguments = effect_key::arguments_of(call);
                let key = effect_key::key(&execution.row, &call.name, &arguments);
                let input = ToolInput { call_id: call.id.clone(), arguments, approval: None };
                let (name, input) = (call.name.clone(), JsonText::of(&input));
                let mut step = execution.running_step(tx, position, StepKind::Tool, name, input, Some(key));
                // If this worker dies, the status tells the next one that the call was not made.
                if execution.plan.tool(&step.name).is_some_and(|tool| tool.callable.needs_approval()) {
                    step.status = StepStatus::RequiresAction;
                }
                steps::insert(tx, &step)?;
                tools.push(step);
            }
            Ok((Some(tools), absorbed))
        });
        let (tools, absorbed) = written.await?;
        deduct_absorbed(execution, absorbed);
        Ok(tools)
    }

    /// Writes the finished steps with their price, and begins the next model step. The finished steps are written even if the
    /// next one cannot be paid.
    pub(crate) async fn next_step(&self, execution: &mut Arc<Execution>, energy: i64) -> Result<Advance> {
        let written = self.write_with(execution, move |engine, tx, execution| {
            if !runs::renew(tx, &execution.row)? || engine.is_orphan(tx, execution)? {
                return Ok((Advance::Stopped, 0));
            }
            let absorbed = engine.settle_written(tx, execution, energy)?;
            let advance = match engine.begin_step(tx, execution) {
                Ok((step, model_request)) => Advance::Begun(Box::new(step), model_request),
                Err(error) => Advance::Limit(limit_reason(&error).ok_or(error)?),
            };
            Ok((advance, absorbed))
        });
        let (advance, absorbed) = written.await?;
        deduct_absorbed(execution, absorbed);
        Ok(advance)
    }

    /// Returns whether the run was within another that has ended. It is cancelled then.
    pub(crate) fn is_orphan(&self, tx: &mut Tx, execution: &Execution) -> Result<bool> {
        self.cancel_orphan(tx, &execution.row, execution.plan.inner.as_ref())
    }

    /// Writes the finished steps, and settles the last priced one. Returns the Energy beyond its hold.
    pub(super) fn settle_written(&self, tx: &mut Tx, execution: &Execution, energy: i64) -> Result<i64> {
        write_finished(tx, execution)?;
        self.settle_last(tx, execution, energy)
    }

    /// Settles the last priced step. Returns the Energy beyond its hold.
    pub(super) fn settle_last(&self, tx: &mut Tx, execution: &Execution, energy: i64) -> Result<i64> {
        if energy == 0 || !execution.row.livemode {
            return Ok(0);
        }
        let (step, model) = execution.charged_step();
        let settlement = Settlement { step, energy, model: model.as_str(), close: None };
        let absorbed = energy - self.0.parts.meter.settle(tx, &execution.charge(), &settlement)?;
        write_absorbed(tx, execution, absorbed)?;
        Ok(absorbed)
    }
}

/// Deducts `absorbed`, which nobody pays, from the last priced step.
pub(super) fn deduct_absorbed(execution: &mut Arc<Execution>, absorbed: i64) {
    if absorbed > 0 {
        Arc::make_mut(execution).deduct_absorbed(absorbed);
    }
}

/// Returns the reason for which a limit ends a run in progress. `None` for errors that are not about limits.
pub(super) fn limit_reason(error: &Error) -> Option<&'static str> {
    match (error.code(), error.param_name()) {
        (Code::EnergyDepleted, Some(_)) => Some("energy_limit"),
        (Code::EnergyDepleted, _) => Some("energy_depleted"),
        (Code::BudgetExceeded, _) => Some("budget_exceeded"),
        _ => None,
    }
}
