//! The groups of an aggregation while it runs. Values are added item by item or column by column.

use super::columns::Summary;
use super::visit::Fitting;
use crate::column_scan::SelectedRows;
use fields::decimal::{self, Loss, Sum};
use fields::{ColumnValue, Family, Part, Record, Subject, key, value_of_entry};
use model::{Error, Result, Timestamp};
use records::shape::Shape;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The maximum number of groups.
const MOST_GROUPS: usize = 1_000;

/// The maximum number of combinations of codes that are counted in an array, without looking at values.
const MOST_COMBINATIONS: usize = 16_384;

/// The maximum number of fields to group by.
pub(super) const MOST_LEVELS: usize = 3;

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Distinct,
}

/// A value to aggregate.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    /// The sort key, if the type is ordered.
    key: Vec<u8>,
    /// The value as clients see it.
    pub value: Value,
}

impl Cell {
    /// Returns the value of an item.
    fn of(shape: &Shape, subject: Subject, record: Record<'_>) -> Self {
        let mut key = Vec::with_capacity(16);
        if subject.family(shape).is_some_and(Family::is_ordered) {
            record.push_part(shape, Part { subject, desc: false }, &mut key);
        }
        // A value that can no longer be compared, such as a deleted choice, counts as missing, as in filters.
        if key == [key::NOTHING] {
            return Self { key, value: Value::Null };
        }
        Self { key, value: value_of(shape, subject, record) }
    }
}

/// Returns the value of a field or a system column as clients see it.
fn value_of(shape: &Shape, subject: Subject, record: Record<'_>) -> Value {
    match subject {
        Subject::Field(id) => {
            shape.field_by_id(id).and_then(|field| record.value(field)).cloned().unwrap_or(Value::Null)
        }
        Subject::System(column) => match record.columns.column(column) {
            ColumnValue::Integer(millis) if column.family() == Family::Datetime => {
                Timestamp::from_millis(millis).rfc3339().into()
            }
            ColumnValue::Integer(number) => number.into(),
            ColumnValue::Text(text) => text.into(),
            ColumnValue::Empty => Value::Null,
        },
    }
}

/// The intermediate result of a function.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    count: i64,
    sum: Sum,
    least: Option<Cell>,
    greatest: Option<Cell>,
    seen: HashSet<Vec<u8>>,
}

impl Tally {
    /// Adds a value.
    fn add(&mut self, function: Function, cell: &Cell) {
        if cell.value.is_null() {
            return;
        }
        self.count += 1;
        match (function, &cell.value) {
            (Function::Count, _) => {}
            (Function::Sum | Function::Avg, Value::Number(number)) => self.sum.add(number),
            (Function::Sum | Function::Avg, _) => {}
            (Function::Distinct, Value::Array(elements)) => {
                self.seen.extend(elements.iter().map(|element| element.to_string().into_bytes()));
            }
            // Different texts can have the same key, so compare the texts.
            (Function::Distinct, Value::String(text)) => drop(self.seen.insert(text.as_bytes().to_vec())),
            (Function::Distinct, _) => drop(self.seen.insert(cell.key.clone())),
            (Function::Min, _) => {
                if self.least.as_ref().is_none_or(|least| cell.key < least.key) {
                    self.least = Some(cell.clone());
                }
            }
            (Function::Max, _) => {
                if self.greatest.as_ref().is_none_or(|greatest| cell.key > greatest.key) {
                    self.greatest = Some(cell.clone());
                }
            }
        }
    }

    /// Returns the result. Sums of `computed` values may be rounded.
    pub fn value(self, function: Function, computed: bool) -> Result<Value, Loss> {
        Ok(match function {
            Function::Count => self.count.into(),
            Function::Distinct => self.seen.len().into(),
            _ if self.count == 0 => Value::Null,
            Function::Sum => self.sum.kept(computed)?,
            Function::Avg => self.sum.mean().as_ref().map(decimal::rounded).transpose()?.unwrap_or_default(),
            Function::Min => self.least.map_or(Value::Null, |cell| cell.value),
            Function::Max => self.greatest.map_or(Value::Null, |cell| cell.value),
        })
    }
}

/// A field to group by.
pub(super) trait Level {
    /// Returns the field.
    fn subject(&self) -> Subject;
    /// Returns the name in the result.
    fn name(&self) -> &str;
    /// Returns the group's value for an item's value, and appends its sort key to `place`.
    fn cut(&self, cell: &Cell, place: &mut Vec<u8>) -> Value;
}

impl Cell {
    /// Appends the sort key.
    pub fn push_place(&self, place: &mut Vec<u8>) {
        place.extend_from_slice(&self.key);
    }
}

/// A group: the common values of its items, and the results.
pub(super) type Group = (Map<String, Value>, Vec<Tally>);

