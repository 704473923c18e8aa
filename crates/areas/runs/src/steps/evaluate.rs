//! Evaluation of a model's answer: what the run does next.

use crate::execution::{Execution, PlannedTool};
use crate::run::{Ending, ModelOutput, RunRow, StepKind, StepRow, StepStatus, effect_key};
use model::{Code, JsonText};
use providers::{FailedAttempt, Finish, ModelAnswer, ProviderError, ToolCall, json};
use serde_json::Value;
use std::collections::HashSet;

/// Answers that do not fit the schema and are sent back.
const MOST_REPAIRS: usize = 2;
/// Tool calls with bad arguments that are sent back.
const MOST_BAD_CALLS: usize = 3;
/// The same call this often is a loop: the model is warned, and one more ends the run.
const LOOP: usize = 3;
/// So many rounds of calls in a row that bring nothing new are a loop, too.
const STALE_ROUNDS: usize = 3;
/// The longest name of a tool that is worth keeping: longer ones name no tool.
const LONGEST_NAME: usize = 128;

const SAME_CALL: &str = "You have made the same call with the same arguments three times. Use what it gave, try \
something else, or answer: making it once more ends the run.";
const NOTHING_NEW: &str = "The last three rounds of calls brought nothing new. Answer with what you have, or try \
something else: another round that brings nothing new ends the run.";
const CUT: &str = "Your answer was cut at its limit before it began. Answer now, and keep it short.";

/// Decision after a model step.
#[derive(Debug)]
pub(crate) enum Next {
    Tools(Vec<ToolCall>),
    /// The model is called once more.
    CallModel,
    End(Ending),
}

/// Records an answer in the current step, and decides what follows.
pub(crate) fn take_answer(
    execution: &mut Execution,
    answered: ModelAnswer,
    failed_attempts: Vec<FailedAttempt>,
    energy: i64,
) -> Next {
    let ModelAnswer { completion, usage, usage_estimated, label } = answered;
    let position = execution.last_position();
    let mut calls = ToolCall::with_ids(completion.tool_calls, position);
    for call in &mut calls {
        call.name = storable(&call.name).chars().take(LONGEST_NAME).collect();
    }
    let mut output = ModelOutput {
        text: storable(&completion.text),
        tool_calls: calls,
        finish_reason: completion.finish,
        usage,
        usage_estimated,
        failed_attempts,
        correction: None,
    };
    let model_calls = execution.row.model_calls + 1;
    let next = if output.tool_calls.is_empty() {
        evaluate_text(execution, &mut output, model_calls)
    } else {
        evaluate_calls(execution, &output, model_calls)
    };
    let livemode = execution.row.livemode;
    if let Some(step) = execution.steps.last_mut() {
        step.status = StepStatus::Completed;
        step.name = label;
        step.input_tokens = output.usage.input_tokens;
        step.output_tokens = output.usage.output_tokens;
        step.energy = if livemode { energy } else { 0 };
        step.output = Some(model::JsonText::of(&output));
    }
    execution.record_answer(output, energy);
    next
}

/// Returns the ending of a run whose model did not answer.
pub(crate) fn give_up(execution: &Execution, error: &ProviderError) -> Ending {
    match error {
        // What came of the model's calls so far is kept and paid, whether or not it said something with them.
        ProviderError::Timeout if execution.row.model_calls > 0 => {
            Ending::Incomplete("timeout", execution.last_text())
        }
        ProviderError::Timeout => Ending::Failed(Code::AgentTimeout, "The model took too long.".to_owned()),
        ProviderError::Refused(_) => {
            Ending::Failed(Code::AgentFailed, "The model refused the prompt.".to_owned())
        }
        ProviderError::Unavailable(_) => {
            Ending::Failed(Code::ModelUnavailable, "No model is available at the moment.".to_owned())
        }
        ProviderError::Cancelled => Ending::Stopped,
    }
}

/// Removes NUL characters, which PostgreSQL cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "")
}

/// Decides what follows an answer without tool calls.
fn evaluate_text(execution: &Execution, output: &mut ModelOutput, model_calls: i64) -> Next {
    let text = &output.text;
    if output.finish_reason == Finish::Length {
        // Thinking may use up all there is. That is worth one more question, and no second one.
        if text.trim().is_empty()
            && !was_cut_before(execution)
            && model_calls < execution.plan.settings.max_steps
        {
            output.correction = Some(CUT.to_owned());
            return Next::CallModel;
        }
        return Next::End(Ending::Incomplete("max_output_tokens", best_text(execution, output)));
    }
    if let Some(reason) = not_whole(output.finish_reason) {
        return Next::End(Ending::Incomplete(reason, best_text(execution, output)));
    }
    let Some(schema) = &execution.plan.answer else {
        return Next::End(Ending::Completed(text.clone()));
    };
    let problem = match json::text_of(text) {
        Some(answer) => schema.mismatch(&json::parsed(&answer)),
        None => {
            let error = serde_json::from_str::<Value>(text.trim()).err();
            let (line, column) = error.map_or((1, 0), |error| (error.line(), error.column()));
            Some(format!("it is not JSON: see line {line}, column {column}"))
        }
    };
    let Some(problem) = problem else { return Next::End(Ending::Completed(text.trim().to_owned())) };
    if execution.repairs >= MOST_REPAIRS || model_calls >= execution.plan.settings.max_steps {
        return Next::End(Ending::Incomplete("output_invalid", Some(text.clone())));
    }
    output.correction =
        Some(format!("Your answer does not fit the schema: {problem}. Answer with the corrected JSON only."));
    Next::CallModel
}

