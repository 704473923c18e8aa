//! An inverted index in memory: the ids of the records that have the words that are searched most.
//!
//! A full-text index goes through every entry of the words that it is asked for. Where words stand in many records, bitmaps
//! of their ids are intersected a hundred times as fast.
//!
//! Bitmaps belong to a generation of a columnar index: to the revision of its segments, and the changes that were recorded
//! beside them when the generation began. Each has at least these changes in it. Records that were changed since are for the
//! query to look at itself.

use crate::columnar::Change;
use model::IndexId;
use roaring::RoaringTreemap;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes that are kept, of all collections together.
const MOST_BYTES: usize = 24 << 20;
/// Ids that are read at once, whatever they are worth later.
pub(crate) const FEW: usize = 10_000;
/// A bitmap of more ids is read when so many queries of a generation asked for it.
const OFTEN: u32 = 3;
/// A generation ends where more changes than this were recorded since.
const MOST_FRESH: usize = 200;
/// Words of a generation whose queries are counted.
const MOST_COUNTED: usize = 1_000;
/// Fewer ids are not kept: the full-text index has them as soon.
const LEAST_KEPT: u64 = 100;
/// What a bitmap takes beside its ids, in bytes.
const LIST_BYTES: usize = 200;
/// Generations that are kept.
const MOST_GENERATIONS: usize = 100;

/// The bitmaps that are kept.
#[derive(Debug)]
pub(crate) struct WordLists {
    kept: Mutex<Kept>,
}

impl Default for WordLists {
    fn default() -> Self {
        Self::with_room(MOST_BYTES)
    }
}

#[derive(Debug)]
struct Kept {
    /// The most bytes that are kept.
    room: usize,
    generations: HashMap<IndexId, Generation>,
    uses: u64,
    /// What is being read. One query reads a bitmap, others do without meanwhile.
    reading: HashSet<(IndexId, String)>,
}

#[derive(Debug)]
struct Generation {
    number: u64,
    revision: i64,
    /// The changes that were recorded when it began, in order.
    changes: Vec<i64>,
    /// Words that stand in many records, and how many queries asked for each.
    many: HashMap<String, u32>,
    lists: HashMap<String, List>,
    last_use: u64,
}

#[derive(Debug)]
struct List {
    /// `None` where they are too many to be kept.
    ids: Option<Arc<RoaringTreemap>>,
    last_use: u64,
}

/// What is known of the records that have some words.
#[derive(Debug)]
pub(crate) enum Lookup<'l> {
    /// Those that had them in the generation.
    Found(Arc<RoaringTreemap>),
    /// They are to be read: all of them, or with `if_few` only if they are [few](FEW).
    Wanted {
        /// The right to do so.
        reading: Reading<'l>,
        /// Whether it is not known yet that they are many.
        if_few: bool,
    },
    /// The full-text index is to be asked.
    Unknown,
}

/// The right to read a bitmap.
#[derive(Debug)]
pub(crate) struct Reading<'l> {
    lists: &'l WordLists,
    index: IndexId,
    generation: u64,
    words: String,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let key = (self.index, std::mem::take(&mut self.words));
        self.lists.kept().reading.remove(&key);
    }
}

impl WordLists {
    fn with_room(room: usize) -> Self {
        let (generations, reading) = (HashMap::new(), HashSet::new());
        Self { kept: Mutex::new(Kept { room, generations, uses: 0, reading }) }
    }

    /// The generation of an index of this revision, beside which `changes` are recorded, with the records that were changed
    /// since it began, in order. A new one begins where those are too many. `None` for a query that sees an earlier state.
    pub fn generation(&self, index: IndexId, revision: i64, changes: &[Change]) -> Option<(u64, Vec<i64>)> {
        let mut kept = self.kept();
        let known = kept.generations.get(&index).filter(|generation| generation.revision == revision);
        if let Some(generation) = known {
            let is_known = |change: &&Change| generation.changes.binary_search(&change.id).is_ok();
            let seen = changes.iter().filter(is_known).count();
            if seen < generation.changes.len() {
                return None;
            }
            if changes.len() - seen <= MOST_FRESH {
                let fresh = changes.iter().filter(|change| !is_known(change));
                let mut fresh: Vec<i64> = fresh.map(|change| change.item).collect();
                fresh.sort_unstable();
                fresh.dedup();
                return Some((generation.number, fresh));
            }
        }
        Some((kept.begin(index, revision, changes), Vec::new()))
    }

