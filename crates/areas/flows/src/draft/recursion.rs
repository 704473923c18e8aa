//! Flows that would start themselves.

use super::versions::VersionRow;
use flow_graphs::{Graph, Issue, IssueCode, Severity, objects};
use model::{FlowId, Result, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::Read;

/// Finds the nodes of a flow by which it would start itself: directly, or by the published versions of other flows.
pub(super) fn recursion(
    read: &mut Read,
    workspace: WorkspaceId,
    flow: FlowId,
    graph: &Graph,
) -> Result<Vec<Issue>> {
    let started = started_by(graph);
    if started.is_empty() {
        return Ok(Vec::new());
    }
    let mut published = BTreeMap::new();
    for (_, version) in VersionRow::published_with(read, workspace, "%\"sub_flow\"%")? {
        let graph: Graph = version.graph.parse()?;
        let next: Vec<FlowId> = started_by(&graph).into_iter().map(|(_, _, id)| id).collect();
        published.insert(version.flow_id, next);
    }
    let leads_back = started.into_iter().filter(|(.., id)| leads_to(*id, flow, &published));
    Ok(leads_back
        .map(|(node, param, id)| {
            let message = if id == flow {
                format!("`{node}` would start the flow itself.")
            } else {
                format!("`{node}` would start the flow itself, by the flow {id}.")
            };
            let (severity, code) = (Severity::Error, IssueCode::Recursion);
            Issue { severity, code, node_id: Some(node), param, message }
        })
        .collect())
}

/// The flows that a graph starts, with the ids and the places of the nodes that do.
fn started_by(graph: &Graph) -> Vec<(String, String, FlowId)> {
    let named = objects(graph).into_iter().filter(|one| one.object == "flow" && !one.is_disabled);
    named.map(|one| (one.node_id.to_owned(), one.param, FlowId(one.id))).collect()
}

fn leads_to(from: FlowId, to: FlowId, published: &BTreeMap<FlowId, Vec<FlowId>>) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(flow) = open.pop() {
        if flow == to {
            return true;
        }
        if seen.insert(flow) {
            open.extend(published.get(&flow).into_iter().flatten());
        }
    }
    false
}
