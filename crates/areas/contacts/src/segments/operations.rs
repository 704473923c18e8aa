//! Creating, reading, changing and deleting segments.

use super::model::{
    NewSegment, Segment, SegmentChanged, SegmentDetail, SegmentEvent, SegmentKind, SegmentPatch,
};
use super::rows::{SegmentRow, by_name, find};
use crate::edit::operations::set_managed;
use crate::record::find::{FindContact, contacts, editor};
use crate::record::system_fields::SEGMENTS;
use crate::schema::contact_segments;
use diesel::prelude::*;
use fields::filter::Node;
use fields::{Data, Filter, text};
use model::{Caller, Code, ContactId, Error, JsonText, Result, SegmentId, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, State, operation,
};
use ports::ContactRef;
use query::aggregate::count;
use query::{Planner, Query};
use records::rows::Editor;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{Read, Tx, each};

/// The most segments of a workspace.
const MOST: i64 = 500;

/// Saved segments
///
/// Lists the segments in the order in which they were created, without the number of their contacts.
#[operation(get "/contacts/segments", scope = "contacts:read", ceiling = 100)]
pub fn list_segments(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<Segment>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let mut query = contact_segments::table
        .filter(contact_segments::workspace_id.eq(shape.workspace))
        .order(contact_segments::id)
        .limit(page.page().fetch())
        .select(SegmentRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<SegmentId>()? {
        query = query.filter(contact_segments::id.gt(after));
    }
    let rows = query.load(read.connection())?;
    let segments = rows.iter().map(|row| row.segment(&shape)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(segments, |segment| segment.id.to_string()))
}

/// Save a segment
///
/// With `filter_tree` the segment is dynamic: it contains the contacts that match at the time of use. With `contact_ids`
/// it is static. One of the two is required.
#[operation(post "/contacts/segments", scope = "contacts:write")]
pub fn create_segment(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewSegment>,
    shapes: State<Shapes>,
) -> Result<Created<Segment>> {
    let editor = editor(tx, &shapes.0, caller)?;
    let (kind, node) = match (&new.filter_tree, &new.contact_ids) {
        (Some(tree), None) => (SegmentKind::Dynamic, Some(read_filter(tx, &editor.shape, tree)?)),
        (None, Some(_)) => (SegmentKind::Static, None),
        (None, None) => return Err(Error::invalid("filter_tree", "is required, or `contact_ids`")),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("contact_ids", "cannot be combined with `filter_tree`"));
        }
    };
    let workspace = editor.shape.workspace;
    refuse_too_many(tx, workspace)?;
    let now = tx.now();
    let row = (
        contact_segments::workspace_id.eq(workspace),
        contact_segments::name.eq(new.name.trim()),
        contact_segments::name_key.eq(text::name_key(new.name.trim())),
        contact_segments::kind.eq(kind),
        contact_segments::description.eq(&new.description),
        contact_segments::filter.eq(node.as_ref().map(JsonText::of)),
        contact_segments::version.eq(1),
        contact_segments::created_by.eq(&editor.author.cause.actor),
        contact_segments::created_at.eq(now),
        contact_segments::updated_at.eq(now),
    );
    let inserted = each!(tx.connection(), |connection| diesel::insert_into(contact_segments::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    let row = by_name(tx, workspace, &new.name)?;
    if inserted == 0 {
        return Err(name_taken(row.as_ref()));
    }
    let row = row.ok_or_else(|| Error::internal("a segment was not stored"))?;
    put_in(tx, &editor, row.id, &new.contact_ids.unwrap_or_default(), "contact_ids", true)?;
    let segment = row.segment(&editor.shape)?;
    publish(tx, caller, SegmentEvent::Created, &row, &segment)?;
    Ok(Created(segment))
}

/// One segment with its size
///
/// `contact_count` is counted when the request is made.
#[operation(get "/contacts/segments/{segmentId}", scope = "contacts:read")]
pub fn get_segment(
    read: &mut Read,
    caller: &Caller,
    Path(segment_id): Path<SegmentId>,
    shapes: State<Shapes>,
    planner: State<Planner>,
) -> Result<Json<SegmentDetail>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let row = find(read, shape.workspace, segment_id)?;
    let filter = row.filter(&shape, read.now())?;
    let filter = shape.follow_merges(read, filter)?;
    let query = Query::new(filter, fields::sort::Sort::of(&[]), false);
    let contact_count = count(read, &planner.0, &shape, &query)?;
    Ok(Json(SegmentDetail { segment: row.segment(&shape)?, contact_count }))
}

