//! Calls of the service's own operations, which tools of other types than `http` give to the model.
//!
//! A call goes through the same gates as a request, with the agent as its actor and with the scopes of its tool and no
//! others. The id of its step makes a repetition receive the first answer, so a call that a crash interrupted is made
//! again.

use super::operation_call::CallContext;
use crate::engine::RunEngine;
use crate::run::ToolOutput;
use agents::{Function, bounded_answer};
use input::numbers;
use model::{Code, Error, FieldError, JsonText, Result};
use operation::LocalAnswer;
use providers::json;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Returns the result of a writing function with a test key, which changes nothing.
pub(crate) fn simulated(function: &Function) -> ToolOutput {
    let note = "This is a test run: nothing was changed.";
    ToolOutput::new(true, &json!({ "simulated": true, "operation": function.operation, "note": note }))
}

impl RunEngine {
    /// Calls the operation of a function. Every failure is an answer to the model, never an error of the run.
    pub(crate) async fn call_function(
        &self,
        context: &CallContext<'_>,
        function: &'static Function,
        arguments: &JsonText,
        patience: Duration,
    ) -> ToolOutput {
        // As in the body of a request: what cannot be stored exactly is refused.
        if let Some(FieldError { param, message, .. }) = numbers::lossy(arguments.as_str().as_bytes(), "") {
            return ToolOutput::bad_arguments(format_args!("were refused: {message} ({param})"));
        }
        let Value::Object(arguments) = json::parsed(arguments) else {
            return ToolOutput::bad_arguments("are not a JSON object");
        };
        let answer = self.answer_of(context, function, arguments);
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => output(answer, context.tool.callable.of_contact),
            Ok(Err(error)) if error.code() != Code::InternalError => refusal(error.body()),
            Ok(Err(error)) => {
                tracing::error!(run_id = %context.execution.row.id, ?error, "a tool's operation could not be called");
                ToolOutput::error("the operation cannot be called")
            }
            Err(_) if function.writes => {
                ToolOutput::unknown("the operation took longer than the tool's timeout")
            }
            Err(_) => ToolOutput::error("the operation took longer than the tool's timeout"),
        }
    }

    async fn answer_of(
        &self,
        context: &CallContext<'_>,
        function: &'static Function,
        mut arguments: Map<String, Value>,
    ) -> Result<LocalAnswer> {
        let fixed = context.execution.plan.placeholders.filled(&context.tool.settings().fixed_arguments)?;
        let own = fixed.iter().filter(|(name, _)| function.has_argument(name));
        arguments.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        let limited = self.limited(context, function, arguments, &fixed).await?;
        let expected = limited.version.filter(|_| !function.writes);
        let answer = self.operations().call(self.local_call(context, function, limited)?).await?;
        let shown = answer.body.pointer("/data/version").and_then(Value::as_i64);
        match expected {
            Some(version) if answer.status < 400 && shown != Some(version) => Err(Error::new(
                Code::VersionConflict,
                "The record was changed at this moment. Read it once more.",
            )),
            _ => Ok(answer),
        }
    }
}

/// Returns the result for the model: the data and the cursor of a response, or its error.
fn output(answer: LocalAnswer, of_contact: bool) -> ToolOutput {
    let LocalAnswer { status, mut body } = answer;
    let Some(fields) = body.as_object_mut() else { return ToolOutput::error("the operation gave no answer") };
    if status >= 400 {
        let mut error = fields.remove("error").unwrap_or_default();
        // The details name who has the value already.
        let is_duplicate = error.get("code").is_some_and(|code| code == Code::DuplicateValue.as_str());
        if let (true, Some(error)) = (of_contact && is_duplicate, error.as_object_mut()) {
            error.remove("details");
        }
        return refusal(error);
    }
    fields.remove("success");
    ToolOutput::new(true, &bounded_answer(body))
}

pub(super) fn refusal(error: Value) -> ToolOutput {
    let of = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    if of("code") == Code::ValidationError.as_str() {
        return ToolOutput::bad_arguments(format_args!("were refused: {} ({})", of("message"), of("param")));
    }
    let mut shown = Map::new();
    for field in ["code", "message", "param", "details"] {
        shown.extend(error.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    ToolOutput::new(false, &shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_arguments_are_the_models_mistake() {
        let refused = |code: &str| {
            let error = json!({ "code": code, "message": "It must not.", "param": "data", "type": "x" });
            output(LocalAnswer { status: 400, body: json!({ "success": false, "error": error }) }, false)
        };
        assert!(refused("validation_error").is_bad_arguments());
        let other = refused("not_found");
        assert!(!other.ok && !other.is_bad_arguments());
        let shown = json!({ "code": "not_found", "message": "It must not.", "param": "data" });
        assert_eq!(json::parsed(&other.result), shown);
    }
}
