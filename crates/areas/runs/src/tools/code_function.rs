//! Calls of code functions and flows, which tools of type `function` and `flow` give to the model.

use super::function::refusal;
use super::operation_call::CallContext;
use crate::engine::{RunEngine, agent_caller};
use crate::run::ToolOutput;
use agents::{CodeFunction, bounded_output, flow_result};
use model::{Code, JsonText, Result, ScopeSet};
use ports::{FlowStarter, FunctionCall, FunctionCaller, FunctionFailure, StartFlow};
use providers::json;
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
    /// Calls a code function or a flow. Every failure is an answer to the model, never an error of the run.
    pub(crate) async fn call_program(
        &self,
        context: &CallContext<'_>,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        let CallContext { execution, tool, .. } = context;
        let fixed = match execution.plan.placeholders.filled(&tool.settings().fixed_arguments) {
            Ok(fixed) => fixed,
            Err(error) => return ToolOutput::error(error.message()),
        };
        let input = tool.settings().function_input(arguments, fixed);
        match self.called(context, input, patience).await {
            Ok(output) => output,
            Err(error) if error.code() == Code::InternalError => {
                tracing::error!(run_id = %execution.row.id, ?error, "a function or flow could not be called");
                ToolOutput::error("the function or flow cannot be called")
            }
            Err(error) => refusal(error.body()),
        }
    }

    async fn called(
        &self,
        context: &CallContext<'_>,
        input: JsonText,
        patience: Duration,
    ) -> Result<ToolOutput> {
        let CallContext { execution, step, tool, trace } = context;
        let (row, settings) = (&execution.row, tool.settings());
        let caller = agent_caller(execution, trace, ScopeSet::default())?;
        let contact = execution.plan.caller.answering.map(|answering| answering.contact);
        // The same effect has one name, and what only reads may be read anew.
        let effect = step.effect_key.as_ref().filter(|_| tool.writes() && !settings.repeatable);
        let once = effect.cloned().unwrap_or_else(|| format!("{}:{}", step.id, tool.name()));
        let (run, step) = (row.id.clone(), step.id.clone());
        if let Some(flow) = &settings.flow {
            let start = StartFlow {
                workspace: row.workspace_id,
                flow: flow.id,
                livemode: row.livemode,
                input: json::parsed(&input),
                payload: serde_json::json!({ "agent_id": row.agent_id, "run_id": run }),
                contact,
                by: FlowStarter::Agent { run, step },
                chain: caller.chain,
                once,
            };
            let (ok, result) = flow_result(self.0.parts.flows.get()?.answer(start, patience).await?);
            return Ok(ToolOutput::new(ok, &result));
        }
        let Some(code) = &settings.code else { return Ok(ToolOutput::error("it has nothing to call")) };
        let (function, version, by) = (code.id, code.version, FunctionCaller::Run { run, step });
        let hidden = Vec::new();
        let call = FunctionCall { caller, function, version, input, hidden, by, contact, once, patience };
        Ok(match self.0.parts.functions.call(call).await?.result {
            Ok(output) => ToolOutput::new(true, &bounded_output(output)),
            Err(failure) => failed(code, &failure),
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
