//! Writing changed items into their segments.
//!
//! Segments are made by a reader, and a short transaction puts them in the place of the old ones. A row of `item_changes` is
//! only deleted where its item was read after it, so an item that changes meanwhile keeps one.

use super::ROWS;
use super::row_ids::RowIds;
use super::segment::{self, Column};
use super::table::{self, ColumnRow, NewSegment, Place, StoredSegment, column_id, columns_of, damaged};
use crate::rows::{ItemRow, live_by_ids};
use crate::schema::{collection_indexes, item_changes};
use crate::shape::{self, Index, IndexRow, Shape, Shapes};
use ::jobs::Job;
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{IndexId, Result};
use std::sync::Arc;
use std::time::Duration;
use store::{Db, Read, Tx};

/// Fewer changes are left to the queries.
const LEAST_CHANGES: i64 = 500;
/// And in a large index so many for each segment: writing a segment costs the same for one change and for many.
const CHANGES_PER_SEGMENT: i64 = 4;
/// Changes that are looked at in one transaction.
const CHANGES: usize = 10_000;
/// Segments that are written in one transaction, which others wait for.
const SEGMENTS: usize = 8;
/// A statement names at most so many rows.
const DELETED: usize = 5_000;

/// The job of columnar indexes.
pub(crate) fn job(shapes: &Arc<Shapes>) -> Job {
    let shapes = shapes.clone();
    Job::every(
        "data.columnar.merge",
        Duration::from_secs(5),
        "writes changed items into columnar indexes",
        move |job| {
            let shapes = shapes.clone();
            async move { Ok(merge_all(&job.db, &shapes).await?) }
        },
    )
}

/// Brings all indexes up to date that have many changes.
///
/// # Errors
/// When the database fails. What was written stays so.
pub(crate) async fn merge_all(db: &Db, shapes: &Arc<Shapes>) -> Result<()> {
    for index in db.read(due).await? {
        loop {
            if !merge(db, shapes, index, ROWS).await? {
                break;
            }
        }
    }
    Ok(())
}

/// The indexes with many changes.
fn due(read: &mut Read) -> Result<Vec<IndexId>> {
    let counts: Vec<(IndexId, i64)> = item_changes::table
        .group_by(item_changes::index_id)
        .select((item_changes::index_id, count_star()))
        .load(read.connection())?;
    let mut due = Vec::new();
    for (index, changes) in counts {
        let segments = table::count(read, index)?;
        if changes >= LEAST_CHANGES.max(segments * CHANGES_PER_SEGMENT) {
            due.push(index);
        }
    }
    Ok(due)
}

/// Writes the next changed items into their segments; whether there are more. New segments get `size` items each, and one
/// that has grown to more than twice as many is divided.
///
/// # Errors
/// When the database fails.
pub async fn merge(db: &Db, shapes: &Arc<Shapes>, id: IndexId, size: usize) -> Result<bool> {
    let known = shapes.clone();
    let Some(merged) = db.read(move |read| Merged::read(read, &known, id, size)).await? else {
        return Ok(false);
    };
    let (known, has_more) = (shapes.clone(), merged.has_more);
    let is_written = db.write(move |tx| merged.write(tx, &known)).await?;
    Ok(has_more || !is_written)
}

/// Segments with their changed items, made before the transaction that writes them: making them takes longer, and others
/// wait for a transaction.
struct Merged {
    index: IndexId,
    /// The shape by which they are made.
    shape: Arc<Shape>,
    /// The revision of the segments that these are made of.
    revision: i64,
    /// Where segments end that others take the place of.
    replaced: Vec<i64>,
    segments: Vec<NewSegment>,
    /// The rows of `item_changes` that are in the segments.
    changes: Vec<i64>,
    has_more: bool,
}

