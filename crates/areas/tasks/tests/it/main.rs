//! Tasks and reminders through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod comments;
mod graph;
mod lists;
mod records;
mod recurrence;
mod references;
mod reminders;

use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// Returns a live key with all scopes in a new workspace.
pub async fn full(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 0).await;
    app.key(workspace, Env::Live, &["*"]).await
}

/// A service, and a key of a workspace without tasks.
pub struct Tasks {
    /// The service.
    pub app: TestApp,
    /// A live key with all scopes.
    pub key: Key,
    /// The path of the workspace's tasks.
    pub at: String,
}

impl Tasks {
    /// Starts a service with a new workspace.
    pub async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", 0).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        Self { app, key, at: format!("/workspaces/{workspace}/tasks") }
    }

    /// Creates a task.
    pub async fn create(&self, body: Value) -> Value {
        self.app.post(&self.at, &self.key, body).await.expect(201)
    }

    /// Returns the path of a task, or of a resource below it.
    pub fn path(&self, task: &Value, below: &str) -> String {
        format!("{}/{}{below}", self.at, task["id"])
    }

    /// Reads a task.
    pub async fn get(&self, task: &Value) -> Value {
        self.app.get(&self.path(task, ""), &self.key).await.expect(200)
    }

    /// Changes a task.
    pub async fn patch(&self, task: &Value, body: Value) -> Answer {
        self.app.patch(&self.path(task, ""), &self.key, body).await
    }

    /// Sends a POST to a path below a task.
    pub async fn post(&self, task: &Value, below: &str, body: Value) -> Answer {
        self.app.post(&self.path(task, below), &self.key, body).await
    }

    /// Completes a task.
    pub async fn complete(&self, task: &Value) -> Value {
        self.post(task, "/complete", json!({})).await.expect(200)
    }

    /// Reads the titles of a list in pages of two.
    pub async fn titles(&self, query: &str) -> Vec<String> {
        let mut titles = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("{}?paginate=true&limit=2&{query}{after}", self.at);
            let answer = self.app.get(&path, &self.key).await;
            let rows = answer.expect(200);
            titles
                .extend(rows.as_array().unwrap().iter().map(|row| row["title"].as_str().unwrap().to_owned()));
            match answer.body["next_cursor"].as_str() {
                Some(cursor) => after = format!("&starting_after={cursor}"),
                None => return titles,
            }
        }
    }

    /// Adds a member to the team.
    pub async fn member(&self, name: &'static str) -> i64 {
        let workspace = self.key.workspace;
        let new = business::team::NewMember {
            name: name.to_owned(),
            email: format!("{name}@example.com").to_lowercase(),
            role: business::team::MemberRole::Agent,
            ..business::team::NewMember::default()
        };
        self.app.db().write(move |tx| business::team::add(tx, workspace, new.clone())).await.unwrap().id.0
    }

    /// Reads the events of tasks, oldest first.
    pub async fn events(&self) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.app.get("/events?type=task.*&limit=100", &self.key).await.expect(200);
        events.as_array().unwrap().iter().rev().cloned().collect()
    }
}
