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

#[testkit::both]
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
    assert!(
        csv.text.contains(",k0,\"Chair, \"\"red\"\"\r\nand more\",-5.5,true,\"new, sale\","),
        "{}",
        csv.text
    );
    assert!(
        csv.text.contains(",k1,'=1+1,")
            && csv.text.contains(",k2,''=x,")
            && csv.text.contains(",k3,+49 30,3,")
    );
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

#[testkit::both]
async fn labels_are_written_for_people(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let people = ["Ana", "Bea"].map(|name| json!({ "data": { "$name": name } }));
    let mut contacts = Vec::new();
    for person in people {
        contacts.push(app.post("/contacts", &key, person).await.expect(201)["id"].clone());
    }
    let brands = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
    let mut brand_ids = Vec::new();
    for name in ["Gazelle", "=Cube"] {
        let made = app
            .post(&format!("/collections/{brands}/items"), &key, json!({ "data": { "name": name } }))
            .await;
        brand_ids.push(made.expect(201)["id"].clone());
    }
    let choices = json!({ "choices": [{ "key": "in_stock", "label": "In stock" }, { "key": "sale", "label": "On sale" }] });
    let fields = json!([
        { "key": "name", "type": "text" },
        { "key": "state", "type": "select", "options": choices },
        { "key": "marks", "type": "multi_select", "options": choices },
        { "key": "brands", "type": "relation", "options": { "target_collection_id": brands } },
        { "key": "owner", "type": "contact" },
        { "key": "amount", "type": "number" },
    ]);
    let collection = seed::collection(&app, &key, fields).await;
    let data = json!({
        "name": "B1", "state": "in_stock", "marks": ["sale", "in_stock"], "brands": brand_ids, "owner": contacts, "amount": 7,
    });
    create(&app, &key, collection, json!({ "data": data })).await;
    create(&app, &key, collection, json!({ "data": { "name": "in_stock", "brands": [brand_ids[0]] } })).await;
    // A contact in the trash has no title in an export.
    app.delete(&format!("/contacts/{}", contacts[1]), &key).await.expect(200);
    let columns = "fields=name,state,marks,brands,owner,amount&sort=id";
    let csv = at(&app, &link(&app, &key, collection, &format!("{columns}&labels=true")).await).await.text;
    let lines: Vec<&str> = csv.lines().skip(1).map(|line| line.split_once(",,").unwrap().1).collect();
    let owner = format!("\"Ana, {}\"", contacts[1]);
    let first = format!("B1,In stock,\"On sale, In stock\",\"Gazelle, =Cube\",{owner},7");
    assert_eq!(lines, [first.as_str(), "in_stock,,,Gazelle,,"]);
    let jsonl = at(&app, &link(&app, &key, collection, &format!("{columns}&labels=true&format=jsonl")).await)
        .await
        .text;
    let item: Value = serde_json::from_str(jsonl.lines().next().unwrap()).unwrap();
    assert_eq!(item["data"]["brands"], json!(["Gazelle", "=Cube"]));
    assert_eq!((&item["data"]["state"], &item["data"]["owner"][0]), (&json!("In stock"), &json!("Ana")));
    let plain = at(&app, &link(&app, &key, collection, columns).await).await.text;
    assert!(plain.contains(",B1,in_stock,\"sale, in_stock\","), "{plain}");

    app.patch(&format!("/contacts/{}", contacts[0]), &key, json!({ "data": { "$stage": "won" } }))
        .await
        .expect(200);
    let made = app.get("/contacts/export?fields=$name,$stage&labels=true", &key).await.expect(200);
    let url = made["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap().to_owned();
    assert_eq!(at(&app, &url).await.text.lines().nth(1).unwrap(), format!("{},,Ana,Won", contacts[0]));
}

#[testkit::both]
async fn filters_order_and_fields_are_kept_in_the_link(kind: Kind) {
    let (app, key, collection) = shop(kind).await;
    for price in [3, 1, 2, 9] {
        create(&app, &key, collection, json!({ "data": { "name": format!("n{price}"), "price": price } }))
            .await;
    }
    let path = link(&app, &key, collection, "filter[price][lt]=5&sort=-price&fields=price,name").await;
    app.data.clock.advance(chrono::Duration::seconds(60));
    create(&app, &key, collection, json!({ "data": { "name": "later", "price": 0 } })).await;
    let rows: Vec<String> = at(&app, &path)
        .await
        .text
        .lines()
        .skip(1)
        .map(|line| line.split(',').skip(2).collect::<Vec<_>>().join(","))
        .collect();
    assert_eq!(rows, ["3,n3", "2,n2", "1,n1"], "as of when the link was made");
    let list = format!("/collections/{collection}/items/export");
    for (query, param) in
        [("fields=colour", "fields"), ("filter[colour]=x", "filter[colour]"), ("format=xml", "format")]
    {
        let refused = app.get(&format!("{list}?{query}"), &key).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}

#[testkit::both]
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

#[testkit::both]
async fn large_exports_are_whole(kind: Kind) {
    let (app, key, collection) = shop(kind).await;
    let mut rows = String::from("name,price\n");
    for number in 0..6_000 {
        rows.push_str(&format!("{} {number},{}\n", "x".repeat(60), number % 7));
    }
    app.post(&format!("/collections/{collection}/items/import"), &key, json!({ "content": rows }))
        .await
        .expect(201);
    app.service.jobs.run_due().await.unwrap();
    for query in ["", "sort=price", "filter[price][gte]=0"] {
        let text = at(&app, &link(&app, &key, collection, query).await).await.text;
        let ids: std::collections::HashSet<&str> =
            text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert_eq!((text.lines().count(), ids.len()), (6_001, 6_000), "{query}");
    }
}
