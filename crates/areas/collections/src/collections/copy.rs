//! Copies a collection, with or without its items.

use super::events::{CollectionData, CollectionEvent};
use super::model::Collection;
use super::{create, queries, views};
use diesel::prelude::*;
use fields::Data;
use fields::FieldType;
use fields::text;
use fields::value::MOST_RELATED;
use model::{Cause, Code, CollectionId, ItemId, JsonText, Result, WorkspaceId};
use operation::{Body, Created, Cx, Path, State, operation};
use records::Author;
use records::count;
use records::definitions::{self, Definition, rewrite};
use records::indexes::uniques;
use records::links::{self, LockSet};
use records::publish::{added, publish};
use records::rows::{Draft, ItemRow, Writer};
use records::schema::{collection_fields, collection_rewrites, collections, items};
use records::shape::{self, CollectionRow, CollectionStatus, FieldRow, Shape, Shapes};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use store::{Db, LockLevel, Tx};
use utoipa::ToSchema;

/// The name of the job that copies items.
pub(super) const JOB: &str = "data.collection.copy";

/// The most items that the request itself copies. More are left to the job.
const MOST_AT_ONCE: i64 = 1_000;

/// The number of items per transaction. It is smaller than that of a rewrite, because each item is written in full,
/// with its links.
const SLICE: i64 = 100;

/// How the copy differs from the original.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Products (copy)" }))]
pub struct CollectionCopy {
    /// The copy's name; the original's name with "(copy)" if not given.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
    /// Whether to copy the items. More than 1,000 items are copied in the background.
    #[serde(default)]
    include_items: bool,
}

/// Copy a collection, with or without its items
///
/// Copies fields, choices, settings and views. Relation fields of the copy refer to the same collections as the
/// original and have no reverse field. Copied items get new ids, without comments, files, free links and
/// `external_key`; no events are published for them.
#[operation(post "/collections/{collectionId}/duplicate", scope = "collections:write")]
pub async fn duplicate_collection(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Body(copy): Body<CollectionCopy>,
    State(shapes): State<Shapes>,
) -> Result<Created<Collection>> {
    let author = Author::of(&cx.caller);
    let workspace = author.workspace;
    let for_change = shapes.clone();
    let (made, work) =
        cx.change(move |tx| begin(tx, &for_change, &author, collection_id, copy.clone())).await?;
    if let Some((work, _)) = work.filter(|(_, items)| *items <= MOST_AT_ONCE) {
        run(&cx.db, &shapes, work).await?;
    }
    let collection = cx.db.read(move |read| queries::whole(read, &shapes, workspace, made));
    Ok(Created(collection.await?))
}

/// Creates the copy without items. Returns its id, and the id of the work to copy items with the number of items.
fn begin(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    id: CollectionId,
    copy: CollectionCopy,
) -> Result<(CollectionId, Option<(i64, i64)>)> {
    let workspace = author.workspace;
    queries::lock_names(tx, workspace)?;
    // This lock keeps the fields of the original unchanged while they are copied.
    let from = shape::for_change(tx, workspace, id)?;
    let original = shape::within_change(tx, shapes, workspace, id)?;
    let name = match copy.name {
        Some(name) => name.trim().to_owned(),
        None => queries::free_copy_name(tx, workspace, &from.name)?,
    };
    queries::refuse_taken_name(tx, workspace, &name, None)?;
    let row = insert(tx, author, &from, &name)?;
    tx.note_created(LockLevel::Collection, row.id.0);
    copy_fields(tx, &original, row.id)?;
    let key = original.primary().map(|field| field.key.clone());
    create::choose_primary(tx, shapes, author, row.id, key.as_deref())?;
    let shape = shape::within_change(tx, shapes, workspace, row.id)?;
    uniques::settle(tx, &shape, &[])?;
    views::copy_all(tx, &original, &shape)?;
    shape::bump(tx, row.id)?;
    let collection = queries::after_change(tx, shapes, workspace, row.id)?;
    let event = CollectionEvent::Created(CollectionData { collection: &collection });
    publish(tx, author, collection.id, &added("collection", &collection)?, &event)?;
    let work = if copy.include_items { ask(tx, author, &original, row.id)? } else { None };
    Ok((row.id, work))
}

