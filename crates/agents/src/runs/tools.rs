//! Execution of the tool calls that the model asks for.

use super::engine::RunEngine;
use super::guard::GuardFinding;
use super::rows::{StepRow, StepStatus, ToolOutput};
use super::work::{PlannedTool, Work};
use super::{call_key, http_tool, queries, spans};
use crate::agents::{ToolApproval, ToolSettings, header_place};
use model::{Error, JsonText, Result};
use operation::http_span;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

enum Checked<'a> {
    /// The call is not made; this is its result.
    Answer(ToolOutput),
    Call(&'a PlannedTool, Map<String, Value>),
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

/// Whether a person must allow calls of a tool.
pub(super) fn needs_approval(tool: &ToolSettings) -> bool {
    match tool.approval {
        ToolApproval::Never => false,
        ToolApproval::Always => true,
        ToolApproval::OnWrite => http_tool::writes(tool),
    }
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
            let in_batch = names.iter().take(place).filter(|name| **name == step.name).count();
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
                Checked::Call(tool, arguments) if http_tool::writes(&tool.settings) => {
                    let output = if work.working.cancel.is_cancelled() {
                        ToolOutput::error("the run was stopped before the call")
                    } else if work.row.livemode {
                        self.keeping_lease(work, self.call_tool(work, &step, tool, arguments)).await
                    } else {
                        http_tool::simulated(&tool.settings)
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
        arguments: Map<String, Value>,
    ) -> ToolOutput {
        let left = work.time_left(self.db().clock().now());
        let own = Duration::from_secs(u64::try_from(tool.settings.timeout_seconds).unwrap_or(15));
        match self.tool_headers(work, tool) {
            Ok(mut headers) => {
                let call = spans::tool(self.tracer(), work, tool);
                let http = &tool.settings.http;
                let mut sent = http_span(self.tracer(), call.trace(), http.method.as_str(), &http.url);
                let names_trace = headers.keys().any(|name| name.eq_ignore_ascii_case("traceparent"));
                if !names_trace {
                    headers.extend(sent.trace().headers());
                }
                // Of calls that may be repeated each is an effect of its own.
                let of_step = tool.settings.repeatable.then(|| step.id.as_str());
                let key = of_step.or(step.effect_key.as_deref()).unwrap_or_default();
                let connector = &self.0.parts.connector;
                let patience = left.min(own);
                http_tool::call(connector, &tool.settings, headers, arguments, patience, key, &mut sent).await
            }
            Err(error) => {
                tracing::error!(run_id = %work.row.id, ?error, "a tool's credentials do not open");
                ToolOutput::error("the tool's credentials cannot be used")
            }
        }
    }

    fn tool_headers(&self, work: &Work, tool: &PlannedTool) -> Result<BTreeMap<String, String>> {
        let Some(sealed) = &tool.settings.sealed_headers else { return Ok(BTreeMap::new()) };
        let text = self.0.parts.seal.open(&header_place(work.row.workspace_id, &tool.name), sealed)?;
        serde_json::from_str(&text).map_err(Error::internal)
    }
}

/// Keeps a call for a person to decide. Of equal calls that write one is asked about: the others get its result.
fn hold_back(mut step: StepRow, tool: &PlannedTool, held_back: &mut Vec<StepRow>) {
    let is_equal = |other: &StepRow| other.effect_key.is_some() && other.effect_key == step.effect_key;
    if http_tool::writes(&tool.settings) && held_back.iter().any(is_equal) {
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
    let Some(arguments) = arguments.filter(Value::is_object) else {
        return Checked::Answer(ToolOutput::bad_arguments("are not a JSON object"));
    };
    if let Some(problem) = tool.arguments.mismatch(&arguments) {
        return Checked::Answer(ToolOutput::bad_arguments(format_args!("do not fit: {problem}")));
    }
    if http_tool::writes(&tool.settings) && !tool.settings.repeatable {
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
    let limit = tool.settings.max_calls_per_run;
    let before = work.steps.iter().filter(|other| other.is_tool() && other.name == step.name).count();
    // What a person allowed was within the limit when it was asked; others of the same answer may have ended since.
    if step.status != StepStatus::Approved && i64::try_from(before + in_batch).unwrap_or(i64::MAX) >= limit {
        return Checked::Answer(ToolOutput::error(format!("the tool may be called {limit} times in a run")));
    }
    match arguments {
        Value::Object(arguments) => Checked::Call(tool, arguments),
        _ => Checked::Answer(ToolOutput::bad_arguments("are not a JSON object")),
    }
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
    let note = "The same call was made before; this is its result.";
    ToolOutput { ok: output.ok, result: json!({ "note": note, "first": output.result }) }
}
