//! Random queries: their conditions, orders and results, drawn from a seed.

use super::rows::{Cell, Draw, Field, Table};
use anyhow::{Context, Result};
use std::cmp::Ordering;

/// The number of rows on a page.
pub const PAGE: usize = 20;
/// The least and the greatest share of rows that a condition matches.
pub const LEAST: f64 = 0.0001;
pub const MOST: f64 = 0.8;
/// The most operands of `in`.
const MOST_LISTED: u64 = 20;
/// Attempts to draw a condition that matches such a share.
const TRIES: usize = 1_000;
/// The number of operands to try. The one whose share is nearest to the wanted share is used.
const CANDIDATES: usize = 20;
/// The number of rows by which shares are estimated.
const SAMPLE: u32 = 10_000;

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Eq,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    /// `%word%`
    Contains,
    /// `word%`
    StartsWith,
}

impl Op {
    /// The operators to draw from, each as often as it is likely.
    const DRAWN: [Self; 12] = [
        Self::Eq,
        Self::Eq,
        Self::Neq,
        Self::Gt,
        Self::Gte,
        Self::Lt,
        Self::Lte,
        Self::In,
        Self::In,
        Self::Contains,
        Self::Contains,
        Self::StartsWith,
    ];

    /// Returns whether both sides support the operator for a field, with the same meaning.
    fn fits(self, field: Field) -> bool {
        let is_text = matches!(field, Field::Category | Field::Department | Field::Name | Field::City);
        match self {
            Self::Eq | Self::Neq => true,
            Self::Gt | Self::Gte | Self::Lt | Self::Lte | Self::In => field != Field::Active,
            Self::Contains => is_text,
            // PocketBase's dates end in a time, so only prefixes have the same meaning.
            Self::StartsWith => is_text || field == Field::Day,
        }
    }

    fn has_bound(self) -> bool {
        matches!(self, Self::Gt | Self::Gte | Self::Lt | Self::Lte)
    }
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition<'a> {
    pub field: Field,
    pub op: Op,
    /// One operand, or several for `in`.
    pub operands: Vec<Cell<'a>>,
    /// The share of rows that it matches.
    pub share: f64,
}

impl Condition<'_> {
    fn keeps(&self, table: &Table, place: u32) -> bool {
        let cell = table.cell(place, self.field);
        self.operands.iter().any(|operand| match (self.op, cell, operand) {
            (Op::Eq | Op::In, ..) => cell == *operand,
            (Op::Neq, ..) => cell != *operand,
            (Op::Gt, ..) => cell > *operand,
            (Op::Gte, ..) => cell >= *operand,
            (Op::Lt, ..) => cell < *operand,
            (Op::Lte, ..) => cell <= *operand,
            (Op::Contains, Cell::Text(text), Cell::Text(word)) => text.contains(word),
            (Op::StartsWith, Cell::Text(text), Cell::Text(word)) => text.starts_with(word),
            (Op::Contains | Op::StartsWith, ..) => false,
        })
    }
}

/// A query for the first page.
#[derive(Debug, Clone, PartialEq)]
pub struct Query<'a> {
    /// All must hold.
    pub conditions: Vec<Condition<'a>>,
    /// The fields with `true` for descending. Without any, the newest rows come first.
    pub sort: Vec<(Field, bool)>,
}

impl Query<'_> {
    /// Returns the rows of the first page. Equal rows are sorted by their number, in the direction of the last field.
    pub fn page(&self, table: &Table) -> Vec<u32> {
        let mut found: Vec<u32> = (0..table.len()).filter(|place| self.keeps(table, *place)).collect();
        if found.len() > PAGE {
            found.select_nth_unstable_by(PAGE, |one, other| self.compare(table, *one, *other));
            found.truncate(PAGE);
        }
        found.sort_unstable_by(|one, other| self.compare(table, *one, *other));
        found
    }

    /// Returns whether a row matches all conditions.
    pub fn keeps(&self, table: &Table, place: u32) -> bool {
        self.conditions.iter().all(|condition| condition.keeps(table, place))
    }

    /// Returns whether `rows` are as correct as `page`: the same number of distinct rows that match the conditions,
    /// with the same values in the fields of the order.
    pub fn is_page(&self, table: &Table, page: &[u32], rows: &[u32]) -> bool {
        let mut different = rows.to_vec();
        different.sort_unstable();
        different.dedup();
        let ties = |one: &u32, other: &u32| {
            one == other || !self.sort.is_empty() && self.compare_values(table, *one, *other).is_eq()
        };
        different.len() == page.len()
            && rows.len() == page.len()
            && rows.iter().all(|row| self.keeps(table, *row))
            && rows.iter().zip(page).all(|(one, other)| ties(one, other))
    }

    fn compare_values(&self, table: &Table, one: u32, other: u32) -> Ordering {
        let compared = self.sort.iter().map(|(field, down)| {
            let order = table.compare(*field, one, other);
            if *down { order.reverse() } else { order }
        });
        compared.fold(Ordering::Equal, Ordering::then)
    }

    fn compare(&self, table: &Table, one: u32, other: u32) -> Ordering {
        let newest_first = self.sort.last().is_none_or(|(_, down)| *down);
        let by_number = if newest_first { other.cmp(&one) } else { one.cmp(&other) };
        self.compare_values(table, one, other).then(by_number)
    }
}

