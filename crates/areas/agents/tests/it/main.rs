//! Agents through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod agents;
mod agents_as_tools;
mod code_functions;
mod tools;
mod versions;

use diesel::prelude::*;
use model::Env;
use serde_json::Value;
use testkit::{Key, TestApp};

/// Creates a workspace with an active agent. Returns a live key with all scopes, and the agent.
pub async fn with_agent(app: &TestApp, mut agent: Value) -> (Key, Value) {
    let workspace = app.bare_workspace("scale", 1_000_000).await;
    let key = app.key(workspace, Env::Live, &["*"]).await;
    agent["status"] = "active".into();
    if agent["name"].is_null() {
        agent["name"] = "Assistant".into();
    }
    let agent = app.post("/agents", &key, agent).await.expect(201);
    (key, agent)
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    t: Option<String>,
}

/// Returns the texts `t` that a query selects.
pub async fn texts(app: &TestApp, sql: &str) -> Vec<Option<String>> {
    let sql = sql.to_owned();
    let rows = app.db().read(move |read| Ok(diesel::sql_query(&sql).load::<Text>(read.connection())?));
    rows.await.unwrap().into_iter().map(|row| row.t).collect()
}
