//! Operations that create, read, change and delete segments.

use super::model::{
    NewSegment, Segment, SegmentChanged, SegmentDetail, SegmentEvent, SegmentKind, SegmentPatch,
};
use super::rows::SegmentRow;
use crate::edit::operations::set_managed;
use crate::record::find::{FindContact, contacts, editor};
use crate::record::system_fields::SEGMENTS;
use fields::filter::Node;
use fields::{Data, Filter, text};
use model::{Caller, ContactId, Error, JsonText, Result, SegmentId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, ListOrder, OptIn, OptInList, Path, Resource,
    State, Update, operation,
};
use ports::ContactRef;
use query::aggregate::count;
use query::{Planner, Query};
use records::rows::Editor;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{Read, Tx};

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
    let rows = SegmentRow::list(read, shape.workspace, page.page(), ListOrder::OldestFirst)?;
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
    let now = tx.now();
    let row = SegmentRow {
        id: SegmentId(0),
        workspace_id: editor.shape.workspace,
        name: new.name.trim().to_owned(),
        name_key: text::name_key(new.name.trim()),
        kind,
        description: new.description,
        filter: node.as_ref().map(JsonText::of),
        version: 1,
        created_by: JsonText::of(&editor.author.cause.actor),
        created_at: now,
        updated_at: now,
    };
    let row = row.create(tx)?;
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
    let row = SegmentRow::find(read, shape.workspace, &segment_id)?;
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
    let mut update = Update::<SegmentRow>::begin(tx, editor.shape.workspace, &segment_id, expected)?;
    let row = &mut update.row;
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
        row.rename(name);
    }
    patch.description.apply(&mut row.description);
    put_in(tx, &editor, segment_id, &patch.add_contact_ids, "add_contact_ids", true)?;
    put_in(tx, &editor, segment_id, &patch.remove_contact_ids, "remove_contact_ids", false)?;
    if !update.is_change() {
        return Ok(Json(update.row.segment(&editor.shape)?));
    }
    let row = update.store(tx)?;
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
    let row = SegmentRow::remove(tx, editor.shape.workspace, &segment_id, if_match)?;
    publish(tx, caller, SegmentEvent::Deleted, &row, &row.segment(&editor.shape)?)?;
    Ok(Deleted::of("segment", segment_id))
}

fn read_filter(tx: &mut Tx, shape: &Shape, tree: &Value) -> Result<Node> {
    let node = Node::from_api(shape, tree, "filter_tree")?;
    Filter::of(shape, &node, tx.now())?;
    Ok(node)
}

/// Adds contacts to a static segment, or removes them from it.
fn put_in(
    tx: &mut Tx,
    editor: &Editor<'_>,
    segment: SegmentId,
    ids: &[ContactId],
    param: &str,
    is_in: bool,
) -> Result<()> {
    let name = segment.to_string();
    // In the order of the ids, so that concurrent requests lock the contacts in the same order.
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
