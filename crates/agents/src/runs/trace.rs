//! The steps of a run as they are stored, and what stands in them.

use super::memory::Memory;
use super::model::{RunEnergyItem, RunRow, RunStatus, RunStep, tier_of};
use super::prompt::{self, Told};
use super::work::Work;
use crate::agents::Settings;
use crate::providers::{FailedAttempt, Finish, Message, Role, Tier, ToolCall, Usage};
use crate::schema::run_steps;
use diesel::prelude::*;
use model::{JsonText, Result, RunId, StepId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A call that waits until a person allows or refuses it.
pub(super) const ASKED: &str = "requires_action";
/// A call that was allowed and has not begun.
pub(super) const APPROVED: &str = "approved";
/// A call that a person refused.
pub(super) const REFUSED: &str = "refused";
/// A call that was never made, because its run ended first.
pub(super) const CANCELLED: &str = "cancelled";

/// A step as it is stored.
#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = run_steps, treat_none_as_default_value = false)]
pub(super) struct StepRow {
    pub(super) run_id: RunId,
    pub(super) position: i64,
    pub(super) workspace_id: WorkspaceId,
    pub(super) id: StepId,
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) name: String,
    pub(super) input: Option<JsonText>,
    pub(super) output: Option<JsonText>,
    pub(super) effect_key: Option<String>,
    pub(super) input_tokens: i64,
    pub(super) output_tokens: i64,
    pub(super) energy: i64,
    pub(super) started_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
}

impl StepRow {
    /// As callers see it. `tier` is that of the run.
    fn step(self, tier: Tier) -> RunStep {
        RunStep {
            tier: self.tier(tier),
            id: self.id,
            object: "run_step",
            position: self.position,
            kind: self.kind,
            status: self.status,
            name: self.name,
            effect_key: self.effect_key,
            input: self.input,
            output: self.output,
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            energy: self.energy,
            started_at: self.started_at,
            completed_at: self.completed_at,
        }
    }

    /// The tier by whose prices the step is charged; `of_run` answers.
    fn tier(&self, of_run: Tier) -> Option<Tier> {
        match self.kind() {
            StepKind::Model => Some(of_run),
            StepKind::Memory => Some(Tier::Fast),
            StepKind::Tool | StepKind::Guardrail => None,
        }
    }

    pub(super) fn kind(&self) -> StepKind {
        [StepKind::Model, StepKind::Tool, StepKind::Memory, StepKind::Guardrail]
            .into_iter()
            .find(|kind| kind.as_str() == self.kind)
            .unwrap_or(StepKind::Tool)
    }

    pub(super) fn is_tool(&self) -> bool {
        self.kind() == StepKind::Tool
    }

    /// Whether it is a call that was held back for a person, and nothing has become of it yet.
    pub(super) fn is_held_back(&self) -> bool {
        self.completed_at.is_none() && [ASKED, APPROVED, REFUSED].contains(&self.status.as_str())
    }

    /// What went into a tool's call; `None` where it is none, and once forgotten.
    pub(super) fn tool_input(&self) -> Option<ToolInput> {
        self.input.as_ref().and_then(|input| input.parse().ok())
    }
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// A call of the model.
    Model,
    /// A call of a tool.
    Tool,
    /// Older turns were folded.
    Memory,
    /// Guardrails found something.
    Guardrail,
}

impl StepKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Memory => "memory",
            Self::Guardrail => "guardrail",
        }
    }

    /// Whether steps of this kind cost Energy.
    pub(super) fn is_priced(self) -> bool {
        matches!(self, Self::Model | Self::Memory)
    }
}

/// The input of a model step, as stored: what its other steps do not say of what the model was told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelInput {
    /// How many messages it was told.
    messages: usize,
    /// How many tools it could call.
    tools: usize,
    max_output_tokens: i64,
    /// Whether it was the first call of the run, or of an attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    first: bool,
    /// Of the first: what it was told before the input, where that is more than the agent's instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Vec<Value>>,
    /// What it was told last, against going in circles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Results of tools that were cut to make room.
    #[serde(default, skip_serializing_if = "is_zero")]
    results_cut: usize,
    /// Turns of the conversation that were left out to make room.
    #[serde(default, skip_serializing_if = "is_zero")]
    turns_left_out: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl ModelInput {
    pub(super) fn of(work: &Work, told: &Told, warning: Option<&str>, max_output_tokens: i64) -> Self {
        let first = !work.steps.iter().any(|step| step.kind() == StepKind::Model);
        let remembers = work.memory.summary.is_some() || !work.memory.turns.is_empty();
        let before = (first && remembers).then(|| {
            let before = told.messages.iter().take(told.before);
            before.map(|message| json!(message)).collect()
        });
        Self {
            messages: told.messages.len(),
            tools: work.plan.specs.len(),
            max_output_tokens,
            first,
            before,
            warning: warning.map(str::to_owned),
            results_cut: told.cut,
            turns_left_out: told.left_out,
        }
    }
}

/// A run's steps as callers see them, with what the model was told at each of its calls: all at the first, and what is new
/// at the others. `settings` are those of the agent's version.
pub(super) fn shown(row: &RunRow, settings: &Settings, steps: Vec<StepRow>) -> Vec<RunStep> {
    let tier = tier_of(row);
    let mut reader = Reader { row, settings, said: Vec::new(), told: None };
    let shown = steps.into_iter().map(|mut step| {
        reader.read(&mut step);
        step.step(tier)
    });
    shown.collect()
}

