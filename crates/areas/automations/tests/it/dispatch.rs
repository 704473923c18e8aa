//! What firings start: flows, agents and functions, and what stands in their way.

use crate::Shop;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

async fn fire(shop: &Shop, path: &str, body: Value) -> Value {
    let fired = shop.app.post(&format!("{path}/trigger"), &shop.key, body).await.expect(200);
    shop.work().await;
    let id = fired["execution"]["id"].as_str().unwrap();
    shop.app.get(&format!("{path}/executions/{id}"), &shop.key).await.expect(200)
}

#[testkit::both]
async fn a_function_is_called_with_the_input(kind: Kind) {
    let shop = Shop::open(kind).await;
    let code = "export default async (ctx) => { if (ctx.input.n < 0) throw new Error('no'); return { got: ctx.input }; }";
    let function = json!({ "name": "f", "code": code, "effect": "read", "publish": true });
    let function = shop.app.post("/functions", &shop.key, function).await.expect(201)["id"].clone();
    let target = json!({ "type": "function", "id": function, "input": { "n": "{{ $trigger.n }}" } });
    let path = shop.automation(json!({ "type": "manual" }), json!({ "target": target })).await;
    let firing = fire(&shop, &path, json!({ "data": { "n": 7 } })).await;
    assert_eq!((&firing["status"], &firing["outcome"]), (&json!("dispatched"), &json!("completed")));
    let call = format!("/functions/{function}/invocations/{}", firing["invocation_id"].as_str().unwrap());
    let call = shop.app.get(&call, &shop.key).await.expect(200);
    assert_eq!(call["output"], json!({ "got": { "n": 7 } }));
    assert_eq!(
        (&call["caller"]["type"], &call["caller"]["automation_id"]),
        (&json!("automation"), &firing["automation_id"])
    );
    let failed = fire(&shop, &path, json!({ "data": { "n": -1 } })).await;
    assert_eq!((&failed["status"], &failed["outcome"]), (&json!("dispatched"), &json!("failed")));
    assert_eq!(failed["error"], json!({ "code": "function_error", "message": "no", "param": null }));
}

#[testkit::both]
async fn an_agent_runs_with_the_text(kind: Kind) {
    let shop = Shop::open(kind).await;
    let agent = shop.app.get("/agents", &shop.key).await.expect(200)[0]["id"].clone();
    let target =
        json!({ "type": "agent", "id": agent, "input": { "text": "Congratulate {{ $contact.name }}." } });
    let path = shop.automation(json!({ "type": "contact.created" }), json!({ "target": target })).await;
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    let firing = shop.executions(&path).await.remove(0);
    let run =
        shop.app.get(&format!("/runs/{}", firing["run_id"].as_str().unwrap()), &shop.key).await.expect(200);
    assert_eq!(run["input"], "Congratulate Ana.");
    assert_eq!(run["trigger"], json!({ "type": "automation", "id": firing["automation_id"].to_string() }));
}

#[testkit::both]
async fn a_lost_key_suspends_the_automation(kind: Kind) {
    let shop = Shop::open(kind).await;
    let scopes = ["automations:write", "automations:read", "automations:execute"];
    let lost = shop.app.key(shop.key.workspace, Env::Live, &scopes).await;
    let body = crate::automation(json!({ "type": "manual" }), json!({}));
    let path = format!("/automations/{}", shop.app.post("/automations", &lost, body).await.expect(201)["id"]);
    shop.app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", lost.id)).await;
    let firing = fire(&shop, &path, json!({})).await;
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("failed"), &json!("key_lost")));
    let suspended = shop.app.get(&path, &shop.key).await.expect(200);
    assert_eq!(
        (&suspended["status"], &suspended["suspended_reason"]),
        (&json!("suspended"), &json!("key_lost"))
    );
    shop.app.deliver().await;
    let events = shop.app.get("/events?type=automation.suspended", &shop.key).await.expect(200);
    let data = &events[0]["data"];
    assert_eq!((&data["automation_id"], &data["reason"]), (&suspended["id"], &json!("key_lost")));
    assert_eq!(data["details"]["firing_id"], firing["id"]);
    // Whoever switches it on again lends it the own key.
    let on = shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    assert_eq!((&on["status"], &on["suspended_reason"]), (&json!("on"), &Value::Null));
    assert_eq!(fire(&shop, &path, json!({})).await["status"], "dispatched");
}

#[testkit::both]
async fn what_a_target_refuses_is_in_the_firing(kind: Kind) {
    let shop = Shop::open(kind).await;
    let trigger = json!({ "type": "manual" });
    let target = json!({ "type": "flow", "id": 1, "input": { "n": "{{ 1 / $trigger.n }}" } });
    let path = shop.automation(trigger, json!({ "target": target })).await;
    let firing = fire(&shop, &path, json!({ "data": { "n": 0 } })).await;
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("failed"), &json!("template_error")));
    let data = json!({ "data": { "n": 2 } });
    shop.flows.refuse(Some((model::Code::ValidationError, "`input` is wrong")));
    let firing = fire(&shop, &path, data.clone()).await;
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("failed"), &json!("target_refused")));
    assert_eq!(
        (&firing["error"]["code"], &firing["error"]["param"]),
        (&json!("validation_error"), &json!("input"))
    );
    shop.flows.refuse(None);
    shop.flows.deactivate(true);
    let firing = fire(&shop, &path, data).await;
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("failed"), &json!("target_inactive")));
    let suspended = shop.app.get(&path, &shop.key).await.expect(200);
    assert_eq!(suspended["suspended_reason"], "target_inactive");
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect_error(409, "invalid_state");
    shop.flows.deactivate(false);
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
}

#[testkit::both]
async fn what_a_test_key_changed_last_is_not_live(kind: Kind) {
    let shop = Shop::open(kind).await;
    let test =
        shop.app.key(shop.key.workspace, Env::Test, &["automations:write", "automations:execute"]).await;
    let body = crate::automation(json!({ "type": "contact.created" }), json!({}));
    let made = shop.app.post("/automations", &test, body).await.expect(201);
    assert_eq!(made["livemode"], false);
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    let started = shop.flows.started();
    assert_eq!((started.len(), started[0].livemode), (1, false));
}
