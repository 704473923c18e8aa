//! Queries of the event log.

use super::model::{Event, EventQuery};
use super::rows::{EventRow, LoggedEvent};
use super::types::{Catalogue, is_family, matches, may_match};
use diesel::prelude::*;
use diesel::sql_types::Bool;
use input::comma_list;
use model::{ContactId, Error, EventId, RequestId, Result, Timestamp, WorkspaceId};
use ports::People;
use std::collections::BTreeSet;
use std::ops::Range;
use store::schema::events;
use store::{AnyConnection, OffsetPage, OneRow, Read};

/// What narrows a list of events.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen {
    /// Names of types; all where there are none.
    kinds: Option<Vec<String>>,
    livemode: Option<bool>,
    /// All ids of the contact that events are about.
    contacts: Option<Vec<ContactId>>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    /// Only what stands behind this place.
    pub(super) after: Option<i64>,
}

impl Chosen {
    /// What a query asks for.
    ///
    /// # Errors
    /// `validation_error` at `type` for a name that no type has.
    pub(super) fn by(
        read: &mut Read,
        workspace: WorkspaceId,
        (catalogue, people): (&Catalogue, &People),
        query: &EventQuery,
    ) -> Result<Self> {
        // Events keep the id of the contact that they were about when they happened.
        let contacts = query.contact_id.map(|id| people.ids_of(read, workspace, id)).transpose()?;
        Ok(Self {
            kinds: query.kind.as_deref().map(|text| kinds(catalogue, "type", text)).transpose()?,
            livemode: query.livemode,
            contacts,
            since: query.since,
            until: query.until,
            after: None,
        })
    }

    /// Types by their names or patterns, behind a place.
    ///
    /// # Errors
    /// `validation_error` at `types`.
    pub(super) fn live(catalogue: &Catalogue, types: Option<&str>, after: Option<i64>) -> Result<Self> {
        let kinds = types.map(|text| kinds(catalogue, "types", text)).transpose()?;
        Ok(Self { kinds, after, ..Self::default() })
    }
}

fn kinds(catalogue: &Catalogue, param: &str, text: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for pattern in comma_list(text, param)? {
        let kinds = catalogue.types().iter().map(|kind| kind.name).filter(|kind| may_match(pattern, kind));
        // Of a family, what the pattern means of it.
        let meant = kinds.map(|kind| if matches(pattern, kind) { kind } else { pattern }.to_owned());
        let before = names.len();
        names.extend(meant);
        if names.len() == before {
            return Err(Error::invalid(
                param,
                format_args!("contains `{pattern}`, which is not a type of event"),
            ));
        }
    }
    Ok(names)
}

/// The condition that an event has one of these names, or is of one of these families.
fn named(kinds: &[impl AsRef<str>]) -> Named {
    let (families, names): (Vec<&str>, Vec<&str>) =
        kinds.iter().map(AsRef::as_ref).partition(|kind| is_family(kind));
    let names = names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut condition: Named = Box::new(events::kind.eq_any(names));
    for family in families {
        condition = Box::new(condition.or(events::kind.like(format!("{}%", family.trim_end_matches('*')))));
    }
    condition
}

type Named =
    Box<dyn BoxableExpression<events::table, <AnyConnection as Connection>::Backend, SqlType = Bool>>;

/// A page of a workspace's events, and how many there are in all. The newest first, unless they are read on from a
/// place.
pub(super) fn page(
    read: &mut Read,
    workspace: WorkspaceId,
    chosen: &Chosen,
    page: OffsetPage,
) -> Result<(Vec<Event>, i64)> {
    let rows = || {
        let mut rows = events::table
            .filter(events::workspace_id.eq(workspace))
            .filter(events::position.gt(chosen.after.unwrap_or(0)))
            .into_boxed();
        if let Some(kinds) = &chosen.kinds {
            rows = rows.filter(named(kinds));
        }
        if let Some(livemode) = chosen.livemode {
            rows = rows.filter(events::livemode.eq(livemode));
        }
        match chosen.contacts.as_deref() {
            Some([one]) => rows = rows.filter(events::contact_id.eq(one.0)),
            Some(all) => rows = rows.filter(events::contact_id.eq_any(all.iter().map(|id| id.0))),
            None => {}
        }
        if let Some(since) = chosen.since {
            rows = rows.filter(events::created_at.ge(since));
        }
        if let Some(until) = chosen.until {
            rows = rows.filter(events::created_at.lt(until));
        }
        rows
    };
    // Whoever reads on from a position must not have seen one that a crash gives to another event.
    read.await_flush();
    let total = rows().count().get_result(read.connection())?;
    let ordered = match chosen.after {
        Some(_) => rows().order(events::position.asc()),
        None => rows().order(events::position.desc()),
    };
    let found = ordered.limit(page.limit).offset(page.offset).select(EventRow::as_select());
    let found: Vec<EventRow> = found.load(read.connection())?;
    Ok((found.into_iter().map(EventRow::event).collect(), total))
}

/// One event of the log.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, workspace: WorkspaceId, id: &EventId) -> Result<Event> {
    let row: EventRow = events::table
        .filter(events::id.eq(id))
        .filter(events::workspace_id.eq(workspace))
        .filter(events::position.is_not_null())
        .select(EventRow::as_select())
        .get_result(read.connection())
        .or_not_found("event")?;
    Ok(row.event())
}

