//! Rows of the event log.

use super::model::{Event, EventCause, EventRequest};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamp as SqlTimestamp};
use model::{ActorType, Cause, Chain, EventId, JsonText, KeyId, RequestId, Timestamp, Trace, WorkspaceId};
use store::schema::events;

/// A row of `events` that has its position.
#[derive(Queryable, Selectable)]
#[diesel(table_name = events)]
pub(super) struct EventRow {
    id: EventId,
    workspace_id: WorkspaceId,
    kind: String,
    livemode: bool,
    data: JsonText,
    request_id: Option<RequestId>,
    created_at: Timestamp,
    position: Option<i64>,
    key_id: Option<KeyId>,
    idempotency_key: Option<String>,
    actor: Option<JsonText>,
    root_event_id: Option<EventId>,
    depth: i64,
}

impl EventRow {
    /// As callers see it.
    pub(super) fn event(self) -> Event {
        let key = |id: &KeyId| Cause::actor(ActorType::ApiKey, id).actor;
        let actor = self.actor.or_else(|| self.key_id.as_ref().map(key));
        let request = self.request_id.map(|id| EventRequest {
            id,
            key_id: self.key_id,
            idempotency_key: self.idempotency_key,
        });
        let caused_by = EventCause {
            root_event_id: self.root_event_id.unwrap_or_else(|| self.id.clone()),
            depth: self.depth,
            actor,
        };
        Event {
            id: self.id,
            object: "event",
            kind: self.kind,
            created_at: self.created_at,
            livemode: self.livemode,
            workspace_id: self.workspace_id,
            sequence: self.position.unwrap_or_default(),
            data: self.data,
            request,
            caused_by,
        }
    }
}

/// An event of the log, as it is delivered.
#[derive(Debug, Clone, Queryable)]
pub struct LoggedEvent {
    /// Its place in the log.
    pub position: i64,
    /// The id of the event.
    pub id: EventId,
    /// Whose event it is.
    pub workspace_id: WorkspaceId,
    /// Its type.
    pub kind: String,
    /// Whether live data is concerned.
    pub livemode: bool,
    /// What it tells.
    pub data: JsonText,
    /// When it was emitted.
    pub created_at: Timestamp,
    /// The request that led to it.
    pub request_id: Option<RequestId>,
    /// The trace of that request, as it was sent.
    pub traceparent: Option<String>,
    /// The first event of its chain of causes; `None` for an event that starts a chain.
    pub root_event_id: Option<EventId>,
    /// The number of steps from there.
    pub depth: i64,
    /// The automations that the chain went through, as a JSON array.
    pub automations: Option<JsonText>,
}

impl LoggedEvent {
    /// Its place in a chain of causes; `None` for an event that starts a chain.
    pub fn chain(&self) -> Option<Chain> {
        let automations = self.automations.as_ref().and_then(|ids| ids.parse().ok()).unwrap_or_default();
        let depth = u32::try_from(self.depth).unwrap_or(u32::MAX);
        self.root_event_id.clone().map(|root| Chain { root, depth, automations })
    }

    /// The place in the chain of what the event leads to.
    pub fn leads_to(&self) -> Chain {
        Chain::after(&self.id, self.chain().as_ref())
    }

    /// The trace of the request that led to it; `None` where there was no request.
    pub fn trace(&self) -> Option<Trace> {
        let sent = self.traceparent.as_deref().and_then(|parent| Trace::parse(parent, None));
        sent.or_else(|| self.request_id.as_ref().map(|id| Trace::of_id(id.as_str())))
    }
}

/// An event that was just given its position: what is needed of each, whether anybody subscribes to it or not.
#[derive(Debug, Clone, QueryableByName)]
pub struct NewPosition {
    /// Its place in the log.
    #[diesel(sql_type = BigInt)]
    pub position: i64,
    /// Whose event it is.
    #[diesel(sql_type = BigInt)]
    pub workspace_id: WorkspaceId,
    /// Its type.
    #[diesel(sql_type = Text)]
    pub kind: String,
    /// When it was emitted.
    #[diesel(sql_type = SqlTimestamp)]
    pub created_at: Timestamp,
    /// The bytes that its row takes.
    #[diesel(sql_type = BigInt)]
    pub bytes: i64,
}

/// The hour that a moment is in.
pub fn hour(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.millis() - time.millis().rem_euclid(3_600_000))
}
