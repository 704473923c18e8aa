//! An inverted index in memory: the ids of the records that have the words that are searched most.
//!
//! A full-text index goes through every entry of the words that it is asked for. Where words stand in many records, bitmaps
//! of their ids are intersected a hundred times as fast.
//!
//! Bitmaps are kept up by the changes that are recorded beside a columnar index. A generation of them is of a state of the
//! index: of all changes until then, and perhaps of some later ones. Records that were changed since are for the query to
//! look at itself, until the bitmaps are [updated](Update). Changes are counted when they are recorded and still
//! counted when they have been merged into segments, so that none can be missed: where the count says that there was one
//! that no query saw, a new generation begins.

use fields::words::{Clause, RecordWords};
use model::IndexId;
use records::columnar::{Change, Recorded};
use roaring::RoaringTreemap;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes that are kept, of all collections together.
const MOST_BYTES: usize = 24 << 20;
/// Ids that are read at once, whatever they are worth later.
pub(crate) const FEW: usize = 10_000;
/// A bitmap of more ids is read when so many queries of a generation asked for it.
const OFTEN: u32 = 3;
/// Queries that read bitmaps of an index at a time. Others search without, because reading can take more than a search.
const MOST_READING: usize = 4;
/// Bitmaps are updated when there are more changes than this.
const UPDATED: usize = 50;
/// And a generation ends where there are more than this: no query can look at so many itself.
const MOST_FRESH: usize = 2_000;
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
    /// What queries are doing.
    tasks: HashSet<Task>,
}

/// What one query at a time does with an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Task {
    Update(IndexId),
    Read(IndexId, Clause),
}

#[derive(Debug)]
struct Generation {
    number: u64,
    /// How many changes had been recorded in the state that all its bitmaps have.
    began: i64,
    /// Which of them were not merged into segments then, in order.
    changes: Vec<i64>,
    /// How many there are by the latest query.
    seen: i64,
    /// The changes that were recorded since it began: the record of each, by its number.
    fresh: BTreeMap<i64, i64>,
    /// What many records have, and how many queries asked for each.
    many: HashMap<Clause, u32>,
    lists: HashMap<Clause, List>,
    last_use: u64,
}

#[derive(Debug)]
struct List {
    /// `None` where they are too many to be kept.
    ids: Option<Arc<RoaringTreemap>>,
    last_use: u64,
}

/// A generation as a query sees it.
#[derive(Debug)]
pub(crate) struct Sight<'l> {
    index: IndexId,
    generation: u64,
    /// How many changes the query sees.
    seen: i64,
    /// The records that were changed since the generation began, in order.
    pub fresh: Vec<i64>,
    /// The right to update the bitmaps with what these records have now.
    pub update: Option<Update<'l>>,
}

/// What is known of the records that have some words.
#[derive(Debug)]
pub(crate) enum Lookup<'l> {
    /// Those that had them when the generation began.
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

/// The right to do a task, until it is dropped.
#[derive(Debug)]
struct Turn<'l> {
    lists: &'l WordLists,
    task: Task,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.lists.kept().tasks.remove(&self.task);
    }
}

/// The right to read a bitmap.
#[derive(Debug)]
pub(crate) struct Reading<'l> {
    turn: Turn<'l>,
    index: IndexId,
    generation: u64,
    seen: i64,
    clause: Clause,
}

/// The right to update the bitmaps of an index.
#[derive(Debug)]
pub(crate) struct Update<'l> {
    turn: Turn<'l>,
    index: IndexId,
    generation: u64,
    seen: i64,
    /// The changes since the generation began.
    fresh: Vec<i64>,
    /// All changes that are not merged into segments, in order.
    recorded: Vec<i64>,
}

impl WordLists {
    fn with_room(room: usize) -> Self {
        let (generations, tasks) = (HashMap::new(), HashSet::new());
        Self { kept: Mutex::new(Kept { room, generations, uses: 0, tasks }) }
    }

