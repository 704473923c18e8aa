//! Functions through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod calls;
mod drafts;
mod history;
mod host;

use serde_json::{Value, json};
use testkit::{Answer, Key, TestApp};

/// A program that returns its input with a word.
pub const ECHO: &str = "export default async (ctx) => ({ got: ctx.input })";

/// The body of a new function that only reads.
pub fn body(name: &str, code: &str) -> Value {
    json!({ "name": name, "code": code, "effect": "read" })
}

/// `base` with further fields.
pub fn with(mut base: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        base[name] = value.clone();
    }
    base
}

/// Creates a function, and returns its path.
pub async fn create(app: &TestApp, key: &Key, body: Value) -> String {
    let made = app.post("/functions", key, body).await.expect(201);
    format!("/functions/{}", made["id"])
}

/// Calls a function.
pub async fn invoke(app: &TestApp, key: &Key, path: &str, body: Value) -> Answer {
    app.post(&format!("{path}/invoke"), key, body).await
}
