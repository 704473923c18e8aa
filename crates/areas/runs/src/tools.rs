//! Execution of the tool calls that the model asks for.

use super::engine::RunEngine;
use super::guard::GuardFinding;
use super::local_call::CallPlace;
use super::prompt_variables::text as as_text;
use super::rows::{StepRow, StepStatus, ToolOutput};
use super::work::{PlannedTool, Work};
use super::{call_key, http_tool, local_tool, queries, spans};
use agents::header_place;
use model::{Code, Error, JsonText, Result};
use operation::http_span;
use ports::with_variables;
use providers::json::{self, Fields};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

enum Checked<'a> {
    /// The call is not made; this is its result.
    Answer(ToolOutput),
    Call(&'a PlannedTool, JsonText),
}

/// What became of calls.
pub(super) struct Called {
    /// Those that have a result, in order.
    pub(super) done: Vec<StepRow>,
    /// Those that were not made, because a person must be asked first.
    pub(super) held_back: Vec<StepRow>,
    /// What guardrails found in the results.
    pub(super) found: Vec<GuardFinding>,
}

impl RunEngine {
    /// Calls tools: those that read together, those that write one after the other, and none that a person must allow
    /// first.
    pub(super) async fn run_tools(&self, work: &Arc<Work>, steps: Vec<StepRow>) -> Called {
        let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let last = names.len().saturating_sub(1);
        let mut found = Vec::new();
        let mut done: Vec<StepRow> = Vec::with_capacity(steps.len());
        let (mut held_back, mut reading) = (Vec::new(), Vec::new());
        for (place, mut step) in steps.into_iter().enumerate() {
            let tool = work.plan.tool_of(&step.name);
            let in_batch = names.iter().take(place).filter(|name| work.plan.tool_of(name) == tool).count();
            let checked = check_call(work, &step, in_batch, &done);
            match checked {
                Checked::Answer(output) => {
                    step = finished(step, &output);
                    found.extend(work.plan.guards.look_at_result(&mut step));
                    done.push(step);
                }
                Checked::Call(tool, _) if step.status == StepStatus::RequiresAction => {
                    hold_back(step, tool, &mut held_back);
                }
                Checked::Call(tool, arguments) if tool.writes() => {
                    let output = if work.working.cancel.is_cancelled() {
                        ToolOutput::error("the run was stopped before the call")
                    } else if work.row.livemode {
                        self.keeping_lease(work, self.call_tool(work, &step, tool, arguments)).await
                    } else {
                        simulated(tool)
                    };
                    step = finished(step, &output);
                    found.extend(work.plan.guards.look_at_result(&mut step));
                    if place < last {
                        self.keep_result(work, &step).await;
                    }
                    done.push(step);
                }
                Checked::Call(tool, arguments) => reading.push(async move {
                    let output = self.call_tool(work, &step, tool, arguments).await;
                    finished(step, &output)
                }),
            }
        }
        for mut step in self.keeping_lease(work, futures::future::join_all(reading)).await {
            found.extend(work.plan.guards.look_at_result(&mut step));
            done.push(step);
        }
        done.sort_by_key(|step| step.position);
        Called { done, held_back, found }
    }

    /// Writes what a call has brought before others are made: of what was done to the outside a crash must not leave the
    /// outcome unknown. Where it cannot be written, it is with what follows.
    async fn keep_result(&self, work: &Arc<Work>, step: &StepRow) {
        let step = step.clone();
        let written = self.write_with(work, move |_, tx, work| {
            if queries::renew(tx, &work.row)? {
                let now = tx.now();
                queries::finish_step(tx, &step, step.status, now)?;
            }
            Ok(())
        });
        if let Err(error) = written.await {
            tracing::warn!(run_id = %work.row.id, ?error, "the result of a call was not written at once");
        }
    }

