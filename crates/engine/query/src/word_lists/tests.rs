//! Tests of the bitmaps of words.

use super::*;
use fields::{ColumnValue, Columns, Data, FieldOptions, FieldSet, FieldType, Record, SystemColumn, sample};
use proptest::prelude::*;
use std::collections::BTreeSet;

const INDEX: IndexId = IndexId(1);

fn ids(ids: impl IntoIterator<Item = u64>) -> RoaringTreemap {
    ids.into_iter().collect()
}

fn clause(word: &str) -> Clause {
    let (word, open) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
    Clause { field: None, words: vec![word.to_owned()], open }
}

/// Changes of these records, numbered from 1.
fn changes(items: &[i64]) -> Recorded {
    let changes = (1..).zip(items).map(|(id, item)| Change { id, item: *item }).collect();
    Recorded { merged: 0, changes }
}

fn sight(lists: &WordLists, index: i64) -> Sight<'_> {
    lists.generation(IndexId(index), &Recorded::default()).unwrap()
}

fn look_up<'l>(lists: &'l WordLists, index: i64, word: &str) -> Lookup<'l> {
    lists.look_up(&sight(lists, index), &clause(word))
}

/// Has the bitmap of a word read as soon as queries may.
fn read(lists: &WordLists, index: i64, word: &str, found: &RoaringTreemap) {
    match look_up(lists, index, word) {
        Lookup::Wanted { reading, if_few: true } => drop(reading.keep(found.clone())),
        other => unreachable!("{other:?}"),
    }
}

fn has(lists: &WordLists, index: i64, word: &str) -> bool {
    matches!(look_up(lists, index, word), Lookup::Found(_))
}

#[test]
fn many_ids_are_read_when_they_are_asked_for_often() {
    let lists = WordLists::default();
    let Lookup::Wanted { reading, if_few: true } = look_up(&lists, 1, "red") else { unreachable!() };
    reading.postpone();
    for _ in 2..OFTEN {
        assert!(matches!(look_up(&lists, 1, "red"), Lookup::Unknown));
    }
    let Lookup::Wanted { reading, if_few: false } = look_up(&lists, 1, "red") else { unreachable!() };
    reading.keep(ids(0..LEAST_KEPT));
    assert!(has(&lists, 1, "red"));
}

#[test]
fn few_queries_at_a_time_read_bitmaps_of_an_index_and_each_another_one() {
    let lists = WordLists::default();
    let words = ["red", "blue", "green", "white", "black"];
    let (first, last) = words.split_at(MOST_READING);
    let mut readings: Vec<_> = first.iter().map(|word| look_up(&lists, 1, word)).collect();
    assert!(readings.iter().all(|reading| matches!(reading, Lookup::Wanted { .. })));
    assert!(matches!(look_up(&lists, 1, last[0]), Lookup::Unknown));
    assert!(matches!(look_up(&lists, 2, last[0]), Lookup::Wanted { .. }));
    readings.pop();
    assert!(matches!(look_up(&lists, 1, first[0]), Lookup::Unknown));
    assert!(matches!(look_up(&lists, 1, last[0]), Lookup::Wanted { .. }));
    drop(readings);
    assert!(lists.kept().tasks.is_empty());
}

#[test]
fn a_field_does_not_matter() {
    let lists = WordLists::default();
    read(&lists, 1, "red", &ids(0..LEAST_KEPT));
    let field = Some(model::FieldId(7));
    let found = lists.look_up(&sight(&lists, 1), &Clause { field, ..clause("red") });
    assert!(matches!(found, Lookup::Found(_)), "{found:?}");
}

#[test]
fn a_query_that_sees_an_earlier_state_does_without() {
    let lists = WordLists::default();
    let fresh = |recorded: &Recorded| lists.generation(INDEX, recorded).map(|sight| sight.fresh);
    assert_eq!(fresh(&changes(&[11])), Some(vec![]));
    assert_eq!(fresh(&changes(&[11, 13, 12, 13])), Some(vec![12, 13]));
    assert_eq!(fresh(&changes(&[11])), Some(vec![12, 13]));
    assert_eq!(fresh(&changes(&[])), None);
}

