//! Operations on the event log.

use super::model::{Event, EventCount, EventHour, EventQuery, EventStats, EventStatsQuery};
use super::queries::{self, Chosen};
use super::rows::hour;
use super::{Catalogue, EventTypeInfo};
use crate::schema::event_hours;
use diesel::prelude::*;
use model::{Caller, Error, EventId, Result, Timestamp};
use operation::{Json, OffsetList, OffsetPage, Path, Query, Rows, State, operation};
use ports::People;
use std::collections::BTreeMap;
use store::Read;

/// The event log
///
/// Lists events, newest first. Events are kept for 30 days by default, or for a shorter time where the log
/// of a workspace is too large.
#[operation(get "/events", scope = "events:read")]
pub fn list_events(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<EventQuery>,
    page: OffsetPage,
    catalogue: State<Catalogue>,
    people: State<People>,
) -> Result<OffsetList<Event>> {
    let chosen = Chosen::by(read, caller.workspace_id(), (&catalogue.0, &people.0), &query)?;
    let (events, total) = queries::page(read, caller.workspace_id(), &chosen, page)?;
    Ok(OffsetList::of(page, events, total))
}

/// One event
///
/// Returns the event with its data. `GET /events` says how long events are kept.
#[operation(get "/events/{eventId}", scope = "events:read")]
pub fn get_event(read: &mut Read, caller: &Caller, Path(event_id): Path<EventId>) -> Result<Json<Event>> {
    Ok(Json(queries::find(read, caller.workspace_id(), &event_id)?))
}

/// Event types with the schema of their data
///
/// Lists the types of events with a description, the scope that a subscription needs, and a JSON Schema of their
/// `data`.
#[operation(get "/events/types", scope = "events:read")]
pub fn list_event_types(catalogue: State<Catalogue>) -> Result<Rows<EventTypeInfo>> {
    Ok(Rows(catalogue.0.shown().to_vec()))
}

const HOUR: i64 = 3600;
const LONGEST_HOURS: i64 = 30 * 24;

/// Counts by type and hour
///
/// Counts events by type and by hour, for the last 24 hours or a period of up to 30 days.
#[operation(get "/events/stats", scope = "events:read")]
pub fn get_event_stats(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<EventStatsQuery>,
) -> Result<Json<EventStats>> {
    let until = hour(query.until.unwrap_or_else(|| read.now())).plus_seconds(HOUR);
    let since = query.since.map_or_else(|| until.plus_seconds(-24 * HOUR), hour);
    let hours = (until.seconds() - since.seconds()) / HOUR;
    if hours < 1 {
        return Err(Error::invalid("until", "must not be before `since`"));
    }
    if hours > LONGEST_HOURS + 1 {
        return Err(Error::invalid("since", "must be at most 30 days before `until`"));
    }
    let mut rows = event_hours::table
        .filter(event_hours::workspace_id.eq(caller.workspace_id()))
        .filter(event_hours::hour.ge(since))
        .filter(event_hours::hour.lt(until))
        .order((event_hours::hour, event_hours::kind))
        .select((event_hours::hour, event_hours::kind, event_hours::events))
        .into_boxed();
    if let Some(kind) = query.kind {
        rows = rows.filter(event_hours::kind.eq(kind));
    }
    let rows: Vec<(Timestamp, String, i64)> = rows.load(read.connection())?;
    let mut types: BTreeMap<String, i64> = BTreeMap::new();
    for (_, kind, count) in &rows {
        *types.entry(kind.clone()).or_default() += count;
    }
    let mut by_type: Vec<EventCount> =
        types.into_iter().map(|(kind, count)| EventCount { kind, count }).collect();
    by_type.sort_by_key(|row| std::cmp::Reverse(row.count));
    Ok(Json(EventStats {
        object: "event_stats",
        since,
        until,
        total: by_type.iter().map(|row| row.count).sum(),
        by_type,
        by_hour: rows.into_iter().map(|(hour, kind, count)| EventHour { hour, kind, count }).collect(),
    }))
}
