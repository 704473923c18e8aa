//! Segments: saved groups of contacts, by a filter or by hand.

use crate::edit::operations::set_managed;
use crate::record::find::{FindContact, contacts, editor};
use crate::record::system_fields::SEGMENTS;
use crate::schema::contact_segments;
use diesel::prelude::*;
use fields::filter::{Condition, Node};
use fields::{Data, Filter, Subject, text};
use model::{
    Actor, Caller, Code, ContactId, Error, FieldId, JsonText, Patch, Result, SegmentId, Timestamp,
    WorkspaceId, text_enum,
};
use operation::{
    Body, Created, Deleted, Event, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, State, operation,
};
use ports::ContactRef;
use query::aggregate::count;
use query::{Planner, Query};
use records::rows::Editor;
use records::shape::{Shape, Shapes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::{Read, Tx, each};
use utoipa::ToSchema;

/// The most segments of a workspace.
const MOST: i64 = 500;

text_enum! {
    /// How the contacts of a segment are determined.
    pub enum SegmentKind {
        /// By a filter: contacts enter and leave the segment as they change.
        Dynamic = "dynamic",
        /// By hand.
        Static = "static",
    }
}

/// A saved segment of contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Qualified in Brazil", "kind": "dynamic",
    "filter_tree": { "and": [{ "field": "$country", "op": "eq", "value": "BR" }, { "field": "$stage", "op": "eq", "value": "qualified" }] },
    "version": 1,
}))]
pub struct Segment {
    /// The id of the segment.
    pub id: SegmentId,
    /// Always `segment`.
    pub object: &'static str,
    /// The name, unique in the workspace whatever its case.
    pub name: String,
    /// How the contacts are determined.
    pub kind: SegmentKind,
    /// A description for people.
    pub description: Option<String>,
    /// The filter of a dynamic segment.
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// The version, incremented with every change of the segment itself.
    pub version: i64,
    /// Who created the object.
    pub created_by: Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A segment with the number of its contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "contact_count": 12 }))]
pub struct SegmentDetail {
    #[serde(flatten)]
    segment: Segment,
    /// The number of live contacts in the segment.
    contact_count: i64,
}

/// A segment to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Qualified in Brazil",
    "filter_tree": { "and": [{ "field": "$country", "op": "eq", "value": "BR" }, { "field": "$stage", "op": "eq", "value": "qualified" }] },
}))]
pub struct NewSegment {
    /// The name, unique in the workspace whatever its case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// The filter, which makes the segment dynamic: a tree of conditions, as in `GET /contacts`.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The ids of the contacts, which make the segment static.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub contact_ids: Option<Vec<ContactId>>,
}

/// A change of a segment. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "For the spring campaign." }))]
pub struct SegmentPatch {
    /// The name, unique in the workspace whatever its case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// A description for people. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// The new filter of a dynamic segment.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The ids of contacts to add to a static segment.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub add_contact_ids: Vec<ContactId>,
    /// The ids of contacts to remove from a static segment.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub remove_contact_ids: Vec<ContactId>,
    /// The expected version, like `If-Match`. If the segment has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// An event of a segment.
#[derive(Event)]
#[event(scope = "contacts:read", subject = "segment", id = "segment.id")]
pub(crate) enum SegmentEvent {
    /// A segment was created.
    #[event(name = "contact.segment.created")]
    Created(SegmentChanged),
    /// A segment was changed.
    #[event(name = "contact.segment.updated")]
    Updated(SegmentChanged),
    /// A segment was deleted.
    #[event(name = "contact.segment.deleted")]
    Deleted(SegmentChanged),
}

/// A segment was created, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct SegmentChanged {
    /// The segment after the change.
    segment: Segment,
}

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contact_segments)]
struct SegmentRow {
    id: SegmentId,
    workspace_id: WorkspaceId,
    name: String,
    name_key: String,
    kind: SegmentKind,
    description: Option<String>,
    filter: Option<JsonText>,
    version: i64,
    created_by: JsonText,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl SegmentRow {
    fn node(&self) -> Result<Option<Node>> {
        self.filter.as_ref().map(JsonText::parse).transpose()
    }

    fn segment(&self, shape: &Shape) -> Result<Segment> {
        Ok(Segment {
            id: self.id,
            object: "segment",
            name: self.name.clone(),
            kind: self.kind,
            description: self.description.clone(),
            filter_tree: self.node()?.map(|node| node.to_api(shape)),
            version: self.version,
            created_by: self.created_by.parse()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }

    /// The contacts that it contains.
    fn filter(&self, shape: &Shape, now: Timestamp) -> Result<Filter> {
        if let Some(node) = self.node()? {
            return Filter::of(shape, &node, now).map_err(|error| {
                Error::new(
                    Code::InvalidState,
                    format!("The segment's filter can no longer be used: {}", error.message()),
                )
                .param("segment_id")
            });
        }
        let subject = shape.field(SEGMENTS).map(|field| Subject::Field(field.id));
        let condition =
            subject.and_then(|subject| Condition::exact(shape, subject, &self.id.to_string(), false));
        condition.map(Filter::One).ok_or_else(|| Error::internal("a system field is missing"))
    }
}

fn find(read: &mut Read, workspace: WorkspaceId, id: SegmentId) -> Result<SegmentRow> {
    let row = contact_segments::table
        .filter(contact_segments::id.eq(id))
        .filter(contact_segments::workspace_id.eq(workspace))
        .select(SegmentRow::as_select())
        .get_result(read.connection())
        .optional()?;
    row.ok_or_else(|| Error::not_found("segment"))
}

/// What a list that names a segment is restricted to, and what changes when the segment does.
///
/// # Errors
/// `not_found`, or `invalid_state` where its filter names what is gone.
pub(crate) fn filter(read: &mut Read, shape: &Shape, id: SegmentId) -> Result<(Filter, i64)> {
    let row = find(read, shape.workspace, id).map_err(|error| error.param("segment_id"))?;
    let now = read.now();
    Ok((row.filter(shape, now)?, row.version))
}

/// The segments whose filters name a field, as errors list them.
///
/// # Errors
/// When the database fails.
pub(crate) fn users_of(read: &mut Read, shape: &Shape, field: FieldId) -> Result<Vec<Value>> {
    let rows: Vec<SegmentRow> = contact_segments::table
        .filter(contact_segments::workspace_id.eq(shape.workspace))
        .filter(contact_segments::filter.is_not_null())
        .order(contact_segments::id)
        .select(SegmentRow::as_select())
        .load(read.connection())?;
    let mut users = Vec::new();
    for row in rows {
        let node = row.node()?;
        let mut compared = node.iter().flat_map(Node::comparisons);
        if compared.any(|comparison| comparison.subject == Subject::Field(field)) {
            users.push(json!({ "object": "segment", "id": row.id, "name": row.name }));
        }
    }
    Ok(users)
}

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

fn by_name(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<Option<SegmentRow>> {
    Ok(contact_segments::table
        .filter(contact_segments::workspace_id.eq(workspace))
        .filter(contact_segments::name_key.eq(text::name_key(name.trim())))
        .select(SegmentRow::as_select())
        .get_result(read.connection())
        .optional()?)
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