/// The groups of an aggregation.
pub(super) struct Groups<'a, L> {
    shape: &'a Shape,
    levels: &'a [L],
    /// The functions, each with its subject.
    metrics: &'a [(Function, Option<Subject>)],
    /// The positions of the groups, by sort key.
    places: BTreeMap<Vec<u8>, usize>,
    groups: Vec<Group>,
}

impl<'a, L: Level> Groups<'a, L> {
    /// Creates groups without items.
    pub fn new(shape: &'a Shape, levels: &'a [L], metrics: &'a [(Function, Option<Subject>)]) -> Self {
        let mut groups = Self { shape, levels, metrics, places: BTreeMap::new(), groups: Vec::new() };
        groups.clear();
        groups
    }

    /// Returns the groups in the order of their values.
    pub fn into_groups(mut self) -> Vec<Group> {
        let places = std::mem::take(&mut self.places);
        let group = |place: usize| self.groups.get_mut(place).map(std::mem::take);
        places.into_values().filter_map(group).collect()
    }

    /// Returns the subjects, without duplicates.
    pub fn subjects(&self) -> Vec<Subject> {
        let mut subjects: Vec<Subject> = Vec::new();
        let all = self.levels.iter().map(L::subject).chain(self.metrics.iter().filter_map(|one| one.1));
        for subject in all {
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        subjects
    }

    /// Returns whether column entries determine the values of all subjects. Texts are stored in folded form, and
    /// lists may be truncated.
    pub fn are_known_by_columns(&self) -> bool {
        self.subjects().into_iter().all(|subject| {
            use Family::{Boolean, Date, Datetime, Number, Select};
            matches!(subject.family(self.shape), Some(Boolean | Date | Datetime | Number | Select))
        })
    }

    /// Returns the position of the group with these values, adding it if it is new.
    fn group_of(&mut self, cells: &[&Cell]) -> Result<usize> {
        let mut place = Vec::new();
        let cut = |(level, cell): (&L, &&Cell)| level.cut(cell, &mut place);
        let values: Vec<Value> = self.levels.iter().zip(cells).map(cut).collect();
        if let Some(group) = self.places.get(&place) {
            return Ok(*group);
        }
        if self.groups.len() >= MOST_GROUPS {
            let rule = format!(
                "results in more than {MOST_GROUPS} groups; narrow the filter or truncate times further"
            );
            return Err(Error::invalid("group_by", rule));
        }
        let group = self.groups.len();
        let named = self.levels.iter().map(|level| level.name().to_owned()).zip(values).collect();
        self.groups.push((named, vec![Tally::default(); self.metrics.len()]));
        self.places.insert(place, group);
        Ok(group)
    }

    fn tallies(&mut self, group: usize) -> &mut [Tally] {
        self.groups.get_mut(group).map(|(_, tallies)| tallies.as_mut_slice()).unwrap_or_default()
    }
}

/// Returns the value that a column entry stands for, if the entry determines it.
fn cell(shape: &Shape, subject: Subject, entry: &[u8]) -> Option<Cell> {
    let value = if entry == [key::NOTHING] { Value::Null } else { value_of_entry(shape, subject, entry)? };
    Some(Cell { key: entry.to_vec(), value })
}

/// Returns the value of each code in a column of a segment.
fn cells(shape: &Shape, rows: &SelectedRows<'_>, subject: Subject, slot: usize) -> Vec<Option<Cell>> {
    rows.entries(slot).map(|entry| cell(shape, subject, entry)).collect()
}

impl<L: Level> Groups<'_, L> {
    /// Counts the matching rows of a segment by the combination of codes in the columns `levels`, without reading
    /// values. Returns `false` and counts nothing if there are too many combinations.
    fn count_columns(
        &mut self,
        rows: &SelectedRows<'_>,
        levels: &[usize],
        unknown: &mut Vec<i64>,
    ) -> Result<bool> {
        let sizes: Vec<usize> = levels.iter().map(|slot| rows.distinct(*slot)).collect();
        let combinations = sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size));
        let Some(combinations) = combinations.filter(|all| *all <= MOST_COMBINATIONS) else {
            return Ok(false);
        };
        let fitting: Vec<usize> = rows.fitting().collect();
        if fitting.is_empty() {
            return Ok(true);
        }
        let mut combined = vec![0; fitting.len()];
        for (slot, size) in levels.iter().zip(&sizes) {
            rows.each_code(*slot, &fitting, |place, code| {
                if let Some(all) = combined.get_mut(place) {
                    // Number the combinations like digits with one radix per column, so that they can index an array.
                    *all = *all * size + code;
                }
            });
        }
        let mut counts = vec![0_i64; combinations];
        for all in &combined {
            if let Some(count) = counts.get_mut(*all) {
                *count += 1;
            }
        }
        for (combination, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            // Convert the number back to the codes of the columns.
            let mut rest = combination;
            let mut codes: Vec<usize> = sizes
                .iter()
                .rev()
                .map(|size| {
                    let code = rest % size;
                    rest /= size;
                    code
                })
                .collect();
            codes.reverse();
            let value = |(slot, code): (&usize, usize)| {
                let subject = *self.subjects().get(*slot)?;
                cell(self.shape, subject, rows.entries(*slot).nth(code)?)
            };
            match levels.iter().zip(codes).map(value).collect::<Option<Vec<Cell>>>() {
                Some(cells) => {
                    let group = self.group_of(&cells.iter().collect::<Vec<_>>())?;
                    self.tallies(group).iter_mut().for_each(|tally| tally.count += count);
                }
                None => {
                    // The entries do not determine the values, so leave these rows to their records.
                    let has = |(row, all): (&usize, &usize)| (*all == combination).then(|| rows.id(*row));
                    unknown.extend(fitting.iter().zip(&combined).filter_map(has));
                }
            }
        }
        Ok(true)
    }
}

