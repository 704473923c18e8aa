//! Flows as resources: drafts, validation, versions, publishing.
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod impact;
mod keeping;
mod mcp_tools;
mod publishing;
mod usage;
mod validation;

use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A service, and a key of a workspace without flows.
pub struct Flows {
    pub app: TestApp,
    /// A live key with all scopes.
    pub key: Key,
    /// The path of the workspace's flows.
    pub at: String,
}

impl Flows {
    pub async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", 0).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        Self { app, key, at: format!("/workspaces/{workspace}/flows") }
    }

    /// Another key of the workspace.
    pub async fn key(&self, env: Env, scopes: &[&str]) -> Key {
        self.app.key(self.key.workspace, env, scopes).await
    }

    /// Creates a flow, and returns its path.
    pub async fn create(&self, name: &str, nodes: Value, edges: &[&str]) -> String {
        self.create_with(name, nodes, edges, json!({})).await
    }

    /// Creates a flow with settings, and returns its path.
    pub async fn create_with(&self, name: &str, nodes: Value, edges: &[&str], settings: Value) -> String {
        let draft = draft(nodes, edges);
        let body = json!({ "name": name, "draft": draft, "settings": settings });
        let made = self.app.post(&self.at, &self.key, body).await.expect(201);
        format!("{}/{}", self.at, made["id"])
    }

    pub async fn get(&self, path: &str) -> Value {
        self.app.get(path, &self.key).await.expect(200)
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.app.patch(path, &self.key, body).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(path, &self.key, body).await
    }

    pub async fn publish(&self, path: &str) -> Value {
        self.post(&format!("{path}/publish"), json!({})).await.expect(200)
    }

    /// The issues of a draft as `severity code param`.
    pub async fn issues(&self, path: &str) -> Vec<String> {
        let validation = self.get(&format!("{path}/validation")).await;
        short(&validation["issues"])
    }
}

/// The id at the end of a path.
pub fn id(path: &str) -> i64 {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// Issues as `severity code param`.
pub fn short(issues: &Value) -> Vec<String> {
    let text = |issue: &Value, name: &str| issue[name].as_str().unwrap().to_owned();
    let line =
        |issue| format!("{} {} {}", text(issue, "severity"), text(issue, "code"), text(issue, "param"));
    issues.as_array().unwrap().iter().map(line).collect()
}

/// A draft of these nodes and edges. An edge is written `from>to` or `from.port>to`.
pub fn draft(nodes: Value, edges: &[&str]) -> Value {
    let edges: Vec<Value> = edges
        .iter()
        .map(|edge| {
            let (from, to) = edge.split_once('>').unwrap();
            match from.split_once('.') {
                Some((from, port)) => json!({ "from": from, "port": port, "to": to }),
                None => json!({ "from": from, "to": to }),
            }
        })
        .collect();
    json!({ "nodes": nodes, "edges": edges })
}

pub fn node(id: &str, kind: &str, config: Value) -> Value {
    json!({ "id": id, "type": kind, "config": config })
}

pub fn start() -> Value {
    json!({ "id": "start", "type": "trigger" })
}
