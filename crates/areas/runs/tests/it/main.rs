//! Runs through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod approvals;
mod conversations;
mod energy;
mod fakes;
mod function_guardrails;
mod guardrails;
mod limits;
mod memory;
mod models;
mod parallel;
mod recovery;
mod runs;
mod skills;
mod streams;
mod tools;
mod topics;
mod traces;
mod usage;
mod variables;

use diesel::prelude::*;
use model::{Env, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Answer, Key, OpenAiServer, Script, TestApp, until};

/// A text.
pub fn say(text: &str) -> Script {
    Script::Say(text.to_owned())
}

/// One call of a tool.
pub fn call(tool: &str, arguments: Value) -> Script {
    Script::Call(vec![(tool.to_owned(), arguments)])
}

/// The id of a resource.
pub fn id(resource: &Value) -> String {
    match &resource["id"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A live key with all scopes of a workspace without agents, and an agent made of `agent`.
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

/// Runs and gives the whole answer.
pub async fn ask(app: &TestApp, key: &Key, run: Value) -> Answer {
    app.post("/runs", key, run).await
}

/// A background run.
pub async fn begin(app: &TestApp, key: &Key, mut run: Value) -> Value {
    run["background"] = true.into();
    ask(app, key, run).await.expect(200)
}

/// A run with its steps.
pub async fn read(app: &TestApp, key: &Key, run: &Value) -> Value {
    app.get(&format!("/runs/{}?include=steps", id(run)), key).await.expect(200)
}

/// Waits until a run has this status, and gives it with its steps.
pub async fn awaited(app: &TestApp, key: &Key, run: &Value, status: &str) -> Value {
    until(&format!("that the run is {status}"), async || {
        let now = read(app, key, run).await;
        (now["status"] == status).then_some(now)
    })
    .await
}

/// Waits until the model was asked so often.
pub async fn prompted(app: &TestApp, times: usize) {
    until(&format!("that the model is asked {times} times"), async || {
        (app.model.prompts().len() >= times).then_some(())
    })
    .await;
}

/// Waits until nobody works on anything, then checks the books: they add up and nothing is left aside.
pub async fn check_books(app: &TestApp, workspace: WorkspaceId) {
    app.service.engine.idle().await;
    let wrong = app.db().read(move |read| billing::ledger::check_invariants(read, workspace)).await.unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(app.open_holds().await, 0, "holds are left open");
    assert_eq!(app.energy_absorbed().await, 0, "a step cost more than was held");
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    n: i64,
}

/// The number `n` of a query.
pub async fn number(app: &TestApp, sql: &str) -> i64 {
    let sql = sql.to_owned();
    let row = app.db().read(move |read| Ok(diesel::sql_query(&sql).get_result::<Number>(read.connection())?));
    row.await.unwrap().n
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    t: Option<String>,
}

/// The texts `t` of a query.
pub async fn texts(app: &TestApp, sql: &str) -> Vec<Option<String>> {
    let sql = sql.to_owned();
    let rows = app.db().read(move |read| Ok(diesel::sql_query(&sql).load::<Text>(read.connection())?));
    rows.await.unwrap().into_iter().map(|row| row.t).collect()
}

/// The kinds of the events so far.
pub async fn events(app: &TestApp) -> Vec<String> {
    let rows = texts(app, "SELECT kind AS t FROM events WHERE kind LIKE 'run.%' ORDER BY sequence").await;
    rows.into_iter().flatten().collect()
}

/// Gives an agent an `http` tool at a server.
pub async fn give_tool(
    app: &TestApp,
    key: &Key,
    agent: &Value,
    name: &str,
    server: &OpenAiServer,
    tool: Value,
) {
    let mut body = json!({ "type": "http", "description": format!("Does {name}."), "http": {} });
    for (field, value) in tool.as_object().unwrap() {
        body[field] = value.clone();
    }
    let path = body["http"]["url"].as_str().unwrap_or("/tool").to_owned();
    body["http"]["url"] = format!("http://{}{path}", server.address).into();
    app.put(&format!("/agents/{}/tools/{name}", agent["id"]), key, body).await.expect(200);
}
