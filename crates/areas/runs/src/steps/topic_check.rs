//! Guardrails of type `topic`: the fast tier says what a text is about. A check is a step with a price.
//!
//! An input is checked before anything else is done with it, and an answer before anybody sees it. While an answer is being
//! checked, its step is stored without its text.

use super::model_call::{deduct_absorbed, limit_reason};
use crate::engine::RunEngine;
use crate::execution::{Execution, FirstStep, TopicCheck};
use crate::guardrails::{GuardrailFinding, ending};
use crate::queries::{runs, steps};
use crate::run::{CheckOutput, Ending, ModelOutput, StepKind, StepRow, StepStatus};
use ::guardrails::{GuardrailStage, TopicReport};
use model::{JsonText, Result};
use providers::{
    Attempts, Message, ModelAnswer, Prompt, ProviderError, Role, Usage, beginning, code_fence,
    estimated_tokens, json,
};
use serde_json::json;
use std::sync::Arc;
use store::Tx;

/// The longest answer of a check, in tokens.
const MOST_OUTPUT: i64 = 512;
/// The shortest part of a text that is checked, in tokens.
const LEAST_INPUT: i64 = 64;

/// The reason of a run whose text could not be checked.
const UNAVAILABLE: &str = "guardrail_unavailable";

/// What follows the check of an input.
pub(crate) enum Checked {
    /// The step after it is begun.
    Begun(Box<Execution>, FirstStep),
    /// It cannot be paid.
    Limit(&'static str),
    /// The run was cancelled, or another worker took it over.
    Stopped,
}

/// Outcome of a check.
enum Outcome {
    Fine,
    Found(TopicReport),
    /// Nobody knows what the text is about.
    Unknown,
    Stopped,
}

impl RunEngine {
    /// Returns the check of an input that has not been checked.
    pub(crate) fn due_input_check(&self, execution: &Execution) -> Option<TopicCheck> {
        let is_made = |step: &StepRow| step.kind == StepKind::Check && step.status != StepStatus::Unknown;
        if execution.steps.iter().any(is_made) {
            return None;
        }
        self.topic_check(execution, GuardrailStage::Input, execution.row.input.as_deref().unwrap_or_default())
    }

    fn topic_check(&self, execution: &Execution, stage: GuardrailStage, text: &str) -> Option<TopicCheck> {
        let rules = execution.plan.guardrails.topics(stage).filter(|_| !text.trim().is_empty())?;
        let question = Message::text(Role::System, rules.instructions());
        let room = self.tiers().fast.context_tokens() - MOST_OUTPUT - estimated_tokens([&question]);
        let text = Message::text(Role::User, beginning(text, room.max(LEAST_INPUT)));
        Some(TopicCheck { stage, rules, messages: vec![question, text], max_output_tokens: MOST_OUTPUT })
    }

    /// Holds Energy for a check, and writes its step.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where it cannot be paid.
    pub(crate) fn begin_check(
        &self,
        tx: &mut Tx,
        execution: &mut Execution,
        check: &TopicCheck,
    ) -> Result<()> {
        if execution.row.livemode {
            let (input_tokens, output_tokens) = (estimated_tokens(&check.messages), check.max_output_tokens);
            let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
            let price = self.tiers().fast.prices.energy(usage);
            self.0.parts.meter.hold(tx, &execution.charge(), price, price)?;
        }
        let input = JsonText::of(&json!({ "stage": check.stage, "topics": check.rules.topics() }));
        let (position, name) = (execution.next_position(), self.tiers().fast.label());
        let step = execution.running_step(tx, position, StepKind::Check, name, input, None);
        steps::insert(tx, &step)?;
        execution.steps.push(step);
        Ok(())
    }

    /// Makes the check of an input. Returns the ending if it ends the run, and the Energy that it cost.
    pub(crate) async fn check_input(
        &self,
        execution: &mut Arc<Execution>,
        check: TopicCheck,
    ) -> (Option<Ending>, i64) {
        let (outcome, energy) = self.ask_for_topics(execution, &check).await;
        let found = match outcome {
            Outcome::Fine => return (None, energy),
            Outcome::Stopped => return (Some(Ending::Stopped), energy),
            Outcome::Unknown => {
                let ending = check.rules.is_strict().then_some(Ending::Incomplete(UNAVAILABLE, None));
                return (ending, energy);
            }
            Outcome::Found(found) => found,
        };
        let execution = Arc::make_mut(execution);
        let ending = ending(&found.report, check.stage, &execution.plan.settings);
        self.add_topic_finding(execution, &check, found);
        (ending, energy)
    }