    /// Counts a query for some words, and looks for their bitmap in a generation.
    pub fn look_up(&self, index: IndexId, generation: u64, words: &str) -> Lookup<'_> {
        let mut kept = self.kept();
        kept.uses += 1;
        let last_use = kept.uses;
        let known = kept.generations.get_mut(&index).filter(|known| known.number == generation);
        let Some(known) = known else { return Lookup::Unknown };
        known.last_use = last_use;
        if let Some(list) = known.lists.get_mut(words) {
            list.last_use = last_use;
            return list.ids.clone().map_or(Lookup::Unknown, Lookup::Found);
        }
        let mut asked = 0;
        if let Some(times) = known.many.get_mut(words) {
            *times += 1;
            asked = *times;
        }
        if (1..OFTEN).contains(&asked) || !kept.reading.insert((index, words.to_owned())) {
            return Lookup::Unknown;
        }
        let reading = Reading { lists: self, index, generation, words: words.to_owned() };
        Lookup::Wanted { reading, if_few: asked == 0 }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading<'_> {
    /// Keeps the ids of the records that have the words, which were read after the changes by which the generation was
    /// found.
    pub fn keep(self, mut ids: RoaringTreemap) -> Arc<RoaringTreemap> {
        ids.optimize();
        let ids = Arc::new(ids);
        self.lists.kept().keep(self.index, self.generation, &self.words, ids.clone());
        ids
    }

    /// Notes that the ids were not [few](FEW).
    pub fn postpone(self) {
        let mut kept = self.lists.kept();
        let known = kept.generations.get_mut(&self.index).filter(|known| known.number == self.generation);
        if let Some(generation) = known {
            if generation.many.len() >= MOST_COUNTED {
                generation.many.clear();
            }
            generation.many.insert(self.words.clone(), 1);
        }
    }
}

impl Kept {
    fn begin(&mut self, index: IndexId, revision: i64, changes: &[Change]) -> u64 {
        let oldest = self.generations.iter().min_by_key(|(_, generation)| generation.last_use);
        if let Some(oldest) = oldest.map(|(oldest, _)| *oldest)
            && self.generations.len() >= MOST_GENERATIONS
        {
            self.generations.remove(&oldest);
        }
        self.uses += 1;
        let mut changes: Vec<i64> = changes.iter().map(|change| change.id).collect();
        changes.sort_unstable();
        let (number, many, lists) = (self.uses, HashMap::new(), HashMap::new());
        let generation = Generation { number, revision, changes, many, lists, last_use: number };
        self.generations.insert(index, generation);
        number
    }

    fn keep(&mut self, index: IndexId, generation: u64, words: &str, ids: Arc<RoaringTreemap>) {
        if ids.len() < LEAST_KEPT {
            return;
        }
        self.uses += 1;
        let last_use = self.uses;
        let known = self.generations.get_mut(&index).filter(|known| known.number == generation);
        let Some(generation) = known else { return };
        // What begins with a word is often just the word.
        let other = words.strip_suffix('*').map_or_else(|| format!("{words}*"), str::to_owned);
        let same = generation.lists.get(&other).and_then(|list| list.ids.clone()).filter(|same| *same == ids);
        let ids = same.or_else(|| Some(ids).filter(|ids| ids.serialized_size() <= self.room / 4));
        generation.lists.insert(words.to_owned(), List { ids, last_use });
        self.make_room();
    }