impl<L: Level> Summary for Groups<'_, L> {
    fn add(&mut self, fitting: &Fitting) -> Result<()> {
        let (shape, record) = (self.shape, fitting.row.record(&fitting.data));
        let levels: Vec<Cell> =
            self.levels.iter().map(|level| Cell::of(shape, level.subject(), record)).collect();
        let group = self.group_of(&levels.iter().collect::<Vec<_>>())?;
        let metrics = self.metrics;
        for (tally, (function, subject)) in self.tallies(group).iter_mut().zip(metrics) {
            match subject {
                Some(subject) => tally.add(*function, &Cell::of(shape, *subject, record)),
                None => tally.count += 1,
            }
        }
        Ok(())
    }

    fn add_columns(&mut self, rows: &SelectedRows<'_>, unknown: &mut Vec<i64>) -> Result<()> {
        let (shape, metrics) = (self.shape, self.metrics);
        let subjects = self.subjects();
        let slot = |subject: Subject| subjects.iter().position(|other| *other == subject).unwrap_or_default();
        let levels: Vec<usize> = self.levels.iter().map(|level| slot(level.subject())).collect();
        let counts_only = metrics.iter().all(|(_, subject)| subject.is_none());
        if counts_only && self.count_columns(rows, &levels, unknown)? {
            return Ok(());
        }
        let columns: Vec<Vec<Option<Cell>>> =
            subjects.iter().enumerate().map(|(slot, subject)| cells(shape, rows, *subject, slot)).collect();
        let summed: Vec<Option<usize>> = metrics.iter().map(|one| one.1.map(slot)).collect();
        let cell = |slot: usize, row: usize| columns.get(slot)?.get(rows.code(slot, row))?.as_ref();
        // A segment has few combinations of values, so cache the group of each.
        let mut known: HashMap<[usize; MOST_LEVELS], usize> = HashMap::new();
        for row in rows.fitting() {
            let mut codes = [0; MOST_LEVELS];
            codes.iter_mut().zip(&levels).for_each(|(code, slot)| *code = rows.code(*slot, row));
            let values: Option<Vec<Option<&Cell>>> =
                summed.iter().map(|slot| slot.map_or(Some(None), |slot| cell(slot, row).map(Some))).collect();
            let group = match known.get(&codes) {
                Some(group) => Some(*group),
                None => match levels.iter().map(|slot| cell(*slot, row)).collect::<Option<Vec<_>>>() {
                    None => None,
                    Some(cells) => {
                        let group = self.group_of(&cells)?;
                        known.insert(codes, group);
                        Some(group)
                    }
                },
            };
            let (Some(group), Some(values)) = (group, values) else {
                unknown.push(rows.id(row));
                continue;
            };
            for ((tally, (function, _)), value) in self.tallies(group).iter_mut().zip(metrics).zip(values) {
                match value {
                    Some(cell) => tally.add(*function, cell),
                    None => tally.count += 1,
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.places.clear();
        self.groups.clear();
        if self.levels.is_empty() {
            self.places.insert(Vec::new(), 0);
            self.groups.push((Map::new(), vec![Tally::default(); self.metrics.len()]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_decimals() {
        let tally = |numbers: &[f64]| {
            let mut tally = Tally { count: 1, ..Tally::default() };
            numbers.iter().for_each(|number| tally.sum.add(&serde_json::Number::from_f64(*number).unwrap()));
            tally
        };
        assert_eq!(tally(&[1e15, 0.1, 0.2, -1e15]).value(Function::Sum, false), Ok(0.3.into()));
        assert_eq!(tally(&[1e15, 0.1]).value(Function::Sum, false), Err(Loss::TooPrecise));
        assert_eq!(tally(&[1e308, 1e308]).value(Function::Sum, false), Err(Loss::OutOfRange));
        assert_eq!(tally(&[1e308, 1e308]).value(Function::Avg, false), Ok(1e308.into()));
        assert_eq!(tally(&[1.0, 0.0, 0.0]).value(Function::Avg, false), Ok(0.333_333_333_333_333.into()));
    }
}
