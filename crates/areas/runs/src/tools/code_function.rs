//! Calls of code functions, which tools of type `function` give to the model.

use super::function::refusal;
use super::operation_call::CallContext;
use crate::engine::{RunEngine, agent_caller};
use crate::run::ToolOutput;
use agents::{CodeFunction, bounded_output};
use model::{Code, JsonText, Result, ScopeSet};
use ports::{FunctionCall, FunctionCaller, FunctionFailure};
use serde::Serialize;
use std::time::Duration;

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
                Ok(output) => ToolOutput::new(true, &bounded_output(output)),
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
        let CallContext { execution, step, tool, trace } = context;
        let settings = tool.settings();
        let fixed = execution.plan.placeholders.filled(&settings.fixed_arguments)?;
        let input = settings.function_input(arguments, fixed);
        // The same effect has one key, and what only reads may be read anew.
        let effect = step.effect_key.as_ref().filter(|_| code.writes && !settings.repeatable);
        let once = effect.cloned().unwrap_or_else(|| format!("{}:{}", step.id, tool.name()));
        Ok(FunctionCall {
            caller: agent_caller(execution, trace, ScopeSet::default())?,
            function: code.id,
            version: code.version,
            input,
            hidden: Vec::new(),
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
