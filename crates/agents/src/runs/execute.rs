//! Driving a run: model, tools, model again, until it has answered or a limit ends it.

use super::answer;
use super::engine::{RunEngine, emit_end, failure_text, record_test_execution, superseded};
use super::http_tool;
use super::model::{ModelOutput, RunRow, RunStatus, StepRow, ToolInput, ToolOutput, tier_of};
use super::prompt;
use super::queries::{self, Turn};
use crate::agents::{ResponseFormat, Settings, ToolRow, ToolSettings, header_place};
use crate::providers::{
    Completion, Finish, Message, Prompt, ProviderError, ToolCall, ToolSpec, Usage, estimated_tokens,
};
use crate::schema_rules;
use auth::idempotency::{self, Claim};
use model::{Caller, Code, Error, JsonText, Result, StepId, Timestamp};
use operation::ports::{Charge, Closing, Settlement};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use store::Tx;
use tokio_util::sync::CancellationToken;

/// The fewest tokens of an answer that are worth asking for.
const USEFUL_OUTPUT: i64 = 256;
/// Answers that do not fit the schema and are sent back.
const MOST_REPAIRS: usize = 2;
/// Tool calls with bad arguments that are sent back.
const MOST_BAD_CALLS: usize = 3;
/// The same call this often is a loop.
const LOOP: usize = 3;

/// A run with all that driving it needs.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) caller: Caller,
    pub(super) row: RunRow,
    pub(super) settings: Settings,
    pub(super) turns: Vec<Turn>,
    pub(super) steps: Vec<StepRow>,
    pub(super) start: Option<Start>,
    tools: Vec<(String, ToolSettings)>,
    specs: Vec<ToolSpec>,
}

/// A model step that was begun: written, and its Energy held.
#[derive(Clone)]
pub(super) struct Start {
    messages: Vec<Message>,
    max_output_tokens: i64,
}

/// How a run ends.
pub(super) enum Ending {
    Completed(String),
    Incomplete(&'static str, Option<String>),
    Failed(Code, String),
}

/// What follows a model step.
enum Next {
    Tools(Vec<ToolCall>),
    Repair(String),
    End(Ending),
}

impl Work {
    pub(super) fn new(
        caller: Caller,
        row: RunRow,
        mut settings: Settings,
        tools: Vec<ToolRow>,
        turns: Vec<Turn>,
    ) -> Result<Self> {
        let options = row.options()?;
        if let Some(format) = options.response_format {
            settings.response_format = format;
        }
        settings.max_steps = options.max_steps.unwrap_or(settings.max_steps);
        settings.timeout_seconds = options.timeout_seconds.unwrap_or(settings.timeout_seconds);
        let tools = tools
            .into_iter()
            .map(|tool| Ok((tool.name.clone(), tool.settings()?)))
            .collect::<Result<Vec<(String, ToolSettings)>>>()?;
        let specs = tools
            .iter()
            .map(|(name, tool)| ToolSpec {
                name: name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
            })
            .collect();
        Ok(Self { caller, row, settings, turns, steps: Vec::new(), start: None, tools, specs })
    }

    pub(super) fn format(&self) -> ResponseFormat {
        self.settings.response_format.clone()
    }

    /// Fails the run before it began.
    pub(super) fn fail(&mut self, now: Timestamp, code: Code, message: &str) {
        self.row.status = RunStatus::Failed.as_str().to_owned();
        self.row.error = Some(failure_text(code, message));
        self.row.completed_at = Some(now);
    }

    fn charge(&self) -> Charge {
        Charge {
            caller: self.caller.clone(),
            run: self.row.id.clone(),
            agent: self.row.agent_id,
            operation: "run",
        }
    }

    fn time_left(&self, now: Timestamp) -> Duration {
        let started = self.row.started_at.unwrap_or(self.row.queued_at);
        let end = started.plus_seconds(self.settings.timeout_seconds);
        Duration::from_millis(u64::try_from(end.millis() - now.millis()).unwrap_or(0))
    }

