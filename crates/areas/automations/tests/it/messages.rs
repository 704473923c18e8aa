//! What contacts write fires automations, before the agent answers.

use crate::scripted::ScriptedFlows;
use crate::{Shop, automation};
use serde_json::{Value, json};
use simulator::User;
use std::collections::BTreeSet;
use testkit::{ChannelApp, Kind, TestApp};

/// A shop with a channel, and a customer.
struct Line {
    desk: ChannelApp,
    flows: ScriptedFlows,
    ana: User,
}

impl Line {
    async fn open(kind: Kind) -> Self {
        let flows = ScriptedFlows::default();
        let app = TestApp::with_services(kind, flows.services()).await;
        let desk = ChannelApp::around(app, |_| {}).await;
        let ana = desk.customer("Ana", "+5511987654321");
        Self { desk, flows, ana }
    }

    async fn automation(&self, name: &str, trigger: Value, more: Value) -> String {
        let body = crate::with(automation(trigger, more), json!({ "name": name }));
        let made = self.desk.post("/automations", body).await.expect(201);
        format!("/automations/{}", made["id"])
    }

    /// Hears a text, and returns which automations have started flow 1 with it.
    async fn hear(&self, text: &str) -> Vec<String> {
        self.desk.hear(&self.ana, text).await;
        self.desk.app.service.jobs.run_due().await.unwrap();
        let started = self.flows.started();
        let names = started.iter().map(|start| start.input["name"].as_str().unwrap_or("?").to_owned());
        // Targets are started side by side.
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn words(words: &[&str], how: &str) -> Value {
    json!({ "type": "keyword", "config": { "words": words, "match": how } })
}

/// A flow that is given a name.
fn named(name: &str, more: Value) -> Value {
    let target = json!({ "target": { "type": "flow", "id": 1, "input": { "name": name, "text": "{{ $trigger.text }}" } } });
    crate::with(target, more)
}

#[testkit::both]
async fn the_longest_word_takes_a_message_and_the_agent_does_not_answer(kind: Kind) {
    let line = Line::open(kind).await;
    line.automation("price", words(&["price"], "contains"), named("price", json!({}))).await;
    line.automation("train", words(&["price of the train"], "contains"), named("train", json!({}))).await;
    let low = json!({ "policy": { "priority": 10 } });
    line.automation("low", words(&["price"], "contains"), named("low", low)).await;
    assert_eq!(line.hear("What is the PRICE?").await, ["price"]);
    assert_eq!(line.hear("Price of the train, please").await, ["train"]);
    assert_eq!(line.desk.sent(&line.ana), Vec::<String>::new());
    assert_eq!(line.hear("hello").await, Vec::<String>::new());
    assert_eq!(line.desk.sent(&line.ana).len(), 1);
}

#[testkit::both]
async fn who_does_not_stop_processing_lets_others_have_the_message(kind: Kind) {
    let line = Line::open(kind).await;
    let also = json!({ "policy": { "stop_processing": false } });
    line.automation("also", words(&["hello"], "exact"), named("also", also)).await;
    let any = json!({ "type": "message.received", "config": {} });
    let path = line.automation("any", any, named("any", json!({}))).await;
    assert_eq!(line.hear("Hello").await, ["also", "any"]);
    assert_eq!(line.desk.sent(&line.ana), Vec::<String>::new());
    line.desk.post(&format!("{path}/disable"), json!({})).await.expect(200);
    assert_eq!(line.hear("hello").await, ["also"]);
    assert_eq!(line.desk.sent(&line.ana).len(), 1);
}

#[testkit::both]
async fn an_interrupting_word_ends_what_waits(kind: Kind) {
    let line = Line::open(kind).await;
    let trigger = json!({ "type": "keyword", "config": { "words": ["menu"], "interrupt": true } });
    line.automation("menu", trigger, named("menu", json!({}))).await;
    assert_eq!(line.hear("menu").await, ["menu"]);
    assert_eq!(line.flows.interrupted(), 1);
    line.hear("go on").await;
    assert_eq!(line.flows.interrupted(), 1);
}

#[testkit::both]
async fn only_the_first_message_and_nothing_while_a_person_answers(kind: Kind) {
    let line = Line::open(kind).await;
    let first = json!({ "type": "message.received", "config": { "first_only": true } });
    let path = line.automation("first", first, named("first", json!({}))).await;
    assert_eq!(line.hear("Hi").await, ["first"]);
    assert_eq!(line.hear("Hi").await, Vec::<String>::new());
    line.desk.app.delete(&path, &line.desk.key).await.expect(200);
    let any = line.automation("any", json!({ "type": "message.received" }), named("any", json!({}))).await;
    let contact = line.desk.only_contact().await["id"].clone();
    let autopilot = format!("/contacts/{contact}/autopilot");
    line.desk.app.put(&autopilot, &line.desk.key, json!({ "enabled": false })).await.expect(200);
    assert_eq!(line.hear("Hi").await, Vec::<String>::new());
    let shop = Shop { app: line.desk.app, key: line.desk.key, flows: line.flows };
    assert_eq!(shop.firings(&any).await, [("skipped".to_owned(), json!("human_active"))]);
}
