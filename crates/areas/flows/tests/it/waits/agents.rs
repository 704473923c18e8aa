//! Nodes that wait for a run of an agent.

use super::shop::Shop;
use billing::ledger::{GrantKind, NewGrant, grant};
use providers::ProviderError;
use serde_json::json;
use testkit::{Kind, Script};

#[testkit::both]
async fn an_agent_answers(kind: Kind) {
    let shop = Shop::open(kind).await;
    let nodes = json!({ "agent": ["agent", { "input": "Say hello to {{ $contact.$name }}" }] });
    let flow = shop.flow(nodes, &["start>agent"], json!({})).await;
    shop.desk.app.model.then(Script::Say("Hello, Ana".into()));
    let run = shop.start(&flow).await;
    let run = shop.becomes(&run, "completed").await;
    assert_eq!(run["output"]["output"], "Hello, Ana");
    let id = run["output"]["run_id"].as_str().unwrap();
    let agent_run = shop.desk.get(&format!("/runs/{id}")).await.expect(200);
    assert_eq!(agent_run["trigger"], json!({ "type": "flow", "id": run["id"] }));
    assert_eq!(shop.desk.app.model.last_texts().pop().unwrap(), "Say hello to Ana");
}

#[testkit::both]
async fn an_agent_fails(kind: Kind) {
    let shop = Shop::open(kind).await;
    let nodes =
        json!({ "agent": { "type": "agent", "config": { "input": "Hi" }, "retry": { "max_attempts": 1 } } });
    let flow = shop.flow(nodes, &["start>agent"], json!({})).await;
    for _ in 0..10 {
        shop.desk.app.model.then(Script::Fail(ProviderError::Refused("no".into())));
    }
    let run = shop.start(&flow).await;
    shop.becomes(&run, "failed").await;
}

#[testkit::both]
async fn a_model_chooses_a_class_and_reads_data(kind: Kind) {
    let shop = Shop::open(kind).await;
    let classes = json!([
        { "id": "return", "description": "Wants to send something back" },
        { "id": "praise", "description": "Is happy" },
    ]);
    let schema =
        json!({ "type": "object", "properties": { "order": { "type": "string" } }, "required": ["order"] });
    let nodes = json!({
        "class": ["classify", { "text": "{{ $input.text }}", "classes": classes }],
        "data": ["extract", { "text": "{{ $input.text }}", "schema": schema }],
        "done": ["end", { "output": "{{ $nodes.data.output.data.order }}" }],
    });
    let flow = shop.flow(nodes, &["start>class", "class:return>data", "data>done"], json!({})).await;
    shop.desk.app.model.then(Script::Say(r#"{"class":"return"}"#.into()));
    shop.desk.app.model.then(Script::Say(r#"{"order":"1042"}"#.into()));
    let run = shop.start_with(&flow, json!({ "text": "Order 1042 is broken" })).await;
    assert_eq!(shop.becomes(&run, "completed").await["output"], "1042");
    assert_eq!(shop.port(&run, "class").await, "completed return");
    let prompt = shop.desk.app.model.prompts().pop().unwrap();
    assert!(prompt.tools.is_empty(), "a model that reads has no tools");
}

#[testkit::both]
async fn a_recharge_continues_a_run_that_pauses(kind: Kind) {
    let shop = Shop::open(kind).await;
    let nodes = json!({ "agent": ["agent", { "input": "Hi" }] });
    let flow = shop.flow(nodes, &["start>agent"], json!({})).await;
    shop.desk.app.reserve_all_but(shop.desk.workspace, 0).await;
    let run = shop.start(&flow).await;
    let paused = shop.becomes(&run, "paused").await;
    assert_eq!(paused["pause_reason"], "energy_depleted");
    shop.after(3600).await;
    shop.becomes(&run, "paused").await;
    shop.desk.app.free_energy(shop.desk.workspace).await;
    let workspace = shop.desk.workspace;
    let recharge = move |tx: &mut store::Tx| grant(tx, workspace, &NewGrant::new(GrantKind::Purchase, 1000));
    shop.desk.app.db().write(recharge).await.unwrap();
    shop.settle().await;
    shop.becomes(&run, "completed").await;
}

#[testkit::both]
async fn a_flow_that_is_cancelled_cancels_its_agent(kind: Kind) {
    let shop = Shop::open(kind).await;
    let nodes = json!({ "agent": ["agent", { "input": "Hi" }] });
    let flow = shop.flow(nodes, &["start>agent"], json!({})).await;
    shop.desk.app.model.then(Script::Wait("too late".into()));
    let body = json!({ "contact_id": shop.contact });
    let run =
        shop.desk.post(&format!("{flow}/runs"), body).await.expect(201)["id"].as_str().unwrap().to_owned();
    shop.desk.app.run_flows().await;
    shop.expect(&run, "waiting").await;
    shop.cancel(&run).await;
    shop.settle().await;
    shop.expect(&run, "cancelled").await;
    let runs = shop.desk.get("/runs").await.expect(200);
    let of_flow = runs.as_array().unwrap().iter().find(|run| run["trigger"]["type"] == "flow").unwrap();
    assert_eq!(of_flow["status"], "cancelled");
}
