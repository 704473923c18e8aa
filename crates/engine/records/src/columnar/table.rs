//! The stored rows of columnar indexes.

use super::row_ids::RowIds;
use super::segment::{self, Column, encode_ids};
use crate::rows::ItemRow;
use crate::schema::{collection_indexes, item_changes, item_columns};
use crate::shape::{Index, IndexStatus, Shape};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use fields::{Part, Subject, SystemColumn, push_entry};
use model::{Error, IndexId, ItemId, Result};
use std::sync::Arc;
use store::{Read, Rows, Tx};

/// The column that holds the ids.
const IDS: i64 = 0;

/// Below the numbers of all system columns.
const BUILT_IN: i64 = -1_000;

/// Under which number a column is stored: fields under their ids, system columns below zero, and below those the fields of
/// a kind, whose ids are negative.
pub fn column_id(subject: Subject) -> i64 {
    match subject {
        Subject::Field(id) if id.0 < 0 => BUILT_IN + id.0,
        Subject::Field(id) => id.0,
        Subject::System(column) => {
            let place = SystemColumn::ALL.iter().position(|other| *other == column);
            -1 - place.and_then(|place| i64::try_from(place).ok()).unwrap_or_default()
        }
    }
}

/// A segment as it is stored, with the columns that were asked for.
#[derive(Debug)]
pub struct StoredSegment {
    /// No item of it has a greater id.
    pub last_id: i64,
    /// The ids of its items.
    pub ids: RowIds,
    /// By place in what was asked for; empty for a column that is not there.
    pub columns: Vec<Arc<[u8]>>,
}

/// Which segments are read.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// Those that end behind this id, ascending.
    Behind(i64),
    /// Those that end before this id, descending.
    Before(i64),
}

/// The next segments, at most `most`, with some columns. It is one statement, so that the columns of a segment are of one
/// moment.
///
/// # Errors
/// When the database fails, or what is stored is damaged.
pub fn segments(
    read: &mut Read,
    index: IndexId,
    columns: &[i64],
    place: Place,
    most: usize,
) -> Result<Vec<StoredSegment>> {
    let wanted: Vec<i64> = std::iter::once(IDS).chain(columns.iter().copied()).collect();
    let limit = i64::try_from(most.saturating_mul(wanted.len())).unwrap_or(i64::MAX);
    let all = item_columns::table
        .filter(item_columns::index_id.eq(index))
        .filter(item_columns::column_id.eq_any(&wanted))
        .select((item_columns::last_id, item_columns::column_id, item_columns::data))
        .limit(limit);
    let rows: Vec<(i64, i64, Vec<u8>)> = match place {
        Place::Behind(id) => all
            .filter(item_columns::last_id.gt(id))
            .order((item_columns::last_id, item_columns::column_id))
            .load(read.connection())?,
        Place::Before(id) => all
            .filter(item_columns::last_id.lt(id))
            .order((item_columns::last_id.desc(), item_columns::column_id.desc()))
            .load(read.connection())?,
    };
    let mut segments: Vec<StoredSegment> = Vec::with_capacity(most.min(rows.len()));
    for (last_id, column, data) in rows {
        if segments.last().is_none_or(|last| last.last_id != last_id) {
            segments.push(StoredSegment {
                last_id,
                ids: RowIds::NONE,
                columns: vec![Arc::default(); columns.len()],
            });
        }
        let Some(segment) = segments.last_mut() else { continue };
        if column == IDS {
            segment.ids = RowIds::read(&data);
        } else if let Some(place) = columns.iter().position(|other| *other == column)
            && let Some(slot) = segment.columns.get_mut(place)
        {
            if !Column::of(&data).is_some_and(|column| column.is_whole()) {
                return Err(damaged());
            }
            *slot = data.into();
        }
    }
    Ok(segments)
}

/// The error of stored columns that cannot be read.
pub fn damaged() -> Error {
    Error::internal("a columnar index is damaged")
}

/// Where the segment ends that an id belongs to; `None` behind the last one.
///
/// # Errors
/// When the database fails.
pub fn end_of(read: &mut Read, index: IndexId, id: i64) -> Result<Option<i64>> {
    let end = item_columns::table
        .filter(item_columns::index_id.eq(index))
        .filter(item_columns::column_id.eq(IDS))
        .filter(item_columns::last_id.ge(id))
        .order(item_columns::last_id)
        .select(item_columns::last_id)
        .first(read.connection());
    Ok(end.optional()?)
}

/// Where the last segment ends.
///
/// # Errors
/// When the database fails.
pub fn last_end(read: &mut Read, index: IndexId) -> Result<Option<i64>> {
    let end = item_columns::table
        .filter(item_columns::index_id.eq(index))
        .order(item_columns::last_id.desc())
        .select(item_columns::last_id)
        .first(read.connection());
    Ok(end.optional()?)
}

/// How many segments an index has.
///
/// # Errors
/// When the database fails.
pub fn count(read: &mut Read, index: IndexId) -> Result<i64> {
    Ok(item_columns::table
        .filter(item_columns::index_id.eq(index))
        .filter(item_columns::column_id.eq(IDS))
        .count()
        .get_result(read.connection())?)
}

/// How many bytes a column has in the first segment.
///
/// # Errors
/// When the database fails.
pub fn bytes_of(read: &mut Read, index: IndexId, column: i64) -> Result<i64> {
    let bytes = item_columns::table
        .filter(item_columns::index_id.eq(index))
        .filter(item_columns::column_id.eq(column))
        .order(item_columns::last_id)
        .select(sql::<BigInt>("CAST(length(data) AS BIGINT)"))
        .first(read.connection());
    Ok(bytes.optional()?.unwrap_or(0))
}