    async fn call_tool(
        &self,
        work: &Work,
        step: &StepRow,
        tool: &PlannedTool,
        arguments: JsonText,
    ) -> ToolOutput {
        let left = work.time_left(self.db().clock().now());
        let own = Duration::from_secs(u64::try_from(tool.settings().timeout_seconds).unwrap_or(15));
        let patience = left.min(own);
        let call = spans::tool(self.tracer(), work, tool);
        if let Some(function) = tool.callable.function {
            let place = CallPlace { work, step, tool, trace: call.trace() };
            return self.call_function(&place, function, &arguments, patience).await;
        }
        let Some(http) = &tool.settings().http else {
            return ToolOutput::error("the tool has no HTTP request");
        };
        let fixed = match work.plan.placeholders.filled(&tool.settings().fixed_arguments) {
            Ok(fixed) => fixed,
            Err(error) => return ToolOutput::error(error.message()),
        };
        let headers = match self.tool_headers(work, tool).await {
            Ok(headers) => headers,
            Err(error) if error.code() == Code::InvalidState => return ToolOutput::error(error.message()),
            Err(error) => {
                tracing::error!(run_id = %work.row.id, ?error, "a tool's credentials do not open");
                return ToolOutput::error("the tool's credentials cannot be used");
            }
        };
        let Headers { mut values, secrets } = headers;
        let mut sent = http_span(self.tracer(), call.trace(), http.method.as_str(), &http.url);
        let names_trace = values.keys().any(|name| name.eq_ignore_ascii_case("traceparent"));
        if !names_trace {
            values.extend(sent.trace().headers());
        }
        // Of calls that may be repeated each is an effect of its own.
        let of_step = tool.settings().repeatable.then(|| step.id.as_str());
        let key = of_step.or(step.effect_key.as_deref()).unwrap_or_default();
        let connector = &self.0.parts.connector;
        let mut arguments = Fields::of(&arguments).unwrap_or_default();
        for (name, value) in fixed {
            arguments.set(name, JsonText::of(&value));
        }
        let output = http_tool::call(connector, http, values, arguments, patience, key, &mut sent).await;
        redacted(output, &secrets)
    }

    /// The headers of an `http` tool, with the values of the variables that they refer to.
    ///
    /// # Errors
    /// `invalid_state` for a variable that has no value.
    async fn tool_headers(&self, work: &Work, tool: &PlannedTool) -> Result<Headers> {
        let settings = tool.settings();
        let Some(sealed) = &settings.sealed_headers else { return Ok(Headers::default()) };
        let workspace = work.row.workspace_id;
        let text = self.0.parts.seal.open(&header_place(workspace, &tool.callable.tool), sealed)?;
        let mut headers =
            Headers { values: serde_json::from_str(&text).map_err(Error::internal)?, secrets: vec![] };
        if settings.header_variables.is_empty() {
            return Ok(headers);
        }
        let (variables, keys) = (self.variables().clone(), settings.header_variables.clone());
        let env = work.plan.caller.key.env;
        let known = self.db().read(move |read| {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            variables.values(read, workspace, env, &keys)
        });
        let known = known.await?;
        if let Some(key) = settings.header_variables.iter().find(|key| !known.contains_key(*key)) {
            let message = format!("the variable `{key}`, which a header of the tool needs, has no value");
            return Err(Error::new(Code::InvalidState, message));
        }
        for value in headers.values.values_mut() {
            *value = with_variables(value, |key| known.get(key).map(|known| as_text(&known.value)));
        }
        let secrets = known.values().filter(|known| known.is_secret).map(|known| as_text(&known.value));
        headers.secrets = secrets.collect();
        Ok(headers)
    }
}

/// What a call sends to be recognized.
#[derive(Default)]
struct Headers {
    values: BTreeMap<String, String>,
    /// The secrets of the workspace in them.
    secrets: Vec<String>,
}

/// The shortest secret that is looked for in results: shorter ones stand in any text.
const SHORTEST_SECRET: usize = 4;

/// A result without the secrets that the call sent: some servers repeat the headers that they received.
fn redacted(output: ToolOutput, secrets: &[String]) -> ToolOutput {
    let secrets: Vec<&String> = secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET).collect();
    if secrets.is_empty() {
        return output;
    }
    let result = json::exact(&output.result);
    let clean = without(result.clone(), &secrets);
    if clean == result { output } else { ToolOutput::new(output.ok, &clean) }
}

fn without(value: Value, secrets: &[&String]) -> Value {
    match value {
        Value::String(text) => {
            Value::String(secrets.iter().fold(text, |text, secret| text.replace(*secret, "[secret]")))
        }
        Value::Array(values) => values.into_iter().map(|value| without(value, secrets)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, without(value, secrets))).collect())
        }
        other => other,
    }
}

/// What a call that changes something answers under a test key: nothing is done.
fn simulated(tool: &PlannedTool) -> ToolOutput {
    match tool.callable.function {
        Some(function) => local_tool::simulated(function),
        None => http_tool::simulated(tool.settings()),
    }
}

