//! Validation of a draft.

use super::checks::FlowChecks;
use super::model::FlowRow;
use flow_graphs::{Graph, Issue, Severity, missing_scopes, scopes};
use model::{Caller, FlowId, Result, Scope};
use operation::{Json, Path, Resource, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// What is wrong with the draft of a flow.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "publishable": true, "scopes": ["contacts:write"], "version": 5 }))]
pub struct FlowValidation {
    /// Always `flow_validation`.
    object: &'static str,
    /// The id of the flow.
    flow_id: FlowId,
    /// The version of the draft that was checked.
    version: i64,
    /// Whether your key could publish the draft: none of the issues is an error.
    publishable: bool,
    /// All issues.
    issues: Vec<Issue>,
    /// The scopes that the nodes use. Your key needs all of them to publish the draft.
    #[schema(value_type = Vec<String>)]
    scopes: Vec<Scope>,
}

/// Problems that keep the draft from being published
///
/// Checks the draft without publishing it, and lists all issues at once: of nodes, edges, settings and expressions, of objects
/// that the workspace does not have, and of scopes that your key lacks.
#[operation(get "/workspaces/{workspaceId}/flows/{flowId}/validation", scope = "automations:read")]
pub fn validate_flow(
    read: &mut Read,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    checks: FlowChecks,
) -> Result<Json<FlowValidation>> {
    let row = FlowRow::find(read, caller.workspace_id(), &flow_id)?;
    let graph: Graph = row.graph.parse()?;
    let mut issues = checks.issues(read, &row)?;
    issues.extend(scope_issues(&graph, caller));
    Ok(Json(FlowValidation {
        object: "flow_validation",
        flow_id,
        version: row.version,
        publishable: first_error(&issues).is_none(),
        issues,
        scopes: scopes(&graph).into_iter().collect(),
    }))
}

/// The nodes whose scopes the caller's key lacks.
pub(super) fn scope_issues(graph: &Graph, caller: &Caller) -> Vec<Issue> {
    let mut issues = missing_scopes(graph, |scope| caller.key.scopes.contains(scope));
    for issue in &mut issues {
        issue.param = format!("draft.{}", issue.param);
    }
    issues
}

/// The first issue that prevents the publication.
pub(super) fn first_error(issues: &[Issue]) -> Option<&Issue> {
    issues.iter().find(|issue| issue.severity == Severity::Error)
}
