//! The rows of indexes: beginning one, and letting it go. How they are built and what callers see of them is other
//! modules' business.

use crate::columnar;
use crate::count::{self, EXACT};
use crate::schema::collection_indexes;
use crate::shape::{IndexKind, IndexOrigin, IndexRow, IndexStatus, KeyFormat, Shape};
use diesel::prelude::*;
use fields::{Part, Subject};
use model::{Code, CollectionId, Error, FieldId, IndexId, JsonText, Result};
use serde_json::json;
use store::{Read, Tx};

/// The job that builds an index, or empties one that was dropped or has failed.
pub const JOB: &str = "data.index.build";

/// The most indexes of a collection, whoever asked for them: every write of an item keeps them all up.
const MOST_INDEXES: usize = 20;

/// The indexes of a collection that are not on their way out.
pub fn rows(read: &mut Read, collection: CollectionId) -> Result<Vec<IndexRow>> {
    Ok(collection_indexes::table
        .filter(collection_indexes::collection_id.eq(collection))
        .filter(collection_indexes::status.ne(IndexStatus::Dropping))
        .order(collection_indexes::id)
        .select(IndexRow::as_select())
        .load(read.connection())?)
}

/// Stores an index in a state, to be filled with `total` items.
pub fn insert(
    tx: &mut Tx,
    shape: &Shape,
    kind: IndexKind,
    parts: &[Part],
    origin: IndexOrigin,
    status: IndexStatus,
    total: i64,
) -> Result<IndexRow> {
    let now = tx.now();
    let row = (
        collection_indexes::workspace_id.eq(shape.workspace),
        collection_indexes::collection_id.eq(shape.collection),
        collection_indexes::kind.eq(kind),
        collection_indexes::parts.eq(JsonText::of(&parts)),
        collection_indexes::origin.eq(origin),
        collection_indexes::status.eq(status),
        collection_indexes::built_to.eq(0),
        collection_indexes::rows_done.eq(0),
        collection_indexes::rows_total.eq(total),
        collection_indexes::created_at.eq(now),
        collection_indexes::updated_at.eq(now),
        collection_indexes::key_format.eq(KeyFormat::Prefixed),
    );
    Ok(diesel::insert_into(collection_indexes::table)
        .values(row)
        .returning(collection_indexes::all_columns)
        .get_result(tx.connection())?)
}

/// Stores an index that writes keep up from now on, and asks for what was there before to be filled in.
pub fn begin(
    tx: &mut Tx,
    shape: &Shape,
    kind: IndexKind,
    parts: &[Part],
    origin: IndexOrigin,
) -> Result<IndexRow> {
    let total = count::live_up_to(tx, shape.collection, EXACT)?;
    let row = insert(tx, shape, kind, parts, origin, IndexStatus::Building, total)?;
    ask(tx, &row)?;
    Ok(row)
}

/// Notes why an index failed.
pub(crate) fn explain(tx: &mut Tx, id: IndexId, why: &str) -> Result<()> {
    diesel::update(collection_indexes::table.find(id))
        .set(collection_indexes::error.eq(why))
        .execute(tx.connection())?;
    Ok(())
}

/// Lets an index go: nobody uses it from now on, and a job takes its rows away.
pub fn drop(tx: &mut Tx, row: &IndexRow) -> Result<()> {
    let now = tx.now();
    diesel::update(collection_indexes::table.find(row.id))
        .set((collection_indexes::status.eq(IndexStatus::Dropping), collection_indexes::updated_at.eq(now)))
        .execute(tx.connection())?;
    ask(tx, row)
}

/// Lets all indexes go that hold values of a field; gives what is needed to make them anew.
pub(crate) fn drop_of_field(
    tx: &mut Tx,
    collection: CollectionId,
    field: FieldId,
) -> Result<Vec<DroppedIndex>> {
    let mut gone = Vec::new();
    for row in rows(tx, collection)? {
        let parts: Vec<Part> = row.parts.parse()?;
        if parts.iter().any(|part| part.subject == Subject::Field(field)) {
            drop(tx, &row)?;
            let dropped = DroppedIndex { kind: row.kind, parts, origin: row.origin };
            // There are two of a kind while one is to take the place of the other.
            if !gone.contains(&dropped) {
                gone.push(dropped);
            }
        }
    }
    Ok(gone)
}

/// An index that is to be made anew when the values it is about have been changed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DroppedIndex {
    kind: IndexKind,
    parts: Vec<Part>,
    origin: IndexOrigin,
}

/// Makes an index anew that was let go, in the kind that the field's type now asks for. One that no longer makes sense
/// stays away; unique ones are left to whoever settles those.
pub(crate) fn recreate(tx: &mut Tx, shape: &Shape, dropped: &DroppedIndex) -> Result<()> {
    let (kind, origin) = (dropped.kind, dropped.origin);
    if kind == IndexKind::Columnar {
        let is_there = rows(tx, shape.collection)?.iter().any(|row| row.kind == kind);
        let parts = columnar::parts(shape);
        return if is_there { Ok(()) } else { begin(tx, shape, kind, &parts, origin).map(std::mem::drop) };
    }
    let families: Option<Vec<_>> = dropped.parts.iter().map(|part| part.subject.family(shape)).collect();
    let Some(families) = families else { return Ok(()) };
    let kind = match (kind, families.as_slice()) {
        (IndexKind::Unique, _) if origin == IndexOrigin::Unique => return Ok(()),
        (IndexKind::Single | IndexKind::Set, [family]) if family.is_set() => IndexKind::Set,
        (IndexKind::Single | IndexKind::Set, [family]) if family.is_ordered() => IndexKind::Single,
        (kind @ (IndexKind::Composite | IndexKind::Unique), all)
            if all.iter().all(|one| one.is_ordered()) =>
        {
            kind
        }
        _ => return Ok(()),
    };
    // Somebody may have asked for the same meanwhile.
    let parts = JsonText::of(&dropped.parts);
    if rows(tx, shape.collection)?.iter().any(|row| row.kind == kind && row.parts == parts) {
        return Ok(());
    }
    begin(tx, shape, kind, &dropped.parts, origin).map(std::mem::drop)
}

/// Refuses to have more indexes than a collection may, once `more` are made.
///
/// # Errors
/// `limit_reached`.
pub fn refuse_too_many(read: &mut Read, collection: CollectionId, more: usize) -> Result<()> {
    // The service's own columnar index takes nobody's place.
    let counted = rows(read, collection)?.into_iter().filter(|row| row.kind != IndexKind::Columnar).count();
    if counted + more > MOST_INDEXES {
        let message = format!("A collection has at most {MOST_INDEXES} indexes, unique ones included.");
        return Err(Error::new(Code::LimitReached, message).with("details", json!({ "limit": MOST_INDEXES })));
    }
    Ok(())
}

/// Asks for an index to be built or emptied, whichever its state asks for.
///
/// # Errors
/// When the database fails.
pub fn ask(tx: &mut Tx, row: &IndexRow) -> Result<()> {
    let (now, index) = (tx.now(), row.id);
    tx.enqueue(row.workspace_id, JOB, Some(&format!("index:{index}")), &json!({ "index_id": index }), now)
}
