//! Building and emptying indexes beside other work, a slice of items at a time.
//!
//! Each slice is a transaction that remembers how far it got, so a job that was killed goes on where it was; keys that
//! are there already stay. On PostgreSQL a slice locks its items against changes while it writes their keys, so that a key
//! never says what its item has ceased to be. The slices share the collection with whoever writes items; what comes of
//! them changes the shape, so it is a transaction of its own that locks the collection for that from its beginning.

use super::events::IndexEvent;
use super::table::{self, JOB};
use crate::Author;
use crate::columnar;
use crate::publish::announce;
use crate::rows::{ItemRow, KeyRow, digests, index_keys, key_rows};
use crate::schema::{collection_indexes, item_unique, items};
use crate::shape::{self, Index, IndexKind, IndexRow, IndexStatus, Shape, Shapes};
use ::jobs::{Job, JobContext, JobError};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{IndexId, ItemId, Result};
use serde::Deserialize;
use std::sync::Arc;
use store::{Db, OnConflict, Read, Tx, each, for_share};

/// Items of one slice of a build.
const SLICE: i64 = 1_000;
/// Keys of one slice of emptying.
const EMPTIED: i64 = 2_000;
/// The most clashes that a failed index names.
const MOST_EXAMPLES: usize = 5;

/// The job that builds an index, or empties it.
pub(crate) fn build_job(shapes: &Arc<Shapes>) -> Job {
    #[derive(Deserialize)]
    struct Payload {
        index_id: IndexId,
    }
    let shapes = shapes.clone();
    Job::after(JOB, "an index is made", "builds it", move |job| {
        let shapes = shapes.clone();
        async move {
            let Payload { index_id } = job.payload.parse().map_err(JobError::give_up)?;
            let whole = build(&job, &shapes, index_id).await?;
            if whole { Ok(()) } else { Err(JobError::hand_back()) }
        }
    })
}

