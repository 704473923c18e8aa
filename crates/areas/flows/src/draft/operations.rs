//! Operations on flows: list, create, read, update, duplicate.

use super::checks::FlowChecks;
use super::model::{FlowRow, FlowStatus};
use super::object::{Flow, FlowCopy, FlowPatch, FlowQuery, NewFlow};
use super::settings::Settings;
use fields::text::copy_name;
use flow_graphs::{Graph, Node};
use model::{Caller, FlowId, JsonText, Metadata, Result, Timestamp, WorkspaceId};
use operation::{
    Body, Created, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Resource, Update, With,
    operation,
};
use serde_json::json;
use store::{Read, Tx};

/// The characters of a name that remain in that of a copy.
const KEPT_OF_NAME: usize = 100;

/// List flows
///
/// Lists the workspace's flows, newest first, without their nodes. Send `status` for the flows in one state.
#[operation(get "/workspaces/{workspaceId}/flows", scope = "automations:read", ceiling = 300)]
pub fn list_flows(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<FlowQuery>,
    page: OptIn,
) -> Result<OptInList<Flow>> {
    let rows = FlowRow::list_heads(read, caller.workspace_id(), query.status, page.page())?;
    let flows = rows.into_iter().map(FlowRow::head).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(flows, |flow| flow.id.to_string()))
}

/// Create a flow
///
/// Stores the nodes and edges as a draft, which starts no runs until it is published. A draft may have issues: `issue_counts`
/// says how many, and the validation of the flow lists them. Only a type of node that does not exist, more than 500 nodes, or
/// JSON of another shape is rejected, with a `param` such as `draft.nodes[3].type`. A name that another flow has is a 409
/// `duplicate_value`.
#[operation(post "/workspaces/{workspaceId}/flows", scope = "flows:write", body_mib = 4)]
pub fn create_flow(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewFlow>,
    checks: FlowChecks,
) -> Result<Created<Flow>> {
    let graph = new.draft.unwrap_or_default().applied_to(only_a_trigger());
    let settings = new.settings.unwrap_or_default().applied_to(Settings::default());
    let metadata = new.metadata.unwrap_or_default();
    let row = fresh(caller.workspace_id(), new.name, &settings, &graph, &metadata, tx.now()).create(tx)?;
    Ok(Created(checks.shown(tx, row)?))
}

/// The graph of a flow that nobody has drawn yet.
fn only_a_trigger() -> Graph {
    let node: Option<Node> = serde_json::from_value(json!({ "id": "start", "type": "trigger" })).ok();
    Graph { nodes: node.into_iter().collect(), ..Graph::default() }
}

fn fresh(
    workspace: WorkspaceId,
    name: String,
    settings: &Settings,
    graph: &Graph,
    metadata: &Metadata,
    now: Timestamp,
) -> FlowRow {
    FlowRow {
        id: FlowId(0),
        workspace_id: workspace,
        name,
        status: FlowStatus::Inactive,
        settings: JsonText::of(settings),
        graph: JsonText::of(graph),
        published_version: None,
        metadata: JsonText::of(metadata),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}

/// Flow with its draft of nodes and edges
///
/// Returns the draft. The `ETag` header is its version. Send it as `If-Match` with a change to prevent overwriting changes by
/// others.
#[operation(get "/workspaces/{workspaceId}/flows/{flowId}", scope = "automations:read")]
pub fn get_flow(
    read: &mut Read,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    checks: FlowChecks,
) -> Result<With<Json<Flow>>> {
    let row = FlowRow::find(read, caller.workspace_id(), &flow_id)?;
    Ok(With::etag(row.version, Json(checks.shown(read, row)?)))
}

/// Change the draft: name, settings, nodes and edges
///
/// Fields that are not sent stay unchanged, and so do members of `draft` and `settings`. The published version and its runs stay
/// as they are until the draft is published; `name` and `metadata` apply at once. With `version` or `If-Match`, the request is
/// rejected with 409 `version_conflict` if the flow was changed in the meantime.
#[operation(patch "/workspaces/{workspaceId}/flows/{flowId}", scope = "flows:write", body_mib = 4)]
pub fn update_flow(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Body(patch): Body<FlowPatch>,
    if_match: IfMatch,
    checks: FlowChecks,
) -> Result<With<Json<Flow>>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let mut update = Update::<FlowRow>::begin(tx, caller.workspace_id(), &flow_id, expected)?;
    let row = &mut update.row;
    if let Some(draft) = patch.draft {
        row.graph = JsonText::of(&draft.applied_to(row.graph.parse()?));
    }
    if let Some(settings) = patch.settings {
        row.settings = JsonText::of(&settings.applied_to(row.settings.parse()?));
    }
    if let Some(name) = patch.name {
        row.name = name;
    }
    if let Some(metadata) = &patch.metadata {
        row.metadata = JsonText::of(metadata);
    }
    tagged(tx, update, &checks)
}

/// Stores a change, if it is one, and returns the flow with its version as `ETag`.
pub(super) fn tagged(tx: &mut Tx, update: Update<FlowRow>, checks: &FlowChecks) -> Result<With<Json<Flow>>> {
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    Ok(With::etag(row.version, Json(checks.shown(tx, row)?)))
}

/// Copy a flow
///
/// Copies the draft of the flow with its settings. The copy is inactive and has no versions.
#[operation(post "/workspaces/{workspaceId}/flows/{flowId}/duplicate", scope = "flows:write")]
pub fn duplicate_flow(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Body(copy): Body<FlowCopy>,
    checks: FlowChecks,
) -> Result<Created<Flow>> {
    let workspace = caller.workspace_id();
    FlowRow::lock_set(tx, workspace)?;
    let original = FlowRow::find(tx, workspace, &flow_id)?;
    let name = match copy.name {
        Some(name) => name,
        None => {
            let taken = FlowRow::names(tx, workspace)?;
            copy_name(&original.name, KEPT_OF_NAME, |name| taken.iter().any(|other| other == name))
        }
    };
    let metadata = match copy.metadata {
        Some(metadata) => metadata,
        None => original.metadata.parse()?,
    };
    let (settings, graph): (Settings, Graph) = (original.settings.parse()?, original.graph.parse()?);
    let row = fresh(workspace, name, &settings, &graph, &metadata, tx.now()).create(tx)?;
    Ok(Created(checks.shown(tx, row)?))
}
