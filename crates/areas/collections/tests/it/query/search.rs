//! Full-text search.

use super::indexes::run_jobs;
use super::{create, ids, query};
use crate::{full, seed};
use ::model::CollectionId;
use serde_json::json;
use testkit::{Answer, Key, Kind, TestApp};

async fn search(app: &TestApp, key: &Key, collection: CollectionId, pairs: &[(&str, &str)]) -> Answer {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    app.get(&format!("/collections/{collection}/items/search?{}", query(&pairs)), key).await
}

#[testkit::both]
async fn words_phrases_and_fields_are_found(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([
        { "key": "name", "type": "text" },
        { "key": "text", "type": "long_text" },
        { "key": "size", "type": "select", "options": seed::choices(&["small", "large"]) },
        { "key": "price", "type": "number" },
    ]);
    let collection = seed::collection(&app, &key, fields.clone()).await;
    let other = seed::collection(&app, &key, fields).await;
    create(&app, &key, other, json!({ "name": "red shoe" })).await;
    let mut made = Vec::new();
    for data in [
        json!({ "name": "Red shoe", "text": "a shoe that is very red", "size": "large", "price": 1 }),
        json!({ "name": "Blue café", "text": "Not red. Shoe!", "price": 2 }),
        json!({ "name": "Shoelace", "text": "for shoes", "size": "small", "price": 3 }),
    ] {
        made.push(create(&app, &key, collection, data).await["id"].as_i64().unwrap());
    }
    for (q, places) in [
        ("red shoe", &[0, 1][..]),
        ("sho", &[2, 0, 1]),
        ("sho red", &[]),
        ("red sho", &[0, 1]),
        ("\"red shoe\"", &[0, 1]),
        ("\"shoe red\"", &[]),
        ("\"very red\"", &[0]),
        ("name:sho", &[0, 2]),
        ("name:\"red shoe\"", &[0]),
        ("size:large", &[0]),
        ("LARGE", &[0]),
        ("CAFE", &[1]),
        ("café", &[1]),
        ("price:1", &[]),
        ("AND OR NOT", &[]),
        ("* \" ' ( ) : & | ! -", &[]),
        ("red'); DROP TABLE items; --", &[]),
    ] {
        let answer = search(&app, &key, collection, &[("q", q)]).await;
        let mut found = ids(&answer);
        let mut expected: Vec<i64> = places.iter().map(|place: &usize| made[*place]).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{q}");
        assert_eq!(answer.body["pagination"]["total"], places.len(), "{q}");
        assert_eq!(
            (&answer.body["total_is_exact"], &answer.body["ranking"]),
            (&json!(true), &json!("relevance"))
        );
    }
    // A match in the title ranks higher than one in the text.
    assert_eq!(ids(&search(&app, &key, collection, &[("q", "red")]).await), [made[0], made[1]]);
    let filtered =
        search(&app, &key, collection, &[("q", "sho"), ("filter[price][gte]", "2"), ("sort", "-price")]);
    let filtered = filtered.await;
    assert_eq!(ids(&filtered), [made[2], made[1]]);
    assert_eq!(filtered.body["ranking"], "sort");
    let page =
        search(&app, &key, collection, &[("q", "sho"), ("limit", "2"), ("page", "2"), ("fields", "name")])
            .await;
    assert_eq!(page.body["pagination"], json!({ "page": 2, "limit": 2, "total": 3, "pages": 2 }));
    assert_eq!(page.expect(200)[0]["data"].as_object().unwrap().len(), 1);
    // A change is found at once, and items in the trash are not found.
    let item = |place: usize| format!("/collections/{collection}/items/{}", made[place]);
    app.patch(&item(0), &key, json!({ "data": { "name": "Green boot", "text": null } })).await.expect(200);
    app.delete(&item(1), &key).await.expect(200);
    assert_eq!(ids(&search(&app, &key, collection, &[("q", "red")]).await), [0_i64; 0]);
    assert_eq!(ids(&search(&app, &key, collection, &[("q", "green")]).await), [made[0]]);
    for (pairs, param) in [
        (vec![], "q"),
        (vec![("q", "")], "q"),
        (vec![("q", "a"), ("page", "0")], "page"),
        (vec![("q", "a"), ("page", "101"), ("limit", "100")], "page"),
        (vec![("q", "a"), ("filter[nope]", "1")], "filter[nope]"),
    ] {
        let answer = search(&app, &key, collection, &pairs).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{pairs:?}");
    }
}

