//! Columns in memory: those of the indexes that are queried most, as they are stored.
//!
//! Whoever writes a segment draws a new revision of its index in the same transaction. What is kept is of one revision, and
//! each scan asks the index for its own first, so that what another replica wrote is seen at once.

use super::segment::ROWS;
use super::table::{Place, StoredSegment};
use model::IndexId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes that are kept, of all indexes together.
const MOST_BYTES: usize = 16 << 20;
/// The most indexes of which something is known.
const MOST_INDEXES: usize = 1_000;

/// A column: its bytes, segment by segment.
pub(super) type StoredColumn = Arc<[Arc<[u8]>]>;

/// What a segment is known by.
#[derive(Debug, Clone)]
pub(super) struct SegmentIds {
    /// No item of it has a greater id.
    pub last_id: i64,
    /// The ids of its items.
    pub ids: Arc<[i64]>,
}

/// Columns of all segments of an index, of one revision.
#[derive(Debug, Clone)]
pub(super) struct CachedColumns {
    segments: Arc<[SegmentIds]>,
    columns: Vec<StoredColumn>,
}

impl CachedColumns {
    /// Where the segment ends that an id belongs to; `None` behind the last one.
    pub fn end_of(&self, id: i64) -> Option<i64> {
        let at = self.segments.partition_point(|segment| segment.last_id < id);
        self.segments.get(at).map(|segment| segment.last_id)
    }

    /// The next segments, at most `most`.
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

/// How a query comes by columns.
#[derive(Debug)]
pub(super) enum Lookup {
    /// They are in memory.
    Cached(CachedColumns),
    /// They are asked for again, so it is worth reading them all.
    Load,
    /// Nobody has asked for this revision yet: what is needed is read from the database.
    Read,
}

/// The columns that are kept.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    indexes: HashMap<IndexId, Entry>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug, Default)]
struct Entry {
    revision: i64,
    segments: Option<Arc<[SegmentIds]>>,
    columns: HashMap<i64, StoredColumn>,
    bytes: usize,
    last_use: u64,
}

impl Entry {
    fn size(&self) -> usize {
        let segments = self.segments.as_deref().unwrap_or_default();
        let ids: usize = segments.iter().map(|segment| size_of_val(&*segment.ids)).sum();
        let columns = self.columns.values().flat_map(|column| column.iter());
        ids + columns.map(|bytes| bytes.len()).sum::<usize>()
    }

    fn columns(&self, columns: &[i64]) -> Option<CachedColumns> {
        let columns: Option<Vec<_>> =
            columns.iter().map(|column| self.columns.get(column).cloned()).collect();
        Some(CachedColumns { segments: self.segments.clone()?, columns: columns? })
    }
}

impl ColumnCache {
    /// Whether so many segments can be kept, each with columns of so many bytes.
    pub fn has_room_for(segments: i64, bytes: i64) -> bool {
        let (segments, bytes) = (usize::try_from(segments), usize::try_from(bytes));
        let size = segments
            .ok()
            .zip(bytes.ok())
            .and_then(|(segments, bytes)| segments.checked_mul(bytes.checked_add(ROWS * size_of::<i64>())?));
        size.is_some_and(|size| size <= MOST_BYTES)
    }

    /// Columns of an index in whatever revision, for guesses.
    pub(super) fn peek(&self, index: IndexId, columns: &[i64]) -> Option<CachedColumns> {
        self.kept().indexes.get(&index)?.columns(columns)
    }

    /// Columns of an index in its present revision.
    pub(super) fn get(&self, index: IndexId, revision: i64, columns: &[i64]) -> Lookup {
        let mut kept = self.kept();
        kept.uses += 1;
        let last_use = kept.uses;
        match kept.indexes.get_mut(&index).filter(|entry| entry.revision == revision) {
            Some(entry) => {
                entry.last_use = last_use;
                entry.columns(columns).map_or(Lookup::Load, Lookup::Cached)
            }
            None => {
                kept.replace(index, Entry { revision, last_use, ..Entry::default() });
                Lookup::Read
            }
        }
    }

    /// Keeps columns of an index, and gives up those of indexes that were not used for longest where there are too many.
    pub(super) fn put(
        &self,
        index: IndexId,
        revision: i64,
        segments: Arc<[SegmentIds]>,
        columns: Vec<(i64, StoredColumn)>,
    ) {
        let mut kept = self.kept();
        let Some(mut entry) = kept.remove(index).filter(|entry| entry.revision == revision) else { return };
        let loaded: Vec<i64> = columns.iter().map(|(column, _)| *column).collect();
        entry.segments = Some(segments);
        entry.columns.extend(columns);
        if entry.size() > MOST_BYTES {
            entry.columns.retain(|column, _| loaded.contains(column));
        }
        entry.bytes = entry.size();
        if entry.bytes <= MOST_BYTES {
            kept.replace(index, entry);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, index: IndexId) -> Option<Entry> {
        let entry = self.indexes.remove(&index)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn replace(&mut self, index: IndexId, entry: Entry) {
        self.remove(index);
        self.bytes += entry.bytes;
        self.indexes.insert(index, entry);
        while self.bytes > MOST_BYTES || self.indexes.len() > MOST_INDEXES {
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

    fn column(bytes: usize) -> StoredColumn {
        vec![vec![0; bytes].into()].into()
    }

    fn put(cache: &ColumnCache, index: i64, revision: i64, columns: &[i64], bytes: usize) {
        let segments = vec![SegmentIds { last_id: 5, ids: vec![3, 5].into() }];
        let columns = columns.iter().map(|id| (*id, column(bytes))).collect();
        cache.put(IndexId(index), revision, segments.into(), columns);
    }

    fn has(cache: &ColumnCache, index: i64, columns: &[i64]) -> bool {
        cache.peek(IndexId(index), columns).is_some()
    }

    #[test]
    fn the_second_use_of_a_revision_loads_it() {
        let cache = ColumnCache::default();
        let get = |revision| cache.get(IndexId(1), revision, &[7]);
        assert!(matches!(get(20), Lookup::Read));
        assert!(matches!(get(20), Lookup::Load));
        put(&cache, 1, 20, &[7], 10);
        assert!(matches!(get(20), Lookup::Cached(_)));
        assert!(matches!(cache.get(IndexId(1), 20, &[7, 8]), Lookup::Load));
        assert!(matches!(get(-4), Lookup::Read));
        // What was read of an older revision comes too late.
        put(&cache, 1, 20, &[7], 10);
        assert!(!has(&cache, 1, &[7]));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let cache = ColumnCache::default();
        for index in 1..=3 {
            cache.get(IndexId(index), 0, &[7]);
            put(&cache, index, 0, &[7], MOST_BYTES / 3);
            cache.get(IndexId(1), 0, &[7]);
        }
        assert_eq!([1, 2, 3].map(|index| has(&cache, index, &[7])), [true, false, true]);
        // Of an index with too many columns the last ones are kept.
        put(&cache, 1, 0, &[8, 9], MOST_BYTES / 2 - 100);
        assert!(has(&cache, 1, &[8, 9]) && !has(&cache, 1, &[7]) && !has(&cache, 3, &[7]));
        put(&cache, 1, 0, &[7], MOST_BYTES);
        assert!(!has(&cache, 1, &[7]) && !has(&cache, 1, &[8]));
        assert_eq!(cache.kept().bytes, 0);
    }

    #[test]
    fn segments_are_found_by_where_they_end() {
        let segments = [4, 9, 15].map(|last_id| SegmentIds { last_id, ids: vec![last_id].into() });
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