    fn add_topic_finding(&self, execution: &mut Execution, check: &TopicCheck, found: TopicReport) {
        let finding = GuardrailFinding { stage: check.stage, at: json!({}), report: found.report };
        self.add_finding(execution, &finding);
    }

    /// Begins the step that follows the check of an input.
    pub(crate) async fn begin_checked(&self, execution: &mut Arc<Execution>, energy: i64) -> Result<Checked> {
        let written = self.write_with(execution, move |engine, tx, execution| {
            if !runs::renew(tx, &execution.row)? || engine.is_orphan(tx, execution)? {
                return Ok((Checked::Stopped, 0));
            }
            let absorbed = engine.settle_written(tx, execution, energy)?;
            let mut begun = execution.clone();
            begun.written = begun.steps.len();
            begun.deduct_absorbed(absorbed);
            match engine.begin(tx, &mut begun) {
                Ok(start) => Ok((Checked::Begun(Box::new(begun), start), 0)),
                Err(error) => Ok((Checked::Limit(limit_reason(&error).ok_or(error)?), absorbed)),
            }
        });
        let (checked, absorbed) = written.await?;
        deduct_absorbed(execution, absorbed);
        Ok(checked)
    }

    /// Checks the topics of the answer that ends a run, whose step cost `energy`. Returns the ending from then on, with the Energy
    /// that is not debited yet.
    pub(crate) async fn check_output(
        &self,
        execution: &mut Arc<Execution>,
        ending: Ending,
        energy: i64,
    ) -> Result<(Ending, i64)> {
        let text = match &ending {
            Ending::Completed(text) => text.clone(),
            Ending::Incomplete(reason, Some(text)) if !matches!(*reason, "guardrail" | "handoff") => {
                text.clone()
            }
            _ => return Ok((ending, energy)),
        };
        let Some(check) = self.topic_check(execution, GuardrailStage::Output, &text) else {
            return Ok((ending, energy));
        };
        let asked = check.clone();
        let written = self.write_with(execution, move |engine, tx, execution| {
            if !runs::renew(tx, &execution.row)? || engine.is_orphan(tx, execution)? {
                return Ok((Checked::Stopped, 0));
            }
            let absorbed = engine.settle_without_text(tx, execution, energy)?;
            let mut begun = execution.clone();
            begun.deduct_absorbed(absorbed);
            match engine.begin_check(tx, &mut begun, &asked) {
                Ok(()) => Ok((Checked::Begun(Box::new(begun), FirstStep::Check(asked.clone())), 0)),
                Err(error) => Ok((Checked::Limit(limit_reason(&error).ok_or(error)?), absorbed)),
            }
        });
        match written.await? {
            (Checked::Begun(begun, _), _) => *execution = Arc::new(*begun),
            (Checked::Stopped, _) => return Ok((Ending::Stopped, energy)),
            (Checked::Limit(reason), absorbed) => {
                deduct_absorbed(execution, absorbed);
                let ending = match check.rules.is_strict() {
                    true => Ending::Incomplete(reason, None),
                    false => ending,
                };
                return Ok((withheld(Arc::make_mut(execution), ending), 0));
            }
        }
        let (outcome, energy) = self.ask_for_topics(execution, &check).await;
        let execution = Arc::make_mut(execution);
        let ending = match outcome {
            Outcome::Fine => ending,
            Outcome::Stopped => Ending::Stopped,
            Outcome::Unknown if check.rules.is_strict() => Ending::Incomplete(UNAVAILABLE, None),
            Outcome::Unknown => ending,
            Outcome::Found(found) => {
                let ending = match (&found.replacement, ending) {
                    (Some(text), Ending::Completed(_)) => Ending::Completed(text.clone()),
                    (Some(text), Ending::Incomplete(reason, _)) => {
                        Ending::Incomplete(reason, Some(text.clone()))
                    }
                    (_, ending) => ending,
                };
                let settings = &execution.plan.settings;
                let ending =
                    crate::guardrails::ending(&found.report, check.stage, settings).unwrap_or(ending);
                self.add_topic_finding(execution, &check, found);
                ending
            }
        };
        Ok((withheld(execution, ending), energy))
    }