/// A column of a segment: its number and its bytes.
pub(super) type ColumnRow = (i64, Vec<u8>);

/// A segment that is to be written.
#[derive(Debug)]
pub(super) struct NewSegment {
    last_id: i64,
    /// With that of the ids.
    columns: Vec<ColumnRow>,
}

impl NewSegment {
    /// The segment of these items that ends at `last_id`.
    pub(super) fn new(last_id: i64, ids: &[i64], mut columns: Vec<ColumnRow>) -> Self {
        columns.push((IDS, encode_ids(ids)));
        Self { last_id, columns }
    }
}

/// Writes a segment, which must not be there.
///
/// # Errors
/// When the database fails.
pub(super) fn insert(tx: &mut Tx, index: IndexId, segment: &NewSegment) -> Result<()> {
    Rows::of(&segment.columns)
        .big_int("index_id", |_| index)
        .big_int("last_id", |_| segment.last_id)
        .big_int("column_id", |(column, _)| *column)
        .binary("data", |(_, data)| data.as_slice())
        .insert(tx, "item_columns")
}

/// Takes a segment away.
///
/// # Errors
/// When the database fails.
pub(super) fn delete(tx: &mut Tx, index: IndexId, last_id: i64) -> Result<()> {
    let segment = item_columns::table
        .filter(item_columns::index_id.eq(index))
        .filter(item_columns::last_id.eq(last_id));
    diesel::delete(segment).execute(tx.connection())?;
    Ok(())
}

/// The columns of some items.
///
/// # Errors
/// When what is stored is damaged.
pub(super) fn columns_of(shape: &Shape, index: &Index, rows: &[ItemRow]) -> Result<Vec<ColumnRow>> {
    let mut entries: Vec<Vec<Vec<u8>>> = vec![Vec::with_capacity(rows.len()); index.parts.len()];
    // Row by row, because the values of an item may be large and their entries are not.
    for row in rows {
        let data = row.values()?;
        for (part, column) in index.parts.iter().zip(&mut entries) {
            let mut entry = Vec::new();
            push_entry(shape, row.record(&data), part.subject, &mut entry);
            column.push(entry);
        }
    }
    let encoded = |(part, entries): (&Part, Vec<Vec<u8>>)| {
        (column_id(part.subject), segment::encode(entries.iter().map(Vec::as_slice)))
    };
    Ok(index.parts.iter().zip(entries).map(encoded).collect())
}

/// Puts items into an index that holds none with greater ids, as a segment of their own.
///
/// # Errors
/// When the database fails.
pub(crate) fn append(tx: &mut Tx, shape: &Shape, index: &Index, rows: &[ItemRow]) -> Result<()> {
    let Some(last) = rows.last() else { return Ok(()) };
    let ids: Vec<i64> = rows.iter().map(|row| row.id.0).collect();
    insert(tx, index.id, &NewSegment::new(last.id.0, &ids, columns_of(shape, index, rows)?))
}

/// Records that an item changed.
///
/// # Errors
/// When the database fails.
pub(crate) fn record_change(tx: &mut Tx, index: IndexId, item: ItemId) -> Result<()> {
    diesel::insert_into(item_changes::table)
        .values((item_changes::index_id.eq(index), item_changes::item_id.eq(item.0)))
        .execute(tx.connection())?;
    Ok(())
}

/// The items that were changed since their segment was written, in the order of their ids; `None` where there were more than
/// `most` changes.
///
/// # Errors
/// When the database fails.
pub fn changed(read: &mut Read, index: IndexId, most: i64) -> Result<Option<Vec<i64>>> {
    let mut ids: Vec<i64> = item_changes::table
        .filter(item_changes::index_id.eq(index))
        .order(item_changes::id)
        .select(item_changes::item_id)
        .limit(most.saturating_add(1))
        .load(read.connection())?;
    if i64::try_from(ids.len()).is_ok_and(|changes| changes > most) {
        return Ok(None);
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// The revision of the segments of an index; `None` where it is not there or not filled. Asked after a scan too: the rows of
/// one that was dropped meanwhile may have been missing.
///
/// # Errors
/// When the database fails.
pub fn revision(read: &mut Read, index: IndexId) -> Result<Option<i64>> {
    let found: Option<(IndexStatus, i64)> = collection_indexes::table
        .find(index)
        .select((collection_indexes::status, collection_indexes::columns_revision))
        .get_result(read.connection())
        .optional()?;
    Ok(found.filter(|(status, _)| *status == IndexStatus::Ready).map(|(_, revision)| revision))
}

/// Gives an index a new revision, because changes have been merged into its segments. It is drawn and not counted, so
/// that one that is rolled back never comes again.
///
/// # Errors
/// When the database fails.
pub(super) fn renew(tx: &mut Tx, index: IndexId) -> Result<()> {
    let mut drawn = [0; 8];
    tx.random().fill(&mut drawn);
    diesel::update(collection_indexes::table.find(index))
        .set(collection_indexes::columns_revision.eq(i64::from_le_bytes(drawn)))
        .execute(tx.connection())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::FieldId;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_columns_have_one_number() {
        let fields = (-100..0).chain(1..100).map(|id| Subject::Field(FieldId(id)));
        let all: Vec<i64> =
            fields.chain(SystemColumn::ALL.map(Subject::System)).map(column_id).chain([IDS]).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