    fn next_position(&self) -> i64 {
        self.steps.last().map_or(1, |step| step.position + 1)
    }

    /// What the model said last.
    fn last_text(&self) -> Option<String> {
        self.steps
            .iter()
            .rev()
            .filter(|step| step.is_model())
            .filter_map(|step| step.output.as_ref()?.parse::<ModelOutput>().ok())
            .map(|said| said.text)
            .find(|text| !text.is_empty())
    }

    /// Counts a step of an earlier worker.
    pub(super) fn count_stored(&mut self, step: &StepRow) {
        if !step.is_model() {
            self.row.tool_calls += 1;
            return;
        }
        if let Some(said) = step.output.as_ref().and_then(|output| output.parse::<ModelOutput>().ok()) {
            self.count_usage(said.usage, step.energy);
        }
    }

    fn count_usage(&mut self, usage: Usage, energy: i64) {
        self.row.input_tokens += usage.input_tokens;
        self.row.cached_tokens += usage.cached_tokens;
        self.row.output_tokens += usage.output_tokens;
        self.row.reasoning_tokens += usage.reasoning_tokens;
        self.row.model_calls += 1;
        if self.row.livemode {
            self.row.energy += energy;
        } else {
            self.row.simulated_energy += energy;
        }
    }
}

impl RunEngine {
    /// Holds Energy for the next model call and writes its step.
    ///
    /// # Errors
    /// `energy_depleted`, `budget_exceeded` where not even a short answer can be paid.
    pub(super) fn begin_step(&self, tx: &mut Tx, work: &mut Work) -> Result<Start> {
        let setup = self.tiers().get(tier_of(&work.row));
        let room = setup.context_tokens() - USEFUL_OUTPUT.min(work.settings.max_output_tokens);
        let input = work.row.input.as_deref().unwrap_or_default();
        let messages = prompt::messages(&work.settings, &work.turns, input, &work.steps, &work.specs, room);
        let input_tokens = estimated_tokens(&messages, &work.specs);
        let fits = (setup.context_tokens() - input_tokens).max(16);
        let mut max_output_tokens = work.settings.max_output_tokens.min(fits);
        if work.row.livemode {
            let price = |output_tokens| {
                setup.prices.energy(Usage { input_tokens, output_tokens, ..Usage::default() })
            };
            let least = price(max_output_tokens.min(USEFUL_OUTPUT));
            let mut wanted = price(max_output_tokens);
            if let Some(limit) = work.settings.energy_limit_per_run {
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
        let now = tx.now();
        let step = StepRow {
            run_id: work.row.id.clone(),
            position: work.next_position(),
            workspace_id: work.row.workspace_id,
            id: StepId::new(now, &*tx.random()),
            kind: "model".to_owned(),
            status: "running".to_owned(),
            name: setup.label(),
            input: Some(JsonText::of(&json!({
                "messages": messages.len(),
                "tools": work.specs.len(),
                "max_output_tokens": max_output_tokens,
            }))),
            output: None,
            effect_key: None,
            input_tokens: 0,
            output_tokens: 0,
            energy: 0,
            started_at: now,
            completed_at: None,
        };
        queries::insert_step(tx, &step)?;
        work.steps.push(step);
        Ok(Start { messages, max_output_tokens })
    }

    /// Runs a transaction that changes `work`, which changes only if the transaction commits.
    pub(super) async fn write_work<T: Send + 'static>(
        &self,
        work: &mut Work,
        change: impl Fn(&Self, &mut Tx, &mut Work) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let engine = self.clone();
        let before = work.clone();
        let written = self.db().write(move |tx| {
            let mut work = before.clone();
            let value = change(&engine, tx, &mut work)?;
            Ok((work, value))
        });
        let (after, value) = written.await?;
        *work = after;
        Ok(value)
    }

    /// Drives a run to its end, and stores the outcome of `claim` with it.
    ///
    /// # Errors
    /// The run's own failure as callers are told it, or `internal_error`.
    pub(super) async fn drive(&self, work: Work, claim: Option<Claim>) -> Result<RunRow> {
        let id = work.row.id.clone();
        let cancel = self.begin_work(&id);
        let result = self.drive_steps(work, claim, &cancel).await;
        self.end_work(&id);
        if let Err(error) = &result
            && error.code() == Code::InternalError
        {
            tracing::error!(run_id = %id, ?error, "a run was left to be resumed");
        }
        result
    }

    async fn drive_steps(
        &self,
        mut work: Work,
        claim: Option<Claim>,
        cancel: &CancellationToken,
    ) -> Result<RunRow> {
        let mut start = match work.start.take() {
            Some(start) => start,
            None => match self.await_turn(&mut work).await? {
                Some(start) => start,
                None => return ended(work.row),
            },
        };
        loop {
            let answer = self.ask(&work, &start, cancel).await;
            let (next, energy) = match answer {
                Ok((completion, label)) => self.take_answer(&mut work, completion, label),
                Err(error) => (Next::End(self.give_up(&work, &error)), 0),
            };
            let calls = match next {
                Next::End(ending) => return self.finish(work, ending, energy, claim).await,
                Next::Repair(correction) => {
                    note_correction(&mut work, correction);
                    Vec::new()
                }
                Next::Tools(calls) => calls,
            };
            let tools = self.settle_step(&mut work, energy, &calls).await?;
            if !tools.is_empty() {
                self.run_tools(&mut work, tools, cancel).await;
            }
            match self.next_step(&mut work).await {
                Ok(next) => start = next,
                Err(error) => match limit_reason(&error) {
                    Some(reason) => {
                        let text = work.last_text();
                        return self.finish(work, Ending::Incomplete(reason, text), 0, claim).await;
                    }
                    None => return Err(error),
                },
            }
        }
    }

    /// Calls the model, keeping the run's lease meanwhile.
    async fn ask(
        &self,
        work: &Work,
        start: &Start,
        cancel: &CancellationToken,
    ) -> std::result::Result<(Completion, String), ProviderError> {
        let patience = work.time_left(self.db().clock().now());
        let prompt = Prompt {
            model: String::new(),
            messages: start.messages.clone(),
            tools: work.specs.clone(),
            output_schema: work.settings.response_format.schema().cloned(),
            max_output_tokens: start.max_output_tokens,
            temperature: work.settings.temperature,
            patience,
            cancel: cancel.clone(),
        };
        let asking = self.tiers().get(tier_of(&work.row)).complete(&prompt);
        let answer = self.keeping_lease(work, cancel, tokio::time::timeout(patience, asking)).await;
        answer.unwrap_or(Err(ProviderError::Timeout))
    }

    async fn keeping_lease<T>(
        &self,
        work: &Work,
        cancel: &CancellationToken,
        future: impl Future<Output = T>,
    ) -> T {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                value = &mut future => return value,
                () = tokio::time::sleep(Duration::from_secs(10)) => {
                    let row = work.row.clone();
                    if let Ok(false) = self.db().write(move |tx| queries::renew(tx, &row)).await {
                        cancel.cancel();
                    }
                }
            }
        }
    }

