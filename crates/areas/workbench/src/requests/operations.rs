//! Operations that search the log of requests and explain one of them.

use super::model::{KeyNames, LoggedRequest, RequestSearch, RequestSearchQuery};
use super::rows::{self, Found, Wanted};
use super::why::{RequestReason, reason};
use accounts::links::Place;
use accounts::memberships;
use auth::keys;
use model::{Caller, KeyId, MemberId, RequestId, Result, WorkspaceId};
use operation::{Json, Path, Query, operation};
use store::Read;

/// The rows of a page if the query does not say how many.
const PAGE: i64 = 50;

/// Search the log of requests
///
/// Returns the newest requests first. All conditions must hold. One request looks at 20,000 rows of the log at most, and the
/// answer says how far back it got: go on with `before` set to `next_before`.
#[operation(get "/dashboard/requests", session = "logs:read")]
pub fn search_requests(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<RequestSearchQuery>,
) -> Result<Json<RequestSearch>> {
    let workspace = caller.workspace_id();
    let most = query.page_size.unwrap_or(PAGE);
    let wanted = Wanted {
        keys: keys_of(read, workspace, query.key_id, query.member_id)?,
        before: query.before,
        operation: query.operation,
        class: query.status_class,
        code: query.code,
        gate: query.gate,
        param: query.param,
        source: query.source,
        from: query.from,
        to: query.to,
    };
    // One more than asked for says whether there are more.
    let Found { mut rows, floor } = rows::search(read, workspace, &wanted, most + 1)?;
    let has_more = i64::try_from(rows.len()).unwrap_or(i64::MAX) > most;
    rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let (next_before, searched_to) = match (has_more, &floor) {
        (true, _) => {
            let last = rows.last();
            (last.map(|row| row.id.clone()), last.map(|row| row.created_at))
        }
        (false, Some((id, at))) => (Some(id.clone()), Some(*at)),
        (false, None) => (None, wanted.from),
    };
    let names = keys::names(read, workspace)?;
    Ok(Json(RequestSearch {
        object: "request_search",
        is_complete: next_before.is_none(),
        requests: rows.into_iter().map(|row| LoggedRequest::of(row, &names)).collect(),
        next_before,
        searched_to,
    }))
}

/// Why a request ended as it did
///
/// Returns the request, all checks in their order up to the one that refused it, what it saw, what mends it, and the last
/// success of the same operation.
#[operation(get "/dashboard/requests/{requestId}", session = "logs:read")]
pub fn get_request_reason(
    read: &mut Read,
    caller: &Caller,
    Path(request_id): Path<RequestId>,
) -> Result<Json<RequestReason>> {
    let workspace = caller.workspace_id();
    let row = rows::find(read, workspace, &request_id)?;
    let names: KeyNames = keys::names(read, workspace)?;
    reason(read, caller, row, &names).map(Json)
}

/// Returns the keys whose requests are wanted: one, or those of a member. `None` is all.
fn keys_of(
    read: &mut Read,
    workspace: WorkspaceId,
    key: Option<KeyId>,
    member: Option<MemberId>,
) -> Result<Option<Vec<KeyId>>> {
    let Some(member) = member else { return Ok(key.map(|key| vec![key])) };
    let membership = memberships::of_member(read, Place { workspace, member })?;
    let own = membership.map_or_else(Vec::new, |one| vec![one.live_key, one.test_key]);
    Ok(Some(match key {
        Some(key) => own.into_iter().filter(|one| *one == key).collect(),
        None => own,
    }))
}
