//! Skills through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod drafts;
mod files;
mod library;
mod matching;
mod packages;
mod publishing;

use model::Env;
use serde_json::{Value, json};
use testkit::{Key, TestApp};

/// Creates a workspace. Returns a live key with all scopes.
pub async fn bare(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 1_000).await;
    app.key(workspace, Env::Live, &["*"]).await
}

/// Creates a skill with this name, and whatever else is given.
pub async fn skill(app: &TestApp, key: &Key, name: &str, more: Value) -> Value {
    let mut body = json!({
        "name": name,
        "description": "Explains how customers return goods.",
        "instructions": "1. Ask for the number of the order.\n",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    app.post("/skills", key, body).await.expect(201)
}

/// The path of a skill.
pub fn path(skill: &Value) -> String {
    format!("/skills/{}", skill["id"])
}

/// Counts the rows of a table.
pub async fn count(app: &TestApp, table: &str) -> i64 {
    use diesel::prelude::*;
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let sql = format!("SELECT COUNT(*) AS n FROM {table}");
    let rows = app.db().read(move |read| Ok(diesel::sql_query(&sql).get_result::<Count>(read.connection())?));
    rows.await.unwrap().n
}
