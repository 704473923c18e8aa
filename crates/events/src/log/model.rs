//! Types of the API: events.

use model::{Actor, EventId, JsonText, KeyId, RequestId, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The request that caused an event.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventRequest {
    /// The request.
    pub id: RequestId,
    /// The key that asked; `null` where an older version of the service, which did not note it, wrote the event.
    pub key_id: Option<KeyId>,
    /// Its `Idempotency-Key`, or `null`.
    pub idempotency_key: Option<String>,
}

/// What an event comes from.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventCause {
    /// The first event of the chain that led to this one; this one itself where it begins a chain.
    pub root_event_id: EventId,
    /// How many steps it is away from the first one.
    pub depth: i64,
    /// Who did it; `null` where an older version of the service, which did not note it, wrote the event.
    #[schema(value_type = Option<Actor>)]
    pub actor: Option<JsonText>,
}

/// Something that happened in the workspace.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Event {
    /// The event.
    pub id: EventId,
    /// Always `event`.
    pub object: &'static str,
    /// Its type, such as `run.completed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it happened.
    pub created_at: Timestamp,
    /// Whether its effects were real: `false` for what the run of a test key caused.
    pub livemode: bool,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its place in the log: it rises from event to event, with gaps.
    pub sequence: i64,
    /// What happened, by the schema of its type.
    #[schema(value_type = Object)]
    pub data: JsonText,
    /// The request that led to it, or `null`: imports, received webhooks and the service itself have none.
    pub request: Option<EventRequest>,
    /// Who did it, and what led to it.
    pub caused_by: EventCause,
}

/// Which events to list.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct EventQuery {
    /// Only events of these types, separated by commas: names, or `contact.*` for all of a kind.
    #[serde(default, rename = "type")]
    #[param(max_length = 1000)]
    pub(super) kind: Option<String>,
    /// Only real ones, or only those of test keys.
    #[serde(default)]
    pub(super) livemode: Option<bool>,
    /// Only events about this contact.
    #[serde(default)]
    pub(super) contact_id: Option<i64>,
    /// Only events from this moment on.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// Only events before this moment.
    #[serde(default)]
    pub(super) until: Option<Timestamp>,
}

/// Events of one type in one hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventHour {
    /// The hour's beginning (UTC).
    pub hour: Timestamp,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many.
    pub count: i64,
}

/// Events of one type.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventCount {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// How many.
    pub count: i64,
}

/// How many events there were.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EventStats {
    /// Always `event_stats`.
    pub object: &'static str,
    /// The first hour.
    pub since: Timestamp,
    /// The end of the last hour.
    pub until: Timestamp,
    /// All together.
    pub total: i64,
    /// By type, the most frequent first.
    pub by_type: Vec<EventCount>,
    /// By hour and type; hours without events are left out.
    pub by_hour: Vec<EventHour>,
}

/// Which hours to count.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct EventStatsQuery {
    /// From the hour of this moment on; 24 hours before `until` unless said otherwise, at most 30 days.
    #[serde(default)]
    pub(super) since: Option<Timestamp>,
    /// Up to the hour of this moment; now unless said otherwise.
    #[serde(default)]
    pub(super) until: Option<Timestamp>,
    /// Only events of this type.
    #[serde(default, rename = "type")]
    #[param(max_length = 100)]
    pub(super) kind: Option<String>,
}