    /// The generation of an index beside which so many changes were recorded; `None` where there are others than its queries
    /// have seen, or bitmaps are to be updated.
    pub fn unchanged(&self, index: IndexId, recorded: i64) -> Option<Sight<'_>> {
        let kept = self.kept();
        let known = kept.generations.get(&index).filter(|known| known.seen == recorded && !known.is_due());
        known.map(|known| known.sight(index))
    }

    /// The generation of an index beside which these changes are recorded. A new one begins where too much has changed, or
    /// it is not known what. `None` for a query that sees an earlier state.
    pub fn generation(&self, index: IndexId, recorded: &Recorded) -> Option<Sight<'_>> {
        let mut guard = self.kept();
        let kept = &mut *guard;
        let seen = recorded.count();
        if let Some(known) = kept.generations.get_mut(&index) {
            if seen < known.began {
                return None;
            }
            if known.learn(recorded) {
                let mut sight = Sight { seen, ..known.sight(index) };
                let is_latest = seen == known.seen;
                if is_latest && known.is_due() && kept.tasks.insert(Task::Update(index)) {
                    sight.update = Some(Update {
                        turn: Turn { lists: self, task: Task::Update(index) },
                        index,
                        generation: known.number,
                        seen,
                        fresh: known.fresh.keys().copied().collect(),
                        recorded: recorded.numbers(),
                    });
                }
                return Some(sight);
            }
        }
        kept.begin(index, recorded);
        kept.generations.get(&index).map(|begun| begun.sight(index))
    }

    /// Counts a query for records that have something in any field, and looks for their bitmap.
    pub fn look_up(&self, sight: &Sight<'_>, clause: &Clause) -> Lookup<'_> {
        let clause = Clause { field: None, ..clause.clone() };
        let mut kept = self.kept();
        kept.uses += 1;
        let last_use = kept.uses;
        let Some(known) = kept.known(sight.index, sight.generation, sight.seen) else {
            return Lookup::Unknown;
        };
        known.last_use = last_use;
        if let Some(list) = known.lists.get_mut(&clause) {
            list.last_use = last_use;
            return list.ids.clone().map_or(Lookup::Unknown, Lookup::Found);
        }
        let mut asked = 0;
        if let Some(times) = known.many.get_mut(&clause) {
            *times += 1;
            asked = *times;
        }
        let (index, task) = (sight.index, Task::Read(sight.index, clause.clone()));
        if (1..OFTEN).contains(&asked)
            || kept.readings(index) >= MOST_READING
            || !kept.tasks.insert(task.clone())
        {
            return Lookup::Unknown;
        }
        let turn = Turn { lists: self, task };
        let reading = Reading { turn, index, generation: sight.generation, seen: sight.seen, clause };
        Lookup::Wanted { reading, if_few: asked == 0 }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Update<'_> {
    /// Brings the bitmaps to the state that the query sees, by the words that the changed records have now. Those that are
    /// gone have none.
    pub fn apply(self, changed: &[(i64, Option<RecordWords>)]) {
        let mut kept = self.turn.lists.kept();
        let Some(known) = kept.known(self.index, self.generation, self.seen) else { return };
        for (clause, list) in &mut known.lists {
            let Some(ids) = &mut list.ids else { continue };
            for (id, words) in changed {
                let id = id.cast_unsigned();
                match (ids.contains(id), words.as_ref().is_some_and(|words| words.have(clause))) {
                    (false, true) => drop(Arc::make_mut(ids).insert(id)),
                    (true, false) => drop(Arc::make_mut(ids).remove(id)),
                    _ => {}
                }
            }
        }
        known.began = self.seen;
        known.fresh.retain(|change, _| self.fresh.binary_search(change).is_err());
        known.changes.clone_from(&self.recorded);
    }
}

impl Reading<'_> {
    /// What the records have.
    pub fn clause(&self) -> &Clause {
        &self.clause
    }

    /// Keeps the ids of the records that have the words, which were read after the changes by which the generation was
    /// found.
    pub fn keep(self, mut ids: RoaringTreemap) -> Arc<RoaringTreemap> {
        ids.optimize();
        // A copy has no room to grow.
        let ids = Arc::new(ids.clone());
        self.turn.lists.kept().keep(&self, ids.clone());
        ids
    }

    /// Notes that the ids were not [few](FEW).
    pub fn postpone(self) {
        let mut kept = self.turn.lists.kept();
        if let Some(generation) = kept.known(self.index, self.generation, self.seen) {
            if generation.many.len() >= MOST_COUNTED {
                generation.many.clear();
            }
            generation.many.insert(self.clause.clone(), 1);
        }
    }
}

