//! Items that many requests create or read at once. PostgreSQL shares statements between them; each request must get
//! the same response as if it were alone.

use super::Shop;
use crate::{events, number, seed};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Answer, Key, Kind, TestApp};

/// Opens a shop whose items can be prepared before their transaction, because no field depends on it.
async fn open(kind: Kind) -> Shop {
    let app = TestApp::new(kind).await;
    let key = crate::full(&app).await;
    let fields = json!([
        { "key": "name", "type": "text", "required": true },
        { "key": "sku", "type": "text", "unique": true },
        { "key": "price", "type": "number", "indexed": true, "options": { "min": 0 } },
    ]);
    let collection = seed::collection(&app, &key, fields).await;
    let shop = Shop { app, key, collection };
    // The first item stores the shape, without which nothing can be prepared.
    shop.put_up(json!({ "name": "First", "sku": "first" })).await;
    shop
}

async fn create(shop: &Shop, key: &Key, body: Value) -> Answer {
    shop.app.post(&shop.at(""), key, body).await
}

/// Returns the number of transactions that created the items. SQLite does not record it, so each item counts as one.
async fn transactions(shop: &Shop, kind: Kind, items: i64) -> i64 {
    match kind {
        Kind::Postgres => number(&shop.app, "SELECT COUNT(DISTINCT xmin::text) AS n FROM items").await,
        Kind::Sqlite => items,
    }
}

#[testkit::both]
async fn each_request_gets_its_own_item(kind: Kind) {
    let shop = open(kind).await;
    let second = shop.app.key(shop.key.workspace, Env::Live, &["items:write", "items:read"]).await;
    let keys = [&shop.key, &second];
    let answers = join_all((0..64).map(|place| {
        let body = json!({ "data": { "name": format!("Ball {place}"), "sku": format!("s{place}"), "price": place } });
        create(&shop, keys[place % 2], body)
    })).await;
    for (place, answer) in answers.iter().enumerate() {
        let item = answer.expect(201);
        assert_eq!(
            item["data"],
            json!({ "name": format!("Ball {place}"), "sku": format!("s{place}"), "price": place })
        );
        assert_eq!(item["created_by"], json!({ "type": "api_key", "id": keys[place % 2].id }));
        assert_eq!(shop.look(&item).await, item);
        let entries = shop.app.get(&shop.of(&item, "/activity"), &shop.key).await.expect(200);
        assert_eq!(entries.as_array().unwrap().len(), 1);
        assert_eq!(entries[0]["actor"], item["created_by"]);
        assert_eq!(entries[0]["source"]["request_id"], answer.headers["x-request-id"].as_str());
        assert_eq!(entries[0]["operation_id"], Value::Null);
    }
    let ids: BTreeSet<i64> =
        answers.iter().map(|answer| answer.expect(201)["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), 64);
    let published: BTreeSet<i64> = events(&shop.app)
        .await
        .iter()
        .skip(1)
        .map(|(_, data)| data["item"]["id"].as_i64().unwrap())
        .collect();
    assert_eq!(published, ids);
    let requests = number(&shop.app, "SELECT COUNT(DISTINCT request_id) AS n FROM events").await;
    assert_eq!(requests, 65, "each event names its own request");
    let indexed = shop.app.get(&shop.at("?filter[price][gte]=60&sort=price"), &shop.key).await.expect(200);
    assert_eq!(indexed.as_array().unwrap().len(), 4);
    if kind == Kind::Postgres {
        assert!(transactions(&shop, kind, 65).await < 65, "some share a transaction");
    }
}

#[testkit::both]
async fn a_clash_is_told_to_the_one_who_has_it(kind: Kind) {
    let shop = open(kind).await;
    let others = seed::collection(&shop.app, &shop.key, json!([{ "key": "name", "type": "text" }])).await;
    let other_items = format!("/collections/{others}/items");
    shop.app.post(&other_items, &shop.key, json!({ "data": { "name": "First" } })).await.expect(201);
    let answers = join_all((0..60).map(|place| {
        let (shop, path) = (&shop, &other_items);
        async move {
            match place % 4 {
                0 => create(shop, &shop.key, json!({ "data": { "name": "A", "sku": "one" } })).await,
                1 => {
                    create(shop, &shop.key, json!({ "data": { "name": "B", "sku": format!("s{place}") } }))
                        .await
                }
                2 => create(shop, &shop.key, json!({ "data": { "sku": format!("s{place}") } })).await,
                _ => shop.app.post(path, &shop.key, json!({ "data": { "name": "C" } })).await,
            }
        }
    }))
    .await;
    let of = |remainder: usize| answers.iter().skip(remainder).step_by(4);
    let winners: Vec<_> = of(0).filter(|answer| answer.status == 201).collect();
    assert_eq!(winners.len(), 1);
    for answer in of(0).filter(|answer| answer.status != 201) {
        answer.expect_error(409, "duplicate_value");
        assert_eq!(answer.body["error"]["details"]["existing_id"], winners[0].expect(201)["id"]);
    }
    of(1).chain(of(3)).for_each(|answer| drop(answer.expect(201)));
    of(2).for_each(|answer| {
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("data.name"));
    });
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 2 + 1 + 15 + 15);
    assert_eq!(events(&shop.app).await.len(), 2 + 1 + 15 + 15);
}

