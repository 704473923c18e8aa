//! What a change of the schema does to items that were there before.
//!
//! The change itself is one transaction, which leaves a row here and a job. The items follow in slices, so that no
//! transaction is long: for few items while the caller waits, for many by the job. Whoever works holds the row, so that
//! each slice is done once. A slice takes the items after the last one by id, live and trashed together, because an
//! item may go to the trash or come back meanwhile.

use crate::Author;
use crate::count;
use crate::indexes::table;
use crate::indexes::uniques;
use fields::convert;

use crate::links::{self, LockSet};
use crate::rows::{ItemRow, Writer};
use crate::schema::{collection_fields, collection_rewrites, item_links, items};
use crate::shape::{self, Shape, Shapes};
use diesel::prelude::*;
use fields::Data;
use fields::value;
use fields::{Field, FieldOptions, FieldType};
use model::{Code, CollectionId, FieldId, ItemId, JsonText, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Db, LockLevel, LockMode, Read, Tx, lock_row};
use utoipa::ToSchema;

/// The job that does what is left.
pub const JOB: &str = "data.items.rewrite";

/// For up to so many items the caller waits.
pub const MOST_AT_ONCE: i64 = 5_000;

/// Items of one slice: few, because SQLite's one writer does nothing else meanwhile.
const SLICE: i64 = 200;

/// What to do to the values of every item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// Take the values of a deleted field out.
    Remove {
        /// The key of the field.
        key: String,
    },
    /// Convert the values of a field, which had another type.
    Convert {
        /// The key of the field.
        key: String,
        /// The type it had.
        from: FieldType,
        /// The options it had.
        options: Box<FieldOptions>,
    },
    /// Give a value to those that have none, or a blank text.
    Fill {
        /// The field's key.
        key: String,
        /// The value.
        value: Value,
    },
    /// Take choices out that are gone.
    Without {
        /// The field's key.
        key: String,
        /// The keys of the choices.
        choices: Vec<String>,
    },
}

/// All that is to be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RewritePlan {
    /// To every item, one after the other.
    pub steps: Vec<Step>,
    /// Whether stored search terms may be of values that are gone.
    pub search: bool,
    /// Whether titles may be others now.
    pub titles: bool,
    /// Whether there is a field that the service sets, which items do not have yet.
    pub sets: bool,
    /// Indexes to be made when the values are right.
    pub indexes: Vec<table::DroppedIndex>,
}

impl RewritePlan {
    /// Whether there is nothing to do to items.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && !self.search && !self.titles && !self.sets
    }
}

/// The progress of a change of all items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Progress {
    /// The number of items processed.
    pub items_done: i64,
    /// The total number of items when the change started. Above 100,000, the last counted number.
    pub items_total: i64,
}

/// Work that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    id: i64,
    items: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = collection_rewrites)]
struct RewriteRow {
    workspace_id: WorkspaceId,
    collection_id: CollectionId,
    field_id: Option<FieldId>,
    change: JsonText,
    walked_to: ItemId,
    items_done: i64,
}

/// Asks for `plan` to be done to the items of a collection, in the transaction of the change that calls for it; `None`
/// where there are no items, so that it is done.
pub fn begin(
    tx: &mut Tx,
    shape: &Shape,
    field: Option<FieldId>,
    plan: &RewritePlan,
) -> Result<Option<Begun>> {
    let counted = count::all_up_to(tx, shape.collection, count::EXACT)?;
    if counted == 0 || plan.is_empty() {
        finish(tx, shape, field, plan)?;
        return Ok(None);
    }
    let now = tx.now();
    let row = (
        collection_rewrites::workspace_id.eq(shape.workspace),
        collection_rewrites::collection_id.eq(shape.collection),
        collection_rewrites::field_id.eq(field),
        collection_rewrites::change.eq(JsonText::of(plan)),
        collection_rewrites::walked_to.eq(0),
        collection_rewrites::items_done.eq(0),
        collection_rewrites::items_total.eq(counted),
        collection_rewrites::created_at.eq(now),
    );
    let id: i64 = diesel::insert_into(collection_rewrites::table)
        .values(row)
        .returning(collection_rewrites::id)
        .get_result(tx.connection())?;
    tx.enqueue(shape.workspace, JOB, Some(&format!("rewrite:{id}")), &json!({ "rewrite_id": id }), now)?;
    Ok(Some(Begun { id, items: counted }))
}

/// How far the changes of a collection's items are, by field.
pub fn progress(read: &mut Read, collection: CollectionId) -> Result<HashMap<FieldId, Progress>> {
    let rows: Vec<(Option<FieldId>, i64, i64)> = collection_rewrites::table
        .filter(collection_rewrites::collection_id.eq(collection))
        .select((
            collection_rewrites::field_id,
            collection_rewrites::items_done,
            collection_rewrites::items_total,
        ))
        .load(read.connection())?;
    let of = |(field, items_done, items_total): (Option<FieldId>, i64, i64)| {
        Some((field?, Progress { items_done, items_total }))
    };
    Ok(rows.into_iter().filter_map(of).collect())
}

