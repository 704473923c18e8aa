//! Automations as objects.

use crate::{Shop, automation, with};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn an_automation_is_kept_as_it_was_written(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key, stranger) = (&shop.app, &shop.key, shop.app.bare_key().await);
    let new = json!({
        "name": "Congratulate", "description": "For all who bought.",
        "trigger": { "type": "contact.updated", "config": { "fields": ["$stage"], "to": "won" } },
        "conditions": { "and": [{ "left": "$contact.country", "op": "eq", "right": "BR" }] },
        "target": { "type": "flow", "id": 1, "input": { "name": "{{ $contact.name }}" } },
        "policy": { "once_per_contact": "once", "priority": 70 },
        "active_from": "2026-01-01T00:00:00.000Z", "metadata": { "a": "b" },
    });
    let made = app.post("/automations", key, new.clone()).await.expect(201);
    assert_eq!(
        (&made["status"], &made["enabled_at"], &made["version"]),
        (&json!("off"), &Value::Null, &json!(1))
    );
    assert_eq!((&made["trigger"], &made["conditions"]), (&new["trigger"], &new["conditions"]));
    assert_eq!((&made["target"], &made["livemode"]), (&new["target"], &json!(true)));
    assert_eq!(
        (&made["policy"]["once_per_contact"], &made["policy"]["priority"]),
        (&json!("once"), &json!(70))
    );
    let path = format!("/automations/{}", made["id"]);
    assert_eq!(app.get(&path, key).await.expect(200), made);
    assert_eq!(app.get("/automations", key).await.expect(200), json!([made]));
    assert_eq!(app.get("/automations?status=on", key).await.expect(200), json!([]));
    assert_eq!(app.get("/automations?trigger_type=contact.updated", key).await.expect(200), json!([made]));
    for answer in [
        app.get(&path, &stranger).await,
        app.patch(&path, &stranger, json!({ "name": "x" })).await,
        app.post(&format!("{path}/enable"), &stranger, json!({})).await,
        app.post(&format!("{path}/disable"), &stranger, json!({})).await,
        app.post(&format!("{path}/trigger"), &stranger, json!({})).await,
        app.post(&format!("{path}/test"), &stranger, json!({})).await,
        app.get(&format!("{path}/executions"), &stranger).await,
        app.delete(&path, &stranger).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    app.post("/automations", key, new).await.expect_error(409, "duplicate_value");
    let patch = json!({ "conditions": null, "description": null, "version": 1 });
    let changed = app.patch(&path, key, patch.clone()).await.expect(200);
    assert_eq!((&changed["conditions"], &changed["version"]), (&Value::Null, &json!(2)));
    app.patch(&path, key, patch).await.expect_error(409, "version_conflict");
    let on = app.post(&format!("{path}/enable"), key, json!({ "version": 2 })).await.expect(200);
    assert_eq!((&on["status"], &on["version"]), (&json!("on"), &json!(3)));
    assert!(on["enabled_at"].is_string());
    let off = app.post(&format!("{path}/disable"), key, json!({ "cancel_runs": true })).await.expect(200);
    assert_eq!((&off["status"], shop.flows.cancelled().len()), (&json!("off"), 1));
    app.ask("DELETE", &path)
        .key(key)
        .header("if-match", "\"1\"")
        .send()
        .await
        .expect_error(409, "version_conflict");
    app.delete(&path, key).await.expect(200);
    app.get(&path, key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_cannot_be_is_refused_with_its_place(kind: Kind) {
    let shop = Shop::open(kind).await;
    let manual = || json!({ "type": "manual" });
    for (trigger, more, param) in [
        (json!({ "type": "keyword", "config": { "words": [] } }), json!({}), "trigger.config.words"),
        (json!({ "type": "keyword", "config": { "words": ["ok", " "] } }), json!({}), "trigger.config.words"),
        (
            json!({ "type": "keyword", "config": { "words": ["("], "match": "regex" } }),
            json!({}),
            "trigger.config.words[0]",
        ),
        (
            json!({ "type": "keyword", "config": { "words": ["a"], "channel_id": 99 } }),
            json!({}),
            "trigger.config.channel_id",
        ),
        (
            json!({ "type": "contact.updated", "config": { "fields": ["nope"] } }),
            json!({}),
            "trigger.config.fields[0]",
        ),
        (json!({ "type": "contact.updated", "config": { "to": "won" } }), json!({}), "trigger.config.to"),
        (
            json!({ "type": "item.created", "config": { "collection_id": 99 } }),
            json!({}),
            "trigger.config.collection_id",
        ),
        (json!({ "type": "item.created" }), json!({}), "trigger.config.collection_id"),
        (
            json!({ "type": "run.completed", "config": { "agent_id": 99 } }),
            json!({}),
            "trigger.config.agent_id",
        ),
        (
            json!({ "type": "webhook.received", "config": { "inbound_webhook_id": "wh_x" } }),
            json!({}),
            "trigger.config.inbound_webhook_id",
        ),
        (json!({ "type": "manual", "config": { "extra": 1 } }), json!({}), "trigger.config.extra"),
        (json!({ "type": "schedule", "config": { "cron": "0 0 31 2 *" } }), json!({}), "trigger.config.cron"),
        (
            json!({ "type": "manual", "config": { "input_schema": { "type": "nope" } } }),
            json!({}),
            "trigger.config.input_schema",
        ),
        (manual(), json!({ "target": { "type": "flow", "id": 3 } }), "target.id"),
        (manual(), json!({ "target": { "type": "agent", "id": 99 } }), "target.id"),
        (manual(), json!({ "target": { "type": "function", "id": 99 } }), "target.id"),
        (
            manual(),
            json!({ "target": { "type": "flow", "id": 1, "input": { "a": ["{{ $nope }}"] } } }),
            "target.input.a[0]",
        ),
        (
            manual(),
            json!({ "conditions": { "left": "$contact.countri", "op": "eq", "right": "x" } }),
            "conditions",
        ),
        (
            manual(),
            json!({ "conditions": { "and": [{ "left": "$trigger.a", "op": "is", "right": 1 }] } }),
            "conditions.and[0].op",
        ),
        (
            manual(),
            json!({ "policy": { "dedupe": { "key": "{{", "window_seconds": 5 } } }),
            "policy.dedupe.key",
        ),
        (
            manual(),
            json!({ "policy": { "debounce": { "seconds": 9, "max_wait_seconds": 3 } } }),
            "policy.debounce.max_wait_seconds",
        ),
        (
            manual(),
            json!({ "active_from": "2027-01-02T00:00:00Z", "active_until": "2027-01-01T00:00:00Z" }),
            "active_until",
        ),
    ] {
        let body = automation(trigger, more);
        let answer = shop.app.post("/automations", &shop.key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    // What is not active can be named, and started by nothing.
    let inactive = automation(manual(), json!({ "target": { "type": "flow", "id": 2 } }));
    shop.app.post("/automations", &shop.key, inactive.clone()).await.expect_error(409, "invalid_state");
    let made = shop
        .app
        .post("/automations", &shop.key, with(inactive, json!({ "enable": false })))
        .await
        .expect(201);
    let enable = format!("/automations/{}/enable", made["id"]);
    let refused = shop.app.post(&enable, &shop.key, json!({})).await;
    refused.expect_error(409, "invalid_state");
    assert_eq!(refused.body["error"]["details"]["reason"], "target_inactive");
    let poor = shop.app.key(shop.key.workspace, model::Env::Live, &["automations:write"]).await;
    let body = automation(manual(), json!({ "name": "poor" }));
    shop.app.post("/automations", &poor, body).await.expect_error(403, "missing_scope");
}

#[testkit::both]
async fn the_types_of_triggers_come_with_schemas_and_samples(kind: Kind) {
    let shop = Shop::open(kind).await;
    let types = shop.app.get("/automations/trigger-types", &shop.key).await.expect(200);
    let types = types.as_array().unwrap();
    assert!(types.len() >= 20);
    let tags = types.iter().find(|one| one["type"] == "tag.added").unwrap();
    assert_eq!(tags["event_types"], json!(["contact.created", "contact.updated"]));
    assert_eq!((&tags["description"], &tags["source"]), (&json!("A contact got a tag."), &json!("event")));
    assert!(types.iter().all(|one| one["config_schema"]["type"] == "object" && one["sample"].is_object()));
}

#[testkit::both]
async fn what_an_automation_starts_is_in_use(kind: Kind) {
    let shop = Shop::open(kind).await;
    let code = "export default async (ctx) => ctx.input";
    let function = json!({ "name": "f", "code": code, "effect": "read", "publish": true });
    let function = shop.app.post("/functions", &shop.key, function).await.expect(201)["id"].clone();
    let path = shop
        .automation(json!({ "type": "manual" }), json!({ "target": { "type": "function", "id": function } }))
        .await;
    let delete = format!("/functions/{function}");
    shop.app.delete(&delete, &shop.key).await.expect_error(409, "resource_in_use");
    shop.app.delete(&path, &shop.key).await.expect(200);
    shop.app.delete(&delete, &shop.key).await.expect(200);
}
