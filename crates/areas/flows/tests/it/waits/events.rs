//! Waits for events, and events that cancel a run.

use super::shop::Shop;
use serde_json::{Value, json};
use testkit::{Kind, TestApp, expect_indexes};

async fn rename(shop: &Shop, contact: i64, name: &str) {
    let change = json!({ "data": { "$name": name } });
    shop.desk.app.patch(&format!("/contacts/{contact}"), &shop.desk.key, change).await.expect(200);
    shop.settle().await;
}

async fn wait_for(shop: &Shop, config: Value) -> String {
    let nodes = json!({ "wait": ["wait_for_event", config] });
    let variables = json!([{ "name": "name", "type": "text", "default": "Ana Maria" }]);
    let flow = shop.flow(nodes, &["start>wait"], json!({ "variables": variables })).await;
    shop.start(&flow).await
}

#[testkit::both]
async fn an_event_of_the_contact_wakes_the_run(kind: Kind) {
    let shop = Shop::open(kind).await;
    let other = shop.desk.contact("Ben", "+5511900000000").await;
    let run = wait_for(&shop, json!({ "type": "contact.updated", "timeout_seconds": 600 })).await;
    rename(&shop, other, "Benno").await;
    shop.expect(&run, "waiting").await;
    rename(&shop, shop.contact, "Ana Maria").await;
    let run = shop.expect(&run, "completed").await;
    assert_eq!(run["output"]["type"], "contact.updated");
    assert_eq!(run["output"]["data"]["contact_id"], shop.contact);
    shop.after(1).await;
    let run = wait_for(&shop, json!({ "type": "contact.updated", "timeout_seconds": 600 })).await;
    shop.after(601).await;
    assert_eq!(shop.port(&run, "wait").await, "completed timeout");
}

#[testkit::both]
async fn a_condition_narrows_an_equality_down(kind: Kind) {
    let shop = Shop::open(kind).await;
    let other = shop.desk.contact("Ben", "+5511900000000").await;
    let filter =
        json!({ "left": "{{ $trigger.data.contact_id + 0 }}", "op": "gt", "right": "{{ $input.least }}" });
    let nodes = json!({
        "wait": ["wait_for_event", {
            "type": "contact.updated", "match": { "contact_id": "{{ $input.who }}" }, "filter": filter,
        }],
    });
    let flow = shop.flow(nodes, &["start>wait"], json!({})).await;
    let fits = shop.start_with(&flow, json!({ "who": other, "least": 0 })).await;
    let path = format!("{flow}/runs");
    let body = json!({ "input": { "who": other, "least": 1_000_000 } });
    let fits_not = shop.desk.post(&path, body).await.expect(201)["id"].as_str().unwrap().to_owned();
    shop.settle().await;
    rename(&shop, other, "Benno").await;
    shop.expect(&fits, "completed").await;
    shop.expect(&fits_not, "waiting").await;
}

#[testkit::both]
async fn what_the_node_before_caused_is_seen(kind: Kind) {
    let shop = Shop::open(kind).await;
    let nodes = json!({
        "change": ["update_contact", { "fields": { "$name": "Ana Maria" } }],
        "wait": ["wait_for_event", { "type": "contact.updated" }],
    });
    let flow = shop.flow(nodes, &["start>change", "change>wait"], json!({})).await;
    let run = shop.start(&flow).await;
    shop.expect(&run, "completed").await;
}

#[testkit::both]
async fn what_happened_before_the_run_is_not_seen(kind: Kind) {
    let shop = Shop::open(kind).await;
    rename(&shop, shop.contact, "Ana Maria").await;
    shop.after(1).await;
    let run = wait_for(&shop, json!({ "type": "contact.updated" })).await;
    shop.expect(&run, "waiting").await;
}

#[testkit::both]
async fn an_event_cancels_runs(kind: Kind) {
    let shop = Shop::open(kind).await;
    let other = shop.desk.contact("Ben", "+5511900000000").await;
    let cancel = json!([
        { "type": "contact.updated", "match": { "contact_id": "{{ $input.who }}" } },
        { "type": "contact.deleted" },
    ]);
    let settings = json!({ "settings": { "cancel_on": cancel, "per_contact": "many" } });
    let flow = shop.flow(json!({ "rest": ["delay", { "days": 3 }] }), &["start>rest"], settings).await;
    let first = shop.start_with(&flow, json!({ "who": other })).await;
    let second = shop.start_with(&flow, json!({ "who": shop.contact })).await;
    shop.expect(&first, "waiting").await;
    rename(&shop, other, "Benno").await;
    shop.expect(&first, "cancelled").await;
    shop.expect(&second, "waiting").await;
}

#[testkit::both]
async fn a_run_without_a_value_to_be_found_by_does_not_wait(kind: Kind) {
    let shop = Shop::open(kind).await;
    let config = json!({ "type": "contact.updated", "match": { "contact_id": "{{ $input.who }}" } });
    let run = wait_for(&shop, config).await;
    assert_eq!(shop.expect(&run, "failed").await["error"]["code"], "unindexed_wait");
}

#[testkit::both]
async fn waits_are_found_by_an_index(kind: Kind) {
    if kind == Kind::Postgres {
        // It has too few rows here for an index to be worth it.
        return;
    }
    let app = TestApp::new(kind).await;
    let by = |rest: &str| format!("SELECT run_id FROM flow_waits WHERE {rest} -- binds: []");
    let queries = [
        (by("kind = 'event' AND key IN ('a', 'b') AND arrived IS NULL"), "flow_waits_by_key"),
        (by("workspace_id = 1 AND topic = 'contact.updated' LIMIT 1"), "flow_waits_by_topic"),
        (by("workspace_id = 1 AND contact_id = 2 AND kind = 'reply'"), "flow_waits_of_contact"),
    ];
    expect_indexes(&app.data, queries).await;
}
