//! Rows of the log of requests. A search looks at a limited number of them, so that it takes as long in a large log as in a
//! small one.

use super::source::SourceFilter;
use auth::keys::is_of_kinds;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::{KeyId, RequestId, Result, Timestamp, WorkspaceId, Zeros};
use operation::request_hours::StatusClass;
use operation::schema::request_logs as l;
use store::{AnyConnection, OneRow, Read};

/// The rows that one request looks at, at most.
pub(super) const MOST_ROWS: i64 = 20_000;

/// A row of the log.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = l)]
pub(super) struct LoggedRow {
    pub(super) id: RequestId,
    pub(super) created_at: Timestamp,
    pub(super) key_id: Option<KeyId>,
    pub(super) operation: Option<String>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) status: i64,
    pub(super) code: Option<String>,
    pub(super) gate: Option<String>,
    pub(super) livemode: Option<bool>,
    pub(super) latency_us: i64,
    pub(super) energy: i64,
    pub(super) replayed: bool,
    pub(super) client_request_id: Option<String>,
    pub(super) trace_id: Option<String>,
    pub(super) interface: Option<String>,
    pub(super) message: Option<String>,
    pub(super) param: Option<String>,
}

/// The rows that are looked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) before: Option<RequestId>,
    pub(super) keys: Option<Vec<KeyId>>,
    pub(super) operation: Option<String>,
    pub(super) class: Option<StatusClass>,
    pub(super) code: Option<String>,
    pub(super) gate: Option<String>,
    pub(super) param: Option<String>,
    pub(super) source: Option<SourceFilter>,
    pub(super) from: Option<Timestamp>,
    pub(super) to: Option<Timestamp>,
}

/// What a search found.
pub(super) struct Found {
    pub(super) rows: Vec<LoggedRow>,
    /// The oldest row that was looked at, if older ones are left.
    pub(super) floor: Option<(RequestId, Timestamp)>,
}

impl Wanted {
    /// Returns whether only requests that failed are looked for. They have an index of their own.
    fn is_about_failures(&self) -> bool {
        let is_failed = self.class.is_some_and(|class| class != StatusClass::Success);
        is_failed || self.code.is_some() || self.gate.is_some() || self.param.is_some()
    }
}

/// Returns at most `most` rows of a workspace, newest first.
pub(super) fn search(read: &mut Read, workspace: WorkspaceId, wanted: &Wanted, most: i64) -> Result<Found> {
    let floor = floor(read, workspace, wanted)?;
    let mut query = candidates(workspace, wanted).select(LoggedRow::as_select()).limit(most);
    if let Some((id, _)) = &floor {
        query = query.filter(l::id.ge(id.as_str().to_owned()));
    }
    if let Some(keys) = &wanted.keys {
        let keys: Vec<String> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        query = query.filter(l::key_id.eq_any(keys));
    }
    if let Some(operation) = &wanted.operation {
        query = query.filter(l::operation.eq(operation.clone()));
    }
    if let Some(code) = &wanted.code {
        query = query.filter(l::code.eq(code.clone()));
    }
    if let Some(gate) = &wanted.gate {
        query = query.filter(l::gate.eq(gate.clone()));
    }
    if let Some(param) = &wanted.param {
        query = query.filter(l::param.eq(param.clone()));
    }
    if let Some(source) = wanted.source {
        query = query.filter(is_of_kinds("request_logs.key_id", source.kinds()));
    }
    query = match wanted.class {
        Some(StatusClass::Success) => query.filter(l::status.lt(400)),
        Some(StatusClass::Refused) => query.filter(l::status.lt(500)),
        Some(StatusClass::Failed) => query.filter(l::status.ge(500)),
        None => query,
    };
    Ok(Found { rows: query.load(read.connection())?, floor })
}

/// Returns the last of the rows that one request looks at, or `None` if there are not so many.
fn floor(read: &mut Read, workspace: WorkspaceId, wanted: &Wanted) -> Result<Option<(RequestId, Timestamp)>> {
    let query = candidates(workspace, wanted).select((l::id, l::created_at)).offset(MOST_ROWS - 1).limit(1);
    Ok(query.first(read.connection()).optional()?)
}

type Backend = <AnyConnection as Connection>::Backend;
type Candidates = l::BoxedQuery<'static, Backend>;

/// The rows of a time, newest first. Written so that each of the two indexes answers it in order.
fn candidates(workspace: WorkspaceId, wanted: &Wanted) -> Candidates {
    let mut query: Candidates =
        l::table.filter(l::workspace_id.eq(workspace)).order(l::id.desc()).into_boxed();
    if wanted.is_about_failures() {
        // As in the partial index: neither database uses it for an equivalent condition with a parameter.
        query = query.filter(sql::<Bool>("status >= 400"));
    }
    if let Some(before) = &wanted.before {
        query = query.filter(l::id.lt(before.as_str().to_owned()));
    }
    // Ids begin with the time, so a time is a range of ids.
    if let Some(from) = wanted.from {
        query = query.filter(l::id.ge(first_at(from).as_str().to_owned()));
    }
    if let Some(to) = wanted.to {
        query = query.filter(l::id.lt(first_at(to).as_str().to_owned()));
    }
    query
}

/// Returns the smallest id of a request that came at a time.
fn first_at(time: Timestamp) -> RequestId {
    RequestId::new(time, &Zeros)
}

/// Returns a row of a workspace.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, workspace: WorkspaceId, id: &RequestId) -> Result<LoggedRow> {
    l::table
        .filter(l::id.eq(id.as_str().to_owned()))
        .filter(l::workspace_id.eq(workspace))
        .select(LoggedRow::as_select())
        .first(read.connection())
        .or_not_found("request")
}