/// Reads a run's steps in their order.
struct Reader<'a> {
    row: &'a RunRow,
    settings: &'a Settings,
    /// What was said in the run so far.
    said: Vec<Message>,
    /// How much of that the model has been told; `None` before its first call.
    told: Option<usize>,
}

impl Reader<'_> {
    fn read(&mut self, step: &mut StepRow) {
        match step.kind() {
            StepKind::Model => {
                let input = step.input.as_ref().and_then(|input| input.parse::<ModelInput>().ok());
                if let Some(input) = input {
                    step.input = Some(JsonText::of(&self.told(input)));
                }
                let output = step.output.as_ref().and_then(|output| output.parse::<ModelOutput>().ok());
                self.said.extend(output.into_iter().flat_map(prompt::answer));
            }
            StepKind::Tool => self.said.extend(prompt::result(step)),
            StepKind::Memory | StepKind::Guardrail => {}
        }
    }

    /// What the model was told.
    fn told(&mut self, input: ModelInput) -> Value {
        let mut messages = Vec::new();
        if input.first || self.told.is_none() {
            self.said = vec![Message::text(Role::User, self.row.input.as_deref().unwrap_or_default())];
            self.told = Some(0);
            messages = input.before.unwrap_or_else(|| {
                let first = prompt::instructions(self.settings, input.tools > 0, &Memory::default());
                first.iter().map(|message| json!(message)).collect()
            });
        }
        let new = self.said.iter().skip(self.told.unwrap_or_default());
        messages.extend(new.map(|message| json!(message)));
        self.told = Some(self.said.len());
        messages.extend(input.warning.map(|warning| json!(Message::text(Role::User, warning))));
        let mut told = Map::from_iter([
            ("earlier".to_owned(), input.messages.saturating_sub(messages.len()).into()),
            ("messages".to_owned(), messages.into()),
            ("tools".to_owned(), input.tools.into()),
            ("max_output_tokens".to_owned(), input.max_output_tokens.into()),
        ]);
        for (field, count) in [("results_cut", input.results_cut), ("turns_left_out", input.turns_left_out)] {
            if count > 0 {
                told.insert(field.to_owned(), count.into());
            }
        }
        told.into()
    }
}

/// The steps that cost something. What earlier attempts cost was given back, and so was all that a failed run cost.
pub(super) fn energy_items(row: &RunRow, steps: &[StepRow]) -> Result<Vec<RunEnergyItem>> {
    if row.status()? == RunStatus::Failed {
        return Ok(Vec::new());
    }
    let from = row.options()?.attempt_from.unwrap_or(0);
    let tier = tier_of(row);
    let priced = steps.iter().filter(|step| step.energy > 0 && step.position >= from);
    let item = |step: &StepRow| {
        let (step_id, model) = (step.id.clone(), step.name.clone());
        Some(RunEnergyItem { step_id, model, tier: step.tier(tier)?, energy: step.energy })
    };
    Ok(priced.filter_map(item).collect())
}

/// The output of a memory step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MemoryOutput {
    pub(super) summary: String,
    #[serde(default)]
    pub(super) usage: Usage,
    /// Whether that is a guess, because the provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_estimated: bool,
}

/// The output of a model step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelOutput {
    pub(super) text: String,
    #[serde(default)]
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) finish_reason: Finish,
    #[serde(default)]
    pub(super) usage: Usage,
    /// Whether that is a guess, because the provider did not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) usage_estimated: bool,
    /// Attempts that failed before this answer came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failed_attempts: Vec<FailedAttempt>,
    /// What the model is told when its answer did not fit the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) correction: Option<String>,
}

/// The input of a tool step, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ToolInput {
    pub(super) call_id: String,
    pub(super) arguments: Value,
    /// What a person decided about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<Approval>,
}

/// What a person decided about a call. Who it was is not known: the link that asks needs no login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Approval {
    pub(super) decision: Verdict,
    pub(super) note: Option<String>,
    pub(super) decided_at: Timestamp,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Approved,
    Refused,
}

impl Verdict {
    /// The word on the wire, which is also the state of the call's step.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Approved => APPROVED,
            Self::Refused => REFUSED,
        }
    }
}

/// How the model is told that its arguments are wrong. Resumed runs know such answers by it.
const BAD_ARGUMENTS: &str = "the arguments";

/// The output of a tool step, as stored and as the model is told it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolOutput {
    pub(super) ok: bool,
    pub(super) result: Value,
}

impl ToolOutput {
    pub(super) fn error(why: impl Into<String>) -> Self {
        Self { ok: false, result: Value::String(why.into()) }
    }

    /// Arguments that the tool was not called with.
    pub(super) fn bad_arguments(why: impl std::fmt::Display) -> Self {
        Self::error(format!("{BAD_ARGUMENTS} {why}"))
    }

    pub(super) fn is_bad_arguments(&self) -> bool {
        !self.ok && self.result.as_str().is_some_and(|text| text.starts_with(BAD_ARGUMENTS))
    }
}