    /// Reads an answer into the current step and decides what follows. Gives the Energy it cost.
    fn take_answer(&self, work: &mut Work, completion: Completion, label: String) -> (Next, i64) {
        let energy = self.tiers().get(tier_of(&work.row)).prices.energy(completion.usage);
        work.count_usage(completion.usage, energy);
        let livemode = work.row.livemode;
        let position = work.steps.last().map_or(1, |step| step.position);
        let calls = prompt::with_ids(completion.tool_calls, position);
        let text = completion.text;
        if let Some(step) = work.steps.last_mut() {
            step.status = "completed".to_owned();
            step.name = label;
            step.input_tokens = completion.usage.input_tokens;
            step.output_tokens = completion.usage.output_tokens;
            step.energy = if livemode { energy } else { 0 };
            step.output = Some(JsonText::of(&ModelOutput {
                text: text.clone(),
                tool_calls: calls.clone(),
                finish_reason: completion.finish,
                usage: completion.usage,
                correction: None,
            }));
        }
        let next = if calls.is_empty() {
            self.judge(work, text, completion.finish)
        } else {
            judge_calls(work, calls)
        };
        (next, energy)
    }

    /// What follows an answer without tool calls.
    fn judge(&self, work: &Work, text: String, finish: Finish) -> Next {
        if finish == Finish::Length {
            return Next::End(Ending::Incomplete("max_output_tokens", Some(text)));
        }
        let Some(schema) = work.settings.response_format.schema() else {
            return Next::End(Ending::Completed(text));
        };
        let problem = match serde_json::from_str::<Value>(text.trim()) {
            Ok(value) => schema_rules::mismatch(schema, &value),
            Err(error) => Some(format!("it is not JSON: {error}")),
        };
        let Some(problem) = problem else { return Next::End(Ending::Completed(text.trim().to_owned())) };
        let repairs = work
            .steps
            .iter()
            .filter_map(|step| step.output.as_ref()?.parse::<ModelOutput>().ok())
            .filter(|said| said.correction.is_some())
            .count();
        if repairs >= MOST_REPAIRS || work.row.model_calls >= work.settings.max_steps {
            return Next::End(Ending::Incomplete("output_invalid", Some(text)));
        }
        Next::Repair(format!(
            "Your answer does not fit the schema: {problem}. Answer with the corrected JSON only."
        ))
    }