impl Generation {
    /// As a query sees it that sees all that others have seen.
    fn sight<'l>(&self, index: IndexId) -> Sight<'l> {
        let mut fresh: Vec<i64> = self.fresh.values().copied().collect();
        fresh.sort_unstable();
        fresh.dedup();
        Sight { index, generation: self.number, seen: self.seen, fresh, update: None }
    }

    /// Whether so much has changed that bitmaps are to be updated.
    fn is_due(&self) -> bool {
        self.fresh.len() > UPDATED
    }

    /// Notes changes that are recorded now. Says whether these are all that there were, and not too many.
    fn learn(&mut self, recorded: &Recorded) -> bool {
        let count = recorded.count();
        if count > self.seen {
            let is_known = |change: &&Change| {
                self.changes.binary_search(&change.id).is_ok() || self.fresh.contains_key(&change.id)
            };
            let new: Vec<&Change> = recorded.changes.iter().filter(|change| !is_known(change)).collect();
            if i64::try_from(new.len()) != Ok(count - self.seen) {
                return false;
            }
            self.fresh.extend(new.into_iter().map(|change| (change.id, change.item)));
            self.seen = count;
        }
        self.fresh.len() <= MOST_FRESH
    }
}

impl Kept {
    /// The generation of this number, for a query that does not see an earlier state than its bitmaps have.
    fn known(&mut self, index: IndexId, number: u64, seen: i64) -> Option<&mut Generation> {
        self.generations.get_mut(&index).filter(|known| known.number == number && known.began <= seen)
    }

    /// How many bitmaps of an index are being read.
    fn readings(&self, index: IndexId) -> usize {
        self.tasks.iter().filter(|task| matches!(task, Task::Read(read, _) if *read == index)).count()
    }

    fn begin(&mut self, index: IndexId, recorded: &Recorded) {
        let oldest = self.generations.iter().min_by_key(|(_, generation)| generation.last_use);
        if let Some(oldest) = oldest.map(|(oldest, _)| *oldest)
            && self.generations.len() >= MOST_GENERATIONS
        {
            self.generations.remove(&oldest);
        }
        self.uses += 1;
        let generation = Generation {
            number: self.uses,
            began: recorded.count(),
            changes: recorded.numbers(),
            seen: recorded.count(),
            fresh: BTreeMap::new(),
            many: HashMap::new(),
            lists: HashMap::new(),
            last_use: self.uses,
        };
        self.generations.insert(index, generation);
    }

    fn keep(&mut self, reading: &Reading<'_>, ids: Arc<RoaringTreemap>) {
        if ids.len() < LEAST_KEPT {
            return;
        }
        self.uses += 1;
        let (last_use, most) = (self.uses, self.room / 4);
        let Some(generation) = self.known(reading.index, reading.generation, reading.seen) else {
            return;
        };
        let clause = reading.clause.clone();
        // What begins with a word is often just the word.
        let other = Clause { open: !clause.open, ..clause.clone() };
        let same = generation.lists.get(&other).and_then(|list| list.ids.clone()).filter(|same| *same == ids);
        let ids = same.or_else(|| Some(ids).filter(|ids| ids.serialized_size() <= most));
        generation.lists.insert(clause, List { ids, last_use });
        self.make_room();
    }

    /// Gives up the bitmaps that were not used for longest where there are too many, some more than must be, so that it is
    /// not done with each.
    fn make_room(&mut self) {
        let mut counted = HashSet::new();
        let lists = self.generations.values().flat_map(|generation| &generation.lists);
        let mut sizes: Vec<(u64, usize)> =
            lists.map(|(clause, list)| (list.last_use, list.size(clause, &mut counted))).collect();
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
            lists.retain(|clause, list| {
                let is_kept = list.last_use > last;
                if !is_kept {
                    many.entry(clause.clone()).and_modify(|asked| *asked = 1);
                }
                is_kept
            });
        }
    }
}

impl List {
    /// About how many bytes it takes, unless the same ids are among those that were counted.
    fn size(&self, clause: &Clause, counted: &mut HashSet<*const RoaringTreemap>) -> usize {
        let ids = self.ids.as_ref().filter(|ids| counted.insert(Arc::as_ptr(ids)));
        let words: usize = clause.words.iter().map(String::len).sum();
        LIST_BYTES + 2 * words + ids.map_or(0, |ids| ids.serialized_size())
    }
}

#[cfg(test)]
mod tests;