    /// Settles the last model step, and writes it without its text until that is checked. The end of the run writes it once more.
    fn settle_without_text(&self, tx: &mut Tx, execution: &Execution, energy: i64) -> Result<i64> {
        if let Some(step) = execution.steps.iter().rev().find(|step| step.kind == StepKind::Model) {
            let mut step = step.clone();
            set_text(&mut step, "");
            let now = tx.now();
            steps::finish(tx, &step, step.final_status(), now)?;
        }
        self.settle_last(tx, execution, energy)
    }

    /// Asks the fast tier what a text is about, and records the answer in the current step. Returns the Energy that it cost.
    async fn ask_for_topics(&self, execution: &mut Arc<Execution>, check: &TopicCheck) -> (Outcome, i64) {
        let prompt = Prompt {
            model: String::new(),
            messages: check.messages.clone(),
            tools: Vec::new(),
            output_schema: Some(check.rules.schema()),
            max_output_tokens: check.max_output_tokens,
            temperature: None,
            patience: execution.time_left(self.db().clock().now()),
            cancel: execution.active.cancel.clone(),
            sink: None,
            attempts: Attempts::default(),
            trace: Some(execution.trace.clone()),
            tracer: self.tracer().clone(),
        };
        let answer = self.keeping_lease(execution, self.complete(&self.tiers().fast, prompt)).await;
        let execution = Arc::make_mut(execution);
        match answer {
            Ok(answered) => self.take_topics(execution, check, answered),
            Err(ProviderError::Cancelled) => (Outcome::Stopped, 0),
            Err(error) => {
                tracing::info!(run_id = %execution.row.id, %error, "the topics of a text could not be checked");
                let error = Some(format!("the model could not be asked: {}", error.kind()));
                record(execution, StepStatus::Failed, &CheckOutput { error, ..CheckOutput::default() });
                (Outcome::Unknown, 0)
            }
        }
    }

    fn take_topics(
        &self,
        execution: &mut Execution,
        check: &TopicCheck,
        answered: ModelAnswer,
    ) -> (Outcome, i64) {
        let ModelAnswer { completion, usage, usage_estimated, label } = answered;
        let energy = self.tiers().fast.prices.energy(usage);
        let answer = json::text_of(code_fence::strip(&completion.text));
        let topics = answer.and_then(|answer| check.rules.read(&json::parsed(&answer)));
        let error = topics.is_none().then(|| "the model's answer names no topics".to_owned());
        let status = if topics.is_some() { StepStatus::Completed } else { StepStatus::Failed };
        if let Some(step) = execution.steps.last_mut() {
            step.name = label;
            step.input_tokens = usage.input_tokens;
            step.output_tokens = usage.output_tokens;
            step.energy = if execution.row.livemode { energy } else { 0 };
        }
        record(execution, status, &CheckOutput { topics: topics.clone(), error, usage, usage_estimated });
        execution.add_usage(usage, energy);
        let outcome = match topics {
            None => Outcome::Unknown,
            Some(topics) => check.rules.report(&topics).map_or(Outcome::Fine, Outcome::Found),
        };
        (outcome, energy)
    }
}

/// Records the result of the current step.
fn record(execution: &mut Execution, status: StepStatus, output: &CheckOutput) {
    if let Some(step) = execution.steps.last_mut() {
        step.status = status;
        step.output = Some(JsonText::of(output));
    }
}

/// Leaves in the last answer of the model what the ending lets through, and publishes it.
fn withheld(execution: &mut Execution, ending: Ending) -> Ending {
    let text = leave_text(execution, &ending);
    execution.publish_answer(&text);
    ending
}

/// Leaves in the last answer of the model what the ending lets through, and returns it.
pub(super) fn leave_text(execution: &mut Execution, ending: &Ending) -> String {
    let text = match ending {
        Ending::Completed(text) | Ending::Incomplete(_, Some(text)) => text.as_str(),
        _ => "",
    };
    let is_handed_off = matches!(ending, Ending::Incomplete("handoff", _));
    let text = if is_handed_off { "" } else { text };
    if let Some(step) = execution.steps.iter_mut().rev().find(|step| step.kind == StepKind::Model) {
        set_text(step, text);
    }
    text.to_owned()
}

/// Replaces the text in a model step.
fn set_text(step: &mut StepRow, text: &str) {
    let output = step.output.as_ref().and_then(|output| output.parse::<ModelOutput>().ok());
    if let Some(mut output) = output {
        text.clone_into(&mut output.text);
        step.output = Some(JsonText::of(&output));
    }
}
