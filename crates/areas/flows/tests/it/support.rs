//! Flows and their runs, as tests make them.

use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Answer, Key, Kind, TestApp};

/// A service with a key that may do everything.
pub struct Bed {
    pub app: TestApp,
    pub key: Key,
    made: AtomicUsize,
}

impl Bed {
    pub async fn new(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = app.full_key().await;
        Self { app, key, made: AtomicUsize::new(0) }
    }

    /// An address of the area.
    pub fn at(&self, rest: &str) -> String {
        format!("/workspaces/{}{rest}", self.key.workspace)
    }

    /// Publishes a flow, and returns its address. `nodes` and `edges` are as [`graph`] takes them.
    pub async fn flow(&self, nodes: Value, edges: &[&str]) -> String {
        self.flow_with(nodes, edges, json!({})).await
    }

    /// The same, with further fields of the flow.
    pub async fn flow_with(&self, nodes: Value, edges: &[&str], more: Value) -> String {
        let path = self.draft_with(nodes, edges, more).await;
        self.app.post(&format!("{path}/publish"), &self.key, json!({})).await.expect(200);
        path
    }

    /// Creates a flow that is not published.
    pub async fn draft_with(&self, nodes: Value, edges: &[&str], more: Value) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let mut body = json!({ "name": format!("flow {number}"), "draft": graph(nodes, edges) });
        for (name, value) in more.as_object().unwrap() {
            if name == "variables" {
                body["draft"]["variables"] = value.clone();
            } else {
                body[name] = value.clone();
            }
        }
        let made = self.app.post(&self.at("/flows"), &self.key, body).await.expect(201);
        self.at(&format!("/flows/{}", made["id"]))
    }

    /// Starts a run, executes it as far as it goes, and returns it.
    pub async fn run(&self, flow: &str, body: Value) -> Value {
        let made = self.start(flow, body).await.expect(201);
        self.go(made["id"].as_str().unwrap()).await
    }

    /// Starts a run.
    pub async fn start(&self, flow: &str, body: Value) -> Answer {
        self.app.post(&format!("{flow}/runs"), &self.key, body).await
    }

    /// Executes all that has work, and returns a run.
    pub async fn go(&self, run: &str) -> Value {
        self.app.run_flows().await;
        self.app.get(&self.at(&format!("/flow-runs/{run}")), &self.key).await.expect(200)
    }

    /// The steps of a run: node, status and port of each.
    pub async fn steps(&self, run: &Value) -> Vec<String> {
        let text = |step: &Value, name: &str| step[name].as_str().unwrap_or("-").to_owned();
        let steps = self.all_steps(run).await;
        let shown = |step: &Value| {
            format!("{} {} {}", text(step, "node_id"), text(step, "status"), text(step, "port"))
        };
        steps.as_array().unwrap().iter().map(shown).collect()
    }

    pub async fn all_steps(&self, run: &Value) -> Value {
        let path = self.at(&format!("/flow-runs/{}/steps", run["id"].as_str().unwrap()));
        self.app.get(&path, &self.key).await.expect(200)
    }

    /// Lets time pass, and executes what became due.
    pub async fn after(&self, seconds: i64, run: &Value) -> Value {
        self.app.data.clock.advance(chrono::Duration::seconds(seconds));
        self.go(run["id"].as_str().unwrap()).await
    }
}

/// A graph: `nodes` is an object of types or of `[type, config]`, or of whole nodes, by id; an edge is `a>b` or `a:port>b`. The
/// node `start` is added.
pub fn graph(nodes: Value, edges: &[&str]) -> Value {
    let mut all = vec![json!({ "id": "start", "type": "trigger" })];
    for (id, node) in nodes.as_object().unwrap() {
        let mut whole = match node {
            Value::String(kind) => json!({ "type": kind }),
            Value::Array(parts) => json!({ "type": parts[0], "config": parts[1] }),
            whole => whole.clone(),
        };
        whole["id"] = json!(id);
        if id == "start" {
            all[0] = whole;
        } else {
            all.push(whole);
        }
    }
    let edges: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once('>').unwrap();
            let (from, port) = from.split_once(':').unwrap_or((from, "next"));
            json!({ "from": from, "port": port, "to": to })
        })
        .collect();
    json!({ "nodes": all, "edges": edges })
}
