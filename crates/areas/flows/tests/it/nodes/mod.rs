//! Nodes that act, each in a flow of its own.

mod code;
mod contacts;
mod custom_events;
mod http;
mod messages;
mod once;
mod records;

use serde_json::{Value, json};
use testkit::{Key, TestApp};

/// A flow that was published.
pub struct Flow<'a> {
    app: &'a TestApp,
    key: &'a Key,
    path: String,
}

impl<'a> Flow<'a> {
    /// Publishes a flow whose nodes follow each other, behind a trigger.
    pub async fn publish(app: &'a TestApp, key: &'a Key, nodes: Vec<Value>) -> Flow<'a> {
        let mut edges = Vec::new();
        let mut before = json!("start");
        for node in &nodes {
            edges.push(json!({ "from": before, "to": node["id"] }));
            before = node["id"].clone();
        }
        Self::draw(app, key, nodes, edges).await
    }

    /// Publishes a flow with these nodes besides the trigger, and these edges.
    pub async fn draw(app: &'a TestApp, key: &'a Key, mut nodes: Vec<Value>, edges: Vec<Value>) -> Flow<'a> {
        nodes.insert(0, json!({ "id": "start", "type": "trigger" }));
        let flows = format!("/workspaces/{}/flows", key.workspace);
        let count = app.get(&flows, key).await.expect(200).as_array().unwrap().len();
        let flow = json!({ "name": format!("Flow {count}"), "draft": { "nodes": nodes, "edges": edges } });
        let made = app.post(&flows, key, flow).await.expect(201);
        let path = format!("{flows}/{}", made["id"]);
        app.post(&format!("{path}/publish"), key, json!({})).await.expect(200);
        Self { app, key, path }
    }

    /// Starts a run, and returns it after everything that it can do now.
    pub async fn run(&self, body: Value) -> Value {
        self.run_by(self.key, body).await
    }

    /// The same, started by another key.
    pub async fn run_by(&self, key: &Key, body: Value) -> Value {
        let run = self.app.post(&format!("{}/runs", self.path), key, body).await.expect(201);
        self.app.run_flows().await;
        self.read(&run).await
    }

    /// The run as it is now.
    pub async fn read(&self, run: &Value) -> Value {
        let path = format!("/workspaces/{}/flow-runs/{}", self.key.workspace, run["id"].as_str().unwrap());
        self.app.get(&path, self.key).await.expect(200)
    }

    /// The steps of a run.
    pub async fn steps(&self, run: &Value) -> Vec<Value> {
        let id = run["id"].as_str().unwrap();
        let path = format!("/workspaces/{}/flow-runs/{id}/steps", self.key.workspace);
        self.app.get(&path, self.key).await.expect(200).as_array().unwrap().clone()
    }

    /// The step of a node, the last if there are several.
    pub async fn step(&self, run: &Value, node: &str) -> Value {
        let steps = self.steps(run).await;
        steps.into_iter().rfind(|step| step["node_id"] == node).unwrap()
    }
}

/// A node.
pub fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({ "id": id, "type": kind, "config": config })
}

/// Runs one node in a flow of its own, and returns its step.
pub async fn act(app: &TestApp, key: &Key, kind: &str, config: Value, run: Value) -> Value {
    let flow = Flow::publish(app, key, vec![node("act", kind, config)]).await;
    let run = flow.run(run).await;
    flow.step(&run, "act").await
}

/// The output of a step that was completed.
pub fn output(step: &Value) -> Value {
    assert_eq!(step["status"], "completed", "{step}");
    step["output"].clone()
}

/// The code of a step that failed.
pub fn failure(step: &Value) -> String {
    assert_eq!(step["status"], "failed", "{step}");
    step["error"]["code"].as_str().unwrap().to_owned()
}

/// A contact.
pub async fn contact(app: &TestApp, key: &Key, name: &str) -> Value {
    app.post("/contacts", key, json!({ "data": { "$name": name } })).await.expect(201)["id"].clone()
}
