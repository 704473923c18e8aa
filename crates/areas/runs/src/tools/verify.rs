//! Calls whose outcome is unknown, because a crash or a timeout interrupted them: what the tool names in `verify_with` is asked
//! whether they took effect.

use crate::engine::RunEngine;
use crate::execution::{Execution, PlannedTool};
use crate::run::{StepRow, ToolOutput};
use model::JsonText;
use providers::json;
use serde::Serialize;
use serde_json::{Map, Value};

const NOTE: &str = "Whether the call took effect is unknown. Judge by the check, which was made afterwards with the same arguments, \
and do not make the call once more unless it shows that it did not.";

/// The result of a call with an unknown outcome, and of the check.
#[derive(Serialize)]
struct Verified {
    error: String,
    note: &'static str,
    verified_with: String,
    check: ToolOutput,
}

impl RunEngine {
    /// Returns the result of a call, with that of the check if its outcome is unknown and the tool says what checks it.
    pub(crate) async fn verified(
        &self,
        execution: &Execution,
        step: &StepRow,
        output: ToolOutput,
    ) -> ToolOutput {
        let verify_with = |tool: &PlannedTool| tool.settings().verify_with.clone().filter(|_| tool.writes());
        let Some(name) = execution.plan.tool(&step.name).and_then(verify_with) else { return output };
        if !output.is_unknown() {
            return output;
        }
        let check = self.check_outcome(execution, step, &name).await;
        let error = json::plain(&output.result);
        let verified = Verified { error, note: NOTE, verified_with: name, check };
        ToolOutput { run: output.run, ..ToolOutput::new(false, &verified) }
    }

    async fn check_outcome(&self, execution: &Execution, step: &StepRow, name: &str) -> ToolOutput {
        // The agent may have lost it since it was named.
        let Some(tool) = execution.plan.tool(name).filter(|tool| !tool.writes()) else {
            return ToolOutput::error(format!("`{name}` is not something that reads any more"));
        };
        let arguments = step.tool_input().map(|input| json::parsed(&input.arguments)).unwrap_or_default();
        let arguments = own_arguments(tool, arguments);
        if let Some(problem) = tool.arguments.mismatch(&arguments) {
            return ToolOutput::error(format!("the arguments of the call do not fit `{name}`: {problem}"));
        }
        self.call_tool(execution, step, tool, JsonText::of(&arguments)).await
    }
}

/// Those of the arguments that a tool takes.
fn own_arguments(tool: &PlannedTool, arguments: Value) -> Value {
    let properties = tool.callable.spec.parameters.get("properties").and_then(Value::as_object);
    let takes = |name: &String| properties.is_some_and(|properties| properties.contains_key(name));
    let Value::Object(arguments) = arguments else { return Value::Object(Map::new()) };
    Value::Object(arguments.into_iter().filter(|(name, _)| takes(name)).collect())
}