fn insert(tx: &mut Tx, author: &Author, from: &CollectionRow, name: &str) -> Result<CollectionRow> {
    let slug = queries::free_slug(tx, author.workspace, name)?;
    let position = queries::next_position(tx, author.workspace)?;
    let now = tx.now();
    let row = (
        collections::workspace_id.eq(author.workspace),
        collections::group_id.eq(from.group_id),
        collections::name.eq(name),
        collections::name_key.eq(text::name_key(name)),
        collections::slug.eq(slug),
        collections::description.eq(&from.description),
        collections::icon.eq(&from.icon),
        collections::color.eq(&from.color),
        collections::position.eq(position),
        collections::status.eq(CollectionStatus::Active),
        collections::settings.eq(&from.settings),
        collections::shape_version.eq(shape::new_version(tx)),
        collections::item_count.eq(0),
        collections::item_count_at.eq(now),
        collections::version.eq(1),
        collections::created_by.eq(&author.cause.actor),
        collections::created_at.eq(now),
        collections::updated_at.eq(now),
    );
    Ok(diesel::insert_into(collections::table)
        .values(row)
        .returning(collections::all_columns)
        .get_result(tx.connection())?)
}

fn copy_fields(tx: &mut Tx, original: &Shape, to: CollectionId) -> Result<()> {
    let rows: Vec<FieldRow> = collection_fields::table
        .filter(collection_fields::collection_id.eq(original.collection))
        .filter(collection_fields::workspace_id.eq(original.workspace))
        .filter(collection_fields::trashed_at.is_null())
        .order((collection_fields::position, collection_fields::id))
        .select(FieldRow::as_select())
        .load(tx.connection())?;
    for row in rows {
        let (position, next_number) = (row.position, row.next_number);
        let field = row.field()?;
        let counts = field.kind == FieldType::AutoNumber;
        let mut definition = Definition::of(&field, if counts { 1 } else { next_number });
        definition.options.reverse_field_id = None;
        definitions::insert(tx, original.workspace, to, &definition, position)?;
    }
    Ok(())
}

/// The parameters of the work to copy items, stored until it is done.
#[derive(Debug, Serialize, Deserialize)]
struct Work {
    from: CollectionId,
    /// The newest item to copy. Items created later are left out.
    up_to: ItemId,
    /// The actor of the request, as JSON.
    actor: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = collection_rewrites)]
struct WorkRow {
    workspace_id: WorkspaceId,
    collection_id: CollectionId,
    change: JsonText,
    walked_to: ItemId,
    items_done: i64,
}

fn ask(tx: &mut Tx, author: &Author, from: &Shape, to: CollectionId) -> Result<Option<(i64, i64)>> {
    let last: Option<ItemId> = items::table
        .filter(items::collection_id.eq(from.collection))
        .filter(items::trashed_at.is_null())
        .select(diesel::dsl::max(items::id))
        .get_result(tx.connection())?;
    let Some(up_to) = last else { return Ok(None) };
    let total = count::live_up_to(tx, from.collection, count::EXACT)?;
    let work = Work { from: from.collection, up_to, actor: author.cause.actor.as_str().to_owned() };
    let now = tx.now();
    let row = (
        collection_rewrites::workspace_id.eq(author.workspace),
        collection_rewrites::collection_id.eq(to),
        collection_rewrites::change.eq(JsonText::of(&work)),
        collection_rewrites::walked_to.eq(0),
        collection_rewrites::items_done.eq(0),
        collection_rewrites::items_total.eq(total),
        collection_rewrites::created_at.eq(now),
    );
    let id: i64 = diesel::insert_into(collection_rewrites::table)
        .values(row)
        .returning(collection_rewrites::id)
        .get_result(tx.connection())?;
    tx.enqueue(author.workspace, JOB, Some(&format!("copy:{id}")), &json!({ "copy_id": id }), now)?;
    Ok(Some((id, total)))
}

/// Copies the remaining items. If it fails, items that were copied so far stay, and the job continues after them.
pub(super) async fn run(db: &Db, shapes: &Arc<Shapes>, id: i64) -> Result<()> {
    loop {
        let shapes = shapes.clone();
        if !db.write(move |tx| slice(tx, &shapes, id)).await? {
            return Ok(());
        }
    }
}