type PlacedColumns = (
    diesel::dsl::AssumeNotNull<events::position>,
    events::id,
    events::workspace_id,
    events::kind,
    events::livemode,
    events::data,
    events::created_at,
    events::request_id,
    events::traceparent,
    events::root_event_id,
    events::depth,
    events::automations,
);

fn placed_columns() -> PlacedColumns {
    (
        events::position.assume_not_null(),
        events::id,
        events::workspace_id,
        events::kind,
        events::livemode,
        events::data,
        events::created_at,
        events::request_id,
        events::traceparent,
        events::root_event_id,
        events::depth,
        events::automations,
    )
}

/// One event of the log, for delivering.
pub fn placed_event(read: &mut Read, workspace: WorkspaceId, id: &EventId) -> Result<Option<LoggedEvent>> {
    Ok(events::table
        .filter(events::id.eq(id))
        .filter(events::workspace_id.eq(workspace))
        .filter(events::position.is_not_null())
        .select(placed_columns())
        .get_result(read.connection())
        .optional()?)
}

/// The events of some workspaces from one place to another, in their order.
pub fn placed_between(
    read: &mut Read,
    workspaces: &BTreeSet<WorkspaceId>,
    first: i64,
    last: i64,
) -> Result<Vec<LoggedEvent>> {
    Ok(events::table
        .filter(events::position.between(first, last))
        .filter(events::workspace_id.eq_any(workspaces))
        .order(events::position)
        .select(placed_columns())
        .load(read.connection())?)
}

/// Events of a span of time behind a place, in their order.
pub fn placed_since(
    read: &mut Read,
    workspace: WorkspaceId,
    since: Timestamp,
    until: Timestamp,
    after: i64,
    limit: i64,
) -> Result<Vec<LoggedEvent>> {
    Ok(events::table
        .filter(events::workspace_id.eq(workspace))
        .filter(events::position.gt(after))
        .filter(events::created_at.ge(since))
        .filter(events::created_at.lt(until))
        .order(events::position)
        .limit(limit)
        .select(placed_columns())
        .load(read.connection())?)
}

/// The first events that a request has led to, in the order of their ids. Ids begin with the time: a range of them is a few
/// rows of the index, where a search by request would read them all.
pub fn placed_of_request(
    read: &mut Read,
    workspace: WorkspaceId,
    request: &RequestId,
    ids: &Range<EventId>,
    limit: i64,
) -> Result<Vec<LoggedEvent>> {
    Ok(events::table
        .filter(events::id.ge(&ids.start))
        .filter(events::id.lt(&ids.end))
        .filter(events::workspace_id.eq(workspace))
        .filter(events::request_id.eq(request))
        .filter(events::position.is_not_null())
        .order(events::id)
        .limit(limit)
        .select(placed_columns())
        .load(read.connection())?)
}

/// The first events of a type from a moment on, in their order.
pub fn placed_of_kind(
    read: &mut Read,
    workspace: WorkspaceId,
    kind: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<LoggedEvent>> {
    let of_kind = || {
        events::table
            .filter(events::workspace_id.eq(workspace))
            .filter(events::kind.eq(kind))
            .filter(events::position.is_not_null())
    };
    // Positions rise with time, so the index is read backwards only as far as the last event before that moment.
    let before: Option<i64> = of_kind()
        .filter(events::created_at.lt(since))
        .order(events::position.desc())
        .select(events::position.assume_not_null())
        .first(read.connection())
        .optional()?;
    Ok(of_kind()
        .filter(events::position.gt(before.unwrap_or(0)))
        .filter(events::created_at.ge(since))
        .order(events::position)
        .limit(limit)
        .select(placed_columns())
        .load(read.connection())?)
}

/// Whether there are events of these types from behind one place up to another.
pub(crate) fn wants_any(read: &mut Read, after: i64, last: i64, kinds: &[&str]) -> Result<bool> {
    let wanted = events::table
        .filter(events::position.gt(after))
        .filter(events::position.le(last))
        .filter(named(kinds))
        .select(events::position.assume_not_null());
    Ok(wanted.first::<i64>(read.connection()).optional()?.is_some())
}

/// The first events of these types from behind one place up to another, in their order.
pub(crate) fn placed_after(
    read: &mut Read,
    after: i64,
    last: i64,
    kinds: &[&str],
    limit: i64,
) -> Result<Vec<LoggedEvent>> {
    Ok(events::table
        .filter(events::position.gt(after))
        .filter(events::position.le(last))
        .filter(named(kinds))
        .order(events::position)
        .limit(limit)
        .select(placed_columns())
        .load(read.connection())?)
}

/// Positions after a position, and whose events they are.
pub(super) fn positions(read: &mut Read, after: i64, limit: i64) -> Result<Vec<(i64, WorkspaceId)>> {
    // Whoever reads on from a position must not have seen one that a crash gives to another event.
    read.await_flush();
    Ok(events::table
        .filter(events::position.gt(after))
        .order(events::position)
        .limit(limit)
        .select((events::position.assume_not_null(), events::workspace_id))
        .load(read.connection())?)
}

/// The last place of the log.
pub(crate) fn last_place(read: &mut Read) -> Result<Option<i64>> {
    // The index knows only events with a place, and SQLite does not see that `max` asks for no others.
    let placed = events::table.filter(events::position.is_not_null());
    Ok(placed.select(diesel::dsl::max(events::position)).get_result(read.connection())?)
}