impl Merged {
    /// Makes the next segments; `None` where there is no such index, or no change.
    fn read(read: &mut Read, shapes: &Shapes, id: IndexId, size: usize) -> Result<Option<Self>> {
        let row = collection_indexes::table.find(id).select(IndexRow::as_select());
        let Some(row) = row.get_result(read.connection()).optional()? else { return Ok(None) };
        let shape = match shape::for_read(read, shapes, row.workspace_id, row.collection_id) {
            Ok(shape) => shape,
            Err(error) if error.code() == model::Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(index) = shape.indexes.iter().find(|index| index.id == id) else { return Ok(None) };
        let Some(revision) = table::revision(read, id)? else { return Ok(None) };
        // Before the items: what changes afterwards has a row that is not among these.
        let changes: Vec<(i64, i64)> = item_changes::table
            .filter(item_changes::index_id.eq(id))
            .order(item_changes::id)
            .limit(i64::try_from(CHANGES).unwrap_or(i64::MAX))
            .select((item_changes::id, item_changes::item_id))
            .load(read.connection())?;
        if changes.is_empty() {
            return Ok(None);
        }
        let mut changed: Vec<i64> = changes.iter().map(|(_, item)| *item).collect();
        changed.sort_unstable();
        changed.dedup();
        let (mut replaced, mut segments) = (Vec::new(), Vec::new());
        let mut rest = changed.as_slice();
        for number in 0..SEGMENTS {
            let Some(first) = rest.first() else { break };
            let end = table::end_of(read, id, *first)?;
            // Items behind all segments may go into one that was just made, and is not stored yet.
            if end.is_none() && number > 0 {
                break;
            }
            let until = match end {
                Some(end) => rest.partition_point(|item| *item <= end),
                None => rest.len().min(size),
            };
            let (some, others) = rest.split_at(until);
            let (old, new) = Target { shape: &shape, index, end, size }.segments(read, some)?;
            replaced.extend(old);
            segments.extend(new);
            rest = others;
        }
        let until = rest.first().copied().unwrap_or(i64::MAX);
        Ok(Some(Self {
            index: id,
            shape: shape.clone(),
            revision,
            replaced,
            segments,
            has_more: !rest.is_empty() || changes.len() >= CHANGES,
            changes: changes
                .into_iter()
                .filter(|(_, item)| *item < until)
                .map(|(change, _)| change)
                .collect(),
        }))
    }

    /// Writes them, unless the index or its segments are others by now. Gives whether it has.
    fn write(&self, tx: &mut Tx, shapes: &Shapes) -> Result<bool> {
        if !self.is_current(tx, shapes)? {
            return Ok(false);
        }
        for end in &self.replaced {
            table::delete(tx, self.index, *end)?;
        }
        for segment in &self.segments {
            table::insert(tx, self.index, segment)?;
        }
        for some in self.changes.chunks(DELETED) {
            diesel::delete(item_changes::table.filter(item_changes::id.eq_any(some)))
                .execute(tx.connection())?;
        }
        table::renew(tx, self.index)?;
        Ok(true)
    }

    /// Whether the index has the segments and the shape that these were made of. It is kept from others who would write
    /// its segments.
    fn is_current(&self, tx: &mut Tx, shapes: &Shapes) -> Result<bool> {
        let shape = match shape::held(tx, shapes, self.shape.workspace, self.shape.collection) {
            Ok(shape) => shape,
            Err(error) if error.code() == model::Code::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        tx.lock(&format!("columnar {}", self.index))?;
        Ok(shape.version == self.shape.version && table::revision(tx, self.index)? == Some(self.revision))
    }
}

/// Where changed items go.
struct Target<'a> {
    shape: &'a Shape,
    index: &'a Index,
    /// Where their segment ends; `None` where they are behind all segments.
    end: Option<i64>,
    /// Items of a new segment.
    size: usize,
}

impl Target<'_> {
    /// Makes the segment anew, with what has become of some of its items. Gives where the old one ends, if there is one, and
    /// those that take its place.
    fn segments(&self, read: &mut Read, changed: &[i64]) -> Result<(Option<i64>, Vec<NewSegment>)> {
        let Self { shape, index, end, size } = *self;
        let columns: Vec<i64> = index.parts.iter().map(|part| column_id(part.subject)).collect();
        let place = end.map_or(Place::Before(i64::MAX), |end| Place::Behind(end.saturating_sub(1)));
        let stored = table::segments(read, index.id, &columns, place, 1)?.pop();
        // Items behind all segments go into the last one, unless it is full.
        let stored = stored.filter(|stored| end.is_some() || stored.ids.count() < size);
        let fresh = live_by_ids(read, shape, changed)?;
        let end = end.or(changed.last().copied()).unwrap_or_default();
        let rows = Rows::of(stored.as_ref(), changed, &fresh);
        let columns = rows.columns(stored.as_ref(), columns_of(shape, index, &fresh)?)?;
        let size = if rows.ids.len() > 2 * size { size } else { rows.ids.len().max(1) };
        let count = rows.ids.len().div_ceil(size);
        let segment = |(place, ids): (usize, &[i64])| {
            let slice = |(column, entries): &(i64, Vec<Vec<u8>>)| -> ColumnRow {
                let some = entries.iter().skip(place * size).take(ids.len()).map(Vec::as_slice);
                (*column, segment::encode(some.collect::<Vec<_>>().into_iter()))
            };
            // The last one ends where the segment did, so that nothing lies between two.
            let last = if place + 1 == count { end } else { ids.last().copied().unwrap_or(end) };
            NewSegment::new(last, ids, columns.iter().map(slice).collect())
        };
        let new = rows.ids.chunks(size).enumerate().map(segment).collect();
        Ok((stored.map(|stored| stored.last_id), new))
    }
}