#[testkit::both]
async fn nobody_creates_items_in_a_collection_of_others(kind: Kind) {
    let shop = open(kind).await;
    let stranger = crate::full(&shop.app).await;
    let narrow = shop.app.key(shop.key.workspace, Env::Live, &["items:write"]).await;
    let answers = join_all((0..48).map(|place| {
        let key = [&shop.key, &stranger, &narrow][place % 3];
        create(&shop, key, json!({ "data": { "name": "Ball" } }))
    }))
    .await;
    for (place, answer) in answers.iter().enumerate() {
        match place % 3 {
            1 => drop(answer.expect_error(404, "not_found")),
            _ => drop(answer.expect(201)),
        }
    }
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 1 + 32);
}

#[testkit::both]
async fn one_idempotency_key_makes_one_item(kind: Kind) {
    let shop = open(kind).await;
    let answers = join_all((0..32).map(|place| {
        let (shop, path) = (&shop, shop.at(""));
        async move {
            let asking = shop.app.ask("POST", &path).key(&shop.key);
            let body = json!({ "data": { "name": format!("Ball {}", place % 4) } });
            asking.header("Idempotency-Key", &format!("k{}", place % 4)).json(&body).send().await
        }
    }))
    .await;
    let ids: BTreeSet<i64> =
        answers.iter().map(|answer| answer.expect(201)["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    assert_eq!(number(&shop.app, "SELECT COUNT(*) AS n FROM items").await, 1 + 4);
}

#[testkit::both]
async fn each_request_reads_its_own_item(kind: Kind) {
    let shop = open(kind).await;
    let stranger = crate::full(&shop.app).await;
    let (ball, cup) = (
        shop.put_up(json!({ "name": "Ball", "sku": "ball" })).await,
        shop.put_up(json!({ "name": "Cup", "sku": "cup" })).await,
    );
    let trashed = shop.put_up(json!({ "name": "Old", "sku": "old" })).await;
    shop.app.delete(&shop.of(&trashed, ""), &shop.key).await.expect(200);
    let others = seed::collection(&shop.app, &shop.key, json!([{ "key": "name", "type": "text" }])).await;
    let other_items = format!("/collections/{others}/items");
    let other =
        shop.app.post(&other_items, &shop.key, json!({ "data": { "name": "Other" } })).await.expect(201);
    let elsewhere = format!("{other_items}/{}", ball["id"]);
    let other_path = format!("{other_items}/{}", other["id"]);
    let asked = [
        (shop.of(&ball, ""), &shop.key),
        (shop.of(&cup, "?fields=sku"), &shop.key),
        (other_path, &shop.key),
        (shop.of(&trashed, "?trashed=true"), &shop.key),
        (shop.of(&ball, ""), &stranger),
        (shop.of(&trashed, ""), &shop.key),
        (elsewhere, &shop.key),
        (shop.of(&ball, "?fields=colour"), &shop.key),
    ];
    let answers = join_all((0..64).map(|place| {
        let (path, key) = &asked[place % 8];
        shop.app.get(path, key)
    }))
    .await;
    for (place, answer) in answers.iter().enumerate() {
        match place % 8 {
            0 => {
                assert_eq!(answer.expect(200), ball);
                assert_eq!(answer.headers["etag"], format!("\"{}\"", ball["version"]));
            }
            1 => assert_eq!(answer.expect(200)["data"], json!({ "sku": "cup" })),
            2 => assert_eq!(answer.expect(200), other),
            3 => assert_eq!(answer.expect(200)["data"], trashed["data"]),
            7 => assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("fields")),
            _ => drop(answer.expect_error(404, "not_found")),
        }
    }
}
