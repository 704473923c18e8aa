//! What follows an answer of the model.

use super::model::RunRow;
use super::trace::ModelOutput;
use super::work::{Ending, Work};
use super::{effect, prompt};
use crate::providers::{Answered, Finish, ProviderError, ToolCall};
use model::Code;
use serde_json::Value;

/// Answers that do not fit the schema and are sent back.
const MOST_REPAIRS: usize = 2;
/// Tool calls with bad arguments that are sent back.
const MOST_BAD_CALLS: usize = 3;
/// The same call this often is a loop.
const LOOP: usize = 3;
/// The longest name of a tool that is worth keeping: longer ones name no tool.
const LONGEST_NAME: usize = 128;

/// What follows a model step.
#[derive(Debug)]
pub(super) enum Next {
    Tools(Vec<ToolCall>),
    /// The model is asked again.
    Again,
    End(Ending),
}

/// Reads an answer into the current step and decides what follows. Gives the Energy it cost.
pub(super) fn take_answer(work: &mut Work, answered: Answered, energy: i64) -> Next {
    let Answered { completion, usage, usage_estimated, label } = answered;
    let position = work.last_position();
    let mut calls = prompt::with_ids(completion.tool_calls, position);
    for call in &mut calls {
        call.name = storable(&call.name).chars().take(LONGEST_NAME).collect();
    }
    let mut output = ModelOutput {
        text: storable(&completion.text),
        tool_calls: calls,
        finish_reason: completion.finish,
        usage,
        usage_estimated,
        correction: None,
    };
    let model_calls = work.row.model_calls + 1;
    let next = if output.tool_calls.is_empty() {
        judge_text(work, &mut output, model_calls)
    } else {
        judge_calls(work, &output, model_calls)
    };
    let livemode = work.row.livemode;
    if let Some(step) = work.steps.last_mut() {
        "completed".clone_into(&mut step.status);
        step.name = label;
        step.input_tokens = output.usage.input_tokens;
        step.output_tokens = output.usage.output_tokens;
        step.energy = if livemode { energy } else { 0 };
        step.output = Some(model::JsonText::of(&output));
    }
    work.hear(output, energy);
    next
}

/// How a run ends whose model gave no answer.
pub(super) fn give_up(work: &Work, error: &ProviderError) -> Ending {
    match error {
        // What came of the model's calls so far is kept and paid, whether or not it said something with them.
        ProviderError::Timeout if work.row.model_calls > 0 => Ending::Incomplete("timeout", work.last_text()),
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

/// What models print may hold NUL, which PostgreSQL cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "")
}

/// What follows an answer without tool calls.
fn judge_text(work: &Work, output: &mut ModelOutput, model_calls: i64) -> Next {
    let text = &output.text;
    if output.finish_reason == Finish::Length {
        return Next::End(Ending::Incomplete("max_output_tokens", Some(text.clone())));
    }
    let Some(schema) = &work.plan.answer else {
        return Next::End(Ending::Completed(text.clone()));
    };
    let problem = match serde_json::from_str::<Value>(text.trim()) {
        Ok(value) => schema.mismatch(&value),
        Err(error) => Some(format!("it is not JSON: {error}")),
    };
    let Some(problem) = problem else { return Next::End(Ending::Completed(text.trim().to_owned())) };
    if work.repairs >= MOST_REPAIRS || model_calls >= work.plan.settings.max_steps {
        return Next::End(Ending::Incomplete("output_invalid", Some(text.clone())));
    }
    output.correction =
        Some(format!("Your answer does not fit the schema: {problem}. Answer with the corrected JSON only."));
    Next::Again
}

/// What follows an answer that asks for tools.
fn judge_calls(work: &Work, output: &ModelOutput, model_calls: i64) -> Next {
    let calls = &output.tool_calls;
    let count = i64::try_from(calls.len()).unwrap_or(i64::MAX);
    let text = || Some(output.text.clone()).filter(|text| !text.is_empty()).or_else(|| work.last_text());
    let stop = |reason| Next::End(Ending::Incomplete(reason, text()));
    if work.row.tool_calls.saturating_add(count) > work.plan.settings.max_tool_calls {
        return stop("max_tool_calls");
    }
    if model_calls >= work.plan.settings.max_steps {
        return stop("max_steps");
    }
    let loops = calls.iter().any(|call| {
        let arguments = effect::arguments_of(call);
        is_repeated(work, &work.row, call, &arguments)
            || work.bad_calls >= MOST_BAD_CALLS && is_bad(work, call, &arguments)
    });
    if loops { stop("loop_detected") } else { Next::Tools(calls.clone()) }
}

fn is_repeated(work: &Work, row: &RunRow, call: &ToolCall, arguments: &Value) -> bool {
    let mut same_tool = work.steps.iter().filter(|step| step.is_tool() && step.name == call.name).peekable();
    if same_tool.peek().is_none() {
        return false;
    }
    let key = effect::key(row, &call.name, arguments);
    same_tool.filter(|step| step.effect_key.as_deref() == Some(&key)).count() >= LOOP
}

fn is_bad(work: &Work, call: &ToolCall, arguments: &Value) -> bool {
    let tool = work.plan.tool(&call.name);
    tool.is_some_and(|tool| !arguments.is_object() || tool.arguments.mismatch(arguments).is_some())
}
