//! Automations through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod dispatch;
mod events;
mod guards;
mod messages;
mod policies;
mod requests;
mod rules;
mod scripted;
mod timers;

use scripted::ScriptedFlows;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// A workspace with scripted flows.
pub(crate) struct Shop {
    pub(crate) app: TestApp,
    pub(crate) key: Key,
    pub(crate) flows: ScriptedFlows,
}

impl Shop {
    pub(crate) async fn open(kind: Kind) -> Self {
        let flows = ScriptedFlows::default();
        let app = TestApp::with_services(kind, flows.services()).await;
        let key = app.full_key().await;
        let shop = Self { app, key, flows };
        // Readers begin behind the last event.
        shop.work().await;
        shop
    }

    /// Creates an automation of flow 1 that is on, and returns its path.
    pub(crate) async fn automation(&self, trigger: Value, more: Value) -> String {
        let made = self.app.post("/automations", &self.key, automation(trigger, more)).await.expect(201);
        format!("/automations/{}", made["id"])
    }

    /// Places events, lets them fire, and dispatches what is due.
    pub(crate) async fn work(&self) {
        self.app.deliver().await;
        self.app.service.readers.run_due().await.unwrap();
        self.app.service.jobs.run_due().await.unwrap();
        self.app.service.engine.idle().await;
    }

    pub(crate) async fn contact(&self, data: Value) -> i64 {
        let made = self.app.post("/contacts", &self.key, json!({ "data": data })).await.expect(201);
        made["id"].as_i64().unwrap()
    }

    /// The status and the reason of each firing, the oldest first.
    pub(crate) async fn firings(&self, path: &str) -> Vec<(String, Value)> {
        let firings = self.executions(path).await;
        let of = |firing: &Value| (firing["status"].as_str().unwrap().to_owned(), firing["reason"].clone());
        firings.iter().map(of).collect()
    }

    /// The firings, the oldest first, with their details.
    pub(crate) async fn executions(&self, path: &str) -> Vec<Value> {
        let list = self.app.get(&format!("{path}/executions"), &self.key).await.expect(200);
        let mut all = Vec::new();
        for firing in list.as_array().unwrap().iter().rev() {
            let id = firing["id"].as_str().unwrap();
            all.push(self.app.get(&format!("{path}/executions/{id}"), &self.key).await.expect(200));
        }
        all
    }

    pub(crate) async fn update_contact(&self, id: i64, data: Value) {
        self.app.patch(&format!("/contacts/{id}"), &self.key, json!({ "data": data })).await.expect(200);
    }
}

/// The body of an automation of flow 1 that is on.
pub(crate) fn automation(trigger: Value, more: Value) -> Value {
    let target = json!({ "type": "flow", "id": 1 });
    with(json!({ "name": "first", "trigger": trigger, "target": target, "enable": true }), more)
}

/// `base` with further fields.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}
