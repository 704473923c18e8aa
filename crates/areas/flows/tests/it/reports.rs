//! Public reports about other engines, each with a test of its name.

use crate::support::Bed;
use serde_json::{Value, json};
use testkit::Kind;

fn id(flow: &str) -> i64 {
    flow.rsplit('/').next().unwrap().parse().unwrap()
}

fn limited(on_limit: &str) -> Value {
    json!({ "settings": { "concurrency": { "limit": 1, "on_limit": on_limit } } })
}

#[testkit::both]
async fn parents_that_wait_hold_no_slots(kind: Kind) {
    let bed = Bed::new(kind).await;
    let child = bed
        .flow_with(json!({ "later": ["delay", { "seconds": 60 }] }), &["start>later"], limited("queue"))
        .await;
    let call =
        json!({ "call": ["sub_flow", { "flow_id": id(&child) }], "end": ["end", { "output": "done" }] });
    let parent = bed.flow_with(call, &["start>call", "call>end"], limited("queue")).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(bed.run(&parent, json!({})).await);
    }
    assert!(runs.iter().all(|run| run["status"] == "waiting"), "{runs:?}");
    bed.after(61, &runs[0]).await;
    // All children are due at the same moment, and have their turns one after the other.
    for _ in 0..4 {
        bed.after(2, &runs[0]).await;
    }
    for run in &runs {
        let run = bed.go(run["id"].as_str().unwrap()).await;
        assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("done")), "{run}");
    }
}

#[testkit::both]
async fn a_child_dropped_by_a_limit_fails_the_node_of_its_parent(kind: Kind) {
    let bed = Bed::new(kind).await;
    let child =
        bed.flow_with(json!({ "later": ["delay", { "days": 1 }] }), &["start>later"], limited("skip")).await;
    bed.run(&child, json!({})).await;
    let call = json!({
        "call": { "type": "sub_flow", "on_error": "branch", "config": { "flow_id": id(&child) } },
        "end": ["end", { "output": "{{ $error.code }}" }],
    });
    let parent = bed.flow(call, &["start>call", "call:error>end"]).await;
    let run = bed.run(&parent, json!({})).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("invalid_state")), "{run}");
}

#[testkit::both]
async fn a_child_dropped_by_a_later_one_wakes_its_parent(kind: Kind) {
    let bed = Bed::new(kind).await;
    let nodes = json!({ "later": ["delay", { "days": 1 }] });
    let child = bed.flow_with(nodes, &["start>later"], limited("cancel_oldest")).await;
    let parent = bed.flow(json!({ "call": ["sub_flow", { "flow_id": id(&child) }] }), &["start>call"]).await;
    let run = bed.run(&parent, json!({})).await;
    assert_eq!(run["status"], "waiting");
    bed.run(&child, json!({})).await;
    let run = bed.go(run["id"].as_str().unwrap()).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"]),
        (&json!("failed"), &json!("sub_flow_failed")),
        "{run}"
    );
}

#[testkit::both]
async fn a_boolean_of_the_database_is_true_and_not_1(kind: Kind) {
    let bed = Bed::new(kind).await;
    let fields = json!([{ "field_key": "sold", "label": "Sold", "type": "boolean" }]);
    let collection = json!({ "name": "Kites", "fields": fields });
    let collection = bed.app.post("/collections", &bed.key, collection).await.expect(201)["id"].clone();
    let item = json!({ "data": { "sold": true } });
    bed.app.post(&format!("/collections/{collection}/items"), &bed.key, item).await.expect(201);
    let nodes = json!({
        "find": ["find_items", { "collection_id": collection }],
        "sold": ["condition", { "if": "$nodes.find.output.items[0].data.sold == true" }],
        "yes": ["end", { "output": "{{ $nodes.find.output.items[0].data.sold }}" }],
    });
    let flow = bed.flow(nodes, &["start>find", "find>sold", "sold:true>yes"]).await;
    let run = bed.run(&flow, json!({})).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!(true)), "{run}");
}

#[testkit::both]
async fn what_arrives_while_a_worker_dies_wakes_the_next_one(kind: Kind) {
    let bed = Bed::new(kind).await;
    let child = bed.flow(json!({ "later": ["delay", { "seconds": 10 }] }), &["start>later"]).await;
    let parent = bed.flow(json!({ "call": ["sub_flow", { "flow_id": id(&child) }] }), &["start>call"]).await;
    let run = bed.run(&parent, json!({})).await;
    // A worker has the parent, and dies before the lease ends, while its child ends.
    let (now, lease) = (bed.app.data.clock.clone(), "lease_until = '2099-01-01 00:00:00', epoch = epoch + 1");
    let parent_id = run["id"].as_str().unwrap();
    bed.app.sql(format!("UPDATE flow_runs SET {lease} WHERE id = '{parent_id}'")).await;
    now.advance(chrono::Duration::seconds(11));
    assert_eq!(bed.go(parent_id).await["status"], "waiting");
    bed.app.sql(format!("UPDATE flow_runs SET lease_until = NULL WHERE id = '{parent_id}'")).await;
    assert_eq!(bed.go(parent_id).await["status"], "completed");
}
