//! Types of the API: events.

use model::{Actor, ContactId, EventId, JsonText, KeyId, RequestId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The request that caused an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key_id": "key_01m7w4n5e0k3p8r2v6x9b1d4f7" }))]
pub struct EventRequest {
    /// The id of the request.
    pub id: RequestId,
    /// The key of the request. `null` for events that an older version of the service recorded without it.
    pub key_id: Option<KeyId>,
    /// The `Idempotency-Key` of the request, or `null`.
    pub idempotency_key: Option<String>,
}

/// The cause of an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "depth": 0 }))]
pub struct EventCause {
    /// The first event of the chain that led to this one. The event's own id if it starts a chain. The first event of a chain
    /// that a run starts is the one that announces the end of the run.
    pub root_event_id: EventId,
    /// The number of steps from the first event of the chain.
    pub depth: i64,
    /// Who caused the event. `null` for events that an older version of the service recorded without it.
    #[schema(value_type = Option<Actor>)]
    pub actor: Option<JsonText>,
}

/// An event of the workspace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "run.completed", "livemode": true, "sequence": 1042,
    "data": { "run_id": "run_01m7w4n5e0k3p8r2v6x9b1d4f7", "status": "completed", "agent_id": 1, "energy": 12 },
}))]
pub struct Event {
    /// The id of the event.
    pub id: EventId,
    /// Always `event`.
    pub object: &'static str,
    /// The type of the event, such as `run.completed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When the event occurred.
    pub created_at: Timestamp,
    /// Whether the effects were real. `false` for runs made with a test key.
    pub livemode: bool,
    /// The id of the workspace.
    pub workspace_id: WorkspaceId,
    /// The position in the log. It increases from event to event, with gaps.
    pub sequence: i64,
    /// The data of the event. Its schema depends on the type.
    #[schema(value_type = Object)]
    pub data: JsonText,
    /// The request that led to the event. `null` for imports, received webhooks and the service itself.
    pub request: Option<EventRequest>,
    /// The actor and the events that led to this one.
    pub caused_by: EventCause,
}

/// Which events to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct EventQuery {
    /// Only events of these types, separated by commas: names, or patterns such as `contact.*`.
    #[serde(default, rename = "type")]
    #[param(max_length = 1000, example = "run.completed,item.*")]
    pub(super) kind: Option<String>,
    /// Only live events, or only those of test keys.
    #[serde(default)]
    pub(super) livemode: Option<bool>,
    /// Only events about this contact, or about one that was merged into it.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    pub(super) contact_id: Option<ContactId>,
    /// Only events from this time on.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// Only events before this time.
    #[serde(default)]
    pub(super) until: Option<Timestamp>,
}

/// The number of events of one type in one hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "run.completed", "count": 5 }))]
pub struct EventHour {
    /// The start of the hour (UTC).
    pub hour: Timestamp,
    /// The type of event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of events.
    pub count: i64,
}

/// The number of events of one type.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "run.completed", "count": 42 }))]
pub struct EventCount {
    /// The type of event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number of events.
    pub count: i64,
}

/// The number of events in a period.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "since": "2026-11-19T10:00:00.000Z", "until": "2026-11-20T10:00:00.000Z", "total": 42 }))]
pub struct EventStats {
    /// Always `event_stats`.
    pub object: &'static str,
    /// The start of the first hour.
    pub since: Timestamp,
    /// The end of the last hour.
    pub until: Timestamp,
    /// The total number of events.
    pub total: i64,
    /// The number of events of each type, most frequent first.
    pub by_type: Vec<EventCount>,
    /// The number of events by hour and type. Hours without events are left out.
    pub by_hour: Vec<EventHour>,
}

/// Which hours to count.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct EventStatsQuery {
    /// The start of the period, rounded to the hour; 24 hours before `until` if not given. At most 30 days.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// The end of the period, rounded to the hour; now if not given.
    #[serde(default)]
    pub(super) until: Option<Timestamp>,
    /// Only events of this type.
    #[serde(default, rename = "type")]
    #[param(max_length = 100)]
    pub(super) kind: Option<String>,
}