/// Change a segment
///
/// A dynamic segment can get another filter; contacts are added to and removed from a static one.
#[operation(patch "/contacts/segments/{segmentId}", scope = "contacts:write")]
pub fn update_segment(
    tx: &mut Tx,
    caller: &Caller,
    Path(segment_id): Path<SegmentId>,
    Body(patch): Body<SegmentPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Json<Segment>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let editor = editor(tx, &shapes.0, caller)?;
    let workspace = editor.shape.workspace;
    tx.lock(&format!("segment {segment_id}"))?;
    let old = find(tx, workspace, segment_id)?;
    expected.check(old.version)?;
    let mut row = old.clone();
    if let Some(tree) = &patch.filter_tree {
        if row.kind == SegmentKind::Static {
            return Err(Error::invalid("filter_tree", "is for dynamic segments only"));
        }
        row.filter = Some(JsonText::of(&read_filter(tx, &editor.shape, tree)?));
    }
    if row.kind == SegmentKind::Dynamic {
        let lists =
            [("add_contact_ids", &patch.add_contact_ids), ("remove_contact_ids", &patch.remove_contact_ids)];
        if let Some((name, _)) = lists.into_iter().find(|(_, ids)| !ids.is_empty()) {
            return Err(Error::invalid(name, "is for static segments only"));
        }
    }
    if let Some(name) = &patch.name {
        name.trim().clone_into(&mut row.name);
        row.name_key = text::name_key(&row.name);
        if let Some(other) = by_name(tx, workspace, name)?.filter(|other| other.id != row.id) {
            return Err(name_taken(Some(&other)));
        }
    }
    patch.description.apply(&mut row.description);
    put_in(tx, &editor, row.id, &patch.add_contact_ids, "add_contact_ids", true)?;
    put_in(tx, &editor, row.id, &patch.remove_contact_ids, "remove_contact_ids", false)?;
    let is_same = row.name == old.name && row.description == old.description && row.filter == old.filter;
    if is_same {
        return Ok(Json(row.segment(&editor.shape)?));
    }
    let now = tx.now();
    let stored = tx.savepoint(|tx| {
        let changed: SegmentRow = diesel::update(contact_segments::table.find(row.id))
            .set((
                contact_segments::name.eq(&row.name),
                contact_segments::name_key.eq(&row.name_key),
                contact_segments::description.eq(&row.description),
                contact_segments::filter.eq(&row.filter),
                contact_segments::version.eq(row.version + 1),
                contact_segments::updated_at.eq(now),
            ))
            .returning(contact_segments::all_columns)
            .get_result(tx.connection())?;
        Ok(changed)
    });
    let row = match (stored, by_name(tx, workspace, &row.name)?) {
        (Ok(row), _) => row,
        // Another request took the name since it was looked for.
        (Err(_), Some(other)) if other.id != row.id => return Err(name_taken(Some(&other))),
        (Err(error), _) => return Err(error),
    };
    let segment = row.segment(&editor.shape)?;
    publish(tx, caller, SegmentEvent::Updated, &row, &segment)?;
    Ok(Json(segment))
}

/// Delete a segment
///
/// The contacts of the segment stay. A static segment of more than 1,000 contacts must be emptied first.
#[operation(delete "/contacts/segments/{segmentId}", scope = "contacts:write")]
pub fn delete_segment(
    tx: &mut Tx,
    caller: &Caller,
    Path(segment_id): Path<SegmentId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Deleted<Segment>> {
    let editor = editor(tx, &shapes.0, caller)?;
    tx.lock(&format!("segment {segment_id}"))?;
    let row = find(tx, editor.shape.workspace, segment_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    diesel::delete(contact_segments::table.find(row.id)).execute(tx.connection())?;
    publish(tx, caller, SegmentEvent::Deleted, &row, &row.segment(&editor.shape)?)?;
    Ok(Deleted::of("segment", segment_id))
}

fn read_filter(tx: &mut Tx, shape: &Shape, tree: &Value) -> Result<Node> {
    let node = Node::from_api(shape, tree, "filter_tree")?;
    Filter::of(shape, &node, tx.now())?;
    Ok(node)
}

fn name_taken(holder: Option<&SegmentRow>) -> Error {
    Error::duplicate("name", "Another segment has this name.", holder.map(|row| row.id))
}

fn refuse_too_many(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    let there: i64 = contact_segments::table
        .filter(contact_segments::workspace_id.eq(workspace))
        .count()
        .get_result(tx.connection())?;
    if there < MOST {
        return Ok(());
    }
    Err(Error::new(Code::LimitReached, format!("A workspace can have at most {MOST} segments.")))
}

/// Puts contacts into a static segment, or takes them out of it.
fn put_in(
    tx: &mut Tx,
    editor: &Editor<'_>,
    segment: SegmentId,
    ids: &[ContactId],
    param: &str,
    is_in: bool,
) -> Result<()> {
    let name = segment.to_string();
    let ordered: BTreeSet<ContactId> = ids.iter().copied().collect();
    for id in ordered {
        let place = ids.iter().position(|other| *other == id).unwrap_or_default();
        let row = ContactRef::from(id)
            .locked(tx, &editor.shape)
            .map_err(|error| error.param(format!("{param}[{place}]")))?;
        set_managed(tx, editor, row, |data| set_member(data, &name, is_in))?;
    }
    Ok(())
}

fn set_member(data: &mut Data, segment: &str, is_in: bool) {
    let mut segments = match data.remove(SEGMENTS) {
        Some(Value::Array(segments)) => segments,
        _ => Vec::new(),
    };
    segments.retain(|other| other != segment);
    if is_in {
        segments.push(segment.into());
    }
    if !segments.is_empty() {
        data.insert(SEGMENTS.to_owned(), segments.into());
    }
}

fn publish(
    tx: &mut Tx,
    caller: &Caller,
    event: fn(SegmentChanged) -> SegmentEvent,
    row: &SegmentRow,
    segment: &Segment,
) -> Result<()> {
    let event = event(SegmentChanged { segment: segment.clone() });
    tx.emit(row.workspace_id, &caller.cause(), true, &event)?;
    Ok(())
}
