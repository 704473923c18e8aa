//! Flows as tools of MCP clients.

use super::model::FlowStatus;
use super::settings::{Settings, input_schema};
use crate::schema::{flow_versions, flows};
use diesel::prelude::*;
use fields::text;
use flow_graphs::Graph;
use model::{Caller, Env, FlowId, JsonText, Result};
use operation::{Rows, operation};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::Read;
use utoipa::ToSchema;

/// The longest name of a tool.
const LONGEST_NAME: usize = 64;

/// A flow as a tool of MCP clients.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "answer_questions_about_prices", "description": "Answers questions about prices.", "version": 2,
    "input_schema": { "type": "object", "properties": { "product": { "type": "string" } } },
}))]
pub struct FlowTool {
    /// Always `flow_tool`.
    object: &'static str,
    /// The name of the tool, made of that of the flow. Unique in the workspace.
    #[schema(pattern = "^[a-z0-9_]{1,64}$")]
    name: String,
    /// What the flow does.
    description: Option<String>,
    /// A JSON Schema of the input.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// The id of the flow.
    flow_id: FlowId,
    /// The version that a call runs.
    version: i64,
}

/// The published flows that MCP clients can call as tools
///
/// Lists the active flows whose published version has `settings.mcp_tool`, in the order of their ids. Versions that a test key
/// published are listed for test keys only.
#[operation(get "/workspaces/{workspaceId}/flows/mcp-tools", scope = "mcp:use")]
pub fn list_flow_mcp_tools(read: &mut Read, caller: &Caller) -> Result<Rows<FlowTool>> {
    let rows: Vec<(FlowId, String, i64, JsonText, JsonText, Env)> = flow_versions::table
        .inner_join(flows::table.on(flows::id.eq(flow_versions::flow_id)))
        .filter(flows::workspace_id.eq(caller.workspace_id()))
        .filter(flows::status.eq(FlowStatus::Active))
        .filter(flows::published_version.eq(flow_versions::version.nullable()))
        .filter(flow_versions::settings.like("%\"mcp_tool\":true%"))
        .order(flows::id)
        .select((
            flows::id,
            flows::name,
            flow_versions::version,
            flow_versions::settings,
            flow_versions::graph,
            flow_versions::env,
        ))
        .load(read.connection())?;
    let (mut tools, mut taken) = (Vec::new(), BTreeSet::new());
    for (flow_id, name, version, settings, graph, env) in rows {
        let settings: Settings = settings.parse()?;
        if !settings.mcp_tool || (env == Env::Test && caller.livemode()) {
            continue;
        }
        let graph: Graph = graph.parse()?;
        let mut input_schema = input_schema(&graph);
        if let Some(schema) = input_schema.as_object_mut().filter(|schema| schema.is_empty()) {
            // MCP wants the schema of an object.
            schema.insert("type".to_owned(), json!("object"));
        }
        let name = tool_name(&name, flow_id, &mut taken);
        let description = settings.description;
        tools.push(FlowTool { object: "flow_tool", name, description, input_schema, flow_id, version });
    }
    Ok(Rows(tools))
}

/// The name of the tool: letters, digits and `_` of the name, with the id of the flow where another tool has it.
fn tool_name(name: &str, flow: FlowId, taken: &mut BTreeSet<String>) -> String {
    let plain = text::base(&text::fold(name));
    let words = plain.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug: String = words.collect::<Vec<_>>().join("_").to_ascii_lowercase();
    slug.truncate(LONGEST_NAME);
    if slug.is_empty() || taken.contains(&slug) {
        let id = format!("flow_{flow}");
        let separator = if slug.is_empty() { "" } else { "_" };
        slug.truncate(LONGEST_NAME - id.len() - 1);
        slug = format!("{slug}{separator}{id}");
    }
    taken.insert(slug.clone());
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_fit_and_differ() {
        let mut taken = BTreeSet::new();
        let long = "x".repeat(80);
        let names: Vec<String> =
            ["Où est ma commande ?", "ou est ma commande", "цена", "", &long, &long, "A__b-9"]
                .iter()
                .zip(1..)
                .map(|(name, id)| tool_name(name, FlowId(id), &mut taken))
                .collect();
        let shortened = format!("{}_flow_6", "x".repeat(57));
        let expected = [
            "ou_est_ma_commande",
            "ou_est_ma_commande_flow_2",
            "flow_3",
            "flow_4",
            &long[..64],
            &shortened,
            "a_b_9",
        ];
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| name.len() <= LONGEST_NAME));
    }
}
