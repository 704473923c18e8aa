//! Building and emptying indexes beside other work, a slice of items at a time.
//!
//! Each slice is a transaction that remembers how far it got, so a job that was killed goes on where it was; keys that
//! are there already stay. On PostgreSQL a slice locks its items against changes while it writes their keys, so that a key
//! never says what its item has ceased to be. The slices share the collection with whoever writes items; what comes of
//! them changes the shape, so it is a transaction of its own that locks the collection for that from its beginning.

use super::events::IndexEvent;
use super::table::{self, JOB};
use super::{create, drop_index};
use crate::Author;
use crate::columnar;
use crate::count;
use crate::publish::announce;
use crate::query::aggregate::{AggregateGroup, Aggregation, CountedGroup, count_by};
use crate::query::search::{FoundPage, Search};
use crate::query::{IndexRequest, LARGE, Needs, Page, Planner, Query, Report};
use crate::rows::{ItemRow, digests, index_keys};
use crate::schema::{collection_indexes, item_keys, item_unique, items};
use crate::shape::{self, Index, IndexKind, IndexOrigin, IndexRow, IndexStatus, Shape, Shapes};
use ::jobs::{Job, JobContext, JobError};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use fields::Filter;
use fields::sort::Sort;
use model::{Code, Error, IndexId, ItemId, Result, Timestamp};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use store::{AnyConnection, Db, PageNumber, Read, Tx, each};

/// The job that makes an index which queries wished for.
const AUTO_INDEX: &str = "data.index.wish";

/// Items of one slice of a build.
const SLICE: i64 = 1_000;
/// Keys of one slice of emptying.
const EMPTIED: i64 = 2_000;
/// Only collections with more items than this get a columnar index.
const LARGE_ENOUGH_FOR_COLUMNS: i64 = 5_000;
/// The most clashes that a failed index names.
const MOST_EXAMPLES: usize = 5;
/// Days without use after which an index goes that the service made by itself.
const IDLE_DAYS: i64 = 60;

/// The jobs of indexes.
pub fn jobs(shapes: &Arc<Shapes>) -> Vec<Job> {
    #[derive(Deserialize)]
    struct Payload {
        index_id: IndexId,
    }
    let (building, wishing) = (shapes.clone(), shapes.clone());
    vec![
        columnar::job(shapes),
        Job::after(JOB, "an index is made", "builds it", move |job| {
            let shapes = building.clone();
            async move {
                let Payload { index_id } = job.payload.parse().map_err(JobError::give_up)?;
                let whole = build(&job, &shapes, index_id).await?;
                if whole { Ok(()) } else { Err(JobError::hand_back()) }
            }
        }),
        Job::after(AUTO_INDEX, "queries would profit from an index", "creates it", move |job| {
            let shapes = wishing.clone();
            async move {
                let request: IndexRequest = job.payload.parse().map_err(JobError::give_up)?;
                job.db.write(move |tx| grant(tx, &shapes, &request)).await?;
                Ok(())
            }
        }),
        Job::every(
            "data.index.retire",
            Duration::from_secs(24 * 3600),
            "drops automatic indexes that nobody uses",
            |job| async move {
                for row in job.db.read(idle).await? {
                    job.db.write(move |tx| retire(tx, &row)).await?;
                }
                Ok(())
            },
        ),
    ]
}

/// A page of a query, which is counted. Where it would read too much, that counts too: it calls for an index most of all.
///
/// # Errors
/// Those of [`Query::page`].
pub fn counted_page(
    read: &mut Read,
    planner: &Planner,
    shape: &Shape,
    query: &Query,
    after: Option<&[u8]>,
    need: usize,
) -> Result<Page> {
    let page = query.page(read, planner, shape, after, need);
    let report = page.as_ref().map(|page| &page.report);
    count_query(planner, shape, query, report, need.saturating_sub(1), read.now());
    page
}

