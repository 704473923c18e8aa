//! A cache of the columns of the most frequently queried columnar indexes, in their stored form.
//!
//! Each transaction that writes a segment also gives its index a new revision. The cached columns belong to one
//! revision, and each scan first reads the current revision of the index. So it sees writes of other replicas
//! immediately.

use model::{IndexId, Result};
use records::columnar::row_ids::RowIds;
use records::columnar::table::{self, Place, StoredSegment};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::Read;

/// The maximum size of the cache over all indexes, in bytes.
const MOST_BYTES: usize = 16 << 20;
/// The maximum number of indexes with statistics about the benefit of caching.
const MOST_INDEXES: usize = 1_000;

/// The bytes of a column, by segment.
type StoredColumn = Arc<[Arc<[u8]>]>;

/// The ids of a segment.
#[derive(Debug, Clone)]
struct SegmentIds {
    /// An upper bound of the ids in this segment.
    pub last_id: i64,
    /// The ids of its items.
    pub ids: RowIds,
}

/// Cached columns of all segments of an index, at one revision.
#[derive(Debug, Clone)]
pub(super) struct CachedColumns {
    segments: Arc<[SegmentIds]>,
    columns: Vec<StoredColumn>,
}

impl CachedColumns {
    /// Returns the end of the segment that contains an id, or `None` after the last segment.
    pub fn end_of(&self, id: i64) -> Option<i64> {
        let at = self.segments.partition_point(|segment| segment.last_id < id);
        self.segments.get(at).map(|segment| segment.last_id)
    }

    /// Returns the next segments, at most `most`.
    pub fn segments(&self, place: Place, most: usize) -> Vec<StoredSegment> {
        let segment = |at: usize| {
            let SegmentIds { last_id, ids } = self.segments.get(at)?.clone();
            let columns: Option<Vec<_>> = self.columns.iter().map(|column| column.get(at).cloned()).collect();
            Some(StoredSegment { last_id, ids, columns: columns? })
        };
        match place {
            Place::Behind(id) => {
                let from = self.segments.partition_point(|segment| segment.last_id <= id);
                (from..self.segments.len()).take(most).filter_map(segment).collect()
            }
            Place::Before(id) => {
                let to = self.segments.partition_point(|segment| segment.last_id < id);
                (0..to).rev().take(most).filter_map(segment).collect()
            }
        }
    }
}

/// The cache of columns.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    indexes: HashMap<IndexId, Entry>,
    bytes: usize,
    uses: u64,
    /// By index: the cost that could have been saved if its columns had been cached.
    missed: HashMap<IndexId, i64>,
    /// The indexes whose columns are being loaded.
    loading: HashSet<IndexId>,
    /// By index: a revision, and the sets of its columns that do not fit into the cache.
    too_large: HashMap<IndexId, (i64, HashSet<Vec<i64>>)>,
}

/// The right to load columns of an index. Only one query has it at a time, because concurrent loads would multiply
/// the memory used.
#[derive(Debug)]
struct Loading<'c> {
    cache: &'c ColumnCache,
    index: IndexId,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.cache.kept().loading.remove(&self.index);
    }
}

#[derive(Debug)]
struct Entry {
    revision: i64,
    segments: Arc<[SegmentIds]>,
    columns: HashMap<i64, StoredColumn>,
    bytes: usize,
    last_use: u64,
}

impl Entry {
    fn size(&self) -> usize {
        let ids: usize = self.segments.iter().map(|segment| segment.ids.size()).sum();
        let columns = self.columns.values().flat_map(|column| column.iter());
        ids + columns.map(|bytes| bytes.len()).sum::<usize>()
    }

    fn columns(&self, columns: &[i64]) -> Option<CachedColumns> {
        let columns: Option<Vec<_>> =
            columns.iter().map(|column| self.columns.get(column).cloned()).collect();
        Some(CachedColumns { segments: self.segments.clone(), columns: columns? })
    }
}

impl ColumnCache {
    /// Returns whether the cache can hold this number of segments with columns of `bytes` bytes each, if their ids
    /// take no space.
    pub fn has_room_for(segments: i64, bytes: i64) -> bool {
        usize::try_from(segments.saturating_mul(bytes)).is_ok_and(|bytes| bytes <= MOST_BYTES)
    }

    /// Returns columns of an index at any revision, for estimates.
    pub(super) fn peek(&self, index: IndexId, columns: &[i64]) -> Option<CachedColumns> {
        self.kept().indexes.get(&index)?.columns(columns)
    }

    /// Returns columns of an index at the current revision, if all of them are cached.
    pub(super) fn get(&self, index: IndexId, revision: i64, columns: &[i64]) -> Option<CachedColumns> {
        let mut kept = self.kept();
        kept.uses += 1;
        let last_use = kept.uses;
        let entry = kept.indexes.get_mut(&index).filter(|entry| entry.revision == revision)?;
        entry.last_use = last_use;
        entry.columns(columns)
    }

