//! Putting items in order whose texts an index has only the beginnings of.
//!
//! An index cuts long texts, so it has items whose texts begin alike in the order of their ids. They follow each other: a
//! run is gathered to its end, and then comes out in the order of the whole texts.

use fields::key::MOST_TEXT;
use fields::sort::Sort;
use fields::{Family, FieldSet};

/// So many more items of a run are kept than are needed: some may be changed before they are fetched.
const SPARE: usize = 500;

/// An item that fits by its id, and its place in the order.
pub(super) type Placed = (Vec<u8>, i64);

/// Items as they come from an index, and then in the order of a list.
pub(super) struct Runs<'a> {
    sort: &'a Sort,
    fields: &'a FieldSet,
    /// Items up to this place do not count.
    after: Option<&'a [u8]>,
    /// How many items of a run are kept at the most.
    most: usize,
    has_texts: bool,
    /// What the items of the run have in common.
    parts: Vec<u8>,
    run: Vec<Placed>,
    /// Whether items at the end of a run were dropped.
    pub is_short: bool,
}

impl<'a> Runs<'a> {
    /// No items yet, of which `need` behind a place are wanted.
    pub fn new(sort: &'a Sort, fields: &'a FieldSet, after: Option<&'a [u8]>, need: usize) -> Self {
        let most = need.saturating_add(SPARE);
        let has_texts = has_texts(sort, fields);
        Self { sort, fields, after, most, has_texts, parts: Vec::new(), run: Vec::new(), is_short: false }
    }

    /// Takes in the next item of the index, and hands on those that are before it.
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

    /// Hands on the items that are left: there are no more.
    pub fn finish(&mut self, out: &mut Vec<Placed>) {
        self.parts.clear();
        self.run.sort_unstable();
        out.append(&mut self.run);
    }

    fn counts(&self, placed: &Placed) -> bool {
        self.after.is_none_or(|after| placed.0.as_slice() > after)
    }
}

/// Whether an order goes by texts.
pub(super) fn has_texts(sort: &Sort, fields: &FieldSet) -> bool {
    sort.parts.iter().any(|part| part.subject.family(fields) == Some(Family::Text))
}

/// Whether other items may have the same key in an index that stand elsewhere in the order.
pub(super) fn is_in_run(sort: &Sort, fields: &FieldSet, place: &[u8]) -> bool {
    place.len() > MOST_TEXT && sort.cut(fields, place, MOST_TEXT).is_some_and(|place| place.is_cut())
}

/// Where a scan of an index begins that goes on behind a place: before the run that the place is in.
pub(super) fn start(sort: &Sort, fields: &FieldSet, after: &[u8]) -> Vec<u8> {
    let cut = sort.cut(fields, after, MOST_TEXT).filter(fields::sort::CutPlace::is_cut);
    cut.map_or_else(|| after.to_vec(), |cut| cut.parts)
}

/// The place of an item in an index that goes by this order.
pub(super) fn in_index(sort: &Sort, fields: &FieldSet, place: &[u8]) -> Vec<u8> {
    sort.cut(fields, place, MOST_TEXT).map_or_else(|| place.to_vec(), fields::sort::CutPlace::into_bytes)
}