#[test]
fn a_change_that_was_merged_unseen_begins_a_generation() {
    let lists = WordLists::default();
    let all = changes(&[11, 12, 13]).changes;
    let at = |merged, changes: &[Change]| {
        let sight = lists.generation(INDEX, &Recorded { merged, changes: changes.to_vec() }).unwrap();
        (sight.generation, sight.fresh)
    };
    let (first, _) = at(0, &all[..1]);
    assert_eq!(at(1, &all[1..2]), (first, vec![12]));
    assert_eq!(at(2, &[]), (first, vec![12]), "what was seen is not forgotten");
    let (second, fresh) = at(3, &[]);
    assert!(second != first && fresh.is_empty());
}

#[test]
fn bitmaps_are_updated_by_one_query_that_sees_the_latest_state() {
    let lists = WordLists::default();
    read(&lists, 1, "red", &ids(0..LEAST_KEPT));
    let many: Vec<i64> = (0..).take(UPDATED + 1).collect();
    assert!(lists.unchanged(INDEX, 0).is_some() && lists.unchanged(INDEX, 1).is_none());
    assert!(lists.generation(INDEX, &changes(&many[..UPDATED])).unwrap().update.is_none(), "few are changed");
    let unchanged = lists.unchanged(INDEX, changes(&many[..UPDATED]).count()).unwrap();
    assert_eq!(unchanged.fresh, many[..UPDATED]);
    let mut first = lists.generation(INDEX, &changes(&many)).unwrap();
    assert!(lists.generation(INDEX, &changes(&many)).unwrap().update.is_none(), "another does it");
    assert!(lists.unchanged(INDEX, changes(&many).count()).is_none(), "it is tried again until it is done");
    // Of a change that is seen meanwhile nothing is known.
    let more = [many.as_slice(), &[7]].concat();
    assert_eq!(lists.generation(INDEX, &changes(&more)).unwrap().fresh, many);
    let gone: Vec<_> = first.fresh.iter().map(|id| (*id, None)).collect();
    first.update.take().unwrap().apply(&gone);
    let second = lists.generation(INDEX, &changes(&more)).unwrap();
    assert_eq!((second.generation, second.fresh.as_slice()), (first.generation, &[7][..]));
    let Lookup::Found(left) = lists.look_up(&second, &clause("red")) else { unreachable!() };
    assert_eq!(*left, ids(u64::try_from(many.len()).unwrap()..LEAST_KEPT));
    // Who saw less than the bitmaps know does without.
    assert!(lists.generation(INDEX, &changes(&many[..UPDATED])).is_none());
}

#[test]
fn many_changes_of_one_record_are_as_many_changes() {
    let lists = WordLists::default();
    let number = sight(&lists, 1).generation;
    let mut items = Vec::new();
    for _ in 0..2 * MOST_FRESH / UPDATED {
        items.extend([7].repeat(UPDATED + 1));
        let mut sight = lists.generation(INDEX, &changes(&items)).unwrap();
        assert_eq!((sight.generation, sight.fresh.as_slice()), (number, &[7][..]));
        sight.update.take().unwrap().apply(&[(7, None)]);
    }
}

#[test]
fn a_bitmap_that_was_read_before_an_update_is_not_kept() {
    let lists = WordLists::default();
    read(&lists, 1, "blue", &ids(0..LEAST_KEPT));
    let before = sight(&lists, 1);
    let many: Vec<i64> = (0..).take(UPDATED + 1).collect();
    let mut after = lists.generation(INDEX, &changes(&many)).unwrap();
    after.update.take().unwrap().apply(&[]);
    assert!(matches!(lists.look_up(&before, &clause("blue")), Lookup::Unknown));
    assert!(matches!(lists.look_up(&after, &clause("blue")), Lookup::Found(_)));
    // A query that read it although it sees less.
    let clause = clause("red");
    let Lookup::Wanted { mut reading, .. } = lists.look_up(&after, &clause) else { unreachable!() };
    reading.seen = before.seen;
    reading.keep(ids(0..LEAST_KEPT));
    assert!(matches!(lists.look_up(&after, &clause), Lookup::Wanted { .. }));
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
    sight(&lists, most + 1);
    assert!(has(&lists, 1, "red"));
    let kept = lists.kept();
    assert!(!kept.generations.contains_key(&IndexId(2)) && kept.generations.len() == MOST_GENERATIONS);
}

struct NoColumns;