    /// Loads columns of an index into the cache, some segments at a time. Takes no longer than a scan. Returns `None`
    /// if another query is loading them, the revision has changed, or they do not fit.
    ///
    /// # Errors
    /// `internal_error`, also for corrupt segments.
    pub(super) fn load(
        &self,
        read: &mut Read,
        index: IndexId,
        revision: i64,
        columns: &[i64],
        at_a_time: usize,
    ) -> Result<Option<CachedColumns>> {
        if self.kept().is_too_large(index, revision, columns) {
            return Ok(None);
        }
        let Some(_loading) = self.begin_loading(index) else { return Ok(None) };
        let mut segments = Vec::new();
        let mut loaded = vec![Vec::new(); columns.len()];
        let (mut behind, mut size) = (i64::MIN, 0);
        loop {
            let stored = table::segments(read, index, columns, Place::Behind(behind), at_a_time)?;
            let is_last = stored.len() < at_a_time;
            for StoredSegment { last_id, ids, columns } in stored {
                behind = last_id;
                size += ids.size() + columns.iter().map(|bytes| bytes.len()).sum::<usize>();
                segments.push(SegmentIds { last_id, ids });
                loaded.iter_mut().zip(columns).for_each(|(column, bytes)| column.push(bytes));
            }
            if size > MOST_BYTES {
                // Remember this, so that later queries do not load them in vain.
                self.kept().note_too_large(index, revision, columns);
                return Ok(None);
            }
            if is_last {
                break;
            }
        }
        // A concurrent write may have been read in part, so verify the revision again.
        if table::revision(read, index)? != Some(revision) {
            return Ok(None);
        }
        let loaded = loaded.into_iter().map(StoredColumn::from);
        self.put(index, revision, segments.into(), columns.iter().copied().zip(loaded).collect());
        Ok(self.get(index, revision, columns))
    }