/// Keeps a call for a person to decide. Of equal calls that write one is asked about: the others get its result.
fn hold_back(mut step: StepRow, tool: &PlannedTool, held_back: &mut Vec<StepRow>) {
    let is_equal = |other: &StepRow| other.effect_key.is_some() && other.effect_key == step.effect_key;
    if tool.writes() && held_back.iter().any(is_equal) {
        step.status = StepStatus::Approved;
    }
    held_back.push(step);
}

fn finished(mut step: StepRow, output: &ToolOutput) -> StepRow {
    if step.status != StepStatus::Refused {
        step.status = if output.ok { StepStatus::Completed } else { StepStatus::Failed };
    }
    step.output = Some(JsonText::of(output));
    step
}

/// What to do about a call: `in_batch` calls of the same tool come before it in the same answer, and `done` are those
/// of them that have ended.
fn check_call<'a>(work: &'a Work, step: &StepRow, in_batch: usize, done: &[StepRow]) -> Checked<'a> {
    let Some(tool) = work.plan.tool(&step.name) else {
        return Checked::Answer(ToolOutput::error(format!("there is no tool called `{}`", step.name)));
    };
    let input = step.tool_input();
    if step.status == StepStatus::Refused {
        return Checked::Answer(refused(input.and_then(|input| input.approval?.note)));
    }
    let arguments = input.map(|input| input.arguments);
    if arguments.as_ref() == Some(&call_key::withheld()) {
        return Checked::Answer(ToolOutput::error("the call was withheld by a guardrail"));
    }
    let Some(arguments) = arguments.as_ref().filter(|arguments| json::is_object(arguments)) else {
        return Checked::Answer(no_object(arguments.as_ref()));
    };
    if let Some(problem) = tool.arguments.mismatch(&json::parsed(arguments)) {
        return Checked::Answer(ToolOutput::bad_arguments(format_args!("do not fit: {problem}")));
    }
    if tool.writes() && !tool.settings().repeatable {
        let mut earlier = work.earlier.iter().chain(&work.steps).chain(done);
        let same = earlier.find(|other| {
            other.effect_key.is_some()
                && other.effect_key == step.effect_key
                && other.status != StepStatus::Cancelled
        });
        if let Some(first) = same {
            return Checked::Answer(repeated(first));
        }
    }
    let limit = tool.settings().max_calls_per_run;
    let is_same_tool =
        |other: &&StepRow| other.is_tool() && work.plan.tool_of(&other.name) == tool.callable.tool;
    let before = work.steps.iter().filter(is_same_tool).count();
    // What a person allowed was within the limit when it was asked; others of the same answer may have ended since.
    if step.status != StepStatus::Approved && i64::try_from(before + in_batch).unwrap_or(i64::MAX) >= limit {
        return Checked::Answer(ToolOutput::error(format!("the tool may be called {limit} times in a run")));
    }
    Checked::Call(tool, arguments.clone())
}

/// The longest part of wrong arguments that the model is shown.
const LONGEST_QUOTE: usize = 500;

/// The answer to a call whose arguments are no JSON object. It quotes them, because the prompt does not repeat them.
fn no_object(arguments: Option<&JsonText>) -> ToolOutput {
    let text = arguments.map(json::plain).unwrap_or_default();
    if text.trim().is_empty() {
        return ToolOutput::bad_arguments(
            "are not a JSON object: the answer ended before them. The call was not made",
        );
    }
    let why = match serde_json::from_str::<Value>(&text) {
        Err(error) if error.is_eof() => "are not a JSON object: the answer ended within them",
        _ => "are not a JSON object",
    };
    let quote: String = text.chars().take(LONGEST_QUOTE).collect();
    ToolOutput::bad_arguments(format_args!("{why}. The call was not made. They were: {quote}"))
}

/// The answer to a call that a person refused.
fn refused(note: Option<String>) -> ToolOutput {
    let refusal = "a person refused this call";
    ToolOutput::error(note.map_or_else(|| refusal.to_owned(), |note| format!("{refusal} and said: {note}")))
}

/// The answer to a writing call that was made before, whose effect must not happen twice.
fn repeated(first: &StepRow) -> ToolOutput {
    let unknown = || ToolOutput::error("the first call's outcome is unknown");
    let output = first.output.as_ref().and_then(|output| output.parse::<ToolOutput>().ok());
    let output = output.unwrap_or_else(unknown);
    #[derive(Serialize)]
    struct Repeated {
        note: &'static str,
        first: JsonText,
    }
    let note = "The same call was made before; this is its result.";
    ToolOutput::new(output.ok, &Repeated { note, first: output.result })
}
