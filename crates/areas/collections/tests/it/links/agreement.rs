//! Random changes in random order. The link table, the copies in values and the lists must agree with each other and
//! with a simple model.

use super::Library;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use testkit::Kind;

const ITEMS: usize = 5;

#[derive(Debug, Clone)]
enum Step {
    /// Writes a relation field of a book (`true`) or an author.
    Write(bool, usize, Vec<usize>),
    Link(usize, usize),
    Set(usize, Vec<usize>),
    Unlink(usize),
    Trash(bool, usize),
    Restore(bool, usize),
    Purge(bool, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let item = 0..ITEMS;
    let some = || proptest::collection::vec(0..ITEMS, 0..4);
    let step = prop_oneof![
        4 => (any::<bool>(), item.clone(), some()).prop_map(|(book, item, to)| Step::Write(book, item, to)),
        3 => (item.clone(), item.clone()).prop_map(|(book, author)| Step::Link(book, author)),
        2 => (item.clone(), some()).prop_map(|(book, to)| Step::Set(book, to)),
        2 => (0..8_usize).prop_map(Step::Unlink),
        2 => (any::<bool>(), item.clone()).prop_map(|(book, item)| Step::Trash(book, item)),
        2 => (any::<bool>(), item.clone()).prop_map(|(book, item)| Step::Restore(book, item)),
        1 => (any::<bool>(), item).prop_map(|(book, item)| Step::Purge(book, item)),
    ];
    proptest::collection::vec(step, 25)
}

/// The expected links, and the ids of items in the trash.
#[derive(Debug, Default)]
struct Model {
    links: BTreeSet<(i64, i64)>,
    away: BTreeSet<i64>,
}

impl Model {
    fn pair(book: bool, one: i64, other: i64) -> (i64, i64) {
        if book { (one, other) } else { (other, one) }
    }

    fn others(&self, book: bool, item: i64) -> BTreeSet<i64> {
        let end = |(a, b): &(i64, i64)| if book { (*a, *b) } else { (*b, *a) };
        let ends = self.links.iter().map(end).filter(|(from, to)| *from == item && !self.away.contains(to));
        ends.map(|(_, to)| to).collect()
    }

    /// Replaces a whole list. Links to items in the trash stay.
    fn write(&mut self, book: bool, item: i64, to: &[i64]) {
        for other in self.others(book, item) {
            self.links.remove(&Self::pair(book, item, other));
        }
        self.links.extend(to.iter().map(|other| Self::pair(book, item, *other)));
    }
}

struct World {
    library: Library,
    books: Vec<i64>,
    authors: Vec<i64>,
    model: Model,
}

impl World {
    fn ids(&self, book: bool) -> &Vec<i64> {
        if book { &self.books } else { &self.authors }
    }

