//! State of a run in execution: its plan, its progress, and how it may end.

use super::plan::Plan;
use super::progress::ProgressSender;
use super::registry::ActiveRun;
use crate::guardrails::ending;
use crate::memory::{ConversationMemory, Summarization};
use crate::prompt;
use crate::run::{
    CheckOutput, Ending, MemoryOutput, ModelOutput, RunRow, RunStatus, StepKind, StepRow, StepStatus,
    ToolOutput,
};
use ::guardrails::{GuardrailReport, GuardrailStage, TopicRules};
use agents::{FIND_TOOLS, FoundTools};
use model::{AgentId, JsonText, Random, StepId, Timestamp, Trace};
use ports::{AgentLimits, Charge};
use providers::{
    FailedAttempt, Finish, Message, Prices, Role, Sink, Tier, ToolSpec, Usage, estimated_tool_tokens,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use store::Tx;

/// A run in execution: its row and plan, the steps so far, and its progress.
#[derive(Clone)]
pub(crate) struct Execution {
    pub(crate) plan: Arc<Plan>,
    pub(crate) active: Arc<ActiveRun>,
    pub(crate) row: RunRow,
    pub(crate) memory: ConversationMemory,
    /// Steps of attempts that failed. They count for nothing, but what they did to the outside is not done again.
    pub(crate) earlier: Vec<StepRow>,
    pub(crate) steps: Vec<StepRow>,
    /// Calls that were held back for a person. Their steps are written.
    pub(crate) pending: Vec<StepRow>,
    /// The steps before this one stand in the database as they stand here.
    pub(crate) written: usize,
    /// Messages of this run so far, the input first.
    pub(crate) transcript: Vec<Message>,
    /// Answers that did not fit the schema.
    pub(crate) repairs: usize,
    /// Tool calls whose arguments did not fit.
    pub(crate) bad_calls: usize,
    /// The Energy that runs of other agents spent, which tools of this run started.
    pub(crate) inner_energy: i64,
    /// The names of deferred tools that the model has found, in the order in which it did.
    pub(crate) found: Vec<String>,
    /// Whether functions of guardrails were asked about the input.
    pub(crate) asked: bool,
    /// The ending, if a guardrail ended the run before the first model call.
    pub(crate) early_end: Option<Ending>,
    /// Channel of the stream, if the run is streamed.
    pub(crate) progress: Option<ProgressSender>,
    /// Its place in the trace: the span of the worker that drives it.
    pub(crate) trace: Trace,
}

/// The first step of a run: its row is written, and its Energy is held.
pub(crate) enum FirstStep {
    /// Functions of guardrails are asked about the input. Nothing is written for it.
    Ask,
    /// The model answers.
    Answer(ModelRequest),
    /// Older turns are summarized first.
    Summarize(Summarization),
    /// The topics of the input are checked first.
    Check(TopicCheck),
    /// Nothing: guardrails let the input go no further.
    End(Ending),
}

/// A check of the topics of a text.
#[derive(Clone)]
pub(crate) struct TopicCheck {
    pub(crate) stage: GuardrailStage,
    pub(crate) rules: TopicRules,
    pub(crate) messages: Vec<Message>,
    pub(crate) max_output_tokens: i64,
}

/// Request to the model.
pub(crate) struct ModelRequest {
    pub(crate) messages: Vec<Message>,
    pub(crate) max_output_tokens: i64,
}

impl Execution {
    pub(crate) fn new(plan: Arc<Plan>, active: ActiveRun, row: RunRow, memory: ConversationMemory) -> Self {
        let transcript = vec![Message::text(Role::User, row.input.as_deref().unwrap_or_default())];
        let active = Arc::new(active);
        let trace = plan.caller.trace();
        Self {
            plan,
            active,
            row,
            memory,
            earlier: Vec::new(),
            steps: Vec::new(),
            pending: Vec::new(),
            written: 0,
            transcript,
            repairs: 0,
            bad_calls: 0,
            inner_energy: 0,
            found: Vec::new(),
            asked: false,
            early_end: None,
            progress: None,
            trace,
        }
    }

    /// The charge of the run. A run within another is charged to the agent of the outermost run, whose month bounds it.
    pub(crate) fn charge(&self) -> Charge {
        let (agent, month) = self.charged_agent();
        let run = self.energy_limit().map(|limit| limit.saturating_sub(self.inner_energy));
        Charge {
            caller: self.plan.caller.clone(),
            run: self.row.id.clone(),
            agent,
            operation: self.plan.purpose.as_str(),
            limits: AgentLimits { month, run },
            is_new: self.row.epoch == 1 && self.steps.is_empty() && self.earlier.is_empty(),
        }
    }

    /// The agent whose month is charged, and the limit of that month.
    pub(crate) fn charged_agent(&self) -> (AgentId, Option<i64>) {
        match &self.plan.inner {
            Some(inner) => (inner.agent, inner.month),
            None => (self.row.agent_id, self.plan.settings.energy_limit_monthly),
        }
    }

    /// The most Energy that the run may spend, with the runs that its tools start.
    pub(crate) fn energy_limit(&self) -> Option<i64> {
        let outer = self.plan.inner.as_ref().and_then(|inner| inner.energy);
        [self.plan.settings.energy_limit_per_run, outer].into_iter().flatten().min()
    }

    /// Returns whether the model has to find this tool before it can call it.
    pub(crate) fn is_deferred(&self, name: &str) -> bool {
        let is_name = |other: &String| other == name;
        self.plan.deferred.iter().any(is_name) && !self.found.iter().any(is_name)
    }

    /// What the model is offered now.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.plan.specs.iter().chain(self.found_specs()).cloned().collect()
    }

    /// The tokens that [`specs`](Self::specs) add to a prompt.
    pub(crate) fn spec_tokens(&self) -> i64 {
        let found: Vec<ToolSpec> = self.found_specs().cloned().collect();
        self.plan.spec_tokens + estimated_tool_tokens(&found)
    }

    fn found_specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.found.iter().filter_map(|name| Some(&self.plan.tool(name)?.callable.spec))
    }

    /// The remaining time. Waiting for approvals does not count.
    pub(crate) fn time_left(&self, now: Timestamp) -> Duration {
        let started = self.row.started_at.unwrap_or(self.row.queued_at);
        let end = started.plus_seconds(self.plan.settings.timeout_seconds).millis();
        let left = end.saturating_add(self.plan.waited_ms) - now.millis();
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }

    pub(crate) fn next_position(&self) -> i64 {
        self.last_position() + 1
    }

    pub(crate) fn last_position(&self) -> i64 {
        // Calls that were held back come to the steps behind what was noted meanwhile.
        let all = self.steps.iter().chain(&self.pending).chain(&self.earlier);
        all.map(|step| step.position).max().unwrap_or(0)
    }

    /// The last step that has a price, and the tier that it is charged by.
    pub(crate) fn charged_step(&self) -> (i64, Tier) {
        let priced = self.steps.iter().rev().find(|step| step.kind.is_priced());
        match priced {
            Some(step) if step.kind != StepKind::Model => (step.position, Tier::Fast),
            Some(step) => (step.position, self.row.model),
            None => (self.last_position(), self.row.model),
        }
    }

    /// Deducts `absorbed`, which nobody pays, from the last priced step.
    pub(crate) fn deduct_absorbed(&mut self, absorbed: i64) {
        self.row.energy -= absorbed;
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.kind.is_priced()) {
            step.energy -= absorbed;
        }
    }

    /// The last text of the model.
    pub(crate) fn last_text(&self) -> Option<String> {
        self.transcript
            .iter()
            .rev()
            .find(|message| message.role == Role::Assistant && !message.content.is_empty())
            .map(|message| message.content.clone())
    }

    /// Starts the run's time.
    pub(crate) fn start(&mut self, now: Timestamp) {
        self.row.status = RunStatus::InProgress;
        self.row.started_at = Some(now.max(self.row.queued_at));
    }

    /// Adds the usage and the Energy of a model call.
    pub(crate) fn add_usage(&mut self, usage: Usage, energy: i64) {
        let add = |sum: &mut i64, more: i64| *sum = sum.saturating_add(more);
        add(&mut self.row.input_tokens, usage.input_tokens);
        add(&mut self.row.cached_tokens, usage.cached_tokens);
        add(&mut self.row.output_tokens, usage.output_tokens);
        add(&mut self.row.reasoning_tokens, usage.reasoning_tokens);
        let spent = if self.row.livemode { &mut self.row.energy } else { &mut self.row.simulated_energy };
        add(spent, energy);
    }

    /// Records an answer of the model and its Energy.
    pub(crate) fn record_answer(&mut self, output: ModelOutput, energy: i64) {
        self.add_usage(output.usage, energy);
        self.row.model_calls += 1;
        self.repairs += usize::from(output.correction.is_some() && output.finish_reason != Finish::Length);
        self.transcript.extend(prompt::answer(output));
    }

    /// Records in the last step why there was no answer.
    pub(crate) fn record_failed_attempts(&mut self, failed: Vec<FailedAttempt>) {
        if let Some(step) = self.steps.last_mut().filter(|_| !failed.is_empty()) {
            step.output = Some(JsonText::of(&json!({ "failed_attempts": failed })));
        }
    }

    /// Records the result of a tool call.
    pub(crate) fn record_tool_result(&mut self, step: &StepRow) {
        let Some(output) = &step.output else { return };
        if let Ok(output) = output.parse::<ToolOutput>() {
            self.bad_calls += usize::from(output.is_bad_arguments());
            self.inner_energy += output.run.as_ref().map_or(0, |run| run.energy);
            if step.name == FIND_TOOLS && !self.plan.deferred.is_empty() {
                let found = output.result.parse::<FoundTools>().ok().filter(|_| output.ok);
                let new = found.into_iter().flat_map(FoundTools::names);
                let new: Vec<String> = new.filter(|name| self.is_deferred(name)).collect();
                self.found.extend(new);
            }
        }
        self.transcript.extend(prompt::result(step));
    }

    /// Restores a step that an earlier worker finished. The prices are those of the run's tier and of the tier that summarizes.
    pub(crate) fn restore_step(&mut self, step: StepRow, prices: Prices, folding: Prices) {
        let output = step.output.as_ref();
        let livemode = self.row.livemode;
        let cost = |prices: Prices, usage: Usage| if livemode { step.energy } else { prices.energy(usage) };
        match step.kind {
            StepKind::Tool => {
                self.row.tool_calls += 1;
                self.record_tool_result(&step);
            }
            StepKind::Model => {
                if let Some(output) = output.and_then(|output| output.parse::<ModelOutput>().ok()) {
                    let energy = cost(prices, output.usage);
                    self.record_answer(output, energy);
                }
            }
            StepKind::Guardrail => {
                let report = output.and_then(|output| output.parse::<GuardrailReport>().ok());
                if let Some(report) = report.filter(|_| step.name == GuardrailStage::Input.as_str()) {
                    self.early_end = ending(&report, GuardrailStage::Input, &self.plan.settings);
                }
            }
            StepKind::Check => {
                if let Some(output) = output.and_then(|output| output.parse::<CheckOutput>().ok()) {
                    self.add_usage(output.usage, cost(folding, output.usage));
                }
            }
            StepKind::Memory => {
                if let Some(output) = output.and_then(|output| output.parse::<MemoryOutput>().ok()) {
                    self.add_usage(output.usage, cost(folding, output.usage));
                }
            }
        }
        self.steps.push(step);
        self.written = self.steps.len();
    }

    /// The sink for the model's text. `None` if guardrails inspect the answer, because they need all of it.
    pub(crate) fn sink(&self) -> Option<Arc<dyn Sink>> {
        let progress = self.progress.clone();
        let progress = progress.filter(|_| !self.plan.guardrails.inspects(GuardrailStage::Output));
        progress.map(|progress| Arc::new(progress) as Arc<dyn Sink>)
    }

    /// Publishes the answer of the last step as a whole, as far as it was not published in pieces.
    pub(crate) fn publish_answer(&self, text: &str) {
        if let Some(progress) = &self.progress {
            progress.complete(text);
        }
    }

    /// Publishes that the last step is written and begins, and that those before it are written and have ended.
    pub(crate) fn publish_begun(&self) {
        if let Some(step) = self.steps.last() {
            self.publish_steps(std::slice::from_ref(step));
        }
    }

    /// Publishes that these steps are written and begin, and that those before them are written and have ended.
    pub(crate) fn publish_steps(&self, begun: &[StepRow]) {
        if let Some(progress) = &self.progress {
            progress.begin_steps(begun);
        }
    }

    /// A step that begins now.
    pub(crate) fn running_step(
        &self,
        tx: &Tx,
        position: i64,
        kind: StepKind,
        name: String,
        input: JsonText,
        effect_key: Option<String>,
    ) -> StepRow {
        let step = self.next_step(tx.now(), &*tx.random(), kind);
        StepRow { position, name, input: Some(input), effect_key, ..step }
    }

    /// Returns the next step without contents.
    pub(crate) fn next_step(&self, now: Timestamp, random: &dyn Random, kind: StepKind) -> StepRow {
        StepRow {
            run_id: self.row.id.clone(),
            position: self.next_position(),
            workspace_id: self.row.workspace_id,
            id: StepId::new(now, random),
            kind,
            status: StepStatus::Running,
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
}