/// The items of a segment after a change.
struct Rows {
    ids: Vec<i64>,
    /// Where the entries of each are found.
    sources: Vec<Source>,
}

/// Where an item's entries are found.
enum Source {
    /// In this row of the stored segment.
    Stored(usize),
    /// In this one of the rows that were read.
    Fresh(usize),
}

impl Rows {
    fn of(stored: Option<&StoredSegment>, changed: &[i64], fresh: &[ItemRow]) -> Self {
        let old = stored.map_or(&RowIds::NONE, |stored| &stored.ids);
        let kept = old.iter().enumerate().filter(|(_, id)| changed.binary_search(id).is_err());
        let mut all: Vec<(i64, Source)> = kept.map(|(row, id)| (id, Source::Stored(row))).collect();
        all.extend(fresh.iter().enumerate().map(|(row, item)| (item.id.0, Source::Fresh(row))));
        all.sort_unstable_by_key(|(id, _)| *id);
        let (ids, sources) = all.into_iter().unzip();
        Self { ids, sources }
    }

    /// The entries of each column.
    fn columns(
        &self,
        stored: Option<&StoredSegment>,
        fresh: Vec<ColumnRow>,
    ) -> Result<Vec<(i64, Vec<Vec<u8>>)>> {
        let mut columns = Vec::with_capacity(fresh.len());
        for (slot, (column, bytes)) in fresh.iter().enumerate() {
            let new = Column::of(bytes).ok_or_else(damaged)?;
            let old = stored.and_then(|stored| stored.columns.get(slot));
            let old = old.map(|bytes| Column::of(bytes).ok_or_else(damaged)).transpose()?;
            let entry = |source: &Source| match (source, &old) {
                (Source::Fresh(row), _) => Some(new.entry(new.code(*row)).to_vec()),
                (Source::Stored(row), Some(old)) => Some(old.entry(old.code(*row)).to_vec()),
                (Source::Stored(_), None) => None,
            };
            let entries: Option<Vec<_>> = self.sources.iter().map(entry).collect();
            columns.push((*column, entries.ok_or_else(damaged)?));
        }
        Ok(columns)
    }
}
