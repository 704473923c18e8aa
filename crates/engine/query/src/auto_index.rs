//! Automatic indexes. Queries are counted; when enough queries would profit from an index, a job creates it. Another
//! job drops automatic indexes that no query has used for a long time.

use crate::aggregate::{AggregateGroup, Aggregation, CountedGroup, count_by};
use crate::counting::{AUTO_INDEX, count_query};
use crate::planning::planner::Planner;
use crate::types::{Query, Report};
use crate::usage::{IndexRequest, LARGE};
use crate::visit::Page;
use diesel::prelude::*;
use jobs::{Job, JobError};
use model::{IndexId, Result};
use records::schema::collection_indexes;
use records::shape::{self, IndexKind, IndexOrigin, IndexRow, IndexStatus, Shape, Shapes};
use records::{columnar, count, indexes};
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};

/// Only larger collections get a columnar index.
const LARGE_ENOUGH_FOR_COLUMNS: i64 = 5_000;
/// An automatic index is dropped after this many days without use.
const IDLE_DAYS: i64 = 60;

/// Returns the jobs for automatic indexes.
pub(crate) fn jobs(shapes: &Arc<Shapes>) -> [Job; 2] {
    let shapes = shapes.clone();
    [
        Job::after(AUTO_INDEX, "queries would profit from an index", "creates it", move |job| {
            let shapes = shapes.clone();
            async move {
                let request: IndexRequest = job.payload.parse().map_err(JobError::give_up)?;
                job.db.write(move |tx| grant_index(tx, &shapes, &request)).await?;
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

/// Returns a page of a query, and counts the query. A query that fails because it is too expensive is counted too,
/// since it needs an index most.
///
/// # Errors
/// As [`Query::page`].
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

/// Runs an aggregation and counts it (see [`counted_page`]).
///
/// # Errors
/// As [`Aggregation::run`].
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

/// Runs [`count_by`] and counts the query (see [`counted_page`]).
///
/// # Errors
/// As [`count_by`].
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

/// Creates a requested index, if the collection is large enough and has not reached its limit. Returns the id of an
/// index that is now being built, if any.
pub fn grant_index(tx: &mut Tx, shapes: &Shapes, request: &IndexRequest) -> Result<Option<IndexId>> {
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
            // The fields have changed since the request.
            _ => return Ok(None),
        };
        let there = shape.indexes.iter().find(|index| index.kind == kind && index.parts == request.parts);
        if let Some(index) = there {
            return Ok((index.status == IndexStatus::Building).then_some(index.id));
        }
        if count::live_up_to(tx, request.collection_id, LARGE)? <= LARGE {
            return Ok(None);
        }
        indexes::create(tx, &shape, kind, &request.parts, IndexOrigin::Auto).map(|row| Some(row.id))
    };
    match attempt() {
        Err(error) if matches!(error.code(), InvalidState | LimitReached | NotFound) => Ok(None),
        result => result,
    }
}

/// Creates a columnar index, if the collection is large enough. Replaces one that lacks columns it could hold.
fn grant_columnar(tx: &mut Tx, shape: &Shape) -> Result<Option<IndexId>> {
    let parts = columnar::parts(shape);
    if count::live_up_to(tx, shape.collection, LARGE_ENOUGH_FOR_COLUMNS)? <= LARGE_ENOUGH_FOR_COLUMNS {
        return Ok(None);
    }
    if let Some(index) = columnar::of(shape) {
        if index.parts == parts {
            return Ok((index.status == IndexStatus::Building).then_some(index.id));
        }
        let Some(row) = indexes::find(tx, index.id)? else { return Ok(None) };
        indexes::drop_index(tx, &row)?;
    }
    indexes::create(tx, shape, IndexKind::Columnar, &parts, IndexOrigin::Auto).map(|row| Some(row.id))
}

/// Returns automatic indexes that no query has used for 60 days.
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

/// Drops an unused index.
fn retire(tx: &mut Tx, row: &IndexRow) -> Result<()> {
    match shape::for_change(tx, row.workspace_id, row.collection_id) {
        // It may have been dropped meanwhile.
        Ok(_) if indexes::find(tx, row.id)?.is_some_and(|now| now.status == row.status) => {
            indexes::drop_index(tx, row)
        }
        Err(error) if error.code() != model::Code::NotFound => Err(error),
        _ => Ok(()),
    }
}