    fn give_up(&self, work: &Work, error: &ProviderError) -> Ending {
        match error {
            ProviderError::Timeout => match work.last_text() {
                Some(text) => Ending::Incomplete("timeout", Some(text)),
                None => Ending::Failed(Code::AgentTimeout, "The model took too long.".to_owned()),
            },
            ProviderError::Refused(_) => {
                Ending::Failed(Code::AgentFailed, "The model refused the prompt.".to_owned())
            }
            ProviderError::Unavailable(_) => {
                Ending::Failed(Code::ModelUnavailable, "No model is available at the moment.".to_owned())
            }
            // Whoever cancelled the run has written its end; finishing will find that.
            ProviderError::Cancelled => Ending::Incomplete("interrupted", work.last_text()),
        }
    }

    /// Debits a finished model step, and writes the tool calls that it asks for before they are made.
    async fn settle_step(&self, work: &mut Work, energy: i64, calls: &[ToolCall]) -> Result<Vec<StepRow>> {
        let calls = calls.to_vec();
        let tools = self
            .write_work(work, move |engine, tx, work| engine.settle_step_in(tx, work, energy, &calls))
            .await?;
        self.0.parts.spending.forget(&work.caller.key.lineage);
        Ok(tools)
    }

    fn settle_step_in(
        &self,
        tx: &mut Tx,
        work: &mut Work,
        energy: i64,
        calls: &[ToolCall],
    ) -> Result<Vec<StepRow>> {
        if !queries::renew(tx, &work.row)? {
            return Err(superseded());
        }
        let now = tx.now();
        self.close_step(tx, work, energy, None)?;
        let mut tools = Vec::new();
        for call in calls {
            let arguments = arguments_of(call);
            let step = StepRow {
                run_id: work.row.id.clone(),
                position: work.next_position() + i64::try_from(tools.len()).unwrap_or(0),
                workspace_id: work.row.workspace_id,
                id: StepId::new(now, &*tx.random()),
                kind: "tool".to_owned(),
                status: "running".to_owned(),
                name: call.name.clone(),
                input: Some(JsonText::of(&ToolInput {
                    call_id: call.id.clone(),
                    arguments: arguments.clone(),
                })),
                output: None,
                effect_key: Some(effect_key(work, &call.name, &arguments)),
                input_tokens: 0,
                output_tokens: 0,
                energy: 0,
                started_at: now,
                completed_at: None,
            };
            queries::insert_step(tx, &step)?;
            tools.push(step);
        }
        work.row.tool_calls += i64::try_from(calls.len()).unwrap_or(0);
        Ok(tools)
    }

