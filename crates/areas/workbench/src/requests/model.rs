//! Queries and responses about the log of requests.

use super::rows::LoggedRow;
use super::source::SourceFilter;
use auth::keys::KeyKind;
use model::{Env, KeyId, MemberId, RequestId, Timestamp, text_enum};
use operation::request_hours::StatusClass;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use utoipa::{IntoParams, ToSchema};

/// What is looked for in the log of requests.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct RequestSearchQuery {
    /// The most requests to return.
    #[param(minimum = 1, maximum = 100, default = 50)]
    #[serde(default)]
    pub page_size: Option<i64>,
    /// Requests older than this one: `next_before` of the previous answer.
    #[serde(default)]
    pub before: Option<RequestId>,
    /// Requests of this key.
    #[serde(default)]
    pub key_id: Option<KeyId>,
    /// Requests of this member, in both environments.
    #[param(value_type = Option<i64>, minimum = 1)]
    #[serde(default)]
    pub member_id: Option<MemberId>,
    /// Requests of this operation.
    #[param(max_length = 80, example = "createContact")]
    #[serde(default)]
    pub operation: Option<String>,
    /// Requests that ended so.
    #[serde(default)]
    pub status_class: Option<StatusClass>,
    /// Requests with this error code.
    #[param(max_length = 60, example = "validation_error")]
    #[serde(default)]
    pub code: Option<String>,
    /// Requests that were refused by this check.
    #[param(max_length = 40, example = "scope")]
    #[serde(default)]
    pub gate: Option<String>,
    /// Requests whose refusal named this parameter or scope.
    #[param(max_length = 200, example = "contacts:write")]
    #[serde(default)]
    pub param: Option<String>,
    /// Requests that came from here.
    #[param(inline)]
    #[serde(default)]
    pub source: Option<SourceFilter>,
    /// Requests from this time on.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// Requests before this time.
    #[serde(default)]
    pub to: Option<Timestamp>,
}

text_enum! {
    /// Who made a request.
    pub enum RequestSource {
        /// A program with an API key.
        Key = "key",
        /// A member of the team, in the dashboard.
        Dashboard = "dashboard",
        /// An OAuth app.
        App = "app",
        /// A key that is not known any more.
        Unknown = "unknown",
    }
}

/// A request of the log.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "operation": "createContact", "method": "POST", "path": "/contacts", "status": 403, "class": "refused",
    "code": "missing_scope", "gate": "scope", "message": "The key lacks the scope `contacts:write`.",
    "param": "contacts:write", "energy": 0, "replayed": false, "key_name": "Shop", "source": "key", "env": "live", "latency_us": 812,
}))]
pub struct LoggedRequest {
    /// The id of the request.
    pub id: RequestId,
    /// Always `request`.
    pub object: &'static str,
    /// The operation, if the address is one.
    pub operation: Option<String>,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The status of the response.
    pub status: i64,
    /// How the request ended.
    pub class: StatusClass,
    /// The error code.
    pub code: Option<String>,
    /// The check that refused the request.
    pub gate: Option<String>,
    /// The message of the refusal, cut at 300 bytes.
    pub message: Option<String>,
    /// The parameter or scope that the refusal named.
    pub param: Option<String>,
    /// The key.
    pub key_id: Option<KeyId>,
    /// The name of the key, or of the member or app that acts through it.
    pub key_name: Option<String>,
    /// Who made the request.
    pub source: RequestSource,
    /// The environment.
    pub env: Option<Env>,
    /// The interface that the request came through, such as `mcp`. `null` for REST.
    pub interface: Option<String>,
    /// From the first byte to the answer, in microseconds.
    pub latency_us: i64,
    /// The Energy that the request spent.
    pub energy: i64,
    /// Whether the answer was the stored one of an earlier request with the same `Idempotency-Key`.
    pub replayed: bool,
    /// The caller's own id for the request.
    pub client_request_id: Option<String>,
    /// The trace that the request came with.
    pub trace_id: Option<String>,
    /// When the request came.
    pub created_at: Timestamp,
}

/// A page of the log of requests, newest first.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "is_complete": true }))]
pub struct RequestSearch {
    /// Always `request_search`.
    pub object: &'static str,
    /// The requests.
    pub requests: Vec<LoggedRequest>,
    /// Where to go on: `before` of the next request. `null` where the log ends.
    pub next_before: Option<RequestId>,
    /// How far back the search got. One request looks at 20,000 rows at most, so a rare thing may need several.
    pub searched_to: Option<Timestamp>,
    /// Whether the search got to the end of the log, or to `from`.
    pub is_complete: bool,
}

/// The names of keys, by their ids.
pub(super) type KeyNames = HashMap<KeyId, (String, KeyKind)>;

impl LoggedRequest {
    /// Returns a row of the log as the dashboard shows it.
    pub(super) fn of(row: LoggedRow, names: &KeyNames) -> Self {
        let key = row.key_id.as_ref().and_then(|id| names.get(id));
        let source = match key.map(|(_, kind)| *kind) {
            Some(KeyKind::Secret | KeyKind::Demo) => RequestSource::Key,
            Some(KeyKind::Member) => RequestSource::Dashboard,
            Some(KeyKind::Grant) => RequestSource::App,
            None => RequestSource::Unknown,
        };
        Self {
            id: row.id,
            object: "request",
            operation: row.operation,
            method: row.method,
            path: row.path,
            status: row.status,
            class: StatusClass::of(row.status),
            code: row.code,
            gate: row.gate,
            message: row.message,
            param: row.param,
            key_name: key.map(|(name, _)| name.clone()),
            key_id: row.key_id,
            source,
            env: row.livemode.map(|live| if live { Env::Live } else { Env::Test }),
            interface: row.interface,
            latency_us: row.latency_us,
            energy: row.energy,
            replayed: row.replayed,
            client_request_id: row.client_request_id,
            trace_id: row.trace_id,
            created_at: row.created_at,
        }
    }
}
