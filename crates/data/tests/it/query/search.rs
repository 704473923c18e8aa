//! Full-text search.

use super::{create, ids, query};
use crate::{full, seed};
use ::model::CollectionId;
use serde_json::json;
use testkit::{Answer, Key, TestApp};

async fn search(app: &TestApp, key: &Key, collection: CollectionId, pairs: &[(&str, &str)]) -> Answer {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    app.get(&format!("/collections/{collection}/items/search?{}", query(&pairs)), key).await
}

testkit::on_both! {
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
            assert_eq!((&answer.body["total_is_exact"], &answer.body["ranking"]), (&json!(true), &json!("relevance")));
        }
        // In the title it counts more than in the text.
        assert_eq!(ids(&search(&app, &key, collection, &[("q", "red")]).await), [made[0], made[1]]);
        let filtered = search(&app, &key, collection, &[("q", "sho"), ("filter[price][gte]", "2"), ("sort", "-price")]);
        let filtered = filtered.await;
        assert_eq!(ids(&filtered), [made[2], made[1]]);
        assert_eq!(filtered.body["ranking"], "sort");
        let page = search(&app, &key, collection, &[("q", "sho"), ("limit", "2"), ("page", "2"), ("fields", "name")]).await;
        assert_eq!(page.body["pagination"], json!({ "page": 2, "limit": 2, "total": 3, "pages": 2 }));
        assert_eq!(page.expect(200)[0]["data"].as_object().unwrap().len(), 1);
        // A change is found at once, and what is in the trash is not found.
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

    async fn of_many_the_newest_come_first(kind: Kind) {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let collection = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
        let first = create(&app, &key, collection, json!({ "name": "common word" })).await["id"].as_i64().unwrap();
        app.sql(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100) \
             INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, \
             updated_by, created_at, updated_at) SELECT workspace_id, collection_id, data, title, 0, 1, created_by, \
             updated_by, created_at, updated_at FROM n, (SELECT * FROM items LIMIT 1) AS one",
        )
        .await;
        let (column, terms) = match kind {
            testkit::Kind::Sqlite => ("rowid", format!("'{collection}xcommon {collection}xword'")),
            testkit::Kind::Postgres => ("item_id", format!("'{collection}xcommon:1 {collection}xword:2'::tsvector")),
        };
        app.sql(format!("INSERT INTO item_search ({column}, terms) SELECT id, {terms} FROM items WHERE id > {first}"))
            .await;
        let answer = search(&app, &key, collection, &[("q", "common wo"), ("limit", "3")]).await;
        assert_eq!(ids(&answer), [first + 2_100, first + 2_099, first + 2_098]);
        assert_eq!(answer.body["ranking"], "recency");
        assert_eq!(answer.body["pagination"]["total"], 2_101);
        let some = search(&app, &key, collection, &[("q", "name:common"), ("filter[id][lte]", &first.to_string())]).await;
        assert_eq!(ids(&some), [first]);
        assert_eq!(some.body["pagination"]["total"], 1);
    }
}
