//! Flows as tools: what a tool keeps of its flow, and what a run of it answers to the model.

use super::code_function::description_of;
use super::outputs::bounded_output;
use model::{Error, FlowId, JsonText, Result, WorkspaceId};
use ports::{FlowAnswer, StartableFlow, Unstartable, WorkspaceFlows};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Read;

/// The timeout of a call in seconds, if none was given.
pub(super) const PATIENCE: i64 = 20;

/// The flow of a `flow` tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledFlow {
    /// The flow.
    pub id: FlowId,
    /// The name that it had when the tool was attached.
    pub name: String,
    /// The description that it had.
    pub description: String,
}

impl CalledFlow {
    /// Returns the description for the model: that of the tool, else that of the flow.
    pub(crate) fn description(&self, of_tool: &str) -> String {
        description_of(of_tool, &self.description, || format!("Starts the flow {}.", self.name))
    }
}

/// Finds the flow of a tool that is attached.
///
/// # Errors
/// `validation_error` for `ref`.
pub(crate) fn find(
    read: &mut Read,
    flows: &WorkspaceFlows,
    workspace: WorkspaceId,
    id: FlowId,
) -> Result<StartableFlow> {
    let rule = match flows.get()?.startable(read, workspace, id)? {
        Ok(flow) if flow.input_schema.get("type").is_none_or(|kind| kind == "object") => return Ok(flow),
        Ok(_) => "is a flow whose input is not an object",
        Err(Unstartable::Missing) => "is not a flow of the workspace",
        Err(Unstartable::NotPublished) => "is a flow that was never published",
        Err(Unstartable::Inactive) => "is a flow that is switched off",
    };
    Err(Error::invalid("ref", rule))
}

/// Returns whether a run of a flow went well so far, and what the model receives of it.
pub fn flow_result(answer: FlowAnswer) -> (bool, Value) {
    let bounded = |value: &Value| bounded_output(JsonText::of(value)).parse().unwrap_or(Value::Null);
    match answer {
        FlowAnswer::Response(run, response) => {
            let answer =
                json!({ "flow_run_id": run, "status": response.status, "body": bounded(&response.body) });
            (response.status < 400, answer)
        }
        FlowAnswer::Completed(run, output) => {
            (true, json!({ "flow_run_id": run, "output": bounded(&output) }))
        }
        FlowAnswer::Ended(run, status, message) => {
            (false, json!({ "flow_run_id": run, "status": status, "error": message }))
        }
        FlowAnswer::Pending(run) => {
            let note = "The flow has started and continues by itself. Its result is not known yet.";
            (true, json!({ "flow_run_id": run, "status": "pending", "note": note }))
        }
    }
}
