//! Exports: signed links to items as CSV and JSON Lines.

use crate::{full, seed};
use model::CollectionId;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

async fn shop(kind: Kind) -> (TestApp, Key, CollectionId) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(&app, &key, fields()).await;
    (app, key, collection)
}

fn fields() -> Value {
    json!([
        { "key": "name", "type": "text" },
        { "key": "price", "type": "number", "indexed": true },
        { "key": "sold", "type": "boolean" },
        { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        { "key": "extra", "type": "json" },
    ])
}

async fn create(app: &TestApp, key: &Key, collection: CollectionId, item: Value) {
    app.post(&format!("/collections/{collection}/items"), key, item).await.expect(201);
}

async fn link(app: &TestApp, key: &Key, collection: CollectionId, query: &str) -> String {
    let made = app.get(&format!("/collections/{collection}/items/export?{query}"), key).await.expect(200);
    made["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap().to_owned()
}

async fn at(app: &TestApp, path: &str) -> Answer {
    app.ask_beside("GET", path).send().await
}

testkit::on_both! {
    async fn items_go_out_and_come_back(kind: Kind) {
        let (app, key, collection) = shop(kind).await;
        let items = [
            json!({ "name": "Chair, \"red\"\r\nand more", "price": -5.5, "sold": true, "tags": ["new", "sale"] }),
            json!({ "name": "=1+1", "extra": { "a": [1, "x"] } }),
            json!({ "name": "'=x" }),
            json!({ "name": "+49 30", "price": 3 }),
        ];
        for (number, data) in items.iter().enumerate() {
            let item = json!({ "data": data, "external_key": format!("k{number}") });
            create(&app, &key, collection, item).await;
        }
        let csv = at(&app, &link(&app, &key, collection, "sort=id&bom=true").await).await;
        assert_eq!((csv.status, csv.headers["content-type"].as_str()), (200, "text/csv; charset=utf-8"));
        let lines: Vec<&str> = csv.text.split("\r\n").collect();
        assert_eq!(lines[0], "\u{feff}id,external_key,name,price,sold,tags,extra");
        assert!(csv.text.contains(",k0,\"Chair, \"\"red\"\"\r\nand more\",-5.5,true,\"new, sale\","), "{}", csv.text);
        assert!(csv.text.contains(",k1,'=1+1,") && csv.text.contains(",k2,''=x,") && csv.text.contains(",k3,+49 30,3,"));
        let jsonl = at(&app, &link(&app, &key, collection, "format=jsonl&sort=id").await).await.text;
        let listed = app.get(&format!("/collections/{collection}/items?sort=id"), &key).await.expect(200);
        let exported: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(Value::from(exported), listed);

        for content in [csv.text.clone(), jsonl] {
            let copy = seed::collection(&app, &key, fields()).await;
            let path = format!("/collections/{copy}/items/import");
            let import = app.post(&path, &key, json!({ "content": content })).await.expect(201);
            app.service.jobs.run_due().await.unwrap();
            let path = format!("/collections/{copy}/imports/{}", import["id"].as_str().unwrap());
            let done = app.get(&path, &key).await.expect(200);
            assert_eq!((&done["status"], &done["counts"]["created"]), (&json!("completed"), &json!(4)), "{done}");
            let back = app.get(&format!("/collections/{copy}/items?sort=id"), &key).await.expect(200);
            for (item, data) in back.as_array().unwrap().iter().zip(&items) {
                assert_eq!(&item["data"], data);
            }
            assert_eq!(back[0]["external_key"], "k0");
        }
    }

    async fn filters_order_and_fields_are_kept_in_the_link(kind: Kind) {
        let (app, key, collection) = shop(kind).await;
        for price in [3, 1, 2, 9] {
            create(&app, &key, collection, json!({ "data": { "name": format!("n{price}"), "price": price } })).await;
        }
        let path = link(&app, &key, collection, "filter[price][lt]=5&sort=-price&fields=price,name").await;
        app.data.clock.advance(chrono::Duration::seconds(60));
        create(&app, &key, collection, json!({ "data": { "name": "later", "price": 0 } })).await;
        let rows: Vec<String> = at(&app, &path).await.text.lines().skip(1)
            .map(|line| line.split(',').skip(2).collect::<Vec<_>>().join(",")).collect();
        assert_eq!(rows, ["3,n3", "2,n2", "1,n1"], "as of when the link was made");
        let list = format!("/collections/{collection}/items/export");
        for (query, param) in [("fields=colour", "fields"), ("filter[colour]=x", "filter[colour]"), ("format=xml", "format")] {
            let refused = app.get(&format!("{list}?{query}"), &key).await;
            assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
        }
    }

    async fn a_link_is_only_what_it_was_made_for(kind: Kind) {
        let (app, key, collection) = shop(kind).await;
        let path = link(&app, &key, collection, "format=csv").await;
        assert_eq!(at(&app, &path).await.text, "id,external_key,name,price,sold,tags,extra\r\n");
        let forged = path.replacen("/d/ey", "/d/eA", 1);
        assert_eq!(at(&app, &forged).await.status, 404);
        let stranger = full(&app).await;
        let foreign = app.get(&format!("/collections/{collection}/items/export"), &stranger).await;
        foreign.expect_error(404, "not_found");
        app.data.clock.advance(chrono::Duration::minutes(16));
        assert_eq!(at(&app, &path).await.status, 410);
        let fresh = link(&app, &key, collection, "").await;
        app.sql(format!("UPDATE collections SET trashed_at = created_at WHERE id = {collection}")).await;
        assert_eq!(at(&app, &fresh).await.status, 404);
    }

    async fn large_exports_are_whole(kind: Kind) {
        let (app, key, collection) = shop(kind).await;
        let mut rows = String::from("name,price\n");
        for number in 0..6_000 {
            rows.push_str(&format!("{} {number},{}\n", "x".repeat(60), number % 7));
        }
        app.post(&format!("/collections/{collection}/items/import"), &key, json!({ "content": rows })).await.expect(201);
        app.service.jobs.run_due().await.unwrap();
        for query in ["", "sort=price", "filter[price][gte]=0"] {
            let text = at(&app, &link(&app, &key, collection, query).await).await.text;
            let ids: std::collections::HashSet<&str> = text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
            assert_eq!((text.lines().count(), ids.len()), (6_001, 6_000), "{query}");
        }
    }
}
