//! Contacts who do not answer, and conversations in which nobody writes.

use crate::{Shop, automation};
use serde_json::{Value, json};
use testkit::{ChannelApp, Kind, MessageSent};

impl Shop {
    /// Publishes that a message was sent to a contact.
    async fn sent(&self, contact: i64) {
        let workspace = self.key.workspace;
        let cause = model::Cause::system("test");
        let message = MessageSent::new(contact, "Shall I reserve it?");
        self.app.db().write(move |tx| tx.emit(workspace, &cause, true, &message)).await.unwrap();
        self.work().await;
    }
}

fn no_reply(minutes: i64) -> Value {
    json!({ "type": "no_reply", "config": { "minutes": minutes } })
}

#[testkit::both]
async fn a_contact_who_does_not_answer_fires_once(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(no_reply(60), json!({})).await;
    let ana = shop.contact(json!({ "$name": "Ana" })).await;
    shop.sent(ana).await;
    let since = shop.now();
    shop.wait(30).await;
    // The last message counts.
    shop.sent(ana).await;
    shop.wait(59).await;
    assert_eq!(shop.executions(&path).await.len(), 0);
    shop.wait(1).await;
    shop.wait(120).await;
    let firings = shop.executions(&path).await;
    assert_eq!(firings.len(), 1);
    assert_eq!(
        (&firings[0]["contact_id"], &firings[0]["data"]["minutes"], &firings[0]["data"]["since"]),
        (&json!(ana), &json!(60), &json!(since.plus_seconds(1_800)))
    );
    // A rule that has become shorter counts at once, and one that is off does not fire.
    shop.sent(ana).await;
    shop.app.patch(&path, &shop.key, json!({ "trigger": no_reply(10) })).await.expect(200);
    shop.wait(10).await;
    assert_eq!(shop.executions(&path).await.len(), 2);
    shop.sent(ana).await;
    for switch in ["disable", "enable"] {
        shop.app.post(&format!("{path}/{switch}"), &shop.key, json!({})).await.expect(200);
        shop.wait(10).await;
    }
    assert_eq!(shop.executions(&path).await.len(), 2);
}

#[testkit::both]
async fn a_reply_ends_the_wait_and_both_kinds_see_it(kind: Kind) {
    let ChannelApp { app, key, network, channel, workspace } = ChannelApp::open(kind).await;
    let channels = ChannelApp { app, key, network, channel, workspace };
    let app = &channels.app;
    let agent = app.get("/agents", &channels.key).await.expect(200)[0]["id"].clone();
    let create = async |name: &str, trigger: Value| {
        let target = json!({ "type": "agent", "id": agent });
        let body = automation(
            trigger,
            json!({ "name": name, "target": target, "policy": { "when_human_active": "fire" } }),
        );
        let made = app.post("/automations", &channels.key, body).await.expect(201);
        format!("/automations/{}/executions", made["id"])
    };
    let silent = create("silent", no_reply(60)).await;
    let idle = create("idle", json!({ "type": "conversation.idle", "config": { "minutes": 90 } })).await;
    let other = json!({ "type": "no_reply", "config": { "minutes": 60, "channel_id": channel } });
    let other = create("same channel", other).await;
    let pass = async |minutes: i64| {
        app.data.clock.advance(chrono::Duration::minutes(minutes));
        app.deliver().await;
        app.service.readers.run_due().await.unwrap();
        app.service.jobs.run_due().await.unwrap();
        app.service.engine.idle().await;
        let mut counts = Vec::new();
        for path in [&silent, &idle, &other] {
            counts.push(app.get(path, &channels.key).await.expect(200).as_array().unwrap().len());
        }
        counts
    };
    let ana = channels.customer("Ana", "+5511987650001");
    // The agent answers, and Ana answers it in time.
    channels.hear(&ana, "Hi").await;
    assert_eq!(pass(0).await, [0, 0, 0]);
    assert_eq!(pass(59).await, [0, 0, 0]);
    channels.hear(&ana, "I am here").await;
    // The event of the reply has not been read when the time is over.
    app.data.clock.advance(chrono::Duration::minutes(1));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(pass(0).await, [0, 0, 0]);
    // Nobody writes any more: one firing of each.
    assert_eq!(pass(59).await, [1, 0, 1]);
    assert_eq!(pass(30).await, [1, 1, 1]);
    assert_eq!(pass(24 * 60).await, [1, 1, 1]);
}

#[testkit::both]
async fn waits_follow_their_contact(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(no_reply(60), json!({})).await;
    let (ana, bea) =
        (shop.contact(json!({ "$name": "Ana" })).await, shop.contact(json!({ "$name": "Bea" })).await);
    let eva = shop.contact(json!({ "$name": "Eva" })).await;
    for contact in [ana, bea, eva] {
        shop.sent(contact).await;
    }
    let merge = json!({ "source_id": bea });
    shop.app.post(&format!("/contacts/{ana}/merge"), &shop.key, merge).await.expect(200);
    shop.app.delete(&format!("/contacts/{eva}?erase=true"), &shop.key).await.expect(200);
    shop.wait(60).await;
    let firings = shop.executions(&path).await;
    let contacts: Vec<&Value> = firings.iter().map(|firing| &firing["contact_id"]).collect();
    assert_eq!(contacts, [&json!(ana)]);
}

#[testkit::both]
async fn what_an_automation_sent_begins_no_wait(kind: Kind) {
    let shop = Shop::open(kind).await;
    let path = shop.automation(no_reply(60), json!({})).await;
    let ana = shop.contact(json!({ "$name": "Ana" })).await;
    shop.sent(ana).await;
    shop.wait(60).await;
    let chain = shop.flows.started()[0].chain.clone();
    let id: i64 = path.rsplit('/').next().unwrap().parse().unwrap();
    assert_eq!(chain.as_ref().unwrap().automations, [model::AutomationId(id)]);
    let (workspace, message) = (shop.key.workspace, MessageSent::new(ana, "Are you there?"));
    let cause = model::Cause::system("test").at(chain);
    shop.app.db().write(move |tx| tx.emit(workspace, &cause, true, &message)).await.unwrap();
    shop.work().await;
    shop.wait(120).await;
    assert_eq!(shop.executions(&path).await.len(), 1);
}