/// Does begun work where it is little, before the caller hears of it. Otherwise the job does.
pub async fn finish_soon(db: &Db, shapes: &Arc<Shapes>, begun: Option<Begun>) -> Result<()> {
    match begun.filter(|begun| begun.items <= MOST_AT_ONCE) {
        Some(begun) => run(db, shapes, begun.id).await,
        None => Ok(()),
    }
}

/// The same for several pieces of work.
pub async fn finish_all_soon(db: &Db, shapes: &Arc<Shapes>, begun: Vec<Begun>) -> Result<()> {
    for begun in begun {
        finish_soon(db, shapes, Some(begun)).await?;
    }
    Ok(())
}

/// Does all that is left of some work.
///
/// # Errors
/// When the database fails. What was done stays done.
pub async fn run(db: &Db, shapes: &Arc<Shapes>, id: i64) -> Result<()> {
    loop {
        let (for_slice, shapes) = (shapes.clone(), shapes.clone());
        if !db.write(move |tx| slice(tx, &for_slice, id)).await? {
            return db.write(move |tx| conclude(tx, &shapes, id)).await;
        }
    }
}

/// Does a slice; whether there is more.
fn slice(tx: &mut Tx, shapes: &Shapes, id: i64) -> Result<bool> {
    let Some(row) = found(tx, id)? else { return Ok(false) };
    let shape = match shape::held(tx, shapes, row.workspace_id, row.collection_id) {
        // The collection was deleted meanwhile, so nobody will see its items.
        Err(error) if error.code() == Code::NotFound => return Ok(false),
        other => other?,
    };
    lock(tx, id)?;
    // Others may have done a slice, or all, before the row was locked.
    let Some(row) = found(tx, id)? else { return Ok(false) };
    let plan: RewritePlan = row.change.parse()?;
    let author = Author { emits: false, ..Author::system(row.workspace_id, "schema") };
    let writer = Writer { shapes, shape: &shape, author: &author };
    let next = after(tx, row.collection_id, row.walked_to)?;
    for item in &next.rows {
        let data = applied(&shape, &plan, item.values()?);
        writer.reshape(tx, item, data, plan.search)?;
    }
    if let Some(last) = next.last {
        let done = row.items_done + i64::try_from(next.rows.len()).unwrap_or_default();
        diesel::update(collection_rewrites::table.find(id))
            .set((collection_rewrites::walked_to.eq(last), collection_rewrites::items_done.eq(done)))
            .execute(tx.connection())?;
        return Ok(true);
    }
    Ok(removes(&plan) && remove_links(tx, row.workspace_id, row.field_id)?)
}

