//! Guards against loops, floods and errors.

use crate::{Shop, automation};
use chrono::Duration;
use model::{AutomationId, Cause, Chain, ContactId};
use ports::{HandOver, HandoffReason, People};
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Kind, Script};

impl Shop {
    /// Hands a contact over at a place in a chain of causes.
    async fn hand_over(&self, contact: i64, enabled: bool, chain: Option<Chain>) {
        let people = self.app.service.pipeline.services.get::<People>().unwrap();
        let (workspace, cause) = (self.key.workspace, Cause::system("test").at(chain));
        let switch = HandOver { enabled, until: None, reason: HandoffReason::Api, summary: None };
        let done = self
            .app
            .db()
            .write(move |tx| people.hand_over(tx, workspace, &cause, ContactId(contact), &switch));
        done.await.unwrap();
        self.work().await;
    }

    async fn trigger(&self, path: &str, body: Value) -> Value {
        let fired = self.app.post(&format!("{path}/trigger"), &self.key, body).await.expect(200);
        fired["execution"].clone()
    }

    async fn events(&self, kind: &str) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.app.get(&format!("/events?type={kind}&limit=100"), &self.key).await.expect(200);
        events.as_array().unwrap().iter().rev().map(|event| event["data"].clone()).collect()
    }

    async fn status(&self, path: &str) -> (Value, Value) {
        let automation = self.app.get(path, &self.key).await.expect(200);
        (automation["status"].clone(), automation["suspended_reason"].clone())
    }
}

fn handoff() -> Value {
    json!({ "type": "handoff", "config": {} })
}

#[testkit::both]
async fn an_automation_does_not_fire_itself(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(handoff(), json!({})).await;
    let id = AutomationId(path.rsplit('/').next().unwrap().parse().unwrap());
    let allowed = shop
        .automation(handoff(), json!({ "name": "allowed", "policy": { "allow_self_trigger": true } }))
        .await;
    let allowed_id = AutomationId(allowed.rsplit('/').next().unwrap().parse().unwrap());
    let contact = shop.contact(json!({ "$name": "Ana" })).await;
    shop.hand_over(contact, false, None).await;
    let started = shop.flows.started();
    assert_eq!(started.len(), 2);
    let chain =
        started.iter().find_map(|start| start.chain.clone().filter(|chain| chain.automations == [id]));
    let chain = chain.unwrap();
    assert_eq!(chain.depth, 1);
    // What its run does fires others, and not itself.
    shop.hand_over(contact, true, Some(chain.clone())).await;
    let skipped = shop.executions(&path).await.pop().unwrap();
    assert_eq!((&skipped["status"], &skipped["reason"]), (&json!("skipped"), &json!("loop_detected")));
    assert_eq!(
        (&skipped["details"]["guard"], &skipped["details"]["chain"]["automations"]),
        (&json!("self_trigger"), &json!([id]))
    );
    assert_eq!(shop.firings(&allowed).await.len(), 2);
    // Through others the chain ends at its limit.
    let deep = |depth| Some(Chain { depth, automations: vec![allowed_id], ..chain.clone() });
    shop.hand_over(contact, false, deep(4)).await;
    shop.hand_over(contact, true, deep(5)).await;
    let firings = shop.executions(&allowed).await;
    let seen: Vec<(&Value, &Value)> =
        firings.iter().map(|firing| (&firing["status"], &firing["depth"])).collect();
    let dispatched = json!("dispatched");
    assert_eq!(
        seen,
        [
            (&dispatched, &json!(1)),
            (&dispatched, &json!(2)),
            (&dispatched, &json!(5)),
            (&json!("skipped"), &json!(6))
        ]
    );
    assert_eq!(firings[3]["details"]["guard"], "depth");
}

#[testkit::both]
async fn a_loop_of_one_contact_suspends(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(json!({ "type": "manual" }), json!({})).await;
    let (ana, bea) =
        (shop.contact(json!({ "$name": "Ana" })).await, shop.contact(json!({ "$name": "Bea" })).await);
    for number in 0..20 {
        assert_eq!(shop.trigger(&path, json!({ "contact_id": ana })).await["status"], "pending", "{number}");
        assert_eq!(shop.trigger(&path, json!({ "contact_id": bea })).await["status"], "pending", "{number}");
        // Firings of the minute before do not count.
        if number == 9 {
            shop.app.data.clock.advance(Duration::seconds(60));
        }
    }
    for _ in 0..10 {
        assert_eq!(shop.trigger(&path, json!({ "contact_id": ana })).await["status"], "pending");
    }
    let stopped = shop.trigger(&path, json!({ "contact_id": ana })).await;
    assert_eq!((&stopped["status"], &stopped["reason"]), (&json!("skipped"), &json!("loop_detected")));
    assert_eq!(
        (&stopped["details"]["guard"], &stopped["details"]["contact_id"], &stopped["details"]["firings"]),
        (&json!("loop"), &json!(ana), &json!(20))
    );
    assert_eq!(shop.status(&path).await, (json!("suspended"), json!("loop")));
    let events = shop.events("automation.suspended").await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["reason"], &events[0]["details"]), (&json!("loop"), &stopped["details"]));
    // What waited is ended, and the automation can be switched on again.
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 0);
    let again = shop.app.post(&format!("{path}/trigger"), &shop.key, json!({})).await;
    again.expect_error(409, "invalid_state");
    shop.app.data.clock.advance(Duration::seconds(1));
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    assert_eq!(shop.trigger(&path, json!({ "contact_id": ana })).await["status"], "pending");
}

