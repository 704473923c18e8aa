//! Events that fire automations.

use crate::{Shop, with};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_change_of_a_contact_starts_a_flow(kind: Kind) {
    let shop = Shop::open(kind).await;
    let trigger = json!({ "type": "contact.updated", "config": { "fields": ["$stage"], "to": "won" } });
    let more = json!({
        "conditions": { "or": [
            { "left": "$contact.country", "op": "eq", "right": "BR" },
            { "left": "$trigger.changed.$stage.old", "op": "eq", "right": "qualified" },
        ] },
        "target": { "type": "flow", "id": 1, "input": { "name": "{{ $contact.name }}", "old": "{{ $trigger.changed.$stage.old }}" } },
    });
    let path = shop.automation(trigger, more).await;
    let ana = shop.contact(json!({ "$name": "Ana", "$country": "BR" })).await;
    shop.update_contact(ana, json!({ "$stage": "new" })).await;
    shop.work().await;
    assert_eq!(shop.firings(&path).await, []);
    shop.update_contact(ana, json!({ "$stage": "won" })).await;
    shop.work().await;
    let started = shop.flows.started();
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].input, json!({ "name": "Ana", "old": "new" }));
    assert_eq!((started[0].contact.map(|id| id.0), started[0].livemode), (Some(ana), true));
    assert_eq!(started[0].payload["changed"]["$stage"], json!({ "old": "new", "new": "won" }));
    let chain = started[0].chain.clone().unwrap();
    assert_eq!((chain.depth, chain.automations.len()), (1, 1));
    let firing = shop.executions(&path).await.remove(0);
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("dispatched"), &Value::Null));
    assert_eq!((&firing["event_id"], &firing["root_event_id"]), (&firing["occurrence"], &firing["event_id"]));
    assert!(firing["flow_run_id"].is_string());
    assert_eq!(firing["evaluation"]["or"][0]["left_value"], "BR");
    // Reading the same events again fires nothing twice.
    shop.work().await;
    assert_eq!(shop.firings(&path).await.len(), 1);
    // Another contact does not fit the conditions, and the firing says which part decided.
    let bob = shop.contact(json!({ "$name": "Bob", "$country": "ES" })).await;
    shop.update_contact(bob, json!({ "$stage": "won" })).await;
    shop.work().await;
    let firing = shop.executions(&path).await.remove(1);
    assert_eq!((&firing["status"], &firing["reason"]), (&json!("skipped"), &json!("condition_false")));
    let expected = json!({ "holds": false, "or": [
        { "left": "$contact.country", "op": "eq", "right": "BR", "left_value": "ES", "holds": false },
        { "left": "$trigger.changed.$stage.old", "op": "eq", "right": "qualified", "left_value": null, "holds": false },
    ] });
    assert_eq!((&firing["evaluation"], shop.flows.started().len()), (&expected, 0));
}

#[testkit::both]
async fn a_change_of_an_automation_counts_at_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(json!({ "type": "contact.created" }), json!({})).await;
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 1);
    let condition = json!({ "conditions": { "left": "$contact.name", "op": "eq", "right": "Ana" } });
    shop.app.patch(&path, &shop.key, condition).await.expect(200);
    shop.contact(json!({ "$name": "Bob" })).await;
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 0);
    shop.app.post(&format!("{path}/disable"), &shop.key, json!({})).await.expect(200);
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    assert_eq!(shop.firings(&path).await.len(), 2);
    // Outside its period an automation is like one that is off.
    let past = json!({ "active_until": "2020-01-01T00:00:00Z", "conditions": null });
    shop.app.patch(&path, &shop.key, past).await.expect(200);
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    assert_eq!(shop.firings(&path).await.len(), 2);
}

