//! Runs whose processes die: every effect is there once, and nothing is stuck.

use crate::support::Bed;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Kind, TestApp};
use tokio::runtime::{Builder, Runtime};

/// How many runs are started, and how often processes die.
const RUNS: usize = 6;
const CRASHES: usize = 12;

/// A runtime for runs, which dies with all of them.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A flow that writes an item for each of its effects: in a loop, in branches, after a delay, and in a flow of its own.
async fn flow(bed: &Bed, collection: &Value) -> String {
    let write = |name: &str| {
        json!(["write_item", { "collection_id": collection, "op": "create",
               "values": { "name": format!("{{{{ $input.run }}}} {name}") } }])
    };
    let inner = bed.flow(json!({ "inner": write("inner") }), &["start>inner"]).await;
    let id: i64 = inner.rsplit('/').next().unwrap().parse().unwrap();
    bed.flow(
        json!({
            "each": ["for_each", { "list": [0, 1, 2, 3], "parallel": 2 }],
            "item": write("item {{ $loop.index }}"),
            "both": ["parallel", { "branches": [{ "id": "left" }, { "id": "right" }] }],
            "left": write("left"),
            "right": ["delay", { "seconds": 20 }],
            "late": write("late"),
            "meet": "join",
            "call": ["sub_flow", { "flow_id": id, "input": { "run": "{{ $input.run }}" } }],
            "last": write("last"),
        }),
        &[
            "start>each",
            "each:each>item",
            "each>both",
            "both:left>left",
            "both:right>right",
            "right>late",
            "left>meet",
            "late>meet",
            "meet>call",
            "call>last",
        ],
    )
    .await
}

/// The names of all items, with how often each is there.
async fn items(bed: &Bed, collection: &Value) -> BTreeMap<String, usize> {
    let path = format!("/collections/{collection}/items?limit=100");
    let mut count = BTreeMap::new();
    let items = bed.app.get(&path, &bed.key).await.expect(200);
    let list = items.as_array().or_else(|| items["items"].as_array()).unwrap();
    for item in list {
        *count.entry(item["data"]["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    count
}

#[testkit::both]
async fn every_effect_is_there_once_whenever_processes_die(kind: Kind) {
    let bed = Bed::new(kind).await;
    let collection =
        json!({ "name": "Effects", "fields": [{ "field_key": "name", "label": "Name", "type": "text" }] });
    let collection = bed.app.post("/collections", &bed.key, collection).await.expect(201)["id"].clone();
    let flow = flow(&bed, &collection).await;
    let mut mortal = runtime();
    let mut replica: TestApp = bed.app.replica_on(mortal.handle()).await;
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let body = json!({ "input": { "run": format!("run {number}") } });
        let made = replica.post(&format!("{flow}/runs"), &bed.key, body).await.expect(201);
        runs.push(made["id"].as_str().unwrap().to_owned());
    }
    for crash in 0..CRASHES {
        // The other runtime has threads of its own, so each crash finds the runs elsewhere.
        for _ in 0..crash * 7 {
            tokio::task::yield_now().await;
        }
        replica.service.flows.run_due().await.unwrap();
        for _ in 0..crash * 3 {
            tokio::task::yield_now().await;
        }
        mortal.shutdown_background();
        mortal = runtime();
        replica = bed.app.replica_on(mortal.handle()).await;
        bed.app.data.clock.advance(chrono::Duration::seconds(31));
    }
    mortal.shutdown_background();
    let mut states = Vec::new();
    for _ in 0..40 {
        bed.app.data.clock.advance(chrono::Duration::seconds(31));
        bed.app.run_flows().await;
        states.clear();
        for run in &runs {
            let path = bed.at(&format!("/flow-runs/{run}"));
            states.push(bed.app.get(&path, &bed.key).await.expect(200));
        }
        if states.iter().all(|run| run["status"] == "completed" || run["status"] == "failed") {
            break;
        }
    }
    for run in &states {
        assert_eq!(run["status"], "completed", "{run} {:?}", bed.steps(run).await);
    }
    let mut expected = BTreeMap::new();
    for number in 0..RUNS {
        for name in ["item 0", "item 1", "item 2", "item 3", "left", "late", "inner", "last"] {
            expected.insert(format!("run {number} {name}"), 1);
        }
    }
    assert_eq!(items(&bed, &collection).await, expected);
}