/// A generator of queries on the rows of a table.
pub struct Family<'a> {
    table: &'a Table,
    draw: Draw,
    /// For each field, the rows sorted by it.
    orders: Vec<(Field, Vec<u32>)>,
}

impl<'a> Family<'a> {
    /// Sorts the rows by each field.
    pub fn new(table: &'a Table, seed: u64) -> Self {
        let orders = Field::OWN.map(|field| {
            let mut order: Vec<u32> = (0..table.len()).collect();
            order.sort_unstable_by(|one, other| table.compare(field, *one, *other));
            (field, order)
        });
        // The inverted seed gives other numbers than those that the rows were drawn with.
        Self { table, draw: Draw::new(!seed), orders: orders.into() }
    }

    /// Draws three of the fields, for indexes.
    pub fn some_fields(&self) -> Vec<Field> {
        let mut fields = Field::OWN.to_vec();
        self.draw.shuffle(&mut fields);
        fields.truncate(3);
        fields
    }

    /// Draws a query with 1 to 3 conditions.
    pub fn query(&self) -> Result<Query<'a>> {
        let mut fields = Field::OWN.to_vec();
        let mut conditions = Vec::new();
        for _ in 0..=self.draw.below(3) {
            let condition = self.condition(&fields)?;
            fields.retain(|field| *field != condition.field);
            conditions.push(condition);
        }
        Ok(Query { conditions, sort: self.sort() })
    }

    fn sort(&self) -> Vec<(Field, bool)> {
        let mut fields = Field::ALL.to_vec();
        self.draw.shuffle(&mut fields);
        let length = match self.draw.below(20) {
            0..4 => return Vec::new(),
            4..7 => {
                fields.retain(|field| matches!(field, Field::Created | Field::Updated));
                1
            }
            7..15 => 1,
            _ => 2,
        };
        fields.truncate(length);
        // The order of the times is known, but not which items have equal times, so no further field may follow a
        // time.
        if let Some(time) = fields.iter().position(|field| matches!(field, Field::Created | Field::Updated)) {
            fields.truncate(time + 1);
        }
        fields.into_iter().map(|field| (field, self.draw.below(2) == 0)).collect()
    }

    /// Draws a condition on one of these fields. The logarithm of its share is uniformly distributed, as far as the
    /// values allow.
    fn condition(&self, fields: &[Field]) -> Result<Condition<'a>> {
        let least = LEAST.max(1.0 / f64::from(self.table.len()));
        let mut tries = (0..TRIES).filter_map(|_| {
            let wanted = (least.ln() + self.draw.part() * (MOST / least).ln()).exp();
            let op = *self.draw.one_of(&Op::DRAWN)?;
            let distance = |found: &Condition<'_>| (found.share / wanted).ln().abs();
            // A bound can be chosen for any share. For other operators, the nearest of several operands is used.
            let candidates = if op.has_bound() { 1 } else { CANDIDATES };
            let candidates = (0..candidates).filter_map(|_| self.candidate(fields, op, wanted));
            let mut nearest = candidates.min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
            nearest.share = self.share(&nearest, 1);
            (least..=MOST).contains(&nearest.share).then_some(nearest)
        });
        tries.next().context("no condition keeps such a share of the rows")
    }

    /// Draws a condition and estimates its share.
    fn candidate(&self, fields: &[Field], op: Op, wanted: f64) -> Option<Condition<'a>> {
        let able: Vec<Field> = fields.iter().copied().filter(|field| op.fits(*field)).collect();
        let field = *self.draw.one_of(&able)?;
        let any = || {
            let place = self.draw.below(u64::from(self.table.len()));
            Some(self.table.cell(u32::try_from(place).ok()?, field))
        };
        let operands = match op {
            Op::Eq | Op::Neq => vec![any()?],
            Op::Gt | Op::Gte | Op::Lt | Op::Lte => vec![self.bound(field, op, wanted)?],
            Op::In => {
                let mut several: Vec<_> =
                    (0..2 + self.draw.below(MOST_LISTED - 1)).filter_map(|_| any()).collect();
                several.sort_unstable();
                several.dedup();
                several
            }
            Op::Contains | Op::StartsWith => vec![self.fragment(any()?, op)?],
        };
        let mut condition = Condition { field, op, operands, share: 0.0 };
        // A share that the sample misses is taken as half a row of the sample.
        condition.share =
            self.share(&condition, self.table.len().div_ceil(SAMPLE)).max(0.5 / f64::from(SAMPLE));
        Some(condition)
    }

    /// Returns the share of every `step`th row that a condition matches.
    fn share(&self, condition: &Condition<'_>, step: u32) -> f64 {
        let sample = || (0..self.table.len()).step_by(step.max(1) as usize);
        sample().filter(|place| condition.keeps(self.table, *place)).count() as f64 / sample().count() as f64
    }

    /// Returns the value beyond which this share of the rows lies.
    fn bound(&self, field: Field, op: Op, share: f64) -> Option<Cell<'a>> {
        let (_, order) = self.orders.iter().find(|(known, _)| *known == field)?;
        let kept = ((order.len() as f64 * share) as usize).min(order.len().saturating_sub(1));
        let place =
            if matches!(op, Op::Lt | Op::Lte) { order.get(kept) } else { order.iter().nth_back(kept) };
        Some(self.table.cell(*place?, field))
    }

    /// Draws a part of a text.
    fn fragment(&self, cell: Cell<'a>, op: Op) -> Option<Cell<'a>> {
        let Cell::Text(text) = cell else { return None };
        let drawn = |most: usize| usize::try_from(self.draw.below(most as u64)).unwrap_or_default();
        let first = if op == Op::StartsWith { 0 } else { drawn(text.len()) };
        let length = 1 + drawn(text.len() - first);
        let fragment = text.get(first..first + length)?;
        (fragment.trim() == fragment).then_some(Cell::Text(fragment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn<'a>(table: &'a Table, seed: u64, count: usize) -> (Vec<Field>, Vec<Query<'a>>) {
        let family = Family::new(table, seed);
        (family.some_fields(), (0..count).map(|_| family.query().unwrap()).collect())
    }

    #[test]
    fn the_same_seed_gives_the_same_queries() {
        let table = Table::draw(3, 3_000);
        assert_eq!(drawn(&table, 3, 20), drawn(&table, 3, 20));
        assert_ne!(drawn(&table, 3, 20), drawn(&table, 4, 20));
    }

    #[test]
    fn conditions_keep_shares_of_every_size_by_every_operator() {
        let table = Table::draw(5, 10_000);
        let (_, queries) = drawn(&table, 5, 120);
        let mut shares = Vec::new();
        for query in &queries {
            assert!((1..=3).contains(&query.conditions.len()) && query.sort.len() <= 2);
            for (place, condition) in query.conditions.iter().enumerate() {
                let before = query.conditions.get(..place).unwrap();
                assert!(before.iter().all(|other| other.field != condition.field));
                let kept = (0..table.len()).filter(|row| condition.keeps(&table, *row)).count() as f64;
                assert!((kept / 10_000.0 - condition.share).abs() < 1e-9);
                assert!((LEAST..=MOST).contains(&condition.share), "{condition:?}");
                shares.push(condition.share);
            }
        }
        let least = |bound: f64| shares.iter().filter(|share| **share < bound).count();
        let (rare, few, all) = (least(0.001), least(0.03), shares.len());
        assert!(rare > all / 8 && few - rare > all / 8 && all - few > all / 8, "{rare} {few} {all}");
        let conditions = || queries.iter().flat_map(|query| &query.conditions);
        for op in [Op::Eq, Op::Neq, Op::Gt, Op::Gte, Op::Lt, Op::Lte, Op::In, Op::Contains, Op::StartsWith] {
            assert!(conditions().any(|condition| condition.op == op), "{op:?}");
        }
        for field in Field::OWN {
            assert!(conditions().any(|condition| condition.field == field), "{field:?}");
        }
        for field in Field::ALL {
            assert!(queries.iter().any(|query| query.sort.iter().any(|(by, _)| *by == field)), "{field:?}");
        }
        assert!(queries.iter().any(|query| query.sort.is_empty()));
    }

    #[test]
    fn a_page_is_what_sorting_everything_gives() {
        let table = Table::draw(9, 2_000);
        for query in drawn(&table, 9, 40).1 {
            let mut all: Vec<u32> = (0..table.len()).filter(|place| query.keeps(&table, *place)).collect();
            all.sort_by(|one, other| query.compare(&table, *one, *other));
            all.truncate(PAGE);
            let page = query.page(&table);
            assert_eq!(page, all);
            assert!(query.is_page(&table, &page, &page));
            if let Some((last, rest)) = page.split_last() {
                assert!(!query.is_page(&table, &page, rest));
                let twice: Vec<u32> = [rest, rest.first().map_or(&[], std::slice::from_ref)].concat();
                assert!(!query.is_page(&table, &page, &twice), "{last}");
            }
        }
    }
}