#[testkit::both]
async fn each_trigger_by_events_fires(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let fields = json!([{ "field_key": "name", "type": "text" }, { "field_key": "status", "type": "text" }]);
    let collection = json!({ "name": "Orders", "fields": fields });
    let collection = app.post("/collections", key, collection).await.expect(201)["id"].clone();
    let webhook = app
        .post("/inbound-webhooks", key, json!({ "name": "Shop", "verification": { "type": "none" } }))
        .await
        .expect(201);
    let of = |trigger: &str, config: Value| {
        let more = json!({ "name": trigger });
        let body = json!({ "type": trigger, "config": config });
        let shop = &shop;
        async move { (shop.automation(body, more.clone()).await, more["name"].clone()) }
    };
    let items = json!({ "collection_id": collection });
    let changed = with(items.clone(), json!({ "fields": ["status"], "from": "open", "to": "paid" }));
    let all = [
        of("item.created", items.clone()).await,
        of("item.updated", changed).await,
        of("item.deleted", items).await,
        of("tag.added", json!({ "tags": ["VIP"] })).await,
        of("tag.removed", json!({})).await,
        of("task.completed", json!({})).await,
        of("handoff", json!({ "to": "human" })).await,
        of("webhook.received", json!({ "inbound_webhook_id": webhook["id"] })).await,
    ];
    let base = format!("/collections/{collection}/items");
    let item = app.post(&base, key, json!({ "data": { "name": "a", "status": "open" } })).await.expect(201);
    let item = format!("{base}/{}", item["id"]);
    app.patch(&item, key, json!({ "data": { "name": "b" } })).await.expect(200);
    app.patch(&item, key, json!({ "data": { "status": "paid" } })).await.expect(200);
    app.delete(&item, key).await.expect(200);
    let ana = shop.contact(json!({ "$name": "Ana" })).await;
    shop.update_contact(ana, json!({ "$tags": ["vip", "new"] })).await;
    shop.update_contact(ana, json!({ "$tags": ["vip"] })).await;
    let tasks = format!("/workspaces/{}/tasks", key.workspace);
    let task = app.post(&tasks, key, json!({ "title": "Call" })).await.expect(201);
    app.post(&format!("{tasks}/{}/complete", task["id"]), key, json!({})).await.expect(200);
    let autopilot = format!("/contacts/{ana}/autopilot");
    app.put(&autopilot, key, json!({ "enabled": false })).await.expect(200);
    app.put(&autopilot, key, json!({ "enabled": true })).await.expect(200);
    let url = webhook["url"].as_str().unwrap();
    let hook = url.get(url.find("/hooks/").unwrap()..).unwrap();
    app.ask_beside("POST", hook).json(&json!({ "order": 7 })).send().await;
    shop.work().await;
    for (path, name) in all {
        let firings = shop.executions(&path).await;
        assert_eq!(firings.len(), 1, "{name}: {firings:?}");
        assert_eq!(firings[0]["status"], "dispatched", "{name}: {firings:?}");
    }
    let started = shop.flows.started();
    assert_eq!(started.len(), 8);
    for tags in [json!(["vip"]), json!(["new"])] {
        assert!(started.iter().any(|start| start.payload.get("tags") == Some(&tags)), "{tags}");
    }
    assert!(started.iter().any(|start| start.payload["body"] == json!({ "order": 7 })));
}

#[testkit::both]
async fn an_error_in_a_condition_is_a_reason_and_not_false(kind: Kind) {
    let shop = Shop::open(kind).await;
    let secret = json!({ "key": "api_key", "type": "secret", "value": "a secret text" });
    shop.app.post("/variables", &shop.key, secret).await.expect(201);
    let trigger = json!({ "type": "contact.created" });
    let of = |name: &str, condition: Value| json!({ "name": name, "conditions": condition });
    let divides = shop.automation(trigger.clone(), of("divides", json!("1 / 0 > 1"))).await;
    let not = json!({ "not": { "left": "{{ 1 / 0 }}", "op": "eq", "right": 1 } });
    let negated = shop.automation(trigger.clone(), of("negated", not)).await;
    let decided = json!({ "or": ["1 / 0 > 1", { "left": "$contact.name", "op": "eq", "right": "Ana" }] });
    let decided = shop.automation(trigger, of("decided", decided)).await;
    shop.contact(json!({ "$name": "Ana" })).await;
    shop.work().await;
    let secret = of("secret", json!({ "left": "$vars.api_key", "op": "is_set" }));
    let secret = shop.automation(json!({ "type": "contact.created" }), secret).await;
    shop.contact(json!({ "$name": "Eve" })).await;
    shop.work().await;
    let firing = shop.executions(&secret).await.remove(0);
    assert_eq!(
        (&firing["reason"], &firing["evaluation"]["left_value"]),
        (&json!("condition_error"), &Value::Null)
    );
    for path in [divides, negated] {
        let firing = shop.executions(&path).await.remove(0);
        assert_eq!((&firing["status"], &firing["reason"]), (&json!("skipped"), &json!("condition_error")));
        assert_eq!(firing["details"]["error"], "divides by zero", "{firing}");
        assert_eq!(firing["evaluation"]["holds"], Value::Null, "{firing}");
    }
    // A part that decides does so though another fails.
    assert_eq!(shop.firings(&decided).await[0], ("dispatched".to_owned(), Value::Null));
}

#[testkit::both]
async fn firings_follow_a_merge_and_are_forgotten_with_the_contact(kind: Kind) {
    let shop = Shop::open(kind).await;
    let more = json!({ "policy": { "once_per_contact": "once" } });
    let path = shop.automation(json!({ "type": "contact.created" }), more).await;
    let first = shop.contact(json!({ "$name": "Ana" })).await;
    let second = shop.contact(json!({ "$name": "Ana S." })).await;
    shop.work().await;
    let merge = format!("/contacts/{first}/merge");
    shop.app.post(&merge, &shop.key, json!({ "source_id": second })).await.expect(200);
    shop.work().await;
    let firings = shop.executions(&path).await;
    assert!(firings.iter().all(|firing| firing["contact_id"] == json!(first)), "{firings:?}");
    shop.app.delete(&format!("/contacts/{first}?erase=true"), &shop.key).await.expect(200);
    shop.work().await;
    assert_eq!(shop.firings(&path).await, []);
}
