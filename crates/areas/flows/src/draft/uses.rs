//! Flows as users of agents, functions, other flows and variables: by their drafts and by their published versions.

use super::checks::templates;
use super::settings::Settings;
use super::versions::VersionRow;
use crate::schema::flows;
use diesel::prelude::*;
use flow_graphs::{Graph, objects, variables};
use model::{FlowId, JsonText, Result, WorkspaceId};
use ports::{ObjectUse, ObjectUsers, UsedObject, VariableReference, VariableUsers, referenced_variables};
use store::Read;

/// The content of a flow: its draft, or its published version.
struct Content {
    id: FlowId,
    name: String,
    graph: Graph,
    settings: Settings,
}

/// Lists the drafts and published versions of a workspace that have a text, in the order of the flows.
fn contents(read: &mut Read, workspace: WorkspaceId, text: &str) -> Result<Vec<Content>> {
    let drafts: Vec<(FlowId, String, JsonText, JsonText)> = flows::table
        .filter(flows::workspace_id.eq(workspace))
        .filter(flows::graph.like(text).or(flows::settings.like(text)))
        .order(flows::id)
        .select((flows::id, flows::name, flows::graph, flows::settings))
        .load(read.connection())?;
    let published = VersionRow::published_with(read, workspace, text)?;
    let published = published.into_iter().map(|(name, row)| (row.flow_id, name, row.graph, row.settings));
    let mut all = Vec::new();
    for (id, name, graph, settings) in drafts.into_iter().chain(published) {
        all.push(Content { id, name, graph: graph.parse()?, settings: settings.parse()? });
    }
    all.sort_by_key(|content| content.id);
    Ok(all)
}

/// Flows as users of functions, agents and other flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowsAsUsers;

impl ObjectUsers for FlowsAsUsers {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        let (object, id, setting) = match used {
            UsedObject::Function(function) => ("function", function.0, "function_id"),
            UsedObject::Agent(agent) => ("agent", agent.0, "agent_id"),
            UsedObject::Flow(flow) => ("flow", flow.0, "flow_id"),
            UsedObject::Skill(_) => return Ok(Vec::new()),
        };
        let mut uses: Vec<ObjectUse> = Vec::new();
        // The settings name an error flow as `error_flow_id`, which the pattern finds as well.
        for content in contents(read, workspace, &format!("%{setting}\":{id}%"))? {
            // A flow does not prevent its own deletion.
            if used == UsedObject::Flow(content.id) {
                continue;
            }
            let named =
                objects(&content.graph).into_iter().filter(|one| one.object == object && one.id == id);
            let mut versions: Vec<Option<i64>> = named.map(|one| one.version).collect();
            if object == "flow" && content.settings.error_flow_id == Some(id) {
                versions.push(None);
            }
            for version in versions {
                let (id, name) = (content.id.to_string(), content.name.clone());
                let one = ObjectUse { r#type: "flow", id, name, version };
                if !uses.contains(&one) {
                    uses.push(one);
                }
            }
        }
        Ok(uses)
    }
}

/// Flows as users of variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowVariables;

impl VariableUsers for FlowVariables {
    fn references(&self, read: &mut Read, workspace: WorkspaceId) -> Result<Vec<VariableReference>> {
        let mut all: Vec<VariableReference> = Vec::new();
        for content in contents(read, workspace, "%vars.%")? {
            let of_nodes = variables(&content.graph)
                .into_iter()
                .map(|one| (one.key, format!("nodes.{}.{}", one.node_id, one.setting)));
            let of_settings = templates(&content.settings)
                .flat_map(referenced_variables)
                .map(|key| (key.to_owned(), "settings.cancel_on".to_owned()));
            for (key, field) in of_nodes.chain(of_settings) {
                let (id, name) = (content.id.to_string(), content.name.clone());
                let one = VariableReference { key, object: "flow", id, name, field: field.into() };
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        Ok(all)
    }
}