    /// Writes the current model step's result and its price.
    fn close_step(
        &self,
        tx: &mut Tx,
        work: &mut Work,
        energy: i64,
        close: Option<Closing<'_>>,
    ) -> Result<()> {
        let now = tx.now();
        let charge = work.charge();
        let livemode = work.row.livemode;
        let Some(step) = work.steps.last_mut() else { return Ok(()) };
        if step.is_model() && step.completed_at.is_none() {
            step.completed_at = Some(now);
            if step.status == "running" {
                step.status = "failed".to_owned();
            }
            queries::finish_step(tx, step)?;
        }
        if livemode {
            let model = work.row.model.as_str();
            let settlement = Settlement { step: step.position, energy, model, close };
            self.0.parts.meter.settle(tx, &charge, &settlement)?;
        }
        Ok(())
    }

    /// Calls tools: those that read together, those that write one after the other.
    async fn run_tools(&self, work: &mut Work, tools: Vec<StepRow>, cancel: &CancellationToken) {
        let mut done: Vec<StepRow> = Vec::with_capacity(tools.len());
        let mut reading = Vec::new();
        for step in tools {
            let settings =
                work.tools.iter().find(|(name, _)| *name == step.name).map(|(_, tool)| tool.clone());
            let writes = settings.as_ref().is_some_and(http_tool::writes);
            let earlier: Vec<StepRow> = work.steps.iter().chain(&done).cloned().collect();
            let call = self.call_tool(work.clone(), step, settings, earlier);
            if writes {
                done.push(self.keeping_lease(work, cancel, call).await);
            } else {
                reading.push(call);
            }
        }
        done.extend(self.keeping_lease(work, cancel, futures::future::join_all(reading)).await);
        done.sort_by_key(|step| step.position);
        work.steps.extend(done);
    }

    async fn call_tool(
        &self,
        work: Work,
        mut step: StepRow,
        tool: Option<ToolSettings>,
        earlier: Vec<StepRow>,
    ) -> StepRow {
        let output = match self.check_call(&step, tool.as_ref(), &earlier) {
            Checked::Answer(output) => output,
            Checked::Call(tool, arguments) if !work.row.livemode && http_tool::writes(&tool) => {
                let _ = arguments;
                http_tool::simulated(&tool)
            }
            Checked::Call(tool, arguments) => {
                let left = work.time_left(self.db().clock().now());
                let own = Duration::from_secs(u64::try_from(tool.timeout_seconds).unwrap_or(15));
                match self.tool_headers(&work, &step.name, &tool) {
                    Ok(headers) => {
                        let key = step.effect_key.clone().unwrap_or_default();
                        let connector = &self.0.parts.connector;
                        http_tool::call(connector, &tool, headers, &arguments, left.min(own), &key).await
                    }
                    Err(error) => {
                        tracing::error!(run_id = %work.row.id, ?error, "a tool's credentials do not open");
                        ToolOutput::error("the tool's credentials cannot be used")
                    }
                }
            }
        };
        step.status = if output.ok { "completed" } else { "failed" }.to_owned();
        step.output = Some(JsonText::of(&output));
        step
    }

    fn tool_headers(&self, work: &Work, name: &str, tool: &ToolSettings) -> Result<BTreeMap<String, String>> {
        let Some(sealed) = &tool.sealed_headers else { return Ok(BTreeMap::new()) };
        let text = self.0.parts.seal.open(&header_place(work.row.workspace_id, name), sealed)?;
        Ok(serde_json::from_str(&text)?)
    }

