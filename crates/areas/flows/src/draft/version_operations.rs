//! Operations on published versions.

use super::checks::FlowChecks;
use super::model::FlowRow;
use super::object::Flow;
use super::operations::tagged;
use super::settings::{Settings, input_schema};
use super::versions::VersionRow;
use flow_graphs::Graph;
use model::{Caller, Env, FlowId, KeyId, Result, Timestamp};
use operation::{ExpectedVersion, Json, OptIn, OptInList, Path, Resource, Update, Version, With, operation};
use serde::Serialize;
use serde_json::Value;
use store::{Read, Tx};
use utoipa::ToSchema;

/// A published version of a flow. It never changes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "version": 2, "scopes": ["contacts:write"], "published_by": "key_01m7w4n5e0k3p8r2v6x9b1d4f7",
}))]
pub struct FlowVersion {
    /// Always `flow_version`.
    object: &'static str,
    /// The id of the flow.
    flow_id: FlowId,
    /// The number of the version.
    version: i64,
    /// The settings in this version.
    settings: Settings,
    /// The nodes, edges and variables. Only when a single version is requested.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    graph: Option<Graph>,
    /// A JSON Schema of the input, as the trigger states it. Only when a single version is requested.
    #[schema(value_type = Object, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Value>,
    /// The scopes that the nodes use.
    scopes: Vec<String>,
    /// The key that published the version. Its runs have the rights of the key.
    published_by: KeyId,
    /// The environment of that key. A version that a test key published runs in test mode only.
    env: Env,
    /// When the object was created.
    created_at: Timestamp,
}

impl FlowVersion {
    fn head(row: VersionRow) -> Result<Self> {
        Ok(Self {
            object: "flow_version",
            flow_id: row.flow_id,
            version: row.version,
            settings: row.settings.parse()?,
            graph: None,
            input_schema: None,
            scopes: row.scopes.parse()?,
            published_by: row.key_id,
            env: row.env,
            created_at: row.created_at,
        })
    }

    fn whole(row: VersionRow) -> Result<Self> {
        let graph: Graph = row.graph.parse()?;
        Ok(Self { input_schema: Some(input_schema(&graph)), graph: Some(graph), ..Self::head(row)? })
    }
}

/// Published versions
///
/// Lists the flow's versions, newest first, without their nodes. The first one is the published version.
#[operation(get "/workspaces/{workspaceId}/flows/{flowId}/versions", scope = "automations:read")]
pub fn list_flow_versions(
    read: &mut Read,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    page: OptIn,
) -> Result<OptInList<FlowVersion>> {
    let workspace = caller.workspace_id();
    FlowRow::find(read, workspace, &flow_id)?;
    let rows = VersionRow::list_heads(read, workspace, flow_id, page.page())?;
    let versions = rows.into_iter().map(FlowVersion::head).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(versions, |version| version.version.to_string()))
}

/// One published version with its nodes and edges
///
/// Returns the nodes, edges, variables and settings of a version. Versions never change.
#[operation(get "/workspaces/{workspaceId}/flows/{flowId}/versions/{version}", scope = "automations:read")]
pub fn get_flow_version(
    read: &mut Read,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Path(version): Path<i64>,
) -> Result<Json<FlowVersion>> {
    let workspace = caller.workspace_id();
    FlowRow::find(read, workspace, &flow_id)?;
    Ok(Json(FlowVersion::whole(VersionRow::find(read, workspace, &flow_id, version)?)?))
}

/// Bring a published version back into the draft
///
/// Replaces the nodes, edges, variables and settings of the draft by those of the version. The name stays, and so does the
/// published version: publish the draft to make runs execute it.
#[operation(post "/workspaces/{workspaceId}/flows/{flowId}/versions/{version}/restore", scope = "flows:write")]
pub fn restore_flow_version(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Path(version): Path<i64>,
    checks: FlowChecks,
) -> Result<With<Json<Flow>>> {
    let workspace = caller.workspace_id();
    let mut update = Update::<FlowRow>::begin(tx, workspace, &flow_id, ExpectedVersion::default())?;
    update.restore(tx, version)?;
    tagged(tx, update, &checks)
}