/// An aggregation, which is counted as a page is.
///
/// # Errors
/// Those of [`Aggregation::run`].
pub fn counted_aggregate(
    read: &mut Read,
    planner: &Planner,
    shape: &Shape,
    aggregation: &Aggregation,
) -> Result<(Vec<AggregateGroup>, Report)> {
    let query = aggregation.query(read, shape)?;
    let computed = aggregation.run(read, planner, shape, &query);
    let shown = computed.as_ref().map_or(1, |(groups, _)| groups.len());
    count_query(planner, shape, &query, computed.as_ref().map(|(_, report)| report), shown, read.now());
    computed
}

/// The counts of [`count_by`], which are counted as a page is.
///
/// # Errors
/// Those of [`count_by`].
pub fn counted_counts(
    read: &mut Read,
    planner: &Planner,
    shape: &Shape,
    query: &Query,
    keys: [&str; 3],
) -> Result<(Vec<CountedGroup>, Report)> {
    let counts = count_by(read, planner, shape, query, keys);
    let shown = counts.as_ref().map_or(1, |(groups, _)| groups.len());
    count_query(planner, shape, query, counts.as_ref().map(|(_, report)| report), shown, read.now());
    counts
}

/// A search, counted too: where it looks at many items, it calls for a columnar index.
///
/// # Errors
/// Those of [`Search::run`].
pub fn counted_search(
    search: &Search,
    read: &mut Read,
    planner: &Planner,
    shapes: &Shapes,
    shape: &Shape,
    page: &PageNumber,
) -> Result<FoundPage> {
    let found = search.run(read, planner, shapes, shape, page);
    let everything = Query::new(Filter::All(Vec::new()), Sort::of(&[]), false);
    let report = found.as_ref().map(|found| &found.report);
    count_query(planner, shape, &everything, report, 1, read.now());
    found
}

/// Counts a query that was answered or would have read too much, and sees to what that calls for: an index that should be there, or a note that one is
/// used. That happens beside the query, and is lost with no harm.
fn count_query(
    planner: &Planner,
    shape: &Shape,
    query: &Query,
    report: Result<&Report, &Error>,
    shown: usize,
    now: Timestamp,
) {
    let rows = planner.budget().rows;
    let too_much = Report { plan: String::new(), uses: Vec::new(), visited: rows, cost: rows };
    let report = match report {
        Ok(report) => report,
        Err(error) if error.code() == Code::QueryTooExpensive => &too_much,
        Err(_) => return,
    };
    let needs = planner.count(shape, query, report, shown, now);
    if needs == Needs::default() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let db = planner.background().clone();
    runtime.spawn(async move {
        if let Err(error) = db.write(move |tx| see_to(tx, &needs)).await {
            tracing::warn!(?error, "what queries need could not be noted");
        }
    });
}

