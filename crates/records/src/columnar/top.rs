//! The first items of an order, by the columns that it goes by.

use super::segment::Column;
use super::selected::{CAN, Segment};
use fields::{Part, key};
use std::collections::BinaryHeap;

/// The first items of an order, as they are found.
pub(super) struct Top<'a> {
    parts: &'a [(Part, usize)],
    newest_first: bool,
    after: Option<&'a [u8]>,
    count: usize,
    best: BinaryHeap<(Vec<u8>, i64)>,
}

impl<'a> Top<'a> {
    /// No items yet, of which `count` behind a place are wanted.
    pub fn new(
        parts: &'a [(Part, usize)],
        newest_first: bool,
        after: Option<&'a [u8]>,
        count: usize,
    ) -> Self {
        Self { parts, newest_first, after, count, best: BinaryHeap::new() }
    }

    /// The first items, in order.
    pub fn into_items(self) -> Vec<(Vec<u8>, i64)> {
        self.best.into_sorted_vec()
    }

    /// Takes an item in that is among the first so far.
    pub fn offer(&mut self, place: &[u8], id: i64) {
        if self.after.is_some_and(|after| place <= after) {
            return;
        }
        if self.best.len() < self.count {
            self.best.push((place.to_vec(), id));
        } else if let Some(mut last) = self.best.peek_mut()
            && place < last.0.as_slice()
        {
            last.0.clear();
            last.0.extend_from_slice(place);
            last.1 = id;
        }
    }

    /// Takes in what fits of a segment.
    pub fn collect(&mut self, segment: &Segment<'_>, fitting: &[u8]) {
        let cutoff = self.cutoff(segment);
        let mut place = Vec::with_capacity(64);
        for (row, id) in segment.ids.iter().enumerate() {
            if fitting.get(row).is_none_or(|mask| mask & CAN == 0) {
                continue;
            }
            if cutoff.as_ref().is_some_and(|cutoff| !cutoff.has(row)) {
                continue;
            }
            place.clear();
            for (part, slot) in self.parts {
                let entry = segment.columns.get(*slot).map(|column| column.entry(column.code(row)));
                push_part(entry.unwrap_or_default(), part.desc, &mut place);
            }
            key::push_id(&mut place, *id, self.newest_first);
            self.offer(&place, *id);
        }
    }

    /// The entries of the first part that are not behind the last item so far; `None` while there is room for any.
    fn cutoff<'s>(&self, segment: &Segment<'s>) -> Option<Cutoff<'s>> {
        let (part, slot) = self.parts.first()?;
        let column = *segment.columns.get(*slot)?;
        let (last, _) = self.best.peek().filter(|_| self.best.len() >= self.count)?;
        let is_behind = |entry: &[u8]| {
            let mut key = Vec::with_capacity(entry.len());
            push_part(entry, part.desc, &mut key);
            key.as_slice() > last.as_slice()
        };
        let values = column.distinct() - usize::from(column.ends_in_nothing());
        let (from, to) = if part.desc {
            (column.partition(is_behind), values)
        } else {
            (0, column.partition(|entry| !is_behind(entry)))
        };
        let nothing = (column.ends_in_nothing() && !is_behind(&[key::NOTHING])).then_some(values);
        Some(Cutoff { column, from, to, nothing })
    }
}

/// Entries of a column: those from one place up to another, and perhaps that of items without a value.
struct Cutoff<'s> {
    column: Column<'s>,
    from: usize,
    to: usize,
    nothing: Option<usize>,
}

impl Cutoff<'_> {
    fn has(&self, row: usize) -> bool {
        let code = self.column.code(row);
        (self.from..self.to).contains(&code) || self.nothing == Some(code)
    }
}

/// Appends an entry as a part of a place.
fn push_part(entry: &[u8], desc: bool, place: &mut Vec<u8>) {
    let start = place.len();
    place.extend_from_slice(entry);
    if desc && entry.first() == Some(&key::VALUE) {
        key::invert(place, start + 1);
    }
}
