//! Checks before a tool call: its arguments, its limits, and repetitions.

use crate::execution::{Execution, PlannedTool};
use crate::run::{StepRow, StepStatus, ToolOutput, effect_key};
use agents::{FIND_TOOLS, LOAD_SKILL, SkillCall, find_tools};
use model::JsonText;
use providers::json;
use serde::Serialize;
use serde_json::Value;

pub(crate) enum CallCheck<'a> {
    /// The call is not made; this is its result.
    Answer(ToolOutput),
    Call(&'a PlannedTool, JsonText),
}

/// Checks a call: its arguments, its limits, and whether it repeats an earlier one. `in_batch` is the number of calls of the same
/// tool before it in the same answer, and `done` has the calls of that answer that have ended.
pub(crate) fn check_call<'a>(
    execution: &'a Execution,
    step: &StepRow,
    in_batch: usize,
    done: &[StepRow],
) -> CallCheck<'a> {
    if step.name == FIND_TOOLS && !execution.plan.deferred.is_empty() {
        return CallCheck::Answer(found(execution, step));
    }
    if execution.is_deferred(&step.name) {
        let name = &step.name;
        return CallCheck::Answer(ToolOutput::error(format!(
            "find `{name}` with `{FIND_TOOLS}` before you call it"
        )));
    }
    let Some(tool) = execution.plan.tool(&step.name) else {
        return CallCheck::Answer(ToolOutput::error(format!("there is no tool called `{}`", step.name)));
    };
    let input = step.tool_input();
    if step.status == StepStatus::Refused {
        return CallCheck::Answer(refused(input.and_then(|input| input.approval?.note)));
    }
    let loaded = || execution.steps.iter().chain(done).filter_map(loaded);
    if tool.skill.is_none()
        && let Some(why) = execution.plan.skills.narrowed(&tool.callable, loaded())
    {
        return CallCheck::Answer(ToolOutput::error(why));
    }
    let arguments = input.map(|input| input.arguments);
    if arguments.as_ref() == Some(&effect_key::withheld()) {
        return CallCheck::Answer(ToolOutput::error("the call was withheld by a guardrail"));
    }
    let Some(arguments) = arguments.as_ref().filter(|arguments| json::is_object(arguments)) else {
        return CallCheck::Answer(no_object(arguments.as_ref()));
    };
    if let Some(problem) = tool.arguments.mismatch(&json::parsed(arguments)) {
        return CallCheck::Answer(ToolOutput::bad_arguments(format_args!("do not fit: {problem}")));
    }
    if tool.writes() && !tool.settings().repeatable {
        let mut earlier = execution.earlier.iter().chain(&execution.steps).chain(done);
        let same = earlier.find(|other| {
            other.effect_key.is_some()
                && other.effect_key == step.effect_key
                && other.status != StepStatus::Cancelled
        });
        if let Some(first) = same {
            return CallCheck::Answer(repeated(first));
        }
    }
    let limit = tool.settings().max_calls_per_run;
    let is_same_tool =
        |other: &&StepRow| other.is_tool() && execution.plan.tool_of(&other.name) == tool.callable.tool;
    let before = execution.steps.iter().filter(is_same_tool).count();
    // What a person allowed was within the limit when it was asked; others of the same answer may have ended since.
    if step.status != StepStatus::Approved && i64::try_from(before + in_batch).unwrap_or(i64::MAX) >= limit {
        return CallCheck::Answer(ToolOutput::error(format!(
            "the tool may be called {limit} times in a run"
        )));
    }
    if tool.skill == Some(SkillCall::Load) {
        // It takes nothing but the plan, and holds for what the same answer calls after it.
        return CallCheck::Answer(execution.plan.skills.load(arguments, loaded()).into());
    }
    CallCheck::Call(tool, arguments.clone())
}

/// The result of a search for tools.
fn found(execution: &Execution, step: &StepRow) -> ToolOutput {
    let arguments = step.tool_input().map_or_else(|| JsonText::of(&()), |input| input.arguments);
    let tools = execution.plan.tools.iter().map(|tool| &tool.callable);
    match find_tools(tools, &execution.plan.deferred, &arguments) {
        Ok(found) => ToolOutput::new(true, &found),
        Err(why) => ToolOutput::bad_arguments(why),
    }
}

/// The result of a call that loaded a skill.
fn loaded(step: &StepRow) -> Option<JsonText> {
    let output = step.output.as_ref().filter(|_| step.is_tool() && step.name == LOAD_SKILL)?;
    output.parse::<ToolOutput>().ok().filter(|output| output.ok).map(|output| output.result)
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
