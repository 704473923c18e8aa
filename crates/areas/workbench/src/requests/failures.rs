//! Failures of requests, grouped by what failed.

use super::rows::{self, LoggedRow, Wanted};
use super::source::SourceFilter;
use model::{Caller, KeyId, RequestId, Result, Timestamp};
use operation::request_hours::StatusClass;
use operation::{Json, Query, operation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The groups of one answer.
const MOST_GROUPS: usize = 50;
/// The failures that one answer looks at.
const MOST_FAILURES: i64 = 5_000;
const DAY_SECONDS: i64 = 86_400;

/// The failures to group.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct RequestFailuresQuery {
    /// From this time on; 24 hours ago if not given.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// How the requests ended: `refused` or `failed`; both if not given.
    #[param(inline)]
    #[serde(default)]
    pub status_class: Option<StatusClass>,
    /// Requests of this key only.
    #[param(inline)]
    #[serde(default)]
    pub key_id: Option<KeyId>,
    /// Requests that came from here only.
    #[param(inline)]
    #[serde(default)]
    pub source: Option<SourceFilter>,
}

/// Failures with the same operation, code and parameter.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "operation": "createContact", "code": "validation_error", "param": "data.email", "requests": 12, "status": 400,
    "message": "`data.email` must be an email address.",
}))]
pub struct RequestFailureGroup {
    /// The operation, if the address is one.
    pub operation: Option<String>,
    /// The error code.
    pub code: Option<String>,
    /// The parameter or scope.
    pub param: Option<String>,
    /// The number of requests.
    pub requests: i64,
    /// The status of the newest of them.
    pub status: i64,
    /// The message of the newest of them.
    pub message: Option<String>,
    /// The newest of them.
    pub last_request_id: RequestId,
    /// When the newest of them came.
    pub last_at: Timestamp,
    /// When the oldest of them came.
    pub first_at: Timestamp,
}

/// The failures of a time, grouped.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "requests": 12 }))]
pub struct RequestFailures {
    /// Always `request_failures`.
    pub object: &'static str,
    /// The number of failures that were looked at: at most the newest 5,000.
    pub requests: i64,
    /// Back to when failures were looked at.
    pub from: Timestamp,
    /// The 50 largest groups, the largest first.
    pub groups: Vec<RequestFailureGroup>,
}

/// Failures grouped by what failed
///
/// Groups the failures of a time by operation, error code and parameter. Looks at the newest 5,000 failures at most.
#[operation(get "/dashboard/request-failures", session = "logs:read")]
pub fn list_request_failures(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<RequestFailuresQuery>,
) -> Result<Json<RequestFailures>> {
    let from = query.from.unwrap_or_else(|| read.now().plus_seconds(-DAY_SECONDS));
    let is_success = query.status_class == Some(StatusClass::Success);
    let rows = if is_success { Vec::new() } else { failures(read, caller, from, &query)? };
    let is_cut = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= MOST_FAILURES;
    let oldest = rows.last().map(|row| row.created_at).filter(|_| is_cut);
    Ok(Json(RequestFailures {
        object: "request_failures",
        requests: i64::try_from(rows.len()).unwrap_or(i64::MAX),
        from: oldest.unwrap_or(from),
        groups: grouped(rows),
    }))
}

fn failures(
    read: &mut Read,
    caller: &Caller,
    from: Timestamp,
    query: &RequestFailuresQuery,
) -> Result<Vec<LoggedRow>> {
    let mut all = Vec::new();
    let classes = query
        .status_class
        .map_or_else(|| vec![StatusClass::Refused, StatusClass::Failed], |class| vec![class]);
    for class in classes {
        let wanted = Wanted {
            keys: query.key_id.clone().map(|key| vec![key]),
            class: Some(class),
            source: query.source,
            from: Some(from),
            ..Wanted::default()
        };
        all.extend(rows::search(read, caller.workspace_id(), &wanted, MOST_FAILURES)?.rows);
    }
    all.sort_unstable_by(|one, other| other.id.cmp(&one.id));
    all.truncate(usize::try_from(MOST_FAILURES).unwrap_or(usize::MAX));
    Ok(all)
}

/// Groups rows that are sorted from the newest to the oldest.
fn grouped(rows: Vec<LoggedRow>) -> Vec<RequestFailureGroup> {
    let mut groups = BTreeMap::new();
    for row in rows {
        let key = (row.operation.clone(), row.code.clone(), row.param.clone());
        let group = groups.entry(key).or_insert_with(|| RequestFailureGroup {
            operation: row.operation,
            code: row.code,
            param: row.param,
            requests: 0,
            status: row.status,
            message: row.message,
            last_request_id: row.id,
            last_at: row.created_at,
            first_at: row.created_at,
        });
        group.requests += 1;
        group.first_at = row.created_at;
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse((group.requests, group.last_at)));
    groups.truncate(MOST_GROUPS);
    groups
}