/// Ends work whose items are all done. It changes the shape, so it is a transaction of its own that locks the collection
/// for that: the slices share it with whoever writes items.
fn conclude(tx: &mut Tx, shapes: &Shapes, id: i64) -> Result<()> {
    let Some(row) = found(tx, id)? else { return Ok(()) };
    let collection = shape::for_change(tx, row.workspace_id, row.collection_id);
    lock(tx, id)?;
    let Some(row) = found(tx, id)? else { return Ok(()) };
    forget(tx, id)?;
    match collection {
        Ok(_) => {
            let shape = shape::within_change(tx, shapes, row.workspace_id, row.collection_id)?;
            finish(tx, &shape, row.field_id, &row.change.parse()?)
        }
        Err(error) if error.code() == Code::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits for others that work on the same.
pub fn lock(tx: &mut Tx, id: i64) -> Result<()> {
    tx.expect_lock_order(LockLevel::Progress, id, LockMode::Exclusive)?;
    lock_row!(tx, collection_rewrites::table.find(id).select(collection_rewrites::id), for_update);
    Ok(())
}

fn found(tx: &mut Tx, id: i64) -> Result<Option<RewriteRow>> {
    let row = collection_rewrites::table.find(id).select(RewriteRow::as_select());
    Ok(row.get_result(tx.connection()).optional()?)
}

fn forget(tx: &mut Tx, id: i64) -> Result<()> {
    diesel::delete(collection_rewrites::table.find(id)).execute(tx.connection())?;
    Ok(())
}

/// Items to be brought in line.
struct Slice {
    rows: Vec<ItemRow>,
    /// The last of them, also where it went away while others were waited for; `None` at the end.
    last: Option<ItemId>,
}

/// The next items, live and trashed, locked.
fn after(tx: &mut Tx, collection: CollectionId, walked_to: ItemId) -> Result<Slice> {
    let next = items::table
        .filter(items::collection_id.eq(collection))
        .filter(items::id.gt(walked_to))
        .order(items::id)
        .limit(SLICE)
        .select(items::id);
    let mut ids: Vec<ItemId> = next.filter(items::trashed_at.is_null()).load(tx.connection())?;
    ids.extend(next.filter(items::trashed_at.is_not_null()).load::<ItemId>(tx.connection())?);
    ids.sort_unstable();
    ids.truncate(usize::try_from(SLICE).unwrap_or(usize::MAX));
    let last = ids.last().copied();
    let found = items::table.filter(items::id.eq_any(ids)).order(items::id);
    lock_row!(tx, found.clone().select(items::id), for_update);
    let still_here = found.filter(items::collection_id.eq(collection)).select(ItemRow::as_select());
    Ok(Slice { rows: still_here.load(tx.connection())?, last })
}

/// The values that a plan leaves an item with.
fn applied(shape: &Shape, plan: &RewritePlan, mut data: Data) -> Data {
    for step in &plan.steps {
        let key = step.key();
        let value = data.remove(key);
        if let (Some(value), _) = step.done(shape.field(key), value) {
            data.insert(key.to_owned(), value);
        }
    }
    data
}

/// What a plan for one field leaves of its value, apart from filling what is empty, and whether a part of it is lost.
pub fn outcome(next: &Field, plan: &RewritePlan, mut value: Option<Value>) -> (Option<Value>, bool) {
    let mut lost = false;
    for step in plan.steps.iter().filter(|step| !matches!(step, Step::Fill { .. })) {
        let (left, is_cut) = step.done(Some(next), value);
        value = left;
        lost |= is_cut;
    }
    (value, lost)
}

impl Step {
    fn key(&self) -> &str {
        match self {
            Self::Remove { key }
            | Self::Convert { key, .. }
            | Self::Fill { key, .. }
            | Self::Without { key, .. } => key,
        }
    }

    /// What the step leaves of a value, and whether a part of it is lost. `field` is the field as it is to be.
    fn done(&self, field: Option<&Field>, value: Option<Value>) -> (Option<Value>, bool) {
        match (self, value) {
            (Self::Remove { .. }, _) => (None, false),
            (Self::Fill { value: default, .. }, value) => {
                let is_blank = |value: &Value| field.is_some_and(|field| value::is_blank(field.kind, value));
                (value.filter(|value| !is_blank(value)).or_else(|| Some(default.clone())), false)
            }
            (_, None) => (None, false),
            (Self::Without { choices, .. }, Some(value)) => {
                let left = without(value.clone(), choices);
                let is_cut = left.as_ref().is_some_and(|left| *left != value);
                (left, is_cut)
            }
            (Self::Convert { from, options, .. }, Some(value)) => match field {
                // It was deleted meanwhile.
                None => (Some(value), false),
                Some(field) => {
                    let converted = convert::convert(*from, options, field, &value);
                    let is_cut = matches!(converted, convert::Converted::Cut(_));
                    (converted.value(value), is_cut)
                }
            },
        }
    }
}

/// A value without choices that are gone.
fn without(value: Value, gone: &[String]) -> Option<Value> {
    let is_gone = |value: &Value| value.as_str().is_some_and(|key| gone.iter().any(|gone| gone == key));
    match value {
        Value::Array(mut keys) => {
            keys.retain(|key| !is_gone(key));
            (!keys.is_empty()).then_some(Value::Array(keys))
        }
        value if is_gone(&value) => None,
        value => Some(value),
    }
}

fn removes(plan: &RewritePlan) -> bool {
    plan.steps.iter().any(|step| matches!(step, Step::Remove { .. }))
}

/// Takes links away that a deleted relation field made; whether there are more.
fn remove_links(tx: &mut Tx, workspace: WorkspaceId, field: Option<FieldId>) -> Result<bool> {
    let Some(field) = field else { return Ok(false) };
    let links: Vec<(i64, ItemId, String)> = item_links::table
        .filter(item_links::field_id.eq(field))
        .order(item_links::id)
        .limit(SLICE)
        .select((item_links::id, item_links::item_id, item_links::to_id))
        .load(tx.connection())?;
    links::hold(tx, workspace, |_| {
        let mut locks = LockSet::default();
        for (_, from, to) in &links {
            locks.add([*from].into_iter().chain(to.parse().ok()), LockMode::Shared);
        }
        Ok(locks)
    })?;
    let some: Vec<i64> = links.iter().map(|(id, ..)| *id).collect();
    diesel::delete(item_links::table.filter(item_links::id.eq_any(&some))).execute(tx.connection())?;
    Ok(i64::try_from(some.len()).unwrap_or_default() == SLICE)
}

/// What comes when all items are right: indexes on the new values, and the end of deleted fields.
fn finish(tx: &mut Tx, shape: &Shape, field: Option<FieldId>, plan: &RewritePlan) -> Result<()> {
    if removes(plan)
        && let Some(field) = field
    {
        let gone = collection_fields::table.find(field).filter(collection_fields::trashed_at.is_not_null());
        diesel::delete(gone).execute(tx.connection())?;
    }
    shape::bump(tx, shape.collection)?;
    let converted = plan.steps.iter().any(|step| matches!(step, Step::Convert { .. }));
    if plan.indexes.is_empty() && !converted {
        return Ok(());
    }
    for dropped in &plan.indexes {
        table::recreate(tx, shape, dropped)?;
    }
    uniques::settle_after(tx, shape)?;
    shape::bump(tx, shape.collection)
}
