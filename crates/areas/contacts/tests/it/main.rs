//! Contacts through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod book;
mod enrich;
mod fields;
mod filters;
mod handoff;
mod identities;
mod imports;
mod list;
mod lists;
mod merge;
mod notes;
mod numbers;
mod prepared;
mod records;
mod segments;
mod spellings;
mod stages;

use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// A service, and a key of a workspace without contacts.
pub struct Crm {
    /// The service.
    pub app: TestApp,
    /// A live key with all scopes.
    pub key: Key,
}

impl Crm {
    /// Starts a service with a fresh workspace.
    pub async fn open(kind: Kind) -> Self {
        Self::with_energy(kind, 0).await
    }

    /// Starts a service with a fresh workspace that has this much Energy.
    pub async fn with_energy(kind: Kind, energy: i64) -> Self {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", energy).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        Self { app, key }
    }

    /// Creates a contact with these values.
    pub async fn create(&self, data: Value) -> Value {
        self.app.post("/contacts", &self.key, json!({ "data": data })).await.expect(201)
    }

    /// Reads a contact.
    pub async fn get(&self, id: &Value) -> Value {
        self.app.get(&format!("/contacts/{id}"), &self.key).await.expect(200)
    }

    /// Reads the names of a list of contacts in pages of two.
    pub async fn names(&self, query: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/contacts?limit=2&{query}{after}");
            let answer = self.app.get(&path, &self.key).await;
            let rows = answer.expect(200);
            names.extend(rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()));
            match answer.body["next_cursor"].as_str() {
                Some(cursor) => after = format!("&starting_after={cursor}"),
                None => return names,
            }
        }
    }
}