/// Asks for indexes that queries wished for, and notes that others are used.
///
/// # Errors
/// When the database fails.
fn see_to(tx: &mut Tx, needs: &Needs) -> Result<()> {
    let now = tx.now();
    for request in &needs.requests {
        let key = format!(
            "wish:{}:{}",
            request.collection_id,
            serde_json::to_string(&request.parts).map_err(Error::internal)?
        );
        tx.enqueue(request.workspace_id, AUTO_INDEX, Some(&key), request, now)?;
    }
    diesel::update(collection_indexes::table.filter(collection_indexes::id.eq_any(&needs.used)))
        .set(collection_indexes::last_used_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// Makes an index that was wished for, where the collection is large enough and has room for it. Gives the one that is
/// being built now.
///
/// # Errors
/// When the database fails.
pub fn grant(tx: &mut Tx, shapes: &Shapes, request: &IndexRequest) -> Result<Option<IndexId>> {
    use model::Code::{InvalidState, LimitReached, NotFound};
    let mut attempt = || -> Result<Option<IndexId>> {
        shape::for_change(tx, request.workspace_id, request.collection_id)?;
        let shape = shape::for_write(tx, shapes, request.workspace_id, request.collection_id)?;
        if request.parts.is_empty() {
            return grant_columnar(tx, &shape);
        }
        let families: Option<Vec<_>> = request.parts.iter().map(|part| part.subject.family(&shape)).collect();
        let kind = match families.as_deref() {
            Some([family]) if family.is_set() => IndexKind::Set,
            Some([family]) if family.is_ordered() => IndexKind::Single,
            Some(all @ [_, _, ..]) if all.iter().all(|family| family.is_ordered()) => IndexKind::Composite,
            // The fields have changed since.
            _ => return Ok(None),
        };
        let there = shape.indexes.iter().find(|index| index.kind == kind && index.parts == request.parts);
        if let Some(index) = there {
            return Ok((index.status == IndexStatus::Building).then_some(index.id));
        }
        if count::live_up_to(tx, request.collection_id, LARGE)? <= LARGE {
            return Ok(None);
        }
        create(tx, &shape, kind, &request.parts, IndexOrigin::Auto).map(|row| Some(row.id))
    };
    match attempt() {
        Err(error) if matches!(error.code(), InvalidState | LimitReached | NotFound) => Ok(None),
        result => result,
    }
}

/// Makes a columnar index, where the collection is large enough. One that lacks what it could hold makes way.
fn grant_columnar(tx: &mut Tx, shape: &Shape) -> Result<Option<IndexId>> {
    let parts = columnar::parts(shape);
    if count::live_up_to(tx, shape.collection, LARGE_ENOUGH_FOR_COLUMNS)? <= LARGE_ENOUGH_FOR_COLUMNS {
        return Ok(None);
    }
    if let Some(index) = columnar::of(shape) {
        if index.parts == parts {
            return Ok((index.status == IndexStatus::Building).then_some(index.id));
        }
        let Some(row) = find(tx, index.id)? else { return Ok(None) };
        drop_index(tx, &row)?;
    }
    create(tx, shape, IndexKind::Columnar, &parts, IndexOrigin::Auto).map(|row| Some(row.id))
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

fn find(read: &mut Read, id: IndexId) -> Result<Option<IndexRow>> {
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
    Ok(match tx.connection() {
        AnyConnection::Sqlite(connection) => next.load(connection)?,
        AnyConnection::Postgres(connection) => next.for_share().load(connection)?,
    })
}

fn put_keys(tx: &mut Tx, shape: &Shape, index: &Index, rows: &[ItemRow]) -> Result<()> {
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let data = row.values()?;
        let record = row.record(&data);
        for key in index_keys(record, shape, index) {
            keys.push((
                item_keys::index_id.eq(index.id),
                item_keys::k.eq(key),
                item_keys::item_id.eq(row.id),
            ));
        }
    }
    match tx.connection() {
        AnyConnection::Sqlite(connection) => {
            for key in keys {
                diesel::insert_into(item_keys::table)
                    .values(key)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
            }
        }
        AnyConnection::Postgres(connection) => {
            // A statement takes at most 65,535 values.
            for some in keys.chunks(10_000) {
                diesel::insert_into(item_keys::table)
                    .values(some)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
            }
        }
    }
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

/// Indexes that the service made and that no query has used for 60 days.
fn idle(read: &mut Read) -> Result<Vec<IndexRow>> {
    let before = read.now().plus_seconds(-IDLE_DAYS * 24 * 3600);
    Ok(collection_indexes::table
        .filter(collection_indexes::origin.eq(IndexOrigin::Auto))
        .filter(collection_indexes::status.eq(IndexStatus::Ready))
        .filter(collection_indexes::created_at.lt(before))
        .filter(collection_indexes::last_used_at.is_null().or(collection_indexes::last_used_at.lt(before)))
        .select(IndexRow::as_select())
        .load(read.connection())?)
}

/// Lets an idle index go.
fn retire(tx: &mut Tx, row: &IndexRow) -> Result<()> {
    match shape::for_change(tx, row.workspace_id, row.collection_id) {
        // Somebody may have dropped it meanwhile.
        Ok(_) if find(tx, row.id)?.is_some_and(|now| now.status == row.status) => drop_index(tx, row),
        Err(error) if error.code() != model::Code::NotFound => Err(error),
        _ => Ok(()),
    }
}
