//! A node that is executed again after a crash has its effect once.

use super::{Flow, node};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{ChannelApp, Kind};

/// The tables of a run.
const TABLES: [&str; 3] = ["flow_runs", "flow_steps", "flow_waits"];

/// How many objects there are of what each node writes.
async fn counts(desk: &ChannelApp, paths: &[String]) -> Vec<usize> {
    let mut counts = Vec::new();
    for path in paths {
        counts.push(desk.get(path).await.expect(200).as_array().unwrap().len());
    }
    counts
}

#[testkit::both]
async fn each_effect_is_there_once(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let shop = super::records::shop(app, key).await;
    let function = json!({ "name": "add", "code": "export default (ctx) => ctx.input", "effect": "write" });
    let function = app.post("/functions", key, function).await.expect(201)["id"].clone();
    app.post(&format!("/functions/{function}/publish"), key, json!({})).await.expect(200);
    app.patch(&format!("/functions/{function}"), key, json!({ "status": "active" })).await.expect(200);
    let nodes = vec![
        node("later", "delay", json!({ "minutes": 1 })),
        node("message", "send_message", json!({ "text": "Hello!" })),
        node("tag", "contact_tag", json!({ "add": ["a", "b"], "remove": ["a"] })),
        node("note", "note", json!({ "text": "Asked." })),
        node("task", "task", json!({ "fields": { "title": "Call" } })),
        node(
            "reminder",
            "reminder",
            json!({ "fields": { "title": "Call", "due_at": "2099-01-01T09:00:00Z" } }),
        ),
        node("item", "write_item", json!({ "collection_id": shop, "values": { "name": "Kite" } })),
        node(
            "upsert",
            "write_item",
            json!({ "collection_id": shop, "op": "upsert", "key": "sku", "values": { "name": "Ball", "sku": "X1" } }),
        ),
        node("function", "function", json!({ "function_id": function, "input": 1 })),
        node("event", "emit_event", json!({ "name": "custom.done" })),
    ];
    let flow = Flow::publish(app, key, nodes).await;
    let run = flow.run(json!({ "contact_id": id })).await;
    assert_eq!(run["status"], "waiting");
    for table in TABLES {
        app.sql(format!("CREATE TABLE saved_{table} AS SELECT * FROM {table}")).await;
    }
    app.data.clock.advance(Duration::minutes(2));
    app.run_flows().await;
    assert_eq!(flow.read(&run).await["status"], "completed", "{:?}", flow.steps(&run).await);
    let outputs = outputs(&flow, &run).await;
    let paths = [
        format!("/contacts/{id}/messages"),
        format!("/contacts/{id}/notes"),
        format!("/workspaces/{}/tasks", desk.workspace),
        "/reminders".to_owned(),
        format!("/collections/{shop}/items"),
        format!("/functions/{function}/invocations"),
    ];
    let first = counts(&desk, &paths).await;
    assert_eq!(first[1..], [1, 1, 1, 5, 1]);
    // The worker dies before anything of it is written down, and another one executes the run.
    for table in TABLES.iter().rev() {
        app.sql(format!("DELETE FROM {table}")).await;
    }
    for table in TABLES {
        app.sql(format!("INSERT INTO {table} SELECT * FROM saved_{table}")).await;
    }
    app.run_flows().await;
    assert_eq!(flow.read(&run).await["status"], "completed", "{:?}", flow.steps(&run).await);
    assert_eq!(counts(&desk, &paths).await, first);
    assert_eq!(desk.events("custom.done").await.len(), 1);
    assert_eq!(outputs, self::outputs(&flow, &run).await);
}

/// What the nodes that act gave, without the times.
async fn outputs(flow: &Flow<'_>, run: &Value) -> Vec<Value> {
    let steps = flow.steps(run).await;
    steps.into_iter().filter(|step| step["node_id"] != "later").map(|step| step["output"].clone()).collect()
}
