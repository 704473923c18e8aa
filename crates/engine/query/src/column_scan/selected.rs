//! The rows of a segment whose columns are read, and what is known of them.

use fields::Part;
use model::Result;
use records::columnar::row_ids::RowIds;
use records::columnar::segment::Column;
use records::columnar::table::{StoredSegment, damaged};
use std::sync::Arc;

/// What is known of a row: it may fit, and then perhaps it surely does.
pub(super) const CAN: u8 = 0b01;
pub(super) const SURE: u8 = 0b10;

/// Whether any of some rows may fit.
pub(super) fn can_any(rows: &[u8]) -> bool {
    rows.iter().fold(0, |any, row| any | row) & CAN != 0
}

/// The places of the rows that may fit.
pub(super) fn candidates(rows: &[u8]) -> impl Iterator<Item = usize> {
    // Mostly few do, so many at a time are passed over.
    let some = rows.chunks(PASSED_OVER).enumerate().filter(|(_, some)| can_any(some));
    some.flat_map(|(chunk, some)| {
        let rows = some.iter().enumerate().filter(|(_, row)| **row & CAN != 0);
        rows.map(move |(place, _)| chunk * PASSED_OVER + place)
    })
}

/// So many rows are passed over at a time.
const PASSED_OVER: usize = 16;

/// A segment whose columns can be read.
pub(super) struct Segment<'s> {
    pub ids: &'s RowIds,
    pub columns: Vec<Column<'s>>,
}

impl<'s> Segment<'s> {
    /// Reads the columns of a stored segment where they are.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(stored: &'s StoredSegment) -> Result<Self> {
        let ids = &stored.ids;
        let column = |bytes: &'s Arc<[u8]>| Column::of(bytes).filter(|column| column.rows() == ids.count());
        let columns: Option<Vec<_>> = stored.columns.iter().map(column).collect();
        Ok(Self { ids, columns: columns.ok_or_else(damaged)? })
    }
}

/// The rows of a segment that were selected, with the columns of the order.
pub(crate) struct SelectedRows<'s> {
    pub(super) segment: &'s Segment<'s>,
    pub(super) masks: &'s [u8],
    pub(super) sort: &'s [(Part, usize)],
}

impl SelectedRows<'_> {
    /// The rows that fit.
    pub fn fitting(&self) -> impl Iterator<Item = usize> {
        candidates(self.masks).filter(|row| self.mask(*row) & SURE != 0)
    }

    /// The ids of those that may fit, if the record says so.
    pub fn doubtful(&self) -> impl Iterator<Item = i64> {
        candidates(self.masks).filter(|row| self.mask(*row) & SURE == 0).map(|row| self.id(row))
    }

    fn mask(&self, row: usize) -> u8 {
        self.masks.get(row).copied().unwrap_or_default()
    }

    /// The id of a row.
    pub fn id(&self, row: usize) -> i64 {
        self.segment.ids.get(row).unwrap_or_default()
    }

    /// How many rows there are, selected or not.
    pub fn count(&self) -> usize {
        self.segment.ids.count()
    }

    /// The entries of the column of a part of the order, by their codes.
    pub fn entries(&self, part: usize) -> impl Iterator<Item = &[u8]> {
        let column = self.column(part);
        column.into_iter().flat_map(|column| (0..column.distinct()).map(move |code| column.entry(code)))
    }

    /// The code of a row in that column.
    pub fn code(&self, part: usize, row: usize) -> usize {
        self.column(part).map_or(0, |column| column.code(row))
    }

    /// Hands the codes of some rows in that column to `each`, with the place of each row in `rows`.
    pub fn each_code(&self, part: usize, rows: &[usize], each: impl FnMut(usize, usize)) {
        if let Some(column) = self.column(part) {
            column.each_code(rows, each);
        }
    }

    /// How many codes that column has.
    pub fn distinct(&self, part: usize) -> usize {
        self.column(part).map_or(0, Column::distinct)
    }

    fn column(&self, part: usize) -> Option<&Column<'_>> {
        self.segment.columns.get(self.sort.get(part)?.1)
    }
}
