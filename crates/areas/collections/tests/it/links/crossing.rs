//! Concurrent writes to links of the same items, by all operations. None of them may deadlock.

use super::Library;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Answer, Kind};

/// A source of random numbers that repeats in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn of(&mut self, ids: &[i64]) -> i64 {
        ids[self.below(ids.len())]
    }

    /// Returns up to four of the ids in any order.
    fn some(&mut self, ids: &[i64]) -> Vec<i64> {
        let mut some = Vec::new();
        for _ in 0..self.below(5) {
            let id = self.of(ids);
            if !some.contains(&id) {
                some.push(id);
            }
        }
        some
    }
}

struct World {
    library: Library,
    authors: Vec<i64>,
    books: Vec<i64>,
}

impl World {
    async fn open(kind: testkit::Kind) -> Arc<Self> {
        let library = Library::open(kind).await;
        let (mut authors, mut books) = (Vec::new(), Vec::new());
        // Alternate, so that the ids of the two collections interleave.
        for number in 0..6 {
            authors.push(library.author(&format!("A{number}")).await);
            books.push(library.book(&format!("B{number}")).await);
        }
        Arc::new(Self { library, authors, books })
    }

    /// Runs workers concurrently, each with its own dice, until all have taken their steps.
    async fn all_at_once<F: Future<Output = Answer> + Send>(
        self: &Arc<Self>,
        step: impl Fn(Arc<Self>, Dice) -> F + Send + Copy + 'static,
    ) {
        let mut workers = Vec::new();
        for worker in 0..8_u64 {
            let world = self.clone();
            workers.push(tokio::spawn(async move {
                for round in 0..12_u64 {
                    let mut dice = Dice(worker * 1_000 + round);
                    dice.below(2);
                    let answer = step(world.clone(), dice).await;
                    assert!(answer.status < 500, "{}", answer.text);
                }
            }));
        }
        for worker in workers {
            worker.await.unwrap();
        }
    }

    /// Checks that both ends of all links agree, and that no transaction was retried.
    async fn end(&self) {
        for book in &self.books {
            let listed = self.listed(self.library.books, *book, "authors").await;
            for author in &self.authors {
                let back = self.listed(self.library.authors, *author, "books").await;
                let (Some(listed), Some(back)) = (&listed, &back) else { continue };
                assert_eq!(listed.contains(author), back.contains(book), "book {book}, author {author}");
            }
        }
        assert_eq!(self.library.app.data.deadlocks().await, 0);
    }

    /// Returns the targets of a field, or `None` for an item in the trash.
    async fn listed(&self, collection: model::CollectionId, id: i64, key: &str) -> Option<Vec<i64>> {
        let at = self.library.at(collection, format_args!("/{id}"));
        let answer = self.library.app.get(&at, &self.library.key).await;
        let ids = |value: &Value| serde_json::from_value(value.clone()).unwrap_or_default();
        (answer.status == 200).then(|| ids(&answer.body["data"]["data"][key]))
    }

    /// Returns one of the two collections: its items, the key of its field, and the items of the other collection.
    fn side(&self, book: bool) -> (model::CollectionId, &[i64], &'static str, &[i64]) {
        if book {
            (self.library.books, &self.books, "authors", &self.authors)
        } else {
            (self.library.authors, &self.authors, "books", &self.books)
        }
    }

    async fn write(&self, mut dice: Dice) -> Answer {
        let (collection, own, key, others) = self.side(dice.below(2) == 0);
        let (id, to, way) = (dice.of(own), dice.some(others), dice.below(5));
        let (app, by) = (&self.library.app, &self.library.key);
        let at = |rest: &str| self.library.at(collection, format_args!("/{id}{rest}"));
        match way {
            0 => app.put(&at(""), by, json!({ "data": { key: to } })).await,
            1 => app.patch(&at(&format!("/fields/{key}")), by, json!({ "value": to })).await,
            2 => app.delete(&at(&format!("/fields/{key}")), by).await,
            3 => app.post(&self.library.at(collection, ""), by, json!({ "data": { key: to } })).await,
            _ => app.patch(&at(""), by, json!({ "data": { key: to } })).await,
        }
    }