impl Columns for NoColumns {
    fn id(&self) -> i64 {
        1
    }
    fn column(&self, _: SystemColumn) -> ColumnValue<'_> {
        ColumnValue::Empty
    }
    fn has_cut_relations(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// An item gets the word, or loses it.
    Change(u64, bool),
    /// The first changes are written into the segments: a part of 10.
    Merge(usize),
    /// A query of what is stored now, which may keep what it sees for later.
    Query,
    /// A query that reads a bitmap, or updates them, does so only now.
    Finish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..1_000_u64, prop::bool::weighted(0.7)).prop_map(|(item, has)| Step::Change(item, has)),
        1 => (1..=10_usize).prop_map(Step::Merge),
        8 => Just(Step::Query),
        3 => Just(Step::Finish),
    ];
    // So many changes that bitmaps are updated, or that generations end by themselves.
    let many =
        (0..800_u64, prop_oneof![8 => Just(UPDATED), 1 => Just(MOST_FRESH + 1)]).prop_map(|(from, many)| {
            (from..).take(many + 20).map(|item| Step::Change(item % 1_000, item % 3 > 0)).collect()
        });
    let few = prop::collection::vec(step, 1..30);
    prop::collection::vec(prop_oneof![1 => many, 6 => few], 1..12).prop_map(|all| all.concat())
}

/// What a query has begun and not finished.
enum Pending<'l> {
    Reading(Reading<'l>, RoaringTreemap),
    Update(Update<'l>, Vec<(i64, Option<RecordWords>)>),
}

/// What is stored, and how it came to it.
#[derive(Default)]
struct World {
    having: BTreeSet<u64>,
    recorded: Recorded,
    last: i64,
}

impl World {
    fn change(&mut self, item: u64, has: bool) {
        if has {
            self.having.insert(item)
        } else {
            self.having.remove(&item)
        };
        self.last += 1;
        self.recorded.changes.push(Change { id: self.last, item: item.cast_signed() });
    }

    fn merge(&mut self, tenths: usize) {
        let merged = self.recorded.changes.len() * tenths / 10;
        self.recorded.changes.drain(..merged);
        self.recorded.merged += i64::try_from(merged).unwrap();
    }

    /// The words of a record: none where it is gone.
    fn words(&self, fields: &FieldSet, item: i64) -> Option<RecordWords> {
        let data = Data::from_iter([("name".to_owned(), "a red shoe".into())]);
        let record = Record { columns: &NoColumns, data: &data };
        self.having.contains(&item.cast_unsigned()).then(|| RecordWords::of(fields, record))
    }
}

proptest! {
    #[test]
    fn queries_find_what_has_the_word_now(steps in steps()) {
        let lists = WordLists::default();
        let fields = sample::fields(vec![("name", FieldType::Text, FieldOptions::default())]);
        let mut world = World::default();
        let mut pending: Vec<Pending<'_>> = Vec::new();
        for step in steps {
            match step {
                Step::Change(item, has) => world.change(item, has),
                Step::Merge(tenths) => world.merge(tenths),
                Step::Finish => match pending.pop() {
                    Some(Pending::Reading(reading, ids)) => drop(reading.keep(ids)),
                    Some(Pending::Update(update, words)) => update.apply(&words),
                    None => {}
                },
                Step::Query => {
                    let unchanged = lists.unchanged(INDEX, world.recorded.count());
                    let mut sight = unchanged.or_else(|| lists.generation(INDEX, &world.recorded)).unwrap();
                    if let Some(update) = sight.update.take() {
                        let words = sight.fresh.iter().map(|id| (*id, world.words(&fields, *id))).collect();
                        pending.push(Pending::Update(update, words));
                    }
                    match lists.look_up(&sight, &clause("red")) {
                        Lookup::Found(found) => {
                            let is_fresh = |id: &u64| sight.fresh.binary_search(&id.cast_signed()).is_ok();
                            let old = found.iter().filter(|id| !is_fresh(id));
                            let new = world.having.iter().copied().filter(is_fresh);
                            let all: BTreeSet<u64> = old.chain(new).collect();
                            prop_assert_eq!(&all, &world.having);
                        }
                        Lookup::Wanted { reading, .. } => {
                            pending.push(Pending::Reading(reading, ids(world.having.iter().copied())));
                        }
                        Lookup::Unknown => {}
                    }
                }
            }
        }
    }
}
