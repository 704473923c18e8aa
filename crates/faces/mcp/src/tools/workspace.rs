//! The tools of a workspace's own: flows that their owner exposes to MCP clients.

use super::catalog::{Catalog, OperationTool};
use super::schema::{complaint, portable};
use super::set::ToolSet;
use super::texts::Arguments;
use model::{Caller, Error, Result};
use operation::CallInput;
use serde::Deserialize;
use serde_json::{Value, json};

/// Begins the names of flows as tools.
const FLOW: &str = "svc_flow_";
/// The longest name of a tool that all hosts accept.
const LONGEST_NAME: usize = 64;
/// The operations that list and start exposed flows.
const LIST_FLOWS: &str = "listFlowMcpTools";
const START_FLOW: &str = "startFlowRun";
/// How long a call waits for the end of a run, in seconds: as long as the operation allows.
const PATIENCE: u64 = 25;

/// Returns whether a name is that of a workspace's own tool.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with(FLOW)
}

/// A flow as a tool.
pub(super) struct OwnTool {
    pub(super) name: String,
    flow_id: Value,
    definition: Value,
}

/// A flow as `listFlowMcpTools` returns it.
#[derive(Deserialize)]
struct ExposedFlow {
    name: String,
    description: Option<String>,
    input_schema: Value,
    flow_id: Value,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<ExposedFlow>,
}

impl OwnTool {
    /// Makes the tool of a flow. `None` for a schema that is no object, whatever is done to it.
    fn of(flow: ExposedFlow) -> Option<Self> {
        let mut name = format!("{FLOW}{}", flow.name);
        if name.len() > LONGEST_NAME {
            // The id keeps shortened names apart.
            let end = format!("_{}", flow.flow_id);
            name.truncate(LONGEST_NAME.saturating_sub(end.len()));
            name.push_str(&end);
        }
        let components =
            flow.input_schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut schema = portable(&flow.input_schema, &components);
        let parts = schema.as_object_mut()?;
        parts.entry("properties").or_insert_with(|| json!({}));
        if let Some(complaint) = complaint(&schema) {
            tracing::warn!(flow = %flow.flow_id, complaint, "the input schema of a flow is not portable, so that it is no tool");
            return None;
        }
        let about = flow.description.unwrap_or_else(|| format!("Runs the flow {}.", flow.name));
        let definition = json!({
            "name": name, "description": about, "inputSchema": schema,
            "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true },
        });
        Some(Self { name, flow_id: flow.flow_id, definition })
    }

    pub(super) fn definition(&self) -> String {
        self.definition.to_string()
    }

    /// Returns the arguments of `startFlowRun` for a call.
    pub(super) fn start(&self, input: &Arguments) -> Result<Arguments> {
        let texts = [
            ("flow_id", self.flow_id.to_string()),
            ("input", input.print()),
            ("wait_seconds", PATIENCE.to_string()),
        ];
        Arguments::of(texts).ok_or_else(|| Error::internal("the arguments of a flow are no JSON"))
    }
}

impl ToolSet {
    /// Returns the workspace's own tools that a caller may start, in the order of `listFlowMcpTools`.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) async fn own(&self, caller: &Caller) -> Result<Vec<OwnTool>> {
        let (Some(list), Some(start)) = (self.catalog.operation(LIST_FLOWS), self.starter()) else {
            return Ok(Vec::new());
        };
        if list.meta.check_allowed(&caller.key).is_err() || start.meta.check_allowed(&caller.key).is_err() {
            return Ok(Vec::new());
        }
        let body = self.pipeline.peek(caller, list.meta, CallInput::default()).await?;
        let answer: Answer = serde_json::from_str(&body).map_err(Error::internal)?;
        Ok(answer.data.into_iter().filter_map(OwnTool::of).collect())
    }

    /// Returns the tool that starts flows.
    pub(super) fn starter(&self) -> Option<&OperationTool> {
        Catalog::operation(&self.catalog, START_FLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Option<OwnTool> {
        OwnTool::of(ExposedFlow {
            name: name.to_owned(),
            description: None,
            input_schema: schema,
            flow_id: json!(7),
        })
    }

    #[test]
    fn odd_schemas_are_adapted_or_left_out() {
        let nullable =
            tool("a", json!({ "type": "object", "properties": { "x": { "type": ["string", "null"] } } }));
        let schema = &nullable.unwrap().definition["inputSchema"];
        assert_eq!(schema["properties"]["x"], json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
        assert!(tool("b", json!({ "type": "object" })).is_some());
        for odd in [
            json!({ "type": "string" }),
            json!(true),
            json!({ "anyOf": [{ "type": "object" }, { "type": "string" }] }),
        ] {
            assert!(tool("c", odd.clone()).is_none(), "{odd}");
        }
    }

    #[test]
    fn long_names_stay_apart() {
        let name = tool(&"x".repeat(64), json!({ "type": "object" })).unwrap().name;
        assert!(name.len() == LONGEST_NAME && name.ends_with("_7"), "{name}");
    }
}
