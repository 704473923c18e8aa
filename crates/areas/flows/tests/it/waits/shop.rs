//! A shop whose flows talk to a customer over a simulated network.

use crate::support::graph;
use serde_json::{Value, json};
use simulator::{Action, User};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{ChannelApp, Kind, TestApp, until};

pub struct Shop {
    pub desk: ChannelApp,
    pub ana: User,
    /// The id of Ana as a contact.
    pub contact: i64,
    made: AtomicUsize,
}

impl Shop {
    /// A shop in which Ana has written, so that the window for free messages is open.
    pub async fn open(kind: Kind) -> Self {
        Self::around(TestApp::new(kind).await).await
    }

    pub async fn around(app: TestApp) -> Self {
        let desk = ChannelApp::around(app, |_| {}).await;
        let ana = desk.customer("Ana", "+5511987654321");
        desk.hear(&ana, "Hello").await;
        // A reader begins behind the events that have a place at its first turn.
        desk.app.service.readers.run_due().await.unwrap();
        let contact = desk.only_contact().await["id"].as_i64().unwrap();
        Self { desk, ana, contact, made: AtomicUsize::new(0) }
    }

    fn at(&self, rest: &str) -> String {
        format!("/workspaces/{}{rest}", self.desk.workspace)
    }

    /// Publishes a flow, and returns its address.
    pub async fn flow(&self, nodes: Value, edges: &[&str], more: Value) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let mut body = json!({ "name": format!("flow {number}"), "draft": graph(nodes, edges) });
        for (name, value) in more.as_object().unwrap() {
            if name == "variables" {
                body["draft"]["variables"] = value.clone();
            } else {
                body[name] = value.clone();
            }
        }
        let made = self.desk.post(&self.at("/flows"), body).await.expect(201);
        let path = self.at(&format!("/flows/{}", made["id"]));
        self.desk.post(&format!("{path}/publish"), json!({})).await.expect(200);
        path
    }

    /// Starts a run for Ana, executes it as far as it goes, and returns its id.
    pub async fn start(&self, flow: &str) -> String {
        self.start_with(flow, json!({})).await
    }

    pub async fn start_with(&self, flow: &str, input: Value) -> String {
        let body = json!({ "contact_id": self.contact, "input": input });
        let run = self.desk.post(&format!("{flow}/runs"), body).await.expect(201);
        self.settle().await;
        run["id"].as_str().unwrap().to_owned()
    }

    /// Runs everything until nothing is due.
    pub async fn settle(&self) {
        // What a process does on its own may follow from what was the last thing to do.
        let mut quiet = 0;
        while quiet < 2 {
            self.desk.app.service.flows.idle().await;
            self.desk.app.service.engine.idle().await;
            self.desk.settle().await;
            self.desk.app.deliver().await;
            let read = self.desk.app.service.readers.run_due().await.unwrap();
            let worked = read + self.desk.app.run_flows().await;
            quiet = if worked == 0 { quiet + 1 } else { 0 };
        }
    }

    pub async fn says(&self, text: &str) {
        self.desk.network.write(&self.ana.user_id, text).unwrap();
        self.settle().await;
    }

    pub async fn presses(&self, button: &str) {
        let button = Some(button.to_owned());
        self.desk.network.act(&self.ana.user_id, &Action::Press { button }).unwrap();
        self.settle().await;
    }

    pub async fn after(&self, seconds: i64) {
        self.desk.app.data.clock.advance(chrono::Duration::seconds(seconds));
        self.settle().await;
    }

    /// The last message that Ana got.
    pub fn last(&self) -> String {
        self.desk.sent(&self.ana).pop().unwrap()
    }

    /// How often a model was asked.
    pub fn asked(&self) -> usize {
        self.desk.app.model.prompts().len()
    }

    /// A person takes the conversation over, or hands it back.
    pub async fn autopilot(&self, enabled: bool) {
        let path = format!("/contacts/{}/autopilot", self.contact);
        let body = json!({ "enabled": enabled });
        self.desk.app.put(&path, &self.desk.key, body).await.expect(200);
        self.settle().await;
    }

    pub async fn run(&self, id: &str) -> Value {
        self.desk.get(&self.at(&format!("/flow-runs/{id}"))).await.expect(200)
    }

    pub async fn cancel(&self, id: &str) {
        self.desk.post(&self.at(&format!("/flow-runs/{id}/cancel")), json!({})).await.expect(200);
    }

    pub async fn steps(&self, id: &str) -> Vec<Value> {
        let steps = self.desk.get(&self.at(&format!("/flow-runs/{id}/steps"))).await.expect(200);
        steps.as_array().unwrap().clone()
    }

    /// The port by which a run left a node.
    pub async fn port(&self, id: &str, node: &str) -> String {
        let steps = self.steps(id).await;
        let step = steps.iter().rfind(|step| step["node_id"] == node).unwrap();
        format!("{} {}", step["status"].as_str().unwrap(), step["port"].as_str().unwrap_or("-"))
    }

    /// Waits until a run has a status that runs of agents lead to: these end on a runtime of their own.
    pub async fn becomes(&self, id: &str, status: &str) -> Value {
        until("the run goes on", async || {
            self.settle().await;
            let run = self.run(id).await;
            (run["status"] == status).then_some(run)
        })
        .await
    }

    pub async fn expect(&self, id: &str, status: &str) -> Value {
        let run = self.run(id).await;
        assert_eq!(run["status"], status, "{run}");
        run
    }
}
