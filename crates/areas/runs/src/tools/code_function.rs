//! Calls of code functions, which tools of type `function` give to the model.

use super::function::refusal;
use super::operation_call::CallContext;
use crate::engine::RunEngine;
use crate::run::ToolOutput;
use agents::CodeFunction;
use model::{Code, JsonText, Result, ScopeSet};
use ports::{FunctionCall, FunctionCaller, FunctionFailure};
use providers::json::Fields;
use serde::Serialize;
use std::time::Duration;

/// The most bytes of an output that are given to the model.
const LARGEST_RESULT: usize = 64 * 1024;

/// A failure as the model receives it.
#[derive(Serialize)]
struct Failure<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

impl RunEngine {
    /// Calls a code function. Every failure is an answer to the model, never an error of the run.
    pub(crate) async fn call_code_function(
        &self,
        context: &CallContext<'_>,
        code: &CodeFunction,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let run_id = &context.execution.row.id;
        let call = match self.function_call(context, code, arguments, patience) {
            Ok(call) => call,
            Err(error) if error.code() == Code::InvalidState => return ToolOutput::error(error.message()),
            Err(error) => {
                tracing::error!(%run_id, ?error, "a code function could not be called");
                return ToolOutput::error("the function cannot be called");
            }
        };
        match self.0.parts.functions.call(call).await {
            Ok(end) => match end.result {
                Ok(output) => bounded_output(output),
                Err(failure) => failed(code, &failure),
            },
            Err(error) if error.code() == Code::InternalError => {
                tracing::error!(%run_id, ?error, "a code function could not be called");
                ToolOutput::error("the function cannot be called")
            }
            Err(error) => refusal(error.body()),
        }
    }

    fn function_call(
        &self,
        context: &CallContext<'_>,
        code: &CodeFunction,
        arguments: &JsonText,
        patience: Duration,
    ) -> Result<FunctionCall> {
        let CallContext { execution, step, tool, .. } = context;
        let settings = tool.settings();
        let names = settings.shown_arguments();
        let mut input = Fields::default();
        for (name, value) in Fields::of(arguments).unwrap_or_default().iter() {
            let real = names.iter().find(|(shown, _)| shown == name).map_or(name, |(_, real)| real);
            input.set(real.to_owned(), value.clone());
        }
        for (name, value) in execution.plan.placeholders.filled(&settings.fixed_arguments)? {
            input.set(name, JsonText::of(&value));
        }
        // The same effect has one key, and what only reads may be read anew.
        let effect = step.effect_key.as_ref().filter(|_| code.writes && !settings.repeatable);
        let once = effect.cloned().unwrap_or_else(|| format!("{}:{}", step.id, tool.name()));
        Ok(FunctionCall {
            caller: self.agent_caller(context, ScopeSet::default())?,
            function: code.id,
            version: code.version,
            input: JsonText::printed(input.text()),
            by: FunctionCaller::Run { run: execution.row.id.clone(), step: step.id.clone() },
            contact: execution.plan.caller.answering.map(|answering| answering.contact),
            once,
            patience,
        })
    }
}

fn failed(code: &CodeFunction, failure: &FunctionFailure) -> ToolOutput {
    let FunctionFailure { code: why, message, retry_after_ms } = failure;
    if code.writes && matches!(*why, "function_interrupted" | "function_timeout") {
        return ToolOutput::unknown(&format!("{message} ({why})"));
    }
    let retry_after_seconds = retry_after_ms.map(|millis| millis.div_ceil(1000));
    ToolOutput::new(false, &Failure { code: why, message, retry_after_seconds })
}

/// A text that is too long for the model.
#[derive(Serialize)]
struct Truncated<'a> {
    truncated: String,
    beginning: &'a str,
}

/// Returns an output for the model: all of it with all digits, or the beginning of its text if it is too large.
pub(crate) fn bounded_output(output: JsonText) -> ToolOutput {
    let text = output.as_str();
    if text.len() <= LARGEST_RESULT {
        return ToolOutput::new(true, &output);
    }
    let end = (0..=LARGEST_RESULT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let beginning = text.get(..end).unwrap_or_default();
    let truncated = format!("The output was too large: it had {} bytes.", text.len());
    ToolOutput::new(true, &Truncated { truncated, beginning })
}