    /// Reserves the loading of an index, unless it is already reserved.
    fn begin_loading(&self, index: IndexId) -> Option<Loading<'_>> {
        let is_first = self.kept().loading.insert(index);
        is_first.then(|| Loading { cache: self, index })
    }

    /// Stores columns of an index. Evicts the least recently used indexes if the cache is full.
    fn put(
        &self,
        index: IndexId,
        revision: i64,
        segments: Arc<[SegmentIds]>,
        columns: Vec<(i64, StoredColumn)>,
    ) {
        let mut kept = self.kept();
        let before = kept.remove(index).filter(|entry| entry.revision == revision);
        let mut all = before.map(|entry| entry.columns).unwrap_or_default();
        let loaded: Vec<i64> = columns.iter().map(|(column, _)| *column).collect();
        all.extend(columns);
        kept.uses += 1;
        let mut entry = Entry { revision, segments, columns: all, bytes: 0, last_use: kept.uses };
        if entry.size() > MOST_BYTES {
            entry.columns.retain(|column, _| loaded.contains(column));
        }
        entry.bytes = entry.size();
        if entry.bytes <= MOST_BYTES {
            kept.insert(index, entry);
        }
    }

    /// Records that a query cost `more` than it would have with cached columns. Returns whether the sum of such costs
    /// exceeds `loading`, the cost of loading them.
    pub fn is_worth_loading(&self, index: IndexId, more: i64, loading: i64) -> bool {
        let mut kept = self.kept();
        if kept.missed.len() >= MOST_INDEXES {
            kept.missed.clear();
        }
        let missed = kept.missed.entry(index).or_default();
        *missed = missed.saturating_add(more);
        if *missed < loading {
            return false;
        }
        *missed = 0;
        true
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_too_large(&self, index: IndexId, revision: i64, columns: &[i64]) -> bool {
        let noted = self.too_large.get(&index).filter(|(noted, _)| *noted == revision);
        noted.is_some_and(|(_, all)| all.contains(columns))
    }

    fn note_too_large(&mut self, index: IndexId, revision: i64, columns: &[i64]) {
        if self.too_large.len() >= MOST_INDEXES {
            self.too_large.clear();
        }
        let noted = self.too_large.entry(index).or_insert((revision, HashSet::new()));
        if noted.0 != revision || noted.1.len() >= MOST_INDEXES {
            *noted = (revision, HashSet::new());
        }
        noted.1.insert(columns.to_vec());
    }

    fn remove(&mut self, index: IndexId) -> Option<Entry> {
        let entry = self.indexes.remove(&index)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn insert(&mut self, index: IndexId, entry: Entry) {
        self.bytes += entry.bytes;
        self.indexes.insert(index, entry);
        while self.bytes > MOST_BYTES {
            let others = self.indexes.iter().filter(|(other, _)| **other != index);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.last_use).map(|(other, _)| *other) else {
                break;
            };
            self.remove(oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: &[i64]) -> RowIds {
        RowIds::List(ids.into())
    }

    fn column(bytes: usize) -> StoredColumn {
        vec![vec![0; bytes].into()].into()
    }

    fn put(cache: &ColumnCache, index: i64, revision: i64, columns: &[i64], bytes: usize) {
        let segments = vec![SegmentIds { last_id: 5, ids: ids(&[3, 5]) }];
        let columns = columns.iter().map(|id| (*id, column(bytes))).collect();
        cache.put(IndexId(index), revision, segments.into(), columns);
    }

    fn has(cache: &ColumnCache, index: i64, columns: &[i64]) -> bool {
        cache.peek(IndexId(index), columns).is_some()
    }

    #[test]
    fn columns_are_those_of_one_revision() {
        let cache = ColumnCache::default();
        let is_kept = |revision, columns: &[i64]| cache.get(IndexId(1), revision, columns).is_some();
        put(&cache, 1, 20, &[7], 10);
        put(&cache, 1, 20, &[8], 10);
        assert!(is_kept(20, &[8, 7]) && !is_kept(20, &[7, 9]) && !is_kept(-4, &[7]));
        put(&cache, 1, -4, &[9], 10);
        assert!(is_kept(-4, &[9]) && !is_kept(-4, &[7]) && !is_kept(20, &[7]));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let cache = ColumnCache::default();
        for index in 1..=3 {
            put(&cache, index, 0, &[7], MOST_BYTES / 3);
            cache.get(IndexId(1), 0, &[7]);
        }
        assert_eq!([1, 2, 3].map(|index| has(&cache, index, &[7])), [true, false, true]);
        // If one index has too many columns, the ones loaded last stay.
        put(&cache, 1, 0, &[8, 9], MOST_BYTES / 2 - 100);
        assert!(has(&cache, 1, &[8, 9]) && !has(&cache, 1, &[7]) && !has(&cache, 3, &[7]));
        put(&cache, 1, 0, &[7], MOST_BYTES);
        assert!(!has(&cache, 1, &[7]) && !has(&cache, 1, &[8]));
        assert_eq!(cache.kept().bytes, 0);
    }

    #[test]
    fn columns_are_loaded_once_their_lack_has_cost_as_much() {
        let cache = ColumnCache::default();
        let is_worth = |index, more| cache.is_worth_loading(IndexId(index), more, 100);
        assert_eq!([is_worth(1, 60), is_worth(2, 60), is_worth(1, 60)], [false, false, true]);
        assert_eq!([is_worth(1, 60), is_worth(2, 60)], [false, true]);
    }

    #[test]
    fn what_is_too_large_is_not_loaded_again_until_it_changes() {
        let cache = ColumnCache::default();
        let is_too_large =
            |index, revision, columns: &[i64]| cache.kept().is_too_large(IndexId(index), revision, columns);
        cache.kept().note_too_large(IndexId(1), 20, &[7, 8]);
        cache.kept().note_too_large(IndexId(1), 20, &[9]);
        assert!(is_too_large(1, 20, &[7, 8]) && is_too_large(1, 20, &[9]));
        assert!(!is_too_large(1, 20, &[7]) && !is_too_large(1, 21, &[9]) && !is_too_large(2, 20, &[9]));
        cache.kept().note_too_large(IndexId(1), 21, &[7]);
        assert!(is_too_large(1, 21, &[7]) && !is_too_large(1, 20, &[9]));
    }

    #[test]
    fn one_at_a_time_loads_an_index() {
        let cache = ColumnCache::default();
        let first = cache.begin_loading(IndexId(1)).unwrap();
        assert!(cache.begin_loading(IndexId(1)).is_none() && cache.begin_loading(IndexId(2)).is_some());
        drop(first);
        assert!(cache.begin_loading(IndexId(1)).is_some());
    }

    #[test]
    fn segments_are_found_by_where_they_end() {
        let segments = [4, 9, 15].map(|last_id| SegmentIds { last_id, ids: ids(&[last_id]) });
        let cached = CachedColumns { segments: segments.to_vec().into(), columns: Vec::new() };
        let ends = |place, most| -> Vec<i64> {
            cached.segments(place, most).iter().map(|segment| segment.last_id).collect()
        };
        assert_eq!(ends(Place::Behind(4), 5), [9, 15]);
        assert_eq!(ends(Place::Behind(i64::MIN), 2), [4, 9]);
        assert_eq!(ends(Place::Before(15), 5), [9, 4]);
        assert_eq!(ends(Place::Before(i64::MAX), 1), [15]);
        assert_eq!([4, 5, 16].map(|id| cached.end_of(id)), [Some(4), Some(9), None]);
    }
}
