//! Evaluation of filters on the columns of a segment.
//!
//! A column stores each distinct value once, as an entry, and a code per row that refers to an entry. A condition is
//! therefore evaluated once per entry instead of once per row. Ordered conditions become ranges of codes, because
//! entries are sorted.

use super::selected::{CAN, SURE, Segment, can_any};
use fields::filter::{Condition, Range, Test};
use fields::{EntrySearcher, Filter, Outcome, Subject, SystemColumn, key};
use records::columnar::segment::{Codes, Column};
use records::shape::Index;

/// The mask of an entry that has not been tested yet.
const UNTESTED: u8 = 0b100;

/// Searching all entries at once costs as much as testing one in this number of them.
const SEARCHED_AT_ONCE: usize = 3;

/// Up to this number of entries are tested before it is known whether any row has them.
const FEW: usize = 16;

/// A filter on columns.
pub(super) enum ColumnFilter<'a> {
    All(Vec<ColumnFilter<'a>>),
    Any(Vec<ColumnFilter<'a>>),
    Not(Box<ColumnFilter<'a>>),
    /// A condition on a column, given by its position among the columns read.
    Column(usize, ColumnTest<'a>),
    /// A condition on the id.
    Id(&'a Condition),
    /// A condition that needs the record.
    Record,
}

/// A test of a column's entries.
pub(super) enum ColumnTest<'a> {
    /// Entries within the ranges match.
    Inside(&'a [Range]),
    /// Entries outside the ranges match.
    Outside(&'a [Range]),
    /// Entries that meet the condition match. All of them are within the ranges.
    Within(&'a Condition, Vec<Range>),
    /// Entries that meet the condition match.
    Each(&'a Condition),
}

/// Returns the position of a column among those read, adding it if necessary. Returns `None` if the index does not
/// contain it.
pub(super) fn slot(index: &Index, columns: &mut Vec<Subject>, subject: Subject) -> Option<usize> {
    if let Some(slot) = columns.iter().position(|other| *other == subject) {
        return Some(slot);
    }
    index.parts.iter().find(|part| part.subject == subject)?;
    columns.push(subject);
    Some(columns.len() - 1)
}

impl<'a> ColumnFilter<'a> {
    /// Converts a filter, and adds the columns that it reads to `columns`.
    pub fn of(index: &Index, columns: &mut Vec<Subject>, filter: &'a Filter) -> Self {
        let mut all =
            |filters: &'a [Filter]| filters.iter().map(|one| Self::of(index, columns, one)).collect();
        match filter {
            Filter::All(filters) => {
                let mut filters: Vec<Self> = all(filters);
                filters.sort_by_key(Self::rank);
                Self::All(filters)
            }
            Filter::Any(filters) => Self::Any(all(filters)),
            Filter::Not(filter) => Self::Not(Box::new(Self::of(index, columns, filter))),
            Filter::Finds(_) => Self::Record,
            Filter::One(condition) if condition.subject == Subject::System(SystemColumn::Id) => {
                Self::Id(condition)
            }
            Filter::One(condition) => {
                let Some(slot) = slot(index, columns, condition.subject) else { return Self::Record };
                Self::Column(slot, ColumnTest::of(condition))
            }
        }
    }

    /// Ranks filters by cost, so that cheap ones run first: ranges are found by binary search, other conditions test
    /// each entry.
    fn rank(&self) -> u8 {
        match self {
            Self::Column(_, test) if !matches!(test, ColumnTest::Each(_)) && !test.searches() => 0,
            Self::Column(..) | Self::Id(_) => 1,
            Self::All(_) | Self::Any(_) | Self::Not(_) => 2,
            Self::Record => 3,
        }
    }

    /// Clears the rows that the filter excludes.
    pub fn narrow(&self, segment: &Segment<'_>, rows: &mut [u8]) {
        match self {
            Self::All(filters) => {
                for filter in filters {
                    // Stop as soon as every row is excluded.
                    if !can_any(rows) {
                        break;
                    }
                    filter.narrow(segment, rows);
                }
            }
            Self::Any(filters) => {
                // Each filter starts from the same rows. A row stays if any of them keeps it.
                let mut fitting = vec![0; rows.len()];
                for filter in filters {
                    let mut tested = rows.to_vec();
                    filter.narrow(segment, &mut tested);
                    fitting.iter_mut().zip(tested).for_each(|(row, other)| *row |= other);
                }
                rows.copy_from_slice(&fitting);
            }
            Self::Not(filter) => {
                // Test the candidates with a fresh mask, then invert its outcome.
                let mut tested = vec![CAN | SURE; rows.len()];
                tested.iter_mut().zip(&*rows).filter(|(_, row)| **row == 0).for_each(|(test, _)| *test = 0);
                filter.narrow(segment, &mut tested);
                rows.iter_mut().zip(tested).for_each(|(row, other)| *row &= mask(!outcome(other)));
            }
            Self::Id(condition) => {
                let mut entry = Vec::with_capacity(9);
                for (row, id) in rows.iter_mut().zip(segment.ids.iter()).filter(|(row, _)| **row != 0) {
                    entry.clear();
                    key::push_integer(&mut entry, id, false);
                    *row &= mask(condition.on_entry(&entry));
                }
            }
            Self::Column(slot, test) => match segment.columns.get(*slot) {
                Some(column) => test.narrow(column, rows),
                None => only_perhaps(rows),
            },
            Self::Record => only_perhaps(rows),
        }
    }

    /// Returns whether the filter searches for substrings.
    fn searches(&self) -> bool {
        match self {
            Self::All(filters) | Self::Any(filters) => filters.iter().any(Self::searches),
            Self::Not(filter) => filter.searches(),
            Self::Column(_, test) => test.searches(),
            Self::Id(_) | Self::Record => false,
        }
    }

    /// Returns the number of texts that are searched for substrings, by far the most expensive test.
    pub fn searched(&self, segment: &Segment<'_>, rows: &[u8]) -> usize {
        match self {
            _ if !self.searches() => 0,
            Self::All(filters) => {
                let mut rows = rows.to_vec();
                let mut searched = 0;
                let mut filters = filters.as_slice();
                while let Some((filter, rest)) = filters.split_first() {
                    searched += filter.searched(segment, &rows);
                    if !rest.iter().any(Self::searches) {
                        break;
                    }
                    filter.narrow(segment, &mut rows);
                    filters = rest;
                }
                searched
            }
            Self::Any(filters) => filters.iter().map(|filter| filter.searched(segment, rows)).sum(),
            Self::Not(filter) => filter.searched(segment, rows),
            Self::Column(slot, _) => {
                let texts = segment.columns.get(*slot).map_or(0, Column::distinct);
                texts.min(rows.iter().filter(|row| **row & CAN != 0).count())
            }
            Self::Id(_) | Self::Record => 0,
        }
    }
}

impl<'a> ColumnTest<'a> {
    fn of(condition: &'a Condition) -> Self {
        if !condition.family.is_ordered() {
            return Self::Each(condition);
        }
        match (&condition.test, condition.ranges()) {
            (Test::Within(ranges), _) if condition.is_told_by_keys() => Self::Inside(ranges),
            (Test::Outside(ranges), _) => Self::Outside(ranges),
            (_, Some(ranges)) => Self::Within(condition, ranges),
            (_, None) => Self::Each(condition),
        }
    }

    fn narrow(&self, column: &Column<'_>, rows: &mut [u8]) {
        match self {
            Self::Inside(ranges) => CodeRanges::of(column, ranges).narrow(column, false, rows),
            Self::Outside(ranges) => CodeRanges::of(column, ranges).narrow(column, true, rows),
            Self::Within(condition, ranges) => {
                let codes = CodeRanges::of(column, ranges);
                codes.narrow(column, false, rows);
                if !codes.are_few_that_meet(condition, column) {
                    by_entries(column, condition, rows);
                }
            }
            Self::Each(condition) => by_entries(column, condition, rows),
        }
    }

    /// Returns whether the test searches for substrings.
    fn searches(&self) -> bool {
        match self {
            Self::Within(condition, _) | Self::Each(condition) => matches!(condition.test, Test::Like(_)),
            Self::Inside(_) | Self::Outside(_) => false,
        }
    }
}

fn mask(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::No => 0,
        Outcome::Maybe => CAN,
        Outcome::Yes => CAN | SURE,
    }
}

fn outcome(mask: u8) -> Outcome {
    match (mask & CAN != 0, mask & SURE != 0) {
        (_, true) => Outcome::Yes,
        (true, false) => Outcome::Maybe,
        (false, false) => Outcome::No,
    }
}

/// Marks all rows as uncertain, so that the record decides.
fn only_perhaps(rows: &mut [u8]) {
    rows.iter_mut().for_each(|row| *row &= CAN);
}

/// Tests a condition on the entries of candidate rows. Each entry is tested at most once.
fn by_entries(column: &Column<'_>, condition: &Condition, rows: &mut [u8]) {
    let candidates = rows.iter().filter(|row| **row & CAN != 0).count();
    if candidates == 0 {
        return;
    }
    let mut masks = match condition.searcher() {
        Some(searcher) if candidates * SEARCHED_AT_ONCE >= column.distinct() => found(column, &searcher),
        _ => vec![UNTESTED; column.distinct()],
    };
    let mut test = |row: &mut u8, code: usize| {
        if *row & CAN == 0 {
            return;
        }
        let Some(known) = masks.get_mut(code) else { return };
        if *known == UNTESTED {
            *known = mask(condition.on_entry(column.entry(code)));
        }
        *row &= *known;
    };
    match column.codes {
        Codes::Narrow(codes) => {
            rows.iter_mut().zip(codes).for_each(|(row, code)| test(row, usize::from(*code)));
        }
        Codes::Wide(codes) => {
            let codes = codes.iter().map(|code| usize::from(u16::from_le_bytes(*code)));
            rows.iter_mut().zip(codes).for_each(|(row, code)| test(row, code));
        }
    }
}

/// Searches all entries of a column at once. Returns a mask per entry: no match, or to be tested.
fn found(column: &Column<'_>, searcher: &EntrySearcher<'_>) -> Vec<u8> {
    let mut masks = vec![0; column.distinct()];
    let mut mark = |code: usize| masks.iter_mut().skip(code).take(1).for_each(|mask| *mask = UNTESTED);
    (0..column.distinct()).filter(|code| EntrySearcher::may_miss(column.entry(*code))).for_each(&mut mark);
    let (mut rest, mut passed) = (column.entries(), 0);
    while let Some(at) = searcher.find(rest) {
        let Some((code, end)) = column.entry_around(passed + at) else { break };
        mark(code);
        rest = column.entries().get(end..).unwrap_or_default();
        passed = end;
    }
    masks
}

/// A set of a column's entries, as ranges of codes.
pub(super) struct CodeRanges {
    /// Half-open ranges, in order and not empty.
    ranges: Vec<(usize, usize)>,
}

impl CodeRanges {
    /// Returns the entries within sorted ranges of values.
    fn of(column: &Column<'_>, ranges: &[Range]) -> Self {
        let mut codes = Self { ranges: Vec::new() };
        let (first, last) = (column.entry(0), column.entry(column.values().saturating_sub(1)));
        // If there are many ranges, most of them are outside the segment's values.
        let near = ranges.partition_point(|range| range.to.as_slice() <= first);
        for range in ranges.iter().skip(near).take_while(|range| range.from.as_slice() <= last) {
            let from = column.partition(|entry| entry < range.from.as_slice());
            codes.push(from, from.max(column.partition(|entry| entry < range.to.as_slice())));
        }
        if let Some(nothing) = column.nothing()
            && ranges.iter().any(|range| range.has(&[key::NOTHING]))
        {
            codes.push(nothing, nothing + 1);
        }
        codes
    }

    /// Returns the entries in a range of codes, and optionally the entry for a missing value.
    pub fn between(from: usize, to: usize, nothing: Option<usize>) -> Self {
        let mut codes = Self { ranges: Vec::with_capacity(2) };
        codes.push(from, to);
        if let Some(nothing) = nothing {
            codes.push(nothing, nothing + 1);
        }
        codes
    }

    fn push(&mut self, from: usize, to: usize) {
        match self.ranges.last_mut() {
            _ if from >= to => {}
            Some(last) if last.1 == from => last.1 = to,
            _ => self.ranges.push((from, to)),
        }
    }

    /// Returns whether the set is small and all of its entries meet the condition.
    fn are_few_that_meet(&self, condition: &Condition, column: &Column<'_>) -> bool {
        let count: usize = self.ranges.iter().map(|(from, to)| to - from).sum();
        let mut codes = self.ranges.iter().flat_map(|(from, to)| *from..*to);
        count <= FEW && codes.all(|code| condition.on_entry(column.entry(code)) == Outcome::Yes)
    }

    /// Clears the rows whose entries are not in the set, or with `is_outside`, those whose entries are.
    pub fn narrow(&self, column: &Column<'_>, is_outside: bool, rows: &mut [u8]) {
        let (from, to) = match self.ranges.as_slice() {
            [] => (0, 0),
            [only] => *only,
            _ => return self.narrow_by_table(column, is_outside, rows),
        };
        let (is_none, is_all) = (from == to, to - from == column.distinct());
        if (is_none && is_outside) || (is_all && !is_outside) {
            return;
        }
        if is_none || is_all {
            return rows.fill(0);
        }
        // Without branches, so that the compiler can vectorize the comparison.
        let kept = |is_inside: bool| if is_inside == is_outside { 0 } else { u8::MAX };
        match column.codes {
            Codes::Narrow(codes) => {
                let (first, more) = (low(from), low(to - 1 - from));
                let rows = rows.iter_mut().zip(codes);
                rows.for_each(|(row, code)| *row &= kept(code.wrapping_sub(first) <= more));
            }
            Codes::Wide(codes) => {
                let (first, more) = (wide(from), wide(to - 1 - from));
                let rows = rows.iter_mut().zip(codes);
                rows.for_each(|(row, code)| {
                    *row &= kept(u16::from_le_bytes(*code).wrapping_sub(first) <= more);
                });
            }
        }
    }

    fn narrow_by_table(&self, column: &Column<'_>, is_outside: bool, rows: &mut [u8]) {
        let (inside, outside) = if is_outside { (0, u8::MAX) } else { (u8::MAX, 0) };
        // Padded to all values of a byte, which removes the bounds check for each row.
        let mut kept = vec![outside; column.distinct().max(256)];
        for (from, to) in &self.ranges {
            kept.iter_mut().take(*to).skip(*from).for_each(|kept| *kept = inside);
        }
        match column.codes {
            Codes::Narrow(codes) => {
                let Some(kept) = kept.first_chunk::<256>() else { return };
                let kept = |code: &u8| kept.get(usize::from(*code)).copied();
                rows.iter_mut().zip(codes).for_each(|(row, code)| *row &= kept(code).unwrap_or_default());
            }
            Codes::Wide(codes) => {
                let kept = |code: &[u8; 2]| kept.get(usize::from(u16::from_le_bytes(*code))).copied();
                rows.iter_mut().zip(codes).for_each(|(row, code)| *row &= kept(code).unwrap_or_default());
            }
        }
    }
}

/// Returns a code as one byte.
fn low(code: usize) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Returns a code as two bytes.
fn wide(code: usize) -> u16 {
    u16::try_from(code).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::filter::Pattern;
    use fields::{Family, Part};
    use model::{FieldId, IndexId};
    use proptest::prelude::*;
    use records::columnar::row_ids::RowIds;
    use records::columnar::segment;
    use records::shape::{IndexKind, IndexStatus, KeyFormat};

    const NUMBER: Subject = Subject::Field(FieldId(1));
    const NAME: Subject = Subject::Field(FieldId(2));

    fn number_key(number: i64) -> Vec<u8> {
        let mut entry = Vec::new();
        key::push_integer(&mut entry, number, false);
        entry
    }

    /// Returns the key of a text that equals its folded form.
    fn text_key(text: &str) -> Vec<u8> {
        let mut forms = [text, "\0\0", text].concat().into_bytes();
        let end = if forms.len() > key::MOST_TEXT { u8::MAX } else { 0 };
        forms.truncate(key::MOST_TEXT);
        [&[key::VALUE], forms.as_slice(), &[end]].concat()
    }

    fn entries() -> impl Strategy<Value = (Vec<Vec<u8>>, Vec<Vec<u8>>)> {
        let number = prop_oneof![Just(vec![key::NOTHING]), (0..700_i64).prop_map(number_key)];
        let text = prop_oneof!["[ab]{0,3}", "a{126,130}b?"].prop_map(|text| text_key(&text));
        let name = prop_oneof![1 => Just(vec![key::NOTHING]), 4 => text];
        let row = (prop_oneof![Just(true), Just(false)], number, name);
        prop::collection::vec(row, 0..700).prop_map(|rows| {
            // Either few distinct numbers, or one per row.
            let number = |(few, number, _): &(bool, Vec<u8>, Vec<u8>)| {
                if *few { number_key(5) } else { number.clone() }
            };
            (rows.iter().map(number).collect(), rows.into_iter().map(|(_, _, name)| name).collect())
        })
    }

    fn filters() -> impl Strategy<Value = Filter> {
        let range = prop_oneof![
            (0..700_i64, 0..700_i64)
                .prop_map(|(from, to)| Range { from: number_key(from), to: number_key(to) }),
            (0..10_i64).prop_map(|number| Range::of(number_key(number))),
            Just(Range::values()),
            Just(Range::nothing()),
        ];
        let ranges = || prop::collection::vec(range.clone(), 0..4).prop_map(fields::filter::joined);
        let number = prop_oneof![
            ranges().prop_map(Test::Within),
            ranges().prop_map(Test::Outside),
            Just(Test::Empty),
            Just(Test::Filled),
        ];
        let name = prop_oneof![
            "[ab%_]{0,4}".prop_map(|pattern| Test::Like(Box::new(Pattern::new(&pattern, true)))),
            "[ab]{0,2}".prop_map(|text| Test::Text(vec![text])),
            "[ab]{0,2}".prop_map(Test::NotText),
            Just(Test::Empty),
            Just(Test::Filled),
        ];
        let one = prop_oneof![
            number.prop_map(|test| Condition { subject: NUMBER, family: Family::Number, test }),
            name.prop_map(|test| Condition { subject: NAME, family: Family::Text, test }),
        ];
        one.prop_map(Filter::One).prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::All),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::Any),
                inner.prop_map(|filter| Filter::Not(Box::new(filter))),
            ]
        })
    }

    /// Returns the expected outcome of a filter for a row, computed from its entries.
    fn expected(filter: &Filter, number: &[u8], name: &[u8]) -> Outcome {
        let all =
            |filters: &[Filter]| filters.iter().map(|one| expected(one, number, name)).collect::<Vec<_>>();
        let among = |outcomes: Vec<Outcome>, first: Outcome, last: Outcome| match outcomes {
            outcomes if outcomes.contains(&first) => first,
            outcomes if outcomes.contains(&Outcome::Maybe) => Outcome::Maybe,
            _ => last,
        };
        match filter {
            Filter::All(filters) => among(all(filters), Outcome::No, Outcome::Yes),
            Filter::Any(filters) => among(all(filters), Outcome::Yes, Outcome::No),
            Filter::Not(filter) => !expected(filter, number, name),
            Filter::One(condition) if condition.subject == NUMBER => condition.on_entry(number),
            Filter::One(condition) => condition.on_entry(name),
            Filter::Finds(_) => Outcome::Maybe,
        }
    }

    proptest! {
        #[test]
        fn rows_are_narrowed_to_those_that_fit((numbers, names) in entries(), filter in filters(), passed in 0..20_usize) {
            let columns = [&numbers, &names].map(|column| segment::encode(column.iter().map(Vec::as_slice)));
            let ids = RowIds::Run { first: 1, count: numbers.len() };
            let columns = columns.iter().map(|column| Column::of(column).unwrap()).collect();
            let segment = Segment { ids: &ids, columns };
            let parts = [NUMBER, NAME].map(|subject| Part { subject, desc: false }).to_vec();
            let (kind, status) = (IndexKind::Columnar, IndexStatus::Ready);
            let index = Index { id: IndexId(1), kind, parts, status, key_format: KeyFormat::Prefixed };
            let mut slots = vec![NUMBER, NAME];
            let tested = ColumnFilter::of(&index, &mut slots, &filter);
            let mut rows = vec![CAN | SURE; ids.count()];
            rows.iter_mut().take(passed).for_each(|row| *row = 0);
            tested.narrow(&segment, &mut rows);
            for (row, (number, name)) in numbers.iter().zip(&names).enumerate() {
                let expected = if row < passed { Outcome::No } else { expected(&filter, number, name) };
                // For a truncated text, a range can decide more than the condition itself.
                let is_known = expected != Outcome::Maybe;
                prop_assert!(!is_known || outcome(rows[row]) == expected, "{filter:?} {number:?} {name:?}");
            }
        }
    }
}