    fn check_call(&self, step: &StepRow, tool: Option<&ToolSettings>, earlier: &[StepRow]) -> Checked {
        let Some(tool) = tool else {
            return Checked::Answer(ToolOutput::error(format!("there is no tool called `{}`", step.name)));
        };
        let arguments = step
            .input
            .as_ref()
            .and_then(|input| input.parse::<ToolInput>().ok())
            .map(|input| input.arguments);
        let Some(Value::Object(arguments)) = arguments else {
            return Checked::Answer(ToolOutput::error("the arguments are not a JSON object"));
        };
        if let Some(problem) = schema_rules::mismatch(&tool.parameters, &Value::Object(arguments.clone())) {
            return Checked::Answer(ToolOutput::error(format!("the arguments do not fit: {problem}")));
        }
        let calls = earlier.iter().filter(|other| !other.is_model() && other.name == step.name).count();
        if i64::try_from(calls).unwrap_or(i64::MAX) >= tool.max_calls_per_run {
            let limit = tool.max_calls_per_run;
            return Checked::Answer(ToolOutput::error(format!(
                "the tool may be called {limit} times in a run"
            )));
        }
        let same =
            earlier.iter().find(|other| other.effect_key.is_some() && other.effect_key == step.effect_key);
        if let Some(first) = same.and_then(|same| same.output.as_ref()).filter(|_| http_tool::writes(tool)) {
            let mut output: ToolOutput =
                first.parse().unwrap_or_else(|_| ToolOutput::error("the first call's outcome is unknown"));
            output.result = json!({ "note": "The same call was made before; this is its result.", "first": output.result });
            return Checked::Answer(output);
        }
        Checked::Call(Box::new(tool.clone()), arguments)
    }

    /// Writes what the tools brought and begins the next model step.
    async fn next_step(&self, work: &mut Work) -> Result<Start> {
        let begun = self.write_work(work, |engine, tx, work| engine.next_step_in(tx, work)).await?;
        begun.map_err(|(code, message)| Error::new(code, message))
    }