#[testkit::both]
async fn of_many_the_newest_come_first(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
    let first =
        create(&app, &key, collection, json!({ "name": "common word" })).await["id"].as_i64().unwrap();
    multiply(&app, kind, collection, first, 2_100).await;
    let answer = search(&app, &key, collection, &[("q", "common wo"), ("limit", "3")]).await;
    assert_eq!(ids(&answer), [first + 2_100, first + 2_099, first + 2_098]);
    assert_eq!(answer.body["ranking"], "recency");
    assert_eq!(answer.body["pagination"]["total"], 2_101);
    let some =
        search(&app, &key, collection, &[("q", "name:common"), ("filter[id][lte]", &first.to_string())])
            .await;
    assert_eq!(ids(&some), [first]);
    assert_eq!(some.body["pagination"]["total"], 1);
}

#[testkit::both]
async fn plurals_are_found_where_no_item_has_the_words_themselves(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([{ "key": "name", "type": "text" }, { "key": "price", "type": "number" }]);
    let collection = seed::collection(&app, &key, fields).await;
    let mut made = Vec::new();
    for (price, name) in (1..).zip(["Wooden train", "Red lamps", "Blue lamp", "Desk", "Yoga mat"]) {
        let item = create(&app, &key, collection, json!({ "name": name, "price": price })).await;
        made.push(item["id"].as_i64().unwrap());
    }
    for (q, places, matching) in [
        ("wooden trains", &[0][..], "stems"),
        ("trains wooden", &[0], "stems"),
        ("name:trains", &[0], "stems"),
        ("red lamps", &[1], "words"),
        ("blue lamps", &[2], "stems"),
        ("lamps", &[1], "words"),
        ("lamps red", &[1], "words"),
        ("\"wooden trains\"", &[], "words"),
        ("bicycles", &[], "stems"),
        ("desk", &[3], "words"),
        ("yoga mats", &[4], "stems"),
        ("woode trains", &[], "stems"),
    ] {
        let answer = search(&app, &key, collection, &[("q", q)]).await;
        let expected: Vec<i64> = places.iter().map(|place: &usize| made[*place]).collect();
        assert_eq!((ids(&answer), &answer.body["matching"]), (expected, &json!(matching)), "{q}");
        assert_eq!(answer.body["pagination"]["total"], places.len(), "{q}");
    }
    // Filters apply to both searches, by words and by stems.
    let answer = search(&app, &key, collection, &[("q", "wooden trains"), ("filter[price][gt]", "1")]).await;
    assert_eq!((ids(&answer), &answer.body["matching"]), (vec![], &json!("stems")));
}

