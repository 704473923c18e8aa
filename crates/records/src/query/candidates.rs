//! The records that full-text search looks at: those that have the words that are looked for.

use super::fetch::tested_rows;
use super::pick::pick;
use crate::columnar;
use crate::columnar::scan::MOST_CHANGES;
use crate::search::lists::{FEW, Lookup, WordLists};
use crate::search::table;
use crate::shape::{IndexStatus, Shape};
use fields::words::{Words, searchable};
use model::{Error, IndexId, Result};
use roaring::RoaringTreemap;
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
    let Some((revision, changes)) = columnar::table::recorded(read, index, MOST_CHANGES)? else {
        return Ok(None);
    };
    let Some((generation, fresh)) = lists.generation(index, revision, &changes) else { return Ok(None) };
    let mut found = Vec::with_capacity(words.0.len());
    let mut is_known = true;
    for clause in &words.0 {
        let clause = Words(vec![clause.clone()]);
        match lists.look_up(index, generation, &clause.fts5(shape.collection)) {
            Lookup::Found(ids) => found.push(ids),
            Lookup::Wanted { reading, if_few: false } if is_known => {
                found.push(reading.keep(table::all_with_words(read, shape.collection, &clause)?));
            }
            Lookup::Wanted { reading, if_few: true } => {
                let ids = table::with_words(read, shape.collection, &clause, FEW + 1)?;
                if ids.len() <= FEW {
                    let ids = ids.into_iter().rev().map(i64::cast_unsigned);
                    found.push(reading.keep(RoaringTreemap::from_sorted_iter(ids).map_err(Error::internal)?));
                } else {
                    reading.postpone();
                    is_known = false;
                }
            }
            Lookup::Wanted { .. } | Lookup::Unknown => is_known = false,
        }
    }
    if !is_known {
        return Ok(None);
    }
    let mut all = intersection(found);
    for id in fresh.iter().map(|id| id.cast_unsigned()) {
        all.remove(id);
    }
    all.extend(having(read, shape, words, &fresh)?);
    Ok(Some(all))
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
    let keys: Vec<&str> = searchable(shape).map(|field| field.key.as_str()).collect();
    let mut having = Vec::new();
    for row in tested_rows(read, shape, ids, false, false)? {
        if words.fit(shape, row.record(&pick(row.data.as_str(), &keys)?)) {
            having.push(row.id.0.cast_unsigned());
        }
    }
    Ok(having)
}
