//! Deletion of a flow.

use super::model::FlowRow;
use super::object::Flow;
use super::versions::VersionRow;
use crate::engine::FlowEngine;
use crate::runs::queries;
use crate::runs::row::FlowRunStatus;
use crate::schema::flow_runs;
use diesel::prelude::*;
use model::{Caller, Code, Error, FlowId, Result};
use operation::{Deleted, ExpectedVersion, IfMatch, Path, Query, Resource, State, operation};
use ports::{ObjectUses, UsedObject, in_use};
use serde::Deserialize;
use serde_json::json;
use store::{Read, Tx};
use utoipa::IntoParams;

/// How to delete a flow.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct DeleteFlowQuery {
    /// Whether to cancel runs that have not ended.
    #[serde(default)]
    force: Option<bool>,
}

/// Delete a flow
///
/// Deletes the flow with its versions. The history of its runs stays until its time. A flow that something uses is a 409
/// `resource_in_use` with `details.used_by`. One with runs that have not ended is a 409 `invalid_state` with `details.open_runs`,
/// unless you send `force`, which cancels them.
#[operation(delete "/workspaces/{workspaceId}/flows/{flowId}", scope = "flows:write")]
pub fn delete_flow(
    tx: &mut Tx,
    caller: &Caller,
    Path(flow_id): Path<FlowId>,
    Query(query): Query<DeleteFlowQuery>,
    if_match: IfMatch,
    uses: State<ObjectUses>,
    engine: State<FlowEngine>,
) -> Result<Deleted<Flow>> {
    let workspace = caller.workspace_id();
    FlowRow::lock_set(tx, workspace)?;
    let row = FlowRow::find_locked(tx, workspace, &flow_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    let users = uses.0.of(tx, workspace, UsedObject::Flow(flow_id))?;
    if !users.is_empty() {
        return Err(in_use("Other objects use the flow.", &users));
    }
    let open = open_runs(tx, flow_id)?;
    if open > 0 && query.force != Some(true) {
        let message = "The flow has runs that have not ended. Send `force` to cancel them.";
        return Err(Error::new(Code::InvalidState, message).with("details", json!({ "open_runs": open })));
    }
    for run in queries::open_of(tx, flow_id, None)? {
        engine.0.end_now(tx, run, FlowRunStatus::Cancelled)?;
    }
    VersionRow::forget(tx, flow_id)?;
    row.delete(tx)?;
    Ok(Deleted::of("flow", flow_id))
}

fn open_runs(read: &mut Read, flow: FlowId) -> Result<i64> {
    let open = flow_runs::table.filter(flow_runs::flow_id.eq(flow)).filter(flow_runs::ended_at.is_null());
    Ok(open.count().get_result(read.connection())?)
}
