//! The events that a request has led to.

use super::rows::{LoggedRow, Zeros};
use diesel::prelude::*;
use model::{EventId, JsonText, Result, Timestamp, WorkspaceId};
use serde::Serialize;
use store::Read;
use store::schema::events as e;
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
    // Ids begin with the time: a range of them is a few rows of the index, where a search by request would read them all.
    let took = (row.latency_us / 1_000).min(MOST_MS);
    let until = Timestamp::from_millis(row.created_at.millis() + took + AFTER_MS);
    let first = |time| EventId::new(time, &Zeros);
    let found: Vec<(EventId, String, JsonText, Timestamp)> = e::table
        .filter(e::id.ge(first(row.created_at)))
        .filter(e::id.lt(first(until)))
        .filter(e::workspace_id.eq(workspace))
        .filter(e::request_id.eq(row.id.as_str()))
        .filter(e::position.is_not_null())
        .order(e::id.asc())
        .select((e::id, e::kind, e::data, e::created_at))
        .limit(MOST)
        .load(read.connection())?;
    let event = |(id, kind, data, created_at)| RequestEvent { id, kind, data, created_at };
    Ok(found.into_iter().map(event).collect())
}