/// Copies the next items. Returns whether there are more. The lock on the row of the work lets one transaction at a
/// time copy, so that no item is copied twice.
fn slice(tx: &mut Tx, shapes: &Shapes, id: i64) -> Result<bool> {
    let Some(row) = found(tx, id)? else { return Ok(false) };
    let work: Work = row.change.parse()?;
    let shapes_of_both = (there(tx, shapes, &row, work.from)?, there(tx, shapes, &row, row.collection_id)?);
    rewrite::lock(tx, id)?;
    // Read the progress again, now that the row is locked. The two collections of a work never change.
    let Some(row) = found(tx, id)? else { return Ok(false) };
    let (Some(from), Some(to)) = shapes_of_both else { return done(tx, id) };
    let rows: Vec<ItemRow> = items::table
        .filter(items::collection_id.eq(work.from))
        .filter(items::trashed_at.is_null())
        .filter(items::id.gt(row.walked_to))
        .filter(items::id.le(work.up_to))
        .order(items::id)
        .limit(SLICE)
        .select(ItemRow::as_select())
        .load(tx.connection())?;
    let Some(last) = rows.last() else { return done(tx, id) };
    let actor = JsonText::printed(work.actor);
    let cause = Cause { actor, ..Cause::system("copy") };
    let author = Author { cause, emits: false, ..Author::system(row.workspace_id, "copy") };
    let writer = Writer { shapes, shape: &to, author: &author };
    links::hold(tx, row.workspace_id, |tx| {
        let mut locks = LockSet::default();
        for item in &rows {
            let data = values(tx, &from, item)?;
            links::plan_locks(tx, &writer, None, &data, &mut locks)?;
        }
        Ok(locks)
    })?;
    for item in &rows {
        let data = values(tx, &from, item)?;
        copy_item(tx, &writer, item, data)?;
    }
    let done = row.items_done + i64::try_from(rows.len()).unwrap_or_default();
    diesel::update(collection_rewrites::table.find(id))
        .set((collection_rewrites::walked_to.eq(last.id), collection_rewrites::items_done.eq(done)))
        .execute(tx.connection())?;
    Ok(true)
}

fn found(tx: &mut Tx, id: i64) -> Result<Option<WorkRow>> {
    let row = collection_rewrites::table.find(id).select(WorkRow::as_select());
    Ok(row.get_result(tx.connection()).optional()?)
}

/// Returns the shape of a collection, or `None` if it was deleted meanwhile.
fn there(tx: &mut Tx, shapes: &Shapes, row: &WorkRow, id: CollectionId) -> Result<Option<Arc<Shape>>> {
    match shape::held(tx, shapes, row.workspace_id, id) {
        Err(error) if error.code() == Code::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn done(tx: &mut Tx, id: i64) -> Result<bool> {
    diesel::delete(collection_rewrites::table.find(id)).execute(tx.connection())?;
    Ok(false)
}

/// Returns the values for the copy of an item: without read-only fields, and with all targets of relation fields, as
/// a row stores only the first of them.
fn values(tx: &mut Tx, from: &Shape, item: &ItemRow) -> Result<Data> {
    let mut data = item.values()?;
    for field in &from.fields {
        if field.kind.is_read_only() {
            data.remove(&field.key);
        } else if field.kind == FieldType::Relation && data.contains_key(&field.key) {
            let ids = links::table::pointed_to(tx, item.id, field.id, MOST_RELATED)?;
            data.insert(field.key.clone(), json!(ids));
        }
    }
    for key in &from.leaving {
        data.remove(key);
    }
    Ok(data)
}

/// Copies an item. The fields of the copy may have changed since, so values that it rejects are left out: first all
/// references, and then the item.
fn copy_item(tx: &mut Tx, writer: &Writer<'_>, item: &ItemRow, mut data: Data) -> Result<()> {
    data.retain(|key, _| writer.shape.field(key).is_some_and(|field| !field.kind.is_read_only()));
    let draft = |data: Data| Draft { data, external_key: None, position: item.position.clone() };
    let whole = draft(data.clone());
    match tx.savepoint(|tx| writer.insert(tx, whole)) {
        Err(error) if error.code() != Code::InternalError => {}
        other => return other.map(drop),
    }
    data.retain(|key, _| writer.shape.field(key).is_some_and(|field| !field.kind.is_reference()));
    match tx.savepoint(|tx| writer.insert(tx, draft(data))) {
        Err(error) if error.code() == Code::InternalError => Err(error),
        _ => Ok(()),
    }
}
