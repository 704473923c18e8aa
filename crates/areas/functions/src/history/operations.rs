//! Operations on the history of a function.

use super::model::{Invocation, InvocationQuery, InvocationStatus, InvocationSummary};
use super::rows::InvocationRow;
use crate::draft::model::FunctionRow;
use crate::schema::function_invocations as table;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use model::{Caller, FunctionId, InvocationId, Result, WorkspaceId};
use operation::{Json, OptIn, OptInList, Path, Query, Resource, operation};
use store::{OptInPage, Read};

/// Past invocations
///
/// Lists the calls of the function, newest first, without their inputs and outputs. They are kept for 14 days. A call that only
/// reads appears when it ends.
#[operation(get "/functions/{functionId}/invocations", scope = "functions:read")]
pub fn list_function_invocations(
    read: &mut Read,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    Query(query): Query<InvocationQuery>,
    page: OptIn,
) -> Result<OptInList<InvocationSummary>> {
    let workspace = caller.workspace_id();
    FunctionRow::find(read, workspace, &function_id)?;
    let rows = list(read, workspace, function_id, query.status, page.page())?;
    let invocations = rows.iter().map(InvocationRow::summary).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(invocations, |invocation| invocation.id.to_string()))
}

/// One invocation with input, output, logs and duration
///
/// Returns a call of the function.
#[operation(get "/functions/{functionId}/invocations/{invocationId}", scope = "functions:read")]
pub fn get_function_invocation(
    read: &mut Read,
    caller: &Caller,
    Path(function_id): Path<FunctionId>,
    Path(invocation_id): Path<InvocationId>,
) -> Result<Json<Invocation>> {
    let row = InvocationRow::find(read, caller.workspace_id(), function_id, &invocation_id)?;
    Ok(Json(row.invocation()?))
}

/// Lists rows without their long texts.
fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    function: FunctionId,
    status: Option<InvocationStatus>,
    page: &OptInPage,
) -> Result<Vec<InvocationRow>> {
    let nothing = || None::<&str>.into_sql::<Nullable<Text>>();
    let mut query = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::function_id.eq(function))
        .order(table::id.desc())
        .limit(page.fetch())
        .select((
            table::id,
            table::workspace_id,
            table::function_id,
            table::version,
            table::mode,
            table::status,
            "null".into_sql::<Text>(),
            nothing(),
            table::error,
            nothing(),
            nothing(),
            nothing(),
            table::duration_ms,
            table::memory_peak_bytes,
            table::caller,
            table::chain,
            table::once_key,
            table::lease_until,
            table::created_at,
            table::ended_at,
        ))
        .into_boxed();
    if let Some(status) = status {
        query = query.filter(table::status.eq(status));
    }
    if let Some(after) = page.after::<InvocationId>()? {
        query = query.filter(table::id.lt(after));
    }
    Ok(query.load::<InvocationRow>(read.connection())?)
}
