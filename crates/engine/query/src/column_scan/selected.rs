//! The rows of a segment with their masks: whether a row may match, and whether it is certain.

use fields::Part;
use model::Result;
use records::columnar::row_ids::RowIds;
use records::columnar::segment::Column;
use records::columnar::table::{StoredSegment, damaged};
use std::sync::Arc;

/// The mask bits of a row: it may match (`CAN`), and the columns alone prove it (`SURE`).
pub(super) const CAN: u8 = 0b01;
pub(super) const SURE: u8 = 0b10;

/// Returns whether any row may match.
pub(super) fn can_any(rows: &[u8]) -> bool {
    rows.iter().fold(0, |any, row| any | row) & CAN != 0
}

/// Returns the positions of the rows that may match.
pub(super) fn candidates(rows: &[u8]) -> impl Iterator<Item = usize> {
    // Usually few rows match, so skip chunks without any.
    let some = rows.chunks(PASSED_OVER).enumerate().filter(|(_, some)| can_any(some));
    some.flat_map(|(chunk, some)| {
        let rows = some.iter().enumerate().filter(|(_, row)| **row & CAN != 0);
        rows.map(move |(place, _)| chunk * PASSED_OVER + place)
    })
}

/// The number of rows in a chunk that is skipped at once.
const PASSED_OVER: usize = 16;

/// A segment whose columns can be read.
pub(super) struct Segment<'s> {
    pub ids: &'s RowIds,
    pub columns: Vec<Column<'s>>,
}

impl<'s> Segment<'s> {
    /// Parses the columns of a stored segment in place.
    ///
    /// # Errors
    /// `internal_error` for a corrupt segment.
    pub fn of(stored: &'s StoredSegment) -> Result<Self> {
        let ids = &stored.ids;
        let column = |bytes: &'s Arc<[u8]>| Column::of(bytes).filter(|column| column.rows() == ids.count());
        let columns: Option<Vec<_>> = stored.columns.iter().map(column).collect();
        Ok(Self { ids, columns: columns.ok_or_else(damaged)? })
    }
}

/// The selected rows of a segment, with the columns of the order.
pub(crate) struct SelectedRows<'s> {
    pub(super) segment: &'s Segment<'s>,
    pub(super) masks: &'s [u8],
    pub(super) sort: &'s [(Part, usize)],
}

impl SelectedRows<'_> {
    /// Returns the rows that match for certain.
    pub fn fitting(&self) -> impl Iterator<Item = usize> {
        candidates(self.masks).filter(|row| self.mask(*row) & SURE != 0)
    }

    /// Returns the ids of the rows for which the record must decide.
    pub fn doubtful(&self) -> impl Iterator<Item = i64> {
        candidates(self.masks).filter(|row| self.mask(*row) & SURE == 0).map(|row| self.id(row))
    }

    fn mask(&self, row: usize) -> u8 {
        self.masks.get(row).copied().unwrap_or_default()
    }

    /// Returns the id of a row.
    pub fn id(&self, row: usize) -> i64 {
        self.segment.ids.get(row).unwrap_or_default()
    }

    /// Returns the number of rows, selected or not.
    pub fn count(&self) -> usize {
        self.segment.ids.count()
    }

    /// Returns the entries of an order part's column, in the order of their codes.
    pub fn entries(&self, part: usize) -> impl Iterator<Item = &[u8]> {
        let column = self.column(part);
        column.into_iter().flat_map(|column| (0..column.distinct()).map(move |code| column.entry(code)))
    }

    /// Returns the code of a row in that column.
    pub fn code(&self, part: usize, row: usize) -> usize {
        self.column(part).map_or(0, |column| column.code(row))
    }

    /// Calls `each` with the position in `rows` and the code, for each of these rows.
    pub fn each_code(&self, part: usize, rows: &[usize], each: impl FnMut(usize, usize)) {
        if let Some(column) = self.column(part) {
            column.each_code(rows, each);
        }
    }

    /// Returns the number of distinct codes in that column.
    pub fn distinct(&self, part: usize) -> usize {
        self.column(part).map_or(0, Column::distinct)
    }

    fn column(&self, part: usize) -> Option<&Column<'_>> {
        self.segment.columns.get(self.sort.get(part)?.1)
    }
}
