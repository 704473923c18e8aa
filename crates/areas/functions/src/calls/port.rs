//! The port by which agents call functions.

use super::prepare::{Asked, Chosen};
use super::service::FunctionCalls;
use crate::draft::model::{FunctionRow, FunctionStatus};
use crate::draft::settings::Settings;
use crate::draft::versions::VersionRow;
use crate::history::model::{InvocationCaller, InvocationCallerType, InvocationError, InvocationMode};
use crate::history::rows::InvocationRow;
use model::{Code, Env, Error, FunctionId, JsonText, Result, WorkspaceId};
use operation::{BoxFuture, Resource, Version};
use ports::{
    CallableFunction, FunctionCall, FunctionCaller, FunctionEnd, FunctionFailure, Functions, InlineCall,
    Uncallable,
};
use std::time::Duration;
use store::Read;

/// Poll interval for the end of a call that another caller makes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Functions for FunctionCalls {
    fn callable(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        id: FunctionId,
        version: Option<i64>,
    ) -> Result<std::result::Result<CallableFunction, Uncallable>> {
        let Some(row) = found(FunctionRow::find(read, workspace, &id))? else {
            return Ok(Err(Uncallable::Missing));
        };
        let Some(number) = version.or(row.published_version) else {
            return Ok(Err(Uncallable::NotPublished));
        };
        if row.status != FunctionStatus::Active {
            return Ok(Err(Uncallable::Inactive));
        }
        let Some(version) = found(VersionRow::find(read, workspace, &id, number))? else {
            return Ok(Err(Uncallable::NotPublished));
        };
        let settings: Settings = version.settings.parse()?;
        Ok(Ok(CallableFunction {
            id,
            version: number,
            name: row.name,
            description: settings.description.unwrap_or_default(),
            input_schema: settings.input_schema,
            output_schema: settings.output_schema,
            effect: settings.effect,
            is_test_only: version.env == Env::Test,
        }))
    }

    fn call(&self, call: FunctionCall) -> BoxFuture<Result<FunctionEnd>> {
        let calls = self.clone();
        Box::pin(async move { calls.call_once(call).await })
    }

    fn run_inline(
        &self,
        call: InlineCall,
    ) -> BoxFuture<Result<std::result::Result<JsonText, FunctionFailure>>> {
        let calls = self.clone();
        Box::pin(async move { calls.run_code(call).await })
    }
}

fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl FunctionCalls {
    /// Makes a call, or returns the outcome of an earlier one with the same key.
    async fn call_once(&self, call: FunctionCall) -> Result<FunctionEnd> {
        let (function, once, patience) = (call.function, call.once.clone(), call.patience);
        if let Some(earlier) = self.made_once(function, &once).await? {
            return self.end_of(earlier, patience).await;
        }
        let prepared = self.prepare(asked(call)).await?;
        if prepared.row.lease_until.is_some() && !self.insert(prepared.row.clone()).await? {
            let earlier = self.made_once(function, &once).await?;
            let earlier = earlier.ok_or_else(|| Error::internal("a call that was made is gone"))?;
            return self.end_of(earlier, patience).await;
        }
        ended(&self.make(prepared).await?)
    }

    async fn made_once(&self, function: FunctionId, key: &str) -> Result<Option<InvocationRow>> {
        let key = key.to_owned();
        self.0.db.read(move |read| InvocationRow::made_once(read, function, &key)).await
    }

    /// Waits for the end of a call that somebody else makes. If its process is gone, it ends as interrupted.
    async fn end_of(&self, mut row: InvocationRow, patience: Duration) -> Result<FunctionEnd> {
        let mut waited = Duration::ZERO;
        while !row.is_ended() {
            if row.lease_until.is_some_and(|until| until <= self.0.db.now()) {
                row = self.interrupt(row.workspace_id, row.id).await?;
                break;
            }
            if waited >= patience {
                return Ok(FunctionEnd {
                    invocation: row.id,
                    result: Err(FunctionFailure {
                        code: "function_timeout",
                        message: "The call has not ended in time.".to_owned(),
                        retry_after_ms: None,
                    }),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            waited += POLL_INTERVAL;
            row = self.find(row.workspace_id, row.id).await?;
        }
        ended(&row)
    }
}

fn asked(call: FunctionCall) -> Asked {
    let (mut flow_run, mut automation) = (None, None);
    let (kind, run, step) = match call.by {
        FunctionCaller::Run { run, step } => (InvocationCallerType::Run, Some(run), Some(step)),
        FunctionCaller::Guardrail { run } => (InvocationCallerType::Guardrail, Some(run), None),
        FunctionCaller::Flow { run, step } => {
            flow_run = Some(run.to_string());
            (InvocationCallerType::Flow, None, Some(step))
        }
        FunctionCaller::Automation(id) => {
            automation = Some(id);
            (InvocationCallerType::Automation, None, None)
        }
    };
    Asked {
        function: call.function,
        chosen: call.version.map_or(Chosen::Published, Chosen::Version),
        mode: if call.caller.livemode() { InvocationMode::Live } else { InvocationMode::Test },
        input: call.input,
        hidden: call.hidden,
        fixtures: Vec::new(),
        by: InvocationCaller {
            r#type: kind,
            key_id: call.caller.key.id.to_string(),
            request_id: call.caller.request.to_string(),
            run_id: run.as_ref().map(ToString::to_string).or(flow_run),
            step_id: step.map(|step| step.to_string()),
            automation_id: automation,
            contact_id: call.contact,
        },
        run,
        contact: call.contact,
        idempotency_key: Some(call.once.clone()),
        once: Some(call.once),
        patience: Some(call.patience),
        caller: call.caller,
    }
}

/// The codes of failures, as the port has them.
const CODES: [&str; 7] = [
    "function_error",
    "function_timeout",
    "function_memory",
    "function_output_invalid",
    "function_network_denied",
    "function_interrupted",
    "function_unavailable",
];

fn ended(row: &InvocationRow) -> Result<FunctionEnd> {
    let result = match row.failure()? {
        None => Ok(row.output.clone().unwrap_or_else(|| JsonText::of(&()))),
        Some(error) => Err(failure(error)),
    };
    Ok(FunctionEnd { invocation: row.id.clone(), result })
}

/// A failure, as the port has it.
pub(super) fn failure(error: InvocationError) -> FunctionFailure {
    FunctionFailure {
        code: CODES.into_iter().find(|code| *code == error.code).unwrap_or("function_error"),
        message: error.message,
        retry_after_ms: error.retry_after_ms,
    }
}