    /// What the tools brought is written even where the next step cannot be paid.
    fn next_step_in(
        &self,
        tx: &mut Tx,
        work: &mut Work,
    ) -> Result<std::result::Result<Start, (Code, String)>> {
        if !queries::renew(tx, &work.row)? {
            return Err(superseded());
        }
        let now = tx.now();
        for step in work.steps.iter_mut().filter(|step| step.completed_at.is_none()) {
            step.completed_at = Some(now);
            queries::finish_step(tx, step)?;
        }
        match self.begin_step(tx, work) {
            Ok(start) => Ok(Ok(start)),
            Err(error) if limit_reason(&error).is_some() => {
                Ok(Err((error.code(), error.message().to_owned())))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the end of a run: the last step, the price, the run, its event and the claim's outcome.
    pub(super) async fn finish(
        &self,
        work: Work,
        ending: Ending,
        energy: i64,
        claim: Option<Claim>,
    ) -> Result<RunRow> {
        let engine = self.clone();
        let lineage = work.caller.key.lineage.clone();
        let ending = std::sync::Arc::new(ending);
        let row = self
            .db()
            .write(move |tx| {
                let mut work = work.clone();
                engine.finish_in(tx, &mut work, &ending, energy, claim.as_ref())?;
                Ok(work.row)
            })
            .await?;
        self.0.parts.spending.forget(&lineage);
        ended(row)
    }

    fn finish_in(
        &self,
        tx: &mut Tx,
        work: &mut Work,
        ending: &Ending,
        energy: i64,
        claim: Option<&Claim>,
    ) -> Result<()> {
        let now = tx.now();
        let row = &mut work.row;
        row.completed_at = Some(now);
        let (status, refund) = match ending {
            Ending::Completed(text) => {
                row.output = Some(text.clone());
                (RunStatus::Completed, false)
            }
            Ending::Incomplete(reason, text) => {
                row.output.clone_from(text);
                row.incomplete_reason = Some((*reason).to_owned());
                (RunStatus::Incomplete, false)
            }
            Ending::Failed(code, message) => {
                row.error = Some(failure_text(*code, message));
                row.energy = 0;
                (RunStatus::Failed, true)
            }
        };
        row.status = status.as_str().to_owned();
        if queries::finish(tx, row)? {
            emit_end(tx, row)?;
        } else {
            // Somebody cancelled the run, which stays so; or took it over, and then nothing here counts.
            let stored = queries::by_id(tx, row.workspace_id, &row.id)?;
            if stored.epoch != row.epoch {
                return Err(superseded());
            }
            queries::note_usage(tx, row)?;
            work.row = RunRow { energy: row.energy, ..stored };
        }
        let status = work.row.status.clone();
        self.close_step(tx, work, energy, Some(Closing { status: &status, refund }))?;
        if !work.row.livemode {
            record_test_execution(tx, &work.charge(), &work.row)?;
        }
        if let Some(claim) = claim.filter(|_| !refund) {
            let reply = answer::reply(work.row.clone(), &work.format(), false)?;
            idempotency::finish(tx, claim, reply.status, &reply.body)?;
        }
        Ok(())
    }
}

enum Checked {
    /// The call is not made; the model is told this.
    Answer(ToolOutput),
    Call(Box<ToolSettings>, serde_json::Map<String, Value>),
}

/// What follows an answer that asks for tools.
fn judge_calls(work: &Work, calls: Vec<ToolCall>) -> Next {
    let count = i64::try_from(calls.len()).unwrap_or(i64::MAX);
    let stop = |reason| Next::End(Ending::Incomplete(reason, work.last_text()));
    if work.row.tool_calls.saturating_add(count) > work.settings.max_tool_calls {
        return stop("max_tool_calls");
    }
    if work.row.model_calls >= work.settings.max_steps {
        return stop("max_steps");
    }
    let tools = || work.steps.iter().filter(|step| !step.is_model());
    let bad = tools().filter(|step| {
        step.output.as_ref().and_then(|output| output.parse::<ToolOutput>().ok()).is_some_and(|output| {
            !output.ok && output.result.as_str().is_some_and(|text| text.starts_with("the arguments"))
        })
    });
    let repeated = calls.iter().any(|call| {
        let arguments = arguments_of(call);
        let key = effect_key(work, &call.name, &arguments);
        tools().filter(|step| step.effect_key.as_deref() == Some(&key)).count() >= LOOP
    });
    if repeated || bad.count() >= MOST_BAD_CALLS {
        return stop("loop_detected");
    }
    Next::Tools(calls)
}

/// The arguments as JSON; as text where they are none.
fn arguments_of(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into())
}

fn note_correction(work: &mut Work, correction: String) {
    if let Some(step) = work.steps.last_mut()
        && let Some(mut said) = step.output.as_ref().and_then(|output| output.parse::<ModelOutput>().ok())
    {
        said.correction = Some(correction);
        step.output = Some(JsonText::of(&said));
    }
}

/// Names an effect: the same tool with the same arguments in the same run, however the model spelt them.
fn effect_key(work: &Work, tool: &str, arguments: &Value) -> String {
    let canonical =
        serde_json::to_string(&(work.row.id.as_str(), tool, sorted(arguments))).unwrap_or_default();
    let digest = ring::digest::digest(&ring::digest::SHA256, canonical.as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<&String, Value> =
                fields.iter().map(|(name, value)| (name, sorted(value))).collect();
            json!(ordered)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
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

/// The run, or for a failed one the error that its caller is told.
pub(super) fn ended(row: RunRow) -> Result<RunRow> {
    if row.status()? != RunStatus::Failed {
        return Ok(row);
    }
    let failure = row.failure();
    let code =
        failure.as_ref().and_then(|failure| Code::ALL.iter().find(|code| code.as_str() == failure.code));
    let message = failure.as_ref().map_or("The agent failed.", |failure| failure.message.as_str());
    Err(Error::new(code.copied().unwrap_or(Code::AgentFailed), message).with("run_id", row.id.as_str()))
}
