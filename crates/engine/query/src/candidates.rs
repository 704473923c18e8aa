//! The records that full-text search looks at: those that have the words that are looked for.

use crate::column_scan::MOST_CHANGES;
use crate::word_lists::{FEW, Lookup, Reading, Sight, WordLists};
use fields::Record;
use fields::words::{RecordWords, Words, searchable};
use model::{IndexId, Result};
use records::columnar;
use records::rows::{pick, tested_rows};
use records::search::table;
use records::shape::{IndexStatus, Shape};
use roaring::RoaringTreemap;
use std::collections::HashMap;
use std::sync::Arc;
use store::Read;

/// Records that have all words, by id.
#[derive(Debug)]
pub(super) enum Candidates {
    /// The newest, from the full-text index.
    Newest(Vec<i64>),
    /// All of them, from bitmaps that are kept beside a columnar index.
    All(RoaringTreemap, IndexId),
}

impl Candidates {
    /// Those of a collection that have `words`; of many at least the newest `most`.
    ///
    /// # Errors
    /// When the database fails.
    pub fn of(
        read: &mut Read,
        lists: Option<&WordLists>,
        shape: &Shape,
        words: &Words,
        most: usize,
    ) -> Result<Self> {
        if let Some(lists) = lists
            && let Some(index) = columnar::of(shape).filter(|index| index.status == IndexStatus::Ready)
            && let Some(all) = in_memory(read, lists, shape, index.id, words)?
        {
            return Ok(Self::All(all, index.id));
        }
        Ok(Self::Newest(table::with_words(read, shape.collection, words, most)?))
    }

    /// How many there are, as far as they are known.
    pub fn count(&self) -> usize {
        match self {
            Self::Newest(ids) => ids.len(),
            Self::All(ids, _) => usize::try_from(ids.len()).unwrap_or(usize::MAX),
        }
    }

    /// So many behind the `skip` newest ones, the newest first.
    pub fn newest(&self, skip: usize, most: usize) -> Vec<i64> {
        match self {
            Self::Newest(ids) => ids.iter().skip(skip).take(most).copied().collect(),
            Self::All(ids, _) => ids.iter().rev().skip(skip).take(most).map(u64::cast_signed).collect(),
        }
    }

    /// How many entries of the full-text index were read, as far as that is known.
    pub fn visited(&self) -> usize {
        match self {
            Self::Newest(ids) => ids.len(),
            Self::All(..) => 0,
        }
    }

    /// The index that found them, beside that of full text.
    pub fn index(&self) -> Option<IndexId> {
        match self {
            Self::Newest(_) => None,
            Self::All(_, index) => Some(*index),
        }
    }
}

/// All records that have the words, by the bitmaps in memory; `None` where one is not there and not due.
fn in_memory(
    read: &mut Read,
    lists: &WordLists,
    shape: &Shape,
    index: IndexId,
    words: &Words,
) -> Result<Option<RoaringTreemap>> {
    let Some(sight) = sight_of(read, lists, shape, index)? else { return Ok(None) };
    let mut found = Vec::with_capacity(words.0.len());
    for clause in &words.0 {
        match lists.look_up(&sight, clause) {
            Lookup::Found(ids) => found.push(ids),
            Lookup::Wanted { reading, if_few } => found.extend(read_ids(read, shape, reading, if_few)?),
            Lookup::Unknown => {}
        }
    }
    if found.len() < words.0.len() {
        return Ok(None);
    }
    let mut all = intersection(found);
    for id in sight.fresh.iter().map(|id| id.cast_unsigned()) {
        all.remove(id);
    }
    all.extend(having(read, shape, words, &sight.fresh)?);
    Ok(Some(all))
}

/// The bitmaps' generation, which is brought up to date if that is due. `None` where so much changes that there is none, or for a
/// query that sees an earlier state.
fn sight_of<'l>(
    read: &mut Read,
    lists: &'l WordLists,
    shape: &Shape,
    index: IndexId,
) -> Result<Option<Sight<'l>>> {
    let Some(count) = columnar::table::count_recorded(read, index, MOST_CHANGES)? else { return Ok(None) };
    if let Some(sight) = lists.unchanged(index, count) {
        return Ok(Some(sight));
    }
    let Some(recorded) = columnar::table::recorded(read, index, MOST_CHANGES)? else { return Ok(None) };
    let Some(mut sight) = lists.generation(index, &recorded) else { return Ok(None) };
    if let Some(update) = sight.update.take() {
        update.apply(&words_of(read, shape, &sight.fresh)?);
    }
    Ok(Some(sight))
}

/// Reads a bitmap; not if there are more than a few ids and only few are wanted.
fn read_ids(
    read: &mut Read,
    shape: &Shape,
    reading: Reading<'_>,
    if_few: bool,
) -> Result<Option<Arc<RoaringTreemap>>> {
    let words = Words(vec![reading.clause().clone()]);
    if !if_few {
        return Ok(Some(reading.keep(table::all_with_words(read, shape.collection, &words)?)));
    }
    let ids = table::some_with_words(read, shape.collection, &words, FEW + 1)?;
    if ids.len() > FEW {
        reading.postpone();
        return Ok(None);
    }
    Ok(Some(reading.keep(ids.into_iter().map(i64::cast_unsigned).collect())))
}

/// What all of some bitmaps have.
fn intersection(mut lists: Vec<Arc<RoaringTreemap>>) -> RoaringTreemap {
    lists.sort_by_key(|ids| ids.len());
    match lists.as_slice() {
        [] => RoaringTreemap::new(),
        [only] => RoaringTreemap::clone(only),
        [first, second, others @ ..] => {
            others.iter().fold(first.as_ref() & second.as_ref(), |all, ids| all & ids.as_ref())
        }
    }
}

/// Those of some records that have the words, by their values.
fn having(read: &mut Read, shape: &Shape, words: &Words, ids: &[i64]) -> Result<Vec<u64>> {
    let mut having = Vec::new();
    each_record(read, shape, ids, |id, record| {
        if words.fit(shape, record) {
            having.push(id.cast_unsigned());
        }
    })?;
    Ok(having)
}

/// The words that some records have; `None` for those that are gone.
fn words_of(read: &mut Read, shape: &Shape, ids: &[i64]) -> Result<Vec<(i64, Option<RecordWords>)>> {
    let mut found = HashMap::new();
    each_record(read, shape, ids, |id, record| drop(found.insert(id, RecordWords::of(shape, record))))?;
    Ok(ids.iter().map(|id| (*id, found.remove(id))).collect())
}

/// Shows each of some live records, with its searchable values.
fn each_record(
    read: &mut Read,
    shape: &Shape,
    ids: &[i64],
    mut each: impl FnMut(i64, Record<'_>),
) -> Result<()> {
    let keys: Vec<&str> = searchable(shape).map(|field| field.key.as_str()).collect();
    for row in tested_rows(read, shape, ids, false, false)? {
        each(row.id.0, row.record(&pick(row.data.as_str(), &keys)?));
    }
    Ok(())
}
