//! Tests of files over HTTP, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod files;
mod media;
mod media_names;

use diesel::prelude::*;
use serde_json::Value;
use testkit::TestApp;

#[derive(QueryableByName)]
struct EmittedEvent {
    #[diesel(sql_type = diesel::sql_types::Text)]
    kind: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    data: String,
}

/// Returns all events with their data, oldest first.
pub async fn events(app: &TestApp) -> Vec<(String, Value)> {
    let sql = "SELECT kind, data FROM events ORDER BY sequence";
    let rows = app.db().read(move |read| Ok(diesel::sql_query(sql).load::<EmittedEvent>(read.connection())?));
    let rows = rows.await.unwrap().into_iter();
    rows.map(|emitted| (emitted.kind, serde_json::from_str(&emitted.data).unwrap())).collect()
}
