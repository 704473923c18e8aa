//! A node that is executed again after a crash has its effect once.

use super::{Flow, node};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{ChannelApp, Kind};

/// The tables of a run.
const TABLES: [&str; 3] = ["flow_runs", "flow_steps", "flow_waits"];

/// How many rows there are of what each node writes.
async fn counts(desk: &ChannelApp) -> Vec<i64> {
    let mut counts = Vec::new();
    for query in [
        "SELECT count(*) AS n FROM messages",
        "SELECT count(*) AS n FROM contact_notes",
        "SELECT count(*) AS n FROM reminders",
        "SELECT count(*) AS n FROM items",
        "SELECT count(*) AS n FROM function_invocations",
        "SELECT count(*) AS n FROM events",
    ] {
        counts.push(desk.count(query).await);
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
    let first = counts(&desk).await;
    // The worker dies before anything of it is written down, and another one executes the run.
    for table in TABLES {
        app.sql(format!("DELETE FROM {table}")).await;
        app.sql(format!("INSERT INTO {table} SELECT * FROM saved_{table}")).await;
    }
    app.run_flows().await;
    assert_eq!(flow.read(&run).await["status"], "completed", "{:?}", flow.steps(&run).await);
    let mut second = counts(&desk).await;
    // The end of the run is an event of its own.
    if let (Some(events), Some(before)) = (second.last_mut(), first.last()) {
        assert!(*events <= before + 1, "{events} {before}");
        *events = *before;
    }
    assert_eq!(second, first);
    assert_eq!(outputs, self::outputs(&flow, &run).await);
}

/// What the nodes that act gave, without the times.
async fn outputs(flow: &Flow<'_>, run: &Value) -> Vec<Value> {
    let steps = flow.steps(run).await;
    steps.into_iter().filter(|step| step["node_id"] != "later").map(|step| step["output"].clone()).collect()
}
