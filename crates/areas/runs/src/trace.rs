//! Trace of a run as callers see it: its steps with the prompts, and what they cost.

use crate::execution::Execution;
use crate::memory::ConversationMemory;
use crate::prompt::{self, Assembled};
use crate::run::{ModelOutput, RunEnergyItem, RunRow, RunStatus, RunStep, StepKind, StepRow};
use agents::Settings;
use model::{JsonText, Result};
use providers::{Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The input of a model step, as stored: what cannot be derived of its prompt from the other steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelInput {
    /// The number of messages in the prompt.
    messages: usize,
    /// The number of tools that it could call.
    tools: usize,
    max_output_tokens: i64,
    /// It was the first call of the run, or of an attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    first: bool,
    /// Of the first: what stood before the input, where that is more than the agent's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Vec<Value>>,
    /// The warning against going in circles, at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Results of tools that were cut to make room.
    #[serde(default, skip_serializing_if = "is_zero")]
    results_cut: usize,
    /// Turns of the conversation that were left out to make room.
    #[serde(default, skip_serializing_if = "is_zero")]
    turns_left_out: usize,
    /// Of the first: variables that the instructions refer to and that have no value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing_variables: Vec<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ModelInput {
    pub(crate) fn of(
        execution: &Execution,
        prompt: &Assembled,
        warning: Option<&str>,
        max_output_tokens: i64,
    ) -> Self {
        let first = !execution.steps.iter().any(|step| step.kind == StepKind::Model);
        let remembers = execution.memory.summary.is_some() || !execution.memory.turns.is_empty();
        let has_skills = !execution.plan.skills.is_empty();
        let before = (first && (remembers || has_skills)).then(|| {
            let before = prompt.messages.iter().take(prompt.before);
            before.map(|message| json!(message)).collect()
        });
        Self {
            messages: prompt.messages.len(),
            tools: execution.plan.specs.len() + execution.found.len(),
            max_output_tokens,
            first,
            before,
            warning: warning.map(str::to_owned),
            results_cut: prompt.cut,
            turns_left_out: prompt.left_out,
            missing_variables: if first { execution.plan.missing_variables.clone() } else { Vec::new() },
        }
    }
}

/// A run's steps as callers see them, with the prompt of each model call: all of it at the first, and what is new at
/// the others. `settings` are those of the agent's version.
pub(crate) fn shown(row: &RunRow, mut settings: Settings, steps: Vec<StepRow>) -> Result<Vec<RunStep>> {
    let tier = row.model;
    row.options()?.complete(&mut settings);
    let settings = &settings;
    let mut reader = Reader { row, settings, transcript: Vec::new(), sent: None };
    let shown = steps.into_iter().map(|mut step| {
        reader.read(&mut step);
        step.step(tier)
    });
    Ok(shown.collect())
}

/// Reads a run's steps in their order.
struct Reader<'a> {
    row: &'a RunRow,
    settings: &'a Settings,
    /// Messages of the run so far.
    transcript: Vec<Message>,
    /// The number of these messages that the model has received; `None` before its first call.
    sent: Option<usize>,
}

impl Reader<'_> {
    fn read(&mut self, step: &mut StepRow) {
        match step.kind {
            StepKind::Model => {
                let input = step.input.as_ref().and_then(|input| input.parse::<ModelInput>().ok());
                if let Some(input) = input {
                    step.input = Some(JsonText::of(&self.read_by_model(input)));
                }
                let output = step.output.as_ref().and_then(|output| output.parse::<ModelOutput>().ok());
                self.transcript.extend(output.into_iter().flat_map(prompt::answer));
            }
            StepKind::Tool => self.transcript.extend(prompt::result(step)),
            StepKind::Memory | StepKind::Guardrail | StepKind::Check => {}
        }
    }

    /// The messages of a prompt.
    fn read_by_model(&mut self, input: ModelInput) -> Value {
        let mut messages = Vec::new();
        if input.first || self.sent.is_none() {
            self.transcript = vec![Message::text(Role::User, self.row.input.as_deref().unwrap_or_default())];
            self.sent = Some(0);
            messages = input.before.unwrap_or_else(|| {
                let first =
                    prompt::instructions(self.settings, input.tools > 0, &ConversationMemory::default());
                first.iter().map(|message| json!(message)).collect()
            });
        }
        let new = self.transcript.iter().skip(self.sent.unwrap_or_default());
        messages.extend(new.map(|message| json!(message)));
        self.sent = Some(self.transcript.len());
        messages.extend(input.warning.map(|warning| json!(Message::text(Role::User, warning))));
        let mut shown = Map::from_iter([
            ("earlier".to_owned(), input.messages.saturating_sub(messages.len()).into()),
            ("messages".to_owned(), messages.into()),
            ("tools".to_owned(), input.tools.into()),
            ("max_output_tokens".to_owned(), input.max_output_tokens.into()),
        ]);
        for (field, count) in [("results_cut", input.results_cut), ("turns_left_out", input.turns_left_out)] {
            if count > 0 {
                shown.insert(field.to_owned(), count.into());
            }
        }
        if !input.missing_variables.is_empty() {
            shown.insert("missing_variables".to_owned(), input.missing_variables.into());
        }
        shown.into()
    }
}

/// The steps that cost something. What earlier attempts cost was given back, and so was all that a failed run cost.
pub(crate) fn energy_items(row: &RunRow, steps: &[StepRow]) -> Result<Vec<RunEnergyItem>> {
    if row.status == RunStatus::Failed {
        return Ok(Vec::new());
    }
    let from = row.options()?.attempt_from.unwrap_or(0);
    let tier = row.model;
    let priced = steps.iter().filter(|step| step.energy > 0 && step.position >= from);
    let item = |step: &StepRow| {
        let (step_id, model) = (step.id.clone(), step.name.clone());
        Some(RunEnergyItem { step_id, model, tier: step.tier(tier)?, energy: step.energy })
    };
    Ok(priced.filter_map(item).collect())
}
