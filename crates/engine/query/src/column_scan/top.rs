//! Selection of the first items of an order, by the columns of that order.

use super::filter::CodeRanges;
use super::selected::{Segment, candidates};
use fields::{Part, key};
use std::collections::BinaryHeap;

/// A bounded heap with the first items of an order.
pub(super) struct Top<'a> {
    parts: &'a [(Part, usize)],
    newest_first: bool,
    after: Option<&'a [u8]>,
    count: usize,
    best: BinaryHeap<(Vec<u8>, i64)>,
}

impl<'a> Top<'a> {
    /// Creates an empty heap for the first `count` items after a position.
    pub fn new(
        parts: &'a [(Part, usize)],
        newest_first: bool,
        after: Option<&'a [u8]>,
        count: usize,
    ) -> Self {
        Self { parts, newest_first, after, count, best: BinaryHeap::new() }
    }

    /// Returns the items, in order.
    pub fn into_items(self) -> Vec<(Vec<u8>, i64)> {
        self.best.into_sorted_vec()
    }

    /// Adds an item if it is among the first ones.
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

    /// Returns a lower bound of the positions of a segment's items: its first value of the order's first part.
    pub fn first_of(&self, segment: &Segment<'_>) -> Vec<u8> {
        let mut place = Vec::new();
        let Some((part, slot)) = self.parts.first() else { return place };
        let Some(column) = segment.columns.get(*slot) else { return place };
        let first = if part.desc { column.values().saturating_sub(1) } else { 0 };
        push_part(column.entry(first), part.desc, &mut place);
        place
    }

    /// Returns whether the heap is full and all of its items are before a position.
    pub fn is_full_before(&self, place: &[u8]) -> bool {
        let last = self.best.peek().filter(|_| self.best.len() >= self.count);
        last.is_some_and(|(last, _)| place > last.as_slice())
    }

    /// Clears the rows that cannot be among the first items, judging by the first part of the order.
    pub fn narrow(&self, segment: &Segment<'_>, rows: &mut [u8]) {
        let Some((part, slot)) = self.parts.first() else { return };
        let Some(column) = segment.columns.get(*slot) else { return };
        let Some((last, _)) = self.best.peek().filter(|_| self.best.len() >= self.count) else { return };
        let is_behind = |entry: &[u8]| match entry.split_first() {
            Some((&key::VALUE, value)) if part.desc => {
                let inverted = value.iter().map(|byte| !byte);
                std::iter::once(key::VALUE).chain(inverted).gt(last.iter().copied())
            }
            _ => entry > last.as_slice(),
        };
        let (from, to) = if part.desc {
            (column.partition(is_behind), column.values())
        } else {
            (0, column.partition(|entry| !is_behind(entry)))
        };
        let nothing = column.nothing().filter(|_| !is_behind(&[key::NOTHING]));
        CodeRanges::between(from, to, nothing).narrow(column, false, rows);
    }

    /// Adds the matching rows of a segment.
    pub fn collect(&mut self, segment: &Segment<'_>, fitting: &[u8]) {
        let mut place = Vec::with_capacity(64);
        for row in candidates(fitting) {
            let Some(id) = segment.ids.get(row) else { break };
            place.clear();
            for (part, slot) in self.parts {
                let entry = segment.columns.get(*slot).map(|column| column.entry(column.code(row)));
                let entry = entry.unwrap_or_default();
                push_part(entry, part.desc, &mut place);
                // A truncated text does not determine the position, so further parts are not comparable.
                if key::is_cut(entry) {
                    break;
                }
            }
            key::push_id(&mut place, id, self.newest_first);
            self.offer(&place, id);
        }
    }
}

/// Appends an entry to a position.
fn push_part(entry: &[u8], desc: bool, place: &mut Vec<u8>) {
    let start = place.len();
    place.extend_from_slice(entry);
    if desc && entry.first() == Some(&key::VALUE) {
        key::invert(place, start + 1);
    }
}