    /// Gives up the bitmaps that were not used for longest where there are too many, some more than must be, so that it is
    /// not done with each.
    fn make_room(&mut self) {
        let mut counted = HashSet::new();
        let lists = self.generations.values().flat_map(|generation| &generation.lists);
        let mut sizes: Vec<(u64, usize)> =
            lists.map(|(words, list)| (list.last_use, list.size(words, &mut counted))).collect();
        let mut bytes: usize = sizes.iter().map(|(_, size)| size).sum();
        if bytes <= self.room {
            return;
        }
        sizes.sort_unstable();
        let mut last = 0;
        for (last_use, size) in sizes {
            if bytes <= self.room / 8 * 7 {
                break;
            }
            (last, bytes) = (last_use, bytes - size);
        }
        for generation in self.generations.values_mut() {
            let Generation { lists, many, .. } = generation;
            lists.retain(|words, list| {
                let is_kept = list.last_use > last;
                if !is_kept {
                    many.entry(words.clone()).and_modify(|asked| *asked = 1);
                }
                is_kept
            });
        }
    }
}

impl List {
    /// About how many bytes it takes, unless the same ids are among those that were counted.
    fn size(&self, words: &str, counted: &mut HashSet<*const RoaringTreemap>) -> usize {
        let ids = self.ids.as_ref().filter(|ids| counted.insert(Arc::as_ptr(ids)));
        LIST_BYTES + 2 * words.len() + ids.map_or(0, |ids| ids.serialized_size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const INDEX: IndexId = IndexId(1);

    fn ids(ids: impl IntoIterator<Item = u64>) -> RoaringTreemap {
        ids.into_iter().collect()
    }

    fn generation(lists: &WordLists, index: i64) -> u64 {
        lists.generation(IndexId(index), 5, &[]).unwrap().0
    }

    /// Has the bitmap of some words read as soon as queries may.
    fn read(lists: &WordLists, index: i64, words: &str, found: &RoaringTreemap) {
        let generation = generation(lists, index);
        match lists.look_up(IndexId(index), generation, words) {
            Lookup::Wanted { reading, if_few: true } => drop(reading.keep(found.clone())),
            other => unreachable!("{other:?}"),
        }
    }

    fn has(lists: &WordLists, index: i64, words: &str) -> bool {
        matches!(lists.look_up(IndexId(index), generation(lists, index), words), Lookup::Found(_))
    }

    #[test]
    fn many_ids_are_read_when_they_are_asked_for_often() {
        let lists = WordLists::default();
        let generation = generation(&lists, 1);
        let look_up = || lists.look_up(INDEX, generation, "red");
        let Lookup::Wanted { reading, if_few: true } = look_up() else { unreachable!() };
        reading.postpone();
        for _ in 2..OFTEN {
            assert!(matches!(look_up(), Lookup::Unknown));
        }
        let Lookup::Wanted { reading, if_few: false } = look_up() else { unreachable!() };
        reading.keep(ids(0..LEAST_KEPT));
        assert!(matches!(look_up(), Lookup::Found(_)));
    }

    #[test]
    fn one_query_at_a_time_reads_a_bitmap() {
        let lists = WordLists::default();
        let generation = generation(&lists, 1);
        let look_up = || lists.look_up(INDEX, generation, "red");
        let reading = look_up();
        assert!(matches!((&reading, look_up()), (Lookup::Wanted { .. }, Lookup::Unknown)));
        drop(reading);
        assert!(matches!(look_up(), Lookup::Wanted { .. }));
        assert!(lists.kept().reading.is_empty());
    }

    #[test]
    fn a_query_that_sees_an_earlier_state_does_without() {
        let lists = WordLists::default();
        let changes = [1, 2].map(|id| Change { id, item: id + 10 });
        let first = lists.generation(INDEX, 5, &changes[..1]).unwrap().0;
        assert_eq!(lists.generation(INDEX, 5, &changes), Some((first, vec![12])));
        assert_eq!(lists.generation(INDEX, 5, &[]), None);
    }

    /// Scattered ids, others for each number.
    fn scattered(number: u64) -> RoaringTreemap {
        ids((0..2_u64 << 16).filter(|id| id % 2 == 0).map(|id| id + (number << 32)))
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let lists = WordLists::with_room(scattered(1).serialized_size() * 27 / 5);
        for index in 1..=4 {
            read(&lists, index, "red", &scattered(index.cast_unsigned()));
        }
        // The same ids take no more room.
        read(&lists, 1, "red*", &scattered(1));
        assert!(has(&lists, 1, "red") && has(&lists, 1, "red*"));
        read(&lists, 5, "red", &scattered(5));
        read(&lists, 6, "red", &scattered(6));
        assert_eq!(
            [1, 2, 3, 4, 5, 6].map(|index| has(&lists, index, "red")),
            [true, false, false, true, true, true]
        );
        assert!(has(&lists, 1, "red*"));
        read(&lists, 7, "red", &(scattered(1) | scattered(2)));
        assert!(!has(&lists, 7, "red"), "too large");
        read(&lists, 7, "blue", &ids(0..LEAST_KEPT - 1));
        assert!(!has(&lists, 7, "blue"), "few are not kept");
    }

    #[test]
    fn generations_of_few_indexes_are_kept() {
        let lists = WordLists::default();
        let most = i64::try_from(MOST_GENERATIONS).unwrap();
        (1..=most).for_each(|index| read(&lists, index, "red", &ids(0..LEAST_KEPT)));
        assert!(has(&lists, 1, "red"));
        generation(&lists, most + 1);
        assert!(has(&lists, 1, "red"));
        let kept = lists.kept();
        assert!(!kept.generations.contains_key(&IndexId(2)) && kept.generations.len() == MOST_GENERATIONS);
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// An item gets the word, or loses it.
        Change(u64, bool),
        /// Changes are written into the segments.
        Merge,
        Query,
        /// A query that reads a bitmap keeps it later.
        Keep,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..1_000_u64, prop::bool::weighted(0.7)).prop_map(|(item, has)| Step::Change(item, has)),
            1 => Just(Step::Merge),
            8 => Just(Step::Query),
            2 => Just(Step::Keep),
        ];
        // So many changes that generations end by themselves.
        let many =
            (0..800_u64).prop_map(|from| (from..from + 250).map(|item| Step::Change(item, true)).collect());
        let few = prop::collection::vec(step, 1..30);
        prop::collection::vec(prop_oneof![1 => many, 6 => few], 1..12).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn queries_find_what_has_the_word_now(steps in steps()) {
            let lists = WordLists::default();
            let (mut having, mut changes, mut revision) = (BTreeSet::new(), Vec::new(), 1);
            let mut readings: Vec<(Reading<'_>, RoaringTreemap)> = Vec::new();
            let mut last = 0;
            for step in steps {
                match step {
                    Step::Change(item, has) => {
                        if has { having.insert(item); } else { having.remove(&item); }
                        last += 1;
                        changes.push(Change { id: last, item: item.cast_signed() });
                    }
                    Step::Merge => {
                        changes.clear();
                        revision += 1;
                    }
                    Step::Keep => drop(readings.pop().map(|(reading, ids)| reading.keep(ids))),
                    Step::Query => {
                        let (generation, fresh) = lists.generation(INDEX, revision, &changes).unwrap();
                        match lists.look_up(INDEX, generation, "red") {
                            Lookup::Found(found) => {
                                let is_fresh = |id: &u64| fresh.binary_search(&id.cast_signed()).is_ok();
                                let old = found.iter().filter(|id| !is_fresh(id));
                                let new = having.iter().copied().filter(is_fresh);
                                let all: BTreeSet<u64> = old.chain(new).collect();
                                prop_assert_eq!(&all, &having);
                            }
                            Lookup::Wanted { reading, .. } => readings.push((reading, ids(having.iter().copied()))),
                            Lookup::Unknown => {}
                        }
                    }
                }
            }
        }
    }
}
