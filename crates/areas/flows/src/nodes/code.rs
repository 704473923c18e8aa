//! Nodes that run code.

use super::calls::{done, unknown};
use super::{NodeCall, NodeFailure, Work};
use flow_graphs::config;
use model::{FunctionId, JsonText, Scope};
use ports::{FunctionCall, FunctionCaller, FunctionFailure, InlineCall};
use serde_json::Value;

/// How long code may run if the node does not say so, in seconds.
const DEFAULT_SECONDS: u64 = 30;
/// How long code may run, in seconds.
const MOST_SECONDS: u64 = 60;

/// Runs JavaScript of the flow itself.
pub(super) async fn code(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Code = call.config()?;
    let inline = InlineCall {
        workspace: call.run.workspace_id,
        code: config.code,
        input: JsonText::of(&config.input),
        run: call.run.id.to_string(),
        contact: call.run.contact_id,
        once: call.key.clone(),
        livemode: call.run.livemode,
        patience: call.patience(DEFAULT_SECONDS, MOST_SECONDS),
    };
    match call.engine.0.functions.run_inline(inline).await? {
        Ok(output) => Ok(done(output.parse()?)),
        Err(failure) => Err(failed(failure)),
    }
}

/// Calls a code function.
pub(super) async fn function(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::Function = call.config()?;
    call.caller.key.expect_scope(Scope::FunctionsWrite)?;
    let input = config.input.unwrap_or(Value::Null);
    // The same key has the same outcome, so an attempt after a failure has one of its own.
    let once = match call.task.attempt {
        0 | 1 => call.key.clone(),
        attempt => format!("{}:{attempt}", call.key),
    };
    let function = FunctionCall {
        caller: call.caller.clone(),
        function: FunctionId(config.function_id),
        version: config.version,
        hidden: call.secrets.mentioned_in(&input),
        input: JsonText::of(&call.secrets.reveal(&input)),
        by: FunctionCaller::Flow { run: call.run.id.clone(), step: call.step_id.clone() },
        contact: call.run.contact_id,
        once,
        patience: call.patience(DEFAULT_SECONDS, MOST_SECONDS),
    };
    match call.engine.0.functions.call(function).await?.result {
        Ok(output) => Ok(done(output.parse()?)),
        Err(failure) if failure.code == "function_interrupted" => Ok(unknown()),
        Err(failure) => Err(failed(failure)),
    }
}

fn failed(failure: FunctionFailure) -> NodeFailure {
    let FunctionFailure { code, message, retry_after_ms } = failure;
    NodeFailure {
        code: code.to_owned(),
        message,
        is_transient: retry_after_ms.is_some() || code == "function_unavailable",
        retry_after: retry_after_ms.map(|millis| millis.div_ceil(1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_asks_for_another_attempt_gets_one() {
        let failure =
            |code, retry_after_ms| FunctionFailure { code, message: "No.".to_owned(), retry_after_ms };
        let asked = failed(failure("function_error", Some(1500)));
        assert_eq!((asked.is_transient, asked.retry_after), (true, Some(2)));
        let thrown = failed(failure("function_error", None));
        assert_eq!((thrown.code.as_str(), thrown.is_transient), ("function_error", false));
        assert!(failed(failure("function_unavailable", None)).is_transient);
    }
}