    async fn write_in_bulk(&self, mut dice: Dice) -> Answer {
        let (collection, own, key, others) = self.side(dice.below(2) == 0);
        let (app, by) = (&self.library.app, &self.library.key);
        let mut rows = Vec::new();
        let way = dice.below(3);
        for id in dice.some(own) {
            let data = json!({ key: dice.some(others) });
            rows.push(match way {
                0 => json!({ "id": id, "data": data }),
                _ => json!({ "data": data, "external_key": format!("{id}") }),
            });
        }
        let how = match way {
            0 => json!({ "rows": rows }),
            1 => json!({ "rows": rows, "mode": "partial" }),
            _ => json!({ "rows": rows, "match_on": ["external_key"] }),
        };
        let name = ["update", "create", "upsert"][way];
        let at = self.library.at(collection, format!("/bulk-{name}"));
        app.post(&at, by, how).await
    }

    async fn link(&self, mut dice: Dice) -> Answer {
        let (collection, own, key, others) = self.side(dice.below(2) == 0);
        let (id, to, way) = (dice.of(own), dice.of(others), dice.below(4));
        let (app, by) = (&self.library.app, &self.library.key);
        let at = self.library.at(collection, format_args!("/{id}/links"));
        let item = |id: i64| json!({ "to": { "type": "item", "id": id } });
        match way {
            0 => {
                let links: Vec<Value> = dice.some(others).into_iter().map(item).collect();
                app.put(&at, by, json!({ "field_key": key, "links": links })).await
            }
            1 => {
                let listed = app.get(&at, by).await;
                let found = listed.body["data"].as_array().into_iter().flatten().next();
                match found.map(|link| link["id"].clone()) {
                    Some(link) => app.delete(&format!("{at}/{link}"), by).await,
                    None => listed,
                }
            }
            2 => app.post(&at, by, item(to)).await,
            _ => {
                let mut body = item(to);
                body["field_key"] = key.into();
                body["replace"] = true.into();
                app.post(&at, by, body).await
            }
        }
    }

    async fn send_away(&self, mut dice: Dice) -> Answer {
        let (collection, own, key, others) = self.side(dice.below(2) == 0);
        let (id, way) = (dice.of(own), dice.below(5));
        let (app, by) = (&self.library.app, &self.library.key);
        match way {
            0 => self.library.trash(collection, id).await,
            1 => self.library.restore(collection, id).await,
            2 => {
                let ids = dice.some(own);
                let at = self.library.at(collection, "/bulk-delete");
                app.post(&at, by, json!({ "ids": ids, "mode": "partial" })).await
            }
            3 => {
                let made = json!({ "data": { key: dice.some(others) } });
                let made = app.post(&self.library.at(collection, ""), by, made).await;
                match made.body["data"]["id"].as_i64() {
                    Some(id) => self.library.purge(collection, id).await,
                    None => made,
                }
            }
            _ => self.library.change(collection, id, json!({ key: dice.some(others) })).await,
        }
    }
}

#[testkit::both]
async fn values_of_both_ends(kind: Kind) {
    let world = World::open(kind).await;
    world.all_at_once(async |world, dice| world.write(dice).await).await;
    world.end().await;
}

#[testkit::both]
async fn values_in_bulk(kind: Kind) {
    let world = World::open(kind).await;
    world
        .all_at_once(async |world, mut dice| match dice.below(3) {
            0 => world.write(dice).await,
            _ => world.write_in_bulk(dice).await,
        })
        .await;
    world.end().await;
}

#[testkit::both]
async fn links_and_values(kind: Kind) {
    let world = World::open(kind).await;
    // Each author can have one book, so that new links replace others.
    world.library.set(world.library.authors, "books", json!({ "cardinality": "one" })).await;
    world
        .all_at_once(async |world, mut dice| match dice.below(3) {
            0 => world.write(dice).await,
            _ => world.link(dice).await,
        })
        .await;
    world.end().await;
}

#[testkit::both]
async fn items_that_come_and_go(kind: Kind) {
    let world = World::open(kind).await;
    world
        .all_at_once(async |world, mut dice| match dice.below(4) {
            0 => world.write(dice).await,
            1 => world.link(dice).await,
            _ => world.send_away(dice).await,
        })
        .await;
    world.end().await;
}
