//! Collections, items and links through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod collections;
mod exports;
mod file_races;
mod files;
mod imports;
mod items;
mod links;
mod query;
mod seed;

use diesel::prelude::*;
use model::Env;
use serde_json::Value;
use testkit::{Key, TestApp};

/// Returns a live key with all scopes in a new workspace.
pub async fn full(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 0).await;
    app.key(workspace, Env::Live, &["*"]).await
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// Returns the number `n` that a query selects.
pub async fn number(app: &TestApp, sql: &str) -> i64 {
    let sql = sql.to_owned();
    let row = app.db().read(move |read| Ok(diesel::sql_query(&sql).get_result::<Number>(read.connection())?));
    row.await.unwrap().n
}

#[derive(QueryableByName)]
struct EmittedEvent {
    #[diesel(sql_type = diesel::sql_types::Text)]
    kind: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    data: String,
}

/// Returns the type and the data of all events so far, oldest first.
pub async fn events(app: &TestApp) -> Vec<(String, Value)> {
    let sql = "SELECT kind, data FROM events ORDER BY sequence";
    let rows = app.db().read(move |read| Ok(diesel::sql_query(sql).load::<EmittedEvent>(read.connection())?));
    let rows = rows.await.unwrap().into_iter();
    rows.map(|emitted| (emitted.kind, serde_json::from_str(&emitted.data).unwrap())).collect()
}

/// Returns the types of all events so far.
pub async fn event_types(app: &TestApp) -> Vec<String> {
    events(app).await.into_iter().map(|(kind, _)| kind).collect()
}