#[testkit::both]
async fn a_flood_is_held(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(json!({ "type": "manual" }), json!({})).await;
    for number in 0..100 {
        assert_eq!(shop.trigger(&path, json!({})).await["status"], "pending", "{number}");
    }
    let held = shop.trigger(&path, json!({})).await;
    assert_eq!((&held["status"], &held["reason"]), (&json!("held"), &json!("flood")));
    assert_eq!(
        (&held["details"]["guard"], &held["details"]["most_per_minute"]),
        (&json!("flood"), &json!(100))
    );
    assert_eq!(shop.trigger(&path, json!({})).await["status"], "held");
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 100);
    let released =
        shop.app.post(&format!("{path}/trigger"), &shop.key, json!({ "held": "release" })).await.expect(200);
    assert_eq!(released["released"], 2);
    shop.work().await;
    assert_eq!(shop.flows.started().len(), 2);
    shop.app.data.clock.advance(Duration::seconds(60));
    assert_eq!(shop.trigger(&path, json!({})).await["status"], "pending");
    // An automation that fires often is expected to do so: twenty times a minute, here, for an hour.
    let id = path.rsplit('/').next().unwrap();
    shop.app.sql(format!("UPDATE automations SET enabled_at = '2026-01-15 11:00:00' WHERE id = {id}")).await;
    for number in 0..11 {
        let columns = "workspace_id, automation_id, kind, livemode, payload";
        let copy = format!(
            "INSERT INTO automation_firings (id, occurrence, status, created_at, {columns}) \
             SELECT id || '-{number}', occurrence || '-{number}', 'dispatched', '2026-01-15 11:30:00', {columns} \
             FROM automation_firings ORDER BY number LIMIT 102"
        );
        shop.app.sql(copy).await;
    }
    for number in 0..190 {
        assert_eq!(shop.trigger(&path, json!({})).await["status"], "pending", "{number}");
    }
}

#[testkit::both]
async fn runs_that_fail_are_warned_of_and_then_suspend(kind: Kind) {
    let shop = Shop::open(kind).await;
    let agent = shop.app.get("/agents", &shop.key).await.expect(200)[0]["id"].clone();
    let target = json!({ "type": "agent", "id": agent, "input": { "text": "Hi" } });
    let body = automation(json!({ "type": "manual" }), json!({ "target": target }));
    let made = shop.app.post("/automations", &shop.key, body).await.expect(201);
    let path = format!("/automations/{}", made["id"]);
    let run = async |times: usize, fails: bool| {
        for _ in 0..times {
            if fails {
                shop.app.model.then(Script::Fail(ProviderError::Refused("no".into())));
            }
            shop.trigger(&path, json!({})).await;
            shop.work().await;
        }
        shop.work().await;
        (shop.events("automation.warning").await.len(), shop.status(&path).await.0)
    };
    assert_eq!(run(1, false).await, (0, json!("on")));
    assert_eq!(run(18, true).await, (0, json!("on")));
    // 19 of 20 is 95 %.
    assert_eq!(run(1, true).await, (1, json!("on")));
    let outcomes: Vec<Value> =
        shop.executions(&path).await.iter().map(|firing| firing["outcome"].clone()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == json!("failed")).count(), 19, "{outcomes:?}");
    let warning = shop.events("automation.warning").await.pop().unwrap();
    assert_eq!(
        (&warning["reason"], &warning["details"]["runs"], &warning["details"]["failed"]),
        (&json!("errors"), &json!(20), &json!(19))
    );
    assert_eq!(run(1, true).await, (1, json!("on")));
    shop.app.data.clock.advance(Duration::hours(24));
    shop.work().await;
    assert_eq!(shop.status(&path).await, (json!("suspended"), json!("errors")));
    let suspended = shop.events("automation.suspended").await.pop().unwrap();
    assert_eq!((&suspended["details"]["runs"], &suspended["details"]["failed"]), (&json!(21), &json!(20)));
    // Switched on again it begins anew.
    shop.app.post(&format!("{path}/enable"), &shop.key, json!({})).await.expect(200);
    assert_eq!(run(1, true).await, (1, json!("on")));
}
