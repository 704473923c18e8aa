//! Nodes that read and write items of collections.

use super::{Flow, act, failure, node, output};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// A collection with a text, a number and a choice, and three items.
pub async fn shop(app: &TestApp, key: &Key) -> Value {
    let collection = json!({
        "name": "Products",
        "fields": [
            { "field_key": "name", "type": "text" },
            { "field_key": "sku", "type": "text", "unique": true },
            { "field_key": "price", "type": "number" },
        ],
    });
    let collection = app.post("/collections", key, collection).await.expect(201)["id"].clone();
    for (name, sku, price) in [("Wooden train", "T1", 39), ("Wooden blocks", "B1", 25), ("Puzzle", "P1", 15)]
    {
        let item = json!({ "data": { "name": name, "sku": sku, "price": price } });
        app.post(&format!("/collections/{collection}/items"), key, item).await.expect(201);
    }
    collection
}

#[testkit::both]
async fn items_are_found_by_values_and_by_trees(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let shop = shop(&app, &key).await;
    for (filter, names) in [
        (json!({ "price": { "gt": 20 } }), vec!["Wooden blocks", "Wooden train"]),
        (json!({ "sku": "{{ $input.sku }}" }), vec!["Puzzle"]),
        (
            json!({ "or": [{ "field": "sku", "op": "eq", "value": "T1" }, { "field": "price", "op": "lt", "value": 20 }] }),
            vec!["Puzzle", "Wooden train"],
        ),
        (Value::Null, vec!["Puzzle", "Wooden blocks", "Wooden train"]),
    ] {
        let config = json!({ "collection_id": shop, "filter": filter, "sort": "name" });
        let found = output(&act(&app, &key, "find_items", config, json!({ "input": { "sku": "P1" } })).await);
        let found_names: Vec<&str> = found["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["data"]["name"].as_str().unwrap())
            .collect();
        assert_eq!((found_names, &found["count"]), (names.clone(), &json!(names.len())), "{filter}");
    }
}

#[testkit::both]
async fn no_item_leads_to_the_port_empty(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let shop = shop(&app, &key).await;
    let find =
        node("find", "find_items", json!({ "collection_id": shop, "filter": { "sku": "{{ $input.sku }}" } }));
    let nodes = vec![
        find.clone(),
        node("none", "end", json!({ "output": "none" })),
        node("some", "end", json!({ "output": "some" })),
    ];
    let edges = vec![
        json!({ "from": "start", "to": "find" }),
        json!({ "from": "find", "port": "empty", "to": "none" }),
        json!({ "from": "find", "to": "some" }),
    ];
    let flow = Flow::draw(&app, &key, nodes, edges).await;
    for (sku, expected) in [("X", "none"), ("T1", "some")] {
        let run = flow.run(json!({ "input": { "sku": sku } })).await;
        assert_eq!(run["output"], expected, "{run}");
    }
    // Without an edge at `empty` the run goes on at `next`.
    let flow = Flow::publish(
        &app,
        &key,
        vec![find, node("then", "end", json!({ "output": "{{ $nodes.find.output.count }}" }))],
    );
    assert_eq!(flow.await.run(json!({ "input": { "sku": "X" } })).await["output"], 0);
}

#[testkit::both]
async fn items_are_created_changed_matched_and_deleted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let shop = shop(&app, &key).await;
    let write = |more: Value| {
        let mut config = json!({ "collection_id": shop });
        for (name, value) in more.as_object().unwrap() {
            config[name] = value.clone();
        }
        config
    };
    let run = json!({});
    let new =
        write(json!({ "values": { "name": "Kite", "sku": "K1", "price": 12 }, "external_key": "kite" }));
    let made = output(&act(&app, &key, "write_item", new, run.clone()).await);
    assert_eq!((&made["data"]["name"], &made["external_key"]), (&json!("Kite"), &json!("kite")));
    let change = write(json!({ "op": "update", "item_id": made["id"], "values": { "price": 13 } }));
    assert_eq!(output(&act(&app, &key, "write_item", change, run.clone()).await)["data"]["price"], 13);
    let upsert = |sku: &str, price: &str| {
        write(
            json!({ "op": "upsert", "key": "sku", "typecast": true, "values": { "sku": sku, "name": "Kite", "price": price } }),
        )
    };
    let matched = output(&act(&app, &key, "write_item", upsert("K1", "14"), run.clone()).await);
    assert_eq!(
        (&matched["id"], &matched["data"]["price"], &matched["upsert_status"]),
        (&made["id"], &json!(14), &json!("updated"))
    );
    let created = output(&act(&app, &key, "write_item", upsert("K2", "15"), run.clone()).await);
    assert_eq!((&created["data"]["sku"], &created["upsert_status"]), (&json!("K2"), &json!("created")));
    let gone = write(json!({ "op": "delete", "item_id": made["id"] }));
    assert_eq!(output(&act(&app, &key, "write_item", gone, run.clone()).await)["deleted"], true);
    app.get(&format!("/collections/{shop}/items/{}", made["id"]), &key).await.expect_error(404, "not_found");
    for (config, code) in [
        (write(json!({ "values": { "name": "Kite", "sku": "T1" } })), "duplicate_value"),
        (write(json!({ "values": { "name": "Kite", "price": "many" } })), "validation_error"),
        (
            write(json!({ "op": "update", "item_id": "{{ $input.nothing }}", "values": {} })),
            "validation_error",
        ),
        (write(json!({ "op": "upsert", "key": "{{ $input.nothing }}", "values": {} })), "validation_error"),
        (write(json!({ "op": "delete", "item_id": 999_999 })), "not_found"),
    ] {
        assert_eq!(
            failure(&act(&app, &key, "write_item", config.clone(), run.clone()).await),
            code,
            "{config}"
        );
    }
}

#[testkit::both]
async fn passages_answer_a_question(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let shop = shop(&app, &key).await;
    let search = |text: &str, min_score: f64| json!({ "collection_id": shop, "text": text, "top_k": 1, "min_score": min_score });
    let found = output(&act(&app, &key, "search_collection", search("wooden train", 0.0), json!({})).await);
    assert_eq!(
        (&found["passages"][0]["score"], found["passages"].as_array().unwrap().len()),
        (&json!(1.0), 1)
    );
    let question = "Is there a wooden train?";
    let found = output(&act(&app, &key, "search_collection", search(question, 0.0), json!({})).await);
    assert!(found["passages"][0]["text"].as_str().unwrap().contains("name: Wooden train"), "{found}");
    let strict = output(&act(&app, &key, "search_collection", search(question, 0.9), json!({})).await);
    assert_eq!(strict["passages"], json!([]));
}

#[testkit::both]
async fn a_lost_scope_pauses_the_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let shop = shop(&app, &key).await;
    let config = json!({ "collection_id": shop, "values": { "name": "Kite" } });
    let flow = Flow::publish(&app, &key, vec![node("act", "write_item", config)]).await;
    app.sql(format!("UPDATE api_keys SET scopes = 'flows:write,automations:read,automations:execute,items:read,collections:read' WHERE id = '{}'", key.id)).await;
    let run = flow.run(json!({})).await;
    assert_eq!((&run["status"], &run["pause_reason"]), (&json!("paused"), &json!("key_lost")), "{run}");
    let items = app.get(&format!("/collections/{shop}/items"), &key).await.expect(200);
    assert_eq!(items.as_array().unwrap().len(), 3);
}
