//! Execution of the tool calls that the model asks for.

use super::check::{CallCheck, check_call};
use super::function;
use super::headers::{Headers, redacted};
use super::operation_call::CallContext;
use crate::engine::RunEngine;
use crate::execution::{Execution, PlannedTool};
use crate::guardrails::GuardrailFinding;
use crate::queries::{runs, steps};
use crate::run::{StepRow, StepStatus, ToolOutput};
use crate::spans;
use agents::call_http;
use model::{Code, JsonText};
use operation::http_span;
use providers::json::Fields;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Results of the tool calls of one answer.
pub(crate) struct ToolResults {
    /// The calls with a result, in order.
    pub(crate) done: Vec<StepRow>,
    /// The calls that wait for an approval.
    pub(crate) held_back: Vec<StepRow>,
    /// Findings of guardrails in the results.
    pub(crate) found: Vec<GuardrailFinding>,
}

impl RunEngine {
    /// Calls tools: those that read together, those that write one after the other, and none that a person must allow
    /// first.
    pub(crate) async fn run_tools(&self, execution: &Arc<Execution>, steps: Vec<StepRow>) -> ToolResults {
        let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let last = names.len().saturating_sub(1);
        let mut found = Vec::new();
        let mut done: Vec<StepRow> = Vec::with_capacity(steps.len());
        let (mut held_back, mut reading) = (Vec::new(), Vec::new());
        for (place, mut step) in steps.into_iter().enumerate() {
            let tool = execution.plan.tool_of(&step.name);
            let in_batch =
                names.iter().take(place).filter(|name| execution.plan.tool_of(name) == tool).count();
            if step.status == StepStatus::Unknown {
                let output = ToolOutput::unknown("the service was interrupted during the call");
                let output = self.keeping_lease(execution, self.verified(execution, &step, output)).await;
                step = finished(step, &output);
                found.extend(self.inspect_result(execution, &mut step).await);
                done.push(step);
                continue;
            }
            let checked = check_call(execution, &step, in_batch, &done);
            match checked {
                CallCheck::Answer(output) => {
                    step = finished(step, &output);
                    found.extend(self.inspect_result(execution, &mut step).await);
                    done.push(step);
                }
                CallCheck::Call(tool, _) if step.status == StepStatus::RequiresAction => {
                    hold_back(step, tool, &mut held_back);
                }
                CallCheck::Call(tool, arguments) if tool.writes() => {
                    let output = if execution.active.cancel.is_cancelled() {
                        ToolOutput::error("the run was stopped before the call")
                    } else if execution.row.livemode || !tool.is_simulated() {
                        let calling = async {
                            let output = self.call_tool(execution, &step, tool, arguments).await;
                            self.verified(execution, &step, output).await
                        };
                        self.keeping_lease(execution, calling).await
                    } else {
                        simulated(tool)
                    };
                    step = finished(step, &output);
                    found.extend(self.inspect_result(execution, &mut step).await);
                    if place < last {
                        self.keep_result(execution, &step).await;
                    }
                    done.push(step);
                }
                CallCheck::Call(tool, arguments) => reading.push(async move {
                    let output = self.call_tool(execution, &step, tool, arguments).await;
                    finished(step, &output)
                }),
            }
        }
        for mut step in self.keeping_lease(execution, futures::future::join_all(reading)).await {
            found.extend(self.inspect_result(execution, &mut step).await);
            done.push(step);
        }
        done.sort_by_key(|step| step.position);
        ToolResults { done, held_back, found }
    }

    /// Writes what a call has brought before others are made: of what was done to the outside a crash must not leave the
    /// outcome unknown. Where it cannot be written, it is with what follows.
    async fn keep_result(&self, execution: &Arc<Execution>, step: &StepRow) {
        let step = step.clone();
        let written = self.write_with(execution, move |_, tx, execution| {
            if runs::renew(tx, &execution.row)? {
                let now = tx.now();
                steps::finish(tx, &step, step.status, now)?;
            }
            Ok(())
        });
        if let Err(error) = written.await {
            tracing::warn!(run_id = %execution.row.id, ?error, "the result of a call was not written at once");
        }
    }

    pub(crate) async fn call_tool(
        &self,
        execution: &Execution,
        step: &StepRow,
        tool: &PlannedTool,
        arguments: JsonText,
    ) -> ToolOutput {
        let left = execution.time_left(self.db().clock().now());
        let own = Duration::from_secs(u64::try_from(tool.settings().timeout_seconds).unwrap_or(15));
        let patience = left.min(own);
        let call = spans::tool(self.tracer(), execution, tool);
        let context = CallContext { execution, step, tool, trace: call.trace() };
        if let Some(function) = tool.callable.function {
            return self.call_function(&context, function, &arguments, patience).await;
        }
        if let Some(agent) = tool.settings().agent {
            return self.call_agent(&context, agent, &arguments, patience).await;
        }
        if tool.settings().is_program() {
            return self.call_program(&context, &arguments, patience).await;
        }
        if let Some(skill) = tool.skill {
            return self.call_skill(&context, skill, &arguments, patience).await;
        }
        let Some(http) = &tool.settings().http else {
            return ToolOutput::error("the tool has no HTTP request");
        };
        let fixed = match execution.plan.placeholders.filled(&tool.settings().fixed_arguments) {
            Ok(fixed) => fixed,
            Err(error) => return ToolOutput::error(error.message()),
        };
        let headers = match self.tool_headers(execution, tool).await {
            Ok(headers) => headers,
            Err(error) if error.code() == Code::InvalidState => return ToolOutput::error(error.message()),
            Err(error) => {
                tracing::error!(run_id = %execution.row.id, ?error, "a tool's credentials do not open");
                return ToolOutput::error("the tool's credentials cannot be used");
            }
        };
        let Headers { mut values, secrets } = headers;
        let mut sent = http_span(self.tracer(), call.trace(), http.method.as_str(), &http.url);
        let names_trace = values.keys().any(|name| name.eq_ignore_ascii_case("traceparent"));
        if !names_trace {
            values.extend(sent.trace().headers());
        }
        values.extend(self.cause_header(execution, &http.url));
        // Of calls that may be repeated each is an effect of its own.
        let of_step = tool.settings().repeatable.then(|| step.id.as_str());
        let key = of_step.or(step.effect_key.as_deref()).unwrap_or_default();
        let connector = &self.0.parts.connector;
        let mut arguments = Fields::of(&arguments).unwrap_or_default();
        for (name, value) in fixed {
            arguments.set(name, JsonText::of(&value));
        }
        let output = match call_http(connector, http, values, arguments, patience, key, &mut sent).await {
            Ok(result) => ToolOutput::new((200..300).contains(&result.status), &result),
            Err(failure) if failure.is_unknown => ToolOutput::unknown(&failure.message),
            Err(failure) => ToolOutput::error(failure.message),
        };
        redacted(output, &secrets)
    }
}

/// Returns the result of a writing call with a test key, which is not made.
fn simulated(tool: &PlannedTool) -> ToolOutput {
    match tool.callable.function {
        Some(function) => function::simulated(function),
        None => {
            let method = tool.settings().http.as_ref().map(|http| http.method);
            let note = "This is a test run: the call was not made.";
            ToolOutput::new(true, &json!({ "simulated": true, "method": method, "note": note }))
        }
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
    if !matches!(step.status, StepStatus::Refused | StepStatus::Unknown) {
        step.status = if output.ok { StepStatus::Completed } else { StepStatus::Failed };
    }
    step.output = Some(JsonText::of(output));
    step
}