/// Why an answer is no whole one although it was not cut at its limit.
fn not_whole(finish: Finish) -> Option<&'static str> {
    match finish {
        Finish::ContentFilter => Some("content_filter"),
        Finish::Unknown => Some("unknown_finish_reason"),
        Finish::Stop | Finish::Length | Finish::ToolCalls => None,
    }
}

fn was_cut_before(execution: &Execution) -> bool {
    let outputs = execution.steps.iter().filter(|step| step.kind == StepKind::Model);
    let mut outputs = outputs.filter_map(|step| step.output.as_ref()?.parse::<ModelOutput>().ok());
    outputs.any(|output| output.finish_reason == Finish::Length)
}

/// Returns the output of a run that ends without a complete answer: the text of this answer, else the last text.
fn best_text(execution: &Execution, output: &ModelOutput) -> Option<String> {
    Some(output.text.clone()).filter(|text| !text.is_empty()).or_else(|| execution.last_text())
}

/// Decides what follows an answer with tool calls.
fn evaluate_calls(execution: &Execution, output: &ModelOutput, model_calls: i64) -> Next {
    let calls = &output.tool_calls;
    let count = i64::try_from(calls.len()).unwrap_or(i64::MAX);
    let stop = |reason| Next::End(Ending::Incomplete(reason, best_text(execution, output)));
    if execution.row.tool_calls.saturating_add(count) > execution.plan.settings.max_tool_calls {
        return stop("max_tool_calls");
    }
    if model_calls >= execution.plan.settings.max_steps {
        return stop("max_steps");
    }
    // A filtered answer may miss calls, so none is made. In an answer that was cut, the calls before the cut are complete and
    // are made; the incomplete one gets an error as its result.
    if output.finish_reason == Finish::ContentFilter {
        return stop("content_filter");
    }
    let is_cut = |call: &ToolCall| json::object_of(&call.arguments).is_none();
    if output.finish_reason == Finish::Length && calls.iter().any(is_cut) && was_cut_before(execution) {
        return stop("max_output_tokens");
    }
    let loops = calls.iter().any(|call| {
        let arguments = effect_key::arguments_of(call);
        is_repeated(execution, &execution.row, call, &arguments)
            || execution.bad_calls >= MOST_BAD_CALLS && is_bad(execution, call, &arguments)
    });
    if loops || stale_rounds(execution) > STALE_ROUNDS {
        stop("loop_detected")
    } else {
        Next::Tools(calls.clone())
    }
}

/// The warning added to the results of the last calls where the model seems to go in circles: once for each circle. Going
/// on in it ends the run.
pub(crate) fn warning(execution: &Execution) -> Option<&'static str> {
    let fresh = rounds(execution).last().unwrap_or_default();
    let is_same = |one: &StepRow, other: &StepRow| {
        other.is_tool() && one.name == other.name && one.effect_key == other.effect_key
    };
    let times = |call: &StepRow| execution.steps.iter().filter(|other| is_same(call, other)).count();
    if fresh.iter().any(|call| call.is_tool() && times(call) >= LOOP) {
        return Some(SAME_CALL);
    }
    let has_calls = fresh.iter().any(StepRow::is_tool);
    (has_calls && stale_rounds(execution) == STALE_ROUNDS).then_some(NOTHING_NEW)
}

/// The steps behind each answer of the model.
fn rounds(execution: &Execution) -> impl Iterator<Item = &[StepRow]> {
    execution.steps.split(|step| step.kind == StepKind::Model && step.output.is_some())
}

/// Returns the number of trailing rounds of calls without a new result and without a new side effect.
fn stale_rounds(execution: &Execution) -> usize {
    let mut results: HashSet<(&str, Option<&str>)> = HashSet::new();
    let mut changes: HashSet<&str> = HashSet::new();
    let mut stale = 0;
    for round in rounds(execution) {
        let mut calls = 0;
        let mut is_new = false;
        for call in round.iter().filter(|step| step.is_tool()) {
            calls += 1;
            is_new |= results.insert((&call.name, call.output.as_ref().map(JsonText::as_str)));
            let writes = execution.plan.tool(&call.name).is_some_and(PlannedTool::writes);
            if let Some(key) =
                call.effect_key.as_deref().filter(|_| writes && call.status == StepStatus::Completed)
            {
                is_new |= changes.insert(key);
            }
        }
        stale = if is_new { 0 } else { stale + usize::from(calls > 0) };
    }
    stale
}

fn is_repeated(execution: &Execution, row: &RunRow, call: &ToolCall, arguments: &JsonText) -> bool {
    let mut same_tool =
        execution.steps.iter().filter(|step| step.is_tool() && step.name == call.name).peekable();
    if same_tool.peek().is_none() {
        return false;
    }
    let key = effect_key::key(row, &call.name, arguments);
    same_tool.filter(|step| step.effect_key.as_deref() == Some(&key)).count() >= LOOP
}

fn is_bad(execution: &Execution, call: &ToolCall, arguments: &JsonText) -> bool {
    let tool = execution.plan.tool(&call.name);
    let fits = |tool: &PlannedTool| tool.arguments.mismatch(&json::parsed(arguments)).is_none();
    tool.is_some_and(|tool| !json::is_object(arguments) || !fits(tool))
}
