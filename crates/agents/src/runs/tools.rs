//! Calling the tools that the model asks for.

use super::engine::RunEngine;
use super::http_tool;
use super::trace::{StepRow, ToolInput, ToolOutput};
use super::work::{PlannedTool, Work};
use crate::agents::header_place;
use model::{JsonText, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

enum Checked<'a> {
    /// The call is not made; the model is told this.
    Answer(ToolOutput),
    Call(&'a PlannedTool, Map<String, Value>),
}

impl RunEngine {
    /// Calls tools: those that read together, those that write one after the other. Gives the steps with their
    /// results, in order.
    pub(super) async fn run_tools(&self, work: &Arc<Work>, steps: Vec<StepRow>) -> Vec<StepRow> {
        let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let mut done: Vec<StepRow> = Vec::with_capacity(steps.len());
        let mut reading = Vec::new();
        for (place, mut step) in steps.into_iter().enumerate() {
            let in_batch = names.iter().take(place).filter(|name| **name == step.name).count();
            let checked = check_call(work, &step, in_batch, &done);
            match checked {
                Checked::Answer(output) => done.push(finished(step, &output)),
                Checked::Call(tool, arguments) if http_tool::writes(&tool.settings) => {
                    let output = if work.working.cancel.is_cancelled() {
                        ToolOutput::error("the run was stopped before the call")
                    } else if work.row.livemode {
                        self.keeping_lease(work, self.call_tool(work, &step, tool, arguments)).await
                    } else {
                        http_tool::simulated(&tool.settings)
                    };
                    step = finished(step, &output);
                    done.push(step);
                }
                Checked::Call(tool, arguments) => reading.push(async move {
                    let output = self.call_tool(work, &step, tool, arguments).await;
                    finished(step, &output)
                }),
            }
        }
        done.extend(self.keeping_lease(work, futures::future::join_all(reading)).await);
        done.sort_by_key(|step| step.position);
        done
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
            Ok(headers) => {
                let key = step.effect_key.as_deref().unwrap_or_default();
                let connector = &self.0.parts.connector;
                http_tool::call(connector, &tool.settings, headers, arguments, left.min(own), key).await
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
        Ok(serde_json::from_str(&text)?)
    }
}

fn finished(mut step: StepRow, output: &ToolOutput) -> StepRow {
    step.status = if output.ok { "completed" } else { "failed" }.to_owned();
    step.output = Some(JsonText::of(output));
    step
}

/// What to do about a call: `in_batch` calls of the same tool come before it in the same answer, and `done` are those
/// of them that have ended.
fn check_call<'a>(work: &'a Work, step: &StepRow, in_batch: usize, done: &[StepRow]) -> Checked<'a> {
    let Some(tool) = work.plan.tool(&step.name) else {
        return Checked::Answer(ToolOutput::error(format!("there is no tool called `{}`", step.name)));
    };
    let input = step.input.as_ref().and_then(|input| input.parse::<ToolInput>().ok());
    let arguments = input.map(|input| input.arguments);
    let Some(arguments) = arguments.filter(Value::is_object) else {
        return Checked::Answer(ToolOutput::bad_arguments("are not a JSON object"));
    };
    if let Some(problem) = tool.arguments.mismatch(&arguments) {
        return Checked::Answer(ToolOutput::bad_arguments(format_args!("do not fit: {problem}")));
    }
    if http_tool::writes(&tool.settings) {
        let mut earlier = work.earlier.iter().chain(&work.steps).chain(done);
        let same = earlier.find(|other| other.effect_key.is_some() && other.effect_key == step.effect_key);
        if let Some(first) = same {
            return Checked::Answer(repeated(first));
        }
    }
    let limit = tool.settings.max_calls_per_run;
    let before = work.steps.iter().filter(|other| other.is_tool() && other.name == step.name).count();
    if i64::try_from(before + in_batch).unwrap_or(i64::MAX) >= limit {
        return Checked::Answer(ToolOutput::error(format!("the tool may be called {limit} times in a run")));
    }
    match arguments {
        Value::Object(arguments) => Checked::Call(tool, arguments),
        _ => Checked::Answer(ToolOutput::bad_arguments("are not a JSON object")),
    }
}

/// The answer to a writing call that was made before, whose effect must not happen twice.
fn repeated(first: &StepRow) -> ToolOutput {
    let unknown = || ToolOutput::error("the first call's outcome is unknown");
    let output = first.output.as_ref().and_then(|output| output.parse::<ToolOutput>().ok());
    let output = output.unwrap_or_else(unknown);
    let note = "The same call was made before; this is its result.";
    ToolOutput { ok: output.ok, result: json!({ "note": note, "first": output.result }) }
}