#[testkit::both]
async fn changes_are_found_at_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([
        { "key": "name", "type": "text" },
        { "key": "size", "type": "select", "options": seed::choices(&["small", "large"]) },
    ]);
    let collection = seed::collection(&app, &key, fields).await;
    let index = seed::columns(&app, &key, collection).await;
    let mut made = Vec::new();
    for name in ["red shoe", "red boot", "blue shoe", "red shoes"] {
        let item = create(&app, &key, collection, json!({ "name": name, "size": "small" })).await;
        made.push(item["id"].as_i64().unwrap());
    }
    let asked = async |q: &str, expected: &[i64]| {
        let answer = search(&app, &key, collection, &[("q", q), ("sort", "name")]).await;
        assert_eq!(ids(&answer), expected, "{q}");
        assert_eq!(answer.body["pagination"]["total"], expected.len(), "{q}");
        assert!(answer.headers["x-svc-query-plan"].starts_with("search; visited="), "{q}");
    };
    asked("red shoe", &[made[0], made[3]]).await;
    asked("\"red shoe\"", &[made[0]]).await;
    asked("size:small red", &[made[1], made[0], made[3]]).await;
    let item = |place: usize| format!("/collections/{collection}/items/{}", made[place]);
    app.patch(&item(1), &key, json!({ "data": { "name": "red shoehorn" } })).await.expect(200);
    asked("red shoe", &[made[0], made[1], made[3]]).await;
    app.delete(&item(0), &key).await.expect(200);
    asked("red shoe", &[made[1], made[3]]).await;
    asked("\"red shoe\"", &[]).await;
    app.post(&format!("{}/restore", item(0)), &key, json!({})).await.expect(200);
    let new = create(&app, &key, collection, json!({ "name": "red shoebox", "size": "large" })).await;
    let new = new["id"].as_i64().unwrap();
    asked("red shoe", &[made[0], new, made[1], made[3]]).await;
    asked("size:small red", &[made[0], made[1], made[3]]).await;
    let page = search(&app, &key, collection, &[("q", "red shoe"), ("limit", "2"), ("page", "2")]).await;
    assert_eq!((ids(&page).len(), &page.body["pagination"]["total"]), (2, &json!(4)));
    // Merged segments of a columnar index do not change the results.
    seed::merge(&app, index).await;
    asked("red shoe", &[made[0], new, made[1], made[3]]).await;
    app.patch(&item(3), &key, json!({ "data": { "name": "Blue" } })).await.expect(200);
    asked("small", &[made[3], made[2], made[0], made[1]]).await;
    // A renamed choice is found by its new words.
    let fields = app.get(&format!("/collections/{collection}/fields"), &key).await.expect(200);
    let size = fields.as_array().unwrap().iter().find(|field| field["field_key"] == "size").unwrap();
    let small = format!("/collections/{collection}/fields/{}/options/1", size["id"]);
    assert_eq!(app.patch(&small, &key, json!({ "label": "tiny" })).await.expect(200)["key"], "small");
    run_jobs(&app).await;
    asked("small", &[]).await;
    asked("tiny", &[made[3], made[2], made[0], made[1]]).await;
}

#[testkit::both]
async fn a_search_that_finds_many_counts_them(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
    let first =
        create(&app, &key, collection, json!({ "name": "common word" })).await["id"].as_i64().unwrap();
    multiply(&app, kind, collection, first, 10_500).await;
    let answer = search(&app, &key, collection, &[("q", "common wo"), ("limit", "3")]).await;
    assert_eq!(ids(&answer), [first + 10_500, first + 10_499, first + 10_498]);
    assert_eq!(answer.body["pagination"]["total"], 10_501);
    assert_eq!(answer.headers["x-svc-query-plan"], "search; visited=10501");
}

/// Copies the item `first`, whose name is "common word", this many times.
async fn multiply(app: &TestApp, kind: testkit::Kind, collection: CollectionId, first: i64, times: i64) {
    app.sql(format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) \
         INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, \
         updated_by, created_at, updated_at) SELECT workspace_id, collection_id, data, title, 0, 1, created_by, \
         updated_by, created_at, updated_at FROM n, (SELECT * FROM items LIMIT 1) AS one"
    ))
    .await;
    let (column, terms) = match kind {
        testkit::Kind::Sqlite => ("rowid", format!("'{collection}xcommon {collection}xword'")),
        testkit::Kind::Postgres => {
            ("item_id", format!("'{collection}xcommon:1 {collection}xword:2'::tsvector"))
        }
    };
    app.sql(format!(
        "INSERT INTO item_search ({column}, terms) SELECT id, {terms} FROM items WHERE id > {first}"
    ))
    .await;
}
