//! Ordering of items by texts that an index stores only in part.
//!
//! An index truncates long texts, so items whose texts begin alike have the same key and are ordered by id. Such
//! items are adjacent and form a run. A run is buffered until its end and then returned in the order of the whole
//! texts.

use fields::key::MOST_TEXT;
use fields::sort::Sort;
use fields::{Family, FieldSet};

/// Extra items kept of a run, because some may change before they are fetched.
const SPARE: usize = 500;

/// The position in the order and the id of a matching item.
pub(super) type Placed = (Vec<u8>, i64);

/// Reorders items from index order to list order.
pub(super) struct Runs<'a> {
    sort: &'a Sort,
    fields: &'a FieldSet,
    /// Items up to this position are skipped.
    after: Option<&'a [u8]>,
    /// The maximum number of items kept of a run.
    most: usize,
    has_texts: bool,
    /// The common key parts of the run's items.
    parts: Vec<u8>,
    run: Vec<Placed>,
    /// Whether items at the end of a run were dropped.
    pub is_short: bool,
}

impl<'a> Runs<'a> {
    /// Creates an empty buffer for the first `need` items after a position.
    pub fn new(sort: &'a Sort, fields: &'a FieldSet, after: Option<&'a [u8]>, need: usize) -> Self {
        let most = need.saturating_add(SPARE);
        let has_texts = has_texts(sort, fields);
        Self { sort, fields, after, most, has_texts, parts: Vec::new(), run: Vec::new(), is_short: false }
    }

    /// Adds the next item of the index, and moves items whose position is final to `out`.
    pub fn push(&mut self, placed: Placed, out: &mut Vec<Placed>) {
        let cut = if self.has_texts { self.sort.cut(self.fields, &placed.0, MOST_TEXT) } else { None };
        match cut.filter(fields::sort::CutPlace::is_cut) {
            None => {
                self.finish(out);
                out.extend(Some(placed).filter(|placed| self.counts(placed)));
            }
            Some(cut) => {
                if cut.parts != self.parts {
                    self.finish(out);
                    self.parts = cut.parts;
                }
                if self.counts(&placed) {
                    self.run.push(placed);
                }
                if self.run.len() >= self.most.saturating_mul(2) {
                    self.run.sort_unstable();
                    self.run.truncate(self.most);
                    self.is_short = true;
                }
            }
        }
    }

    /// Moves the remaining items to `out`. Called at the end of the scan.
    pub fn finish(&mut self, out: &mut Vec<Placed>) {
        self.parts.clear();
        self.run.sort_unstable();
        out.append(&mut self.run);
    }

    fn counts(&self, placed: &Placed) -> bool {
        self.after.is_none_or(|after| placed.0.as_slice() > after)
    }
}

/// Returns whether an order contains a text.
pub(super) fn has_texts(sort: &Sort, fields: &FieldSet) -> bool {
    sort.parts.iter().any(|part| part.subject.family(fields) == Some(Family::Text))
}

/// Returns whether other items can have the same index key but a different position.
pub(super) fn is_in_run(sort: &Sort, fields: &FieldSet, place: &[u8]) -> bool {
    place.len() > MOST_TEXT && sort.cut(fields, place, MOST_TEXT).is_some_and(|place| place.is_cut())
}

/// Returns where an index scan must start to continue after a position: at the start of its run.
pub(super) fn start(sort: &Sort, fields: &FieldSet, after: &[u8]) -> Vec<u8> {
    let cut = sort.cut(fields, after, MOST_TEXT).filter(fields::sort::CutPlace::is_cut);
    cut.map_or_else(|| after.to_vec(), |cut| cut.parts)
}

/// Returns the key of an item in an index with this order.
pub(super) fn in_index(sort: &Sort, fields: &FieldSet, place: &[u8]) -> Vec<u8> {
    sort.cut(fields, place, MOST_TEXT).map_or_else(|| place.to_vec(), fields::sort::CutPlace::into_bytes)
}