/// Builds or empties an index, whichever its state asks for; `false` where the job is to stop before it is through.
///
/// # Errors
/// When the database fails. What was done stays done.
pub async fn build(job: &JobContext, shapes: &Arc<Shapes>, index: IndexId) -> Result<bool> {
    while step(&job.db, shapes, index).await? {
        if job.soft.is_cancelled() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What comes after a slice.
enum SliceResult {
    /// Another slice.
    Slice,
    /// The index holds all items.
    Ready,
    /// Its values are not unique: pairs of items that clash.
    Failed(Vec<(ItemId, ItemId)>),
    /// Nothing.
    Over,
}

/// Does a slice; whether there is more.
async fn step(db: &Db, shapes: &Arc<Shapes>, id: IndexId) -> Result<bool> {
    let (for_slice, shapes) = (shapes.clone(), shapes.clone());
    match db.write(move |tx| slice(tx, &for_slice, id)).await? {
        SliceResult::Slice => Ok(true),
        SliceResult::Over => Ok(false),
        SliceResult::Ready => db.write(move |tx| finish(tx, id)).await.map(|()| false),
        SliceResult::Failed(clashes) => {
            db.write(move |tx| fail(tx, &shapes, id, &clashes)).await.map(|()| true)
        }
    }
}

/// The row of an index.
///
/// # Errors
/// When the database fails.
pub fn find(read: &mut Read, id: IndexId) -> Result<Option<IndexRow>> {
    let row = collection_indexes::table.find(id).select(IndexRow::as_select());
    Ok(row.get_result(read.connection()).optional()?)
}

fn slice(tx: &mut Tx, shapes: &Shapes, id: IndexId) -> Result<SliceResult> {
    let Some(row) = find(tx, id)? else { return Ok(SliceResult::Over) };
    match row.status {
        IndexStatus::Building => fill(tx, shapes, &row),
        IndexStatus::Failed => Ok(if empty(tx, id)? { SliceResult::Slice } else { SliceResult::Over }),
        IndexStatus::Dropping => {
            if empty(tx, id)? {
                return Ok(SliceResult::Slice);
            }
            diesel::delete(collection_indexes::table.find(id)).execute(tx.connection())?;
            Ok(SliceResult::Over)
        }
        _ => Ok(SliceResult::Over),
    }
}

/// Puts the next items into an index.
fn fill(tx: &mut Tx, shapes: &Shapes, row: &IndexRow) -> Result<SliceResult> {
    let shape = match shape::held(tx, shapes, row.workspace_id, row.collection_id) {
        Ok(shape) => shape,
        // The collection is in the trash: it comes back with the index unfinished, or goes with it.
        Err(error) if error.code() == model::Code::NotFound => return Ok(SliceResult::Over),
        Err(error) => return Err(error),
    };
    let index = Index::of(row)?;
    let rows = next_items(tx, row)?;
    let clashes = match index.kind {
        IndexKind::Unique => put_unique(tx, &shape, &index, &rows)?,
        IndexKind::Columnar => {
            columnar::table::append(tx, &shape, &index, &rows)?;
            Vec::new()
        }
        _ => {
            put_keys(tx, &shape, &index, &rows)?;
            Vec::new()
        }
    };
    if !clashes.is_empty() {
        return Ok(SliceResult::Failed(clashes));
    }
    let done = row.rows_done + i64::try_from(rows.len()).unwrap_or_default();
    let built_to = rows.last().map_or(row.built_to, |last| last.id.0);
    let now = tx.now();
    diesel::update(collection_indexes::table.find(row.id))
        .set((
            collection_indexes::built_to.eq(built_to),
            collection_indexes::rows_done.eq(done),
            collection_indexes::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    let is_last = rows.len() < usize::try_from(SLICE).unwrap_or(usize::MAX);
    Ok(if is_last { SliceResult::Ready } else { SliceResult::Slice })
}

/// The next items, kept from changes until the transaction ends.
fn next_items(tx: &mut Tx, row: &IndexRow) -> Result<Vec<ItemRow>> {
    let next = items::table
        .filter(items::collection_id.eq(row.collection_id))
        .filter(items::trashed_at.is_null())
        .filter(items::id.gt(row.built_to))
        .order(items::id)
        .limit(SLICE)
        .select(items::all_columns);
    Ok(for_share(next).load(tx.connection())?)
}

fn put_keys(tx: &mut Tx, shape: &Shape, index: &Index, rows: &[ItemRow]) -> Result<()> {
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let data = row.values()?;
        let record = row.record(&data);
        for key in index_keys(record, shape, index) {
            keys.push(KeyRow { index_id: index.id, k: key, item_id: row.id });
        }
    }
    key_rows(&keys).insert_or(tx, "item_keys", OnConflict::Ignore)?;
    Ok(())
}

/// Puts items into a unique index; gives pairs of items that clash.
fn put_unique(tx: &mut Tx, shape: &Shape, index: &Index, rows: &[ItemRow]) -> Result<Vec<(ItemId, ItemId)>> {
    let mut clashes = Vec::new();
    for row in rows {
        for digest in digests(shape, index, &row.values()?) {
            let new = (
                item_unique::index_id.eq(index.id),
                item_unique::h.eq(&digest),
                item_unique::item_id.eq(row.id),
            );
            let put = each!(tx.connection(), |connection| diesel::insert_into(item_unique::table)
                .values(new)
                .on_conflict_do_nothing()
                .execute(connection))?;
            if put == 0 {
                let holder = crate::rows::holder(tx, index.id, &digest)?;
                clashes.extend(holder.filter(|holder| *holder != row.id).map(|holder| (holder, row.id)));
            }
        }
        if clashes.len() >= MOST_EXAMPLES {
            break;
        }
    }
    Ok(clashes)
}

/// An index that is still being built, of a live collection that is now locked for a change.
fn building(tx: &mut Tx, id: IndexId) -> Result<Option<IndexRow>> {
    let Some(row) = find(tx, id)? else { return Ok(None) };
    match shape::for_change(tx, row.workspace_id, row.collection_id) {
        Ok(_) => {}
        Err(error) if error.code() == model::Code::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    // It may have been dropped before the collection was locked.
    Ok(find(tx, id)?.filter(|row| row.status == IndexStatus::Building))
}

/// Gives an index up whose values are not unique. Emptying it is what comes next.
fn fail(tx: &mut Tx, shapes: &Shapes, id: IndexId, clashes: &[(ItemId, ItemId)]) -> Result<()> {
    let Some(row) = building(tx, id)? else { return Ok(()) };
    let shape = shape::within_change(tx, shapes, row.workspace_id, row.collection_id)?;
    let index = Index::of(&row)?;
    let names: Vec<&str> = index.parts.iter().filter_map(|part| part.subject.name(&shape)).collect();
    let pairs: Vec<String> = clashes.iter().map(|(one, other)| format!("{one} and {other}")).collect();
    let error = format!("Items have the same `{}`: {}.", names.join("`, `"), pairs.join("; "));
    let now = tx.now();
    diesel::update(collection_indexes::table.find(id))
        .set((
            collection_indexes::status.eq(IndexStatus::Failed),
            collection_indexes::error.eq(error),
            collection_indexes::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    shape::bump(tx, row.collection_id)
}

/// Lets queries use an index from now on.
fn finish(tx: &mut Tx, id: IndexId) -> Result<()> {
    let Some(row) = building(tx, id)? else { return Ok(()) };
    let now = tx.now();
    diesel::update(collection_indexes::table.find(id))
        .set((collection_indexes::status.eq(IndexStatus::Ready), collection_indexes::updated_at.eq(now)))
        .execute(tx.connection())?;
    shape::bump(tx, row.collection_id)?;
    let mut replaced = table::rows(tx, row.collection_id)?;
    replaced.retain(|old| row.takes_place_of(old));
    replaced.iter().try_for_each(|old| table::drop(tx, old))?;
    if !replaced.is_empty() {
        return Ok(());
    }
    let author = Author::system(row.workspace_id, "indexes");
    announce(tx, &author, row.collection_id, &IndexEvent::ready(&row))
}

/// Takes some rows of an index away; whether there may be more.
fn empty(tx: &mut Tx, id: IndexId) -> Result<bool> {
    let mut gone = 0;
    let tables = [
        ("item_keys", "index_id, k, item_id"),
        ("item_unique", "index_id, h"),
        ("item_columns", "index_id, last_id, column_id"),
        ("item_changes", "id"),
    ];
    for (table, key) in tables {
        // Neither database deletes with a limit, so the rows are named by their primary key.
        let some = format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE index_id = $1 LIMIT {EMPTIED})"
        );
        gone += diesel::sql_query(some).bind::<BigInt, _>(id.0).execute(tx.connection())?;
    }
    Ok(gone > 0)
}