    async fn take(&mut self, step: &Step) {
        let (books, authors) = (self.library.books, self.library.authors);
        let side = |book: bool| if book { (books, "authors") } else { (authors, "books") };
        match step {
            Step::Write(book, item, to) => {
                let (collection, key) = side(*book);
                let (id, to) = (self.ids(*book)[*item], self.chosen(!*book, to));
                let answer = self.library.change(collection, id, json!({ key: to })).await;
                if self.expect(&answer, id, &to) {
                    self.model.write(*book, id, &to);
                }
            }
            Step::Link(book, author) => {
                let (book, author) = (self.books[*book], self.authors[*author]);
                let body = json!({ "to": { "type": "item", "id": author }, "field_key": "authors" });
                let at = self.library.at(books, format_args!("/{book}/links"));
                let answer = self.library.app.post(&at, &self.library.key, body).await;
                if self.model.links.contains(&(book, author)) && answer.status != 404 {
                    answer.expect_error(409, "link_exists");
                } else if self.expect(&answer, book, &[author]) {
                    self.model.links.insert((book, author));
                }
            }
            Step::Set(book, to) => {
                let (book, to) = (self.books[*book], self.chosen(false, to));
                let links: Vec<Value> =
                    to.iter().map(|id| json!({ "to": { "type": "item", "id": id } })).collect();
                let at = self.library.at(books, format_args!("/{book}/links"));
                let body = json!({ "field_key": "authors", "links": links });
                let answer = self.library.app.put(&at, &self.library.key, body).await;
                if self.expect(&answer, book, &to) {
                    self.model.write(true, book, &to);
                }
            }
            Step::Unlink(number) => {
                let Some((book, author)) = self.model.links.iter().nth(*number).copied() else { return };
                if self.model.away.contains(&book) || self.model.away.contains(&author) {
                    return;
                }
                let at = self.library.at(authors, format_args!("/{author}/links"));
                let listed = self.library.app.get(&at, &self.library.key).await.expect(200);
                let link = listed.as_array().unwrap().iter().find(|link| link["to"]["id"] == book).unwrap();
                self.library.app.delete(&format!("{at}/{}", link["id"]), &self.library.key).await.expect(200);
                self.model.links.remove(&(book, author));
            }
            Step::Trash(book, item) => {
                let id = self.ids(*book)[*item];
                let answer = self.library.trash(side(*book).0, id).await;
                assert_eq!(answer.status, if self.model.away.insert(id) { 200 } else { 404 });
            }
            Step::Restore(book, item) => {
                let id = self.ids(*book)[*item];
                let answer = self.library.restore(side(*book).0, id).await;
                assert_eq!(answer.status, if self.model.away.remove(&id) { 200 } else { 409 });
            }
            Step::Purge(book, item) => {
                let id = self.ids(*book)[*item];
                self.library.purge(side(*book).0, id).await.expect(200);
                self.model.away.remove(&id);
                self.model.links.retain(|(a, b)| *a != id && *b != id);
                let fresh = if *book { self.library.book("B").await } else { self.library.author("A").await };
                if *book { self.books[*item] = fresh } else { self.authors[*item] = fresh }
            }
        }
    }

    fn chosen(&self, book: bool, places: &[usize]) -> Vec<i64> {
        let places: BTreeSet<_> = places.iter().collect();
        places.into_iter().map(|place| self.ids(book)[*place]).collect()
    }

    /// Checks that a write succeeded exactly if all items that it names are live.
    fn expect(&self, answer: &testkit::Answer, id: i64, to: &[i64]) -> bool {
        // An existing link is not checked again, but no existing link leads to the trash.
        let fits = !self.model.away.contains(&id) && !to.iter().any(|id| self.model.away.contains(id));
        assert_eq!(answer.status < 300, fits, "{}", answer.text);
        fits
    }

    async fn agree(&self, after: &Step) {
        let mut rows = BTreeMap::new();
        for (book, ids) in [(true, &self.books), (false, &self.authors)] {
            let (collection, key) =
                if book { (self.library.books, "authors") } else { (self.library.authors, "books") };
            for id in ids.iter().filter(|id| !self.model.away.contains(id)) {
                let view = self.model.others(book, *id);
                let copy = self.library.value(collection, *id, key).await;
                let copy: Vec<i64> = serde_json::from_value(copy).unwrap_or_default();
                let at = self.library.at(collection, format_args!("/{id}/links?field_key={key}"));
                let listed = self.library.app.get(&at, &self.library.key).await.expect(200);
                let listed: Vec<i64> = listed
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|link| link["to"]["id"].as_i64().unwrap())
                    .collect();
                assert_eq!(copy, listed, "{id} after {after:?}");
                assert_eq!(copy.iter().copied().collect::<BTreeSet<_>>(), view, "{id} after {after:?}");
                rows.insert(*id, copy);
            }
        }
        let sql = "SELECT count(*) AS n FROM item_links";
        let stored = crate::number(&self.library.app, sql).await;
        assert_eq!(stored, 2 * i64::try_from(self.model.links.len()).unwrap(), "after {after:?}");
    }
}

async fn compare(kind: testkit::Kind, seed: u8) {
    let library = Library::open(kind).await;
    let (mut books, mut authors) = (Vec::new(), Vec::new());
    for _ in 0..ITEMS {
        books.push(library.book("B").await);
        authors.push(library.author("A").await);
    }
    let mut world = World { library, books, authors, model: Model::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for step in steps().new_tree(&mut runner).unwrap().current() {
        world.take(&step).await;
        world.agree(&step).await;
    }
}

#[testkit::both]
async fn one_random_life(kind: Kind) {
    compare(kind, 1).await;
}

#[testkit::both]
async fn another_random_life(kind: Kind) {
    compare(kind, 2).await;
}

#[testkit::both]
async fn a_third_random_life(kind: Kind) {
    compare(kind, 3).await;
}
