//! The events that a request has led to.

use super::rows::LoggedRow;
use ::events::LoggedEvent;
use model::{EventId, JsonText, Result, Timestamp, WorkspaceId, Zeros};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// The events of one answer.
const MOST: i64 = 100;
/// For how long after its answer events of a request are looked for, in milliseconds.
const AFTER_MS: i64 = 10_000;
/// The longest time of a request in which events are looked for, in milliseconds.
const MOST_MS: i64 = 60_000;

/// An event that a request has led to.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "type": "contact.created", "data": { "contact_id": 1 } }))]
pub struct RequestEvent {
    /// The id of the event.
    pub id: EventId,
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data of the event.
    #[schema(value_type = Object)]
    pub data: JsonText,
    /// When the event occurred.
    pub created_at: Timestamp,
}

/// Returns the events that name a request as their cause, in their order.
pub(super) fn of_request(
    read: &mut Read,
    workspace: WorkspaceId,
    row: &LoggedRow,
) -> Result<Vec<RequestEvent>> {
    let took = (row.latency_us / 1_000).min(MOST_MS);
    let until = Timestamp::from_millis(row.created_at.millis() + took + AFTER_MS);
    let ids = EventId::new(row.created_at, &Zeros)..EventId::new(until, &Zeros);
    let found = ::events::placed_of_request(read, workspace, &row.id, &ids, MOST)?;
    Ok(found
        .into_iter()
        .map(|LoggedEvent { id, kind, data, created_at, .. }| RequestEvent { id, kind, data, created_at })
        .collect())
}
