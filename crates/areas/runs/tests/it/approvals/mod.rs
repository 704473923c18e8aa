//! Calls that a person must allow: asking, answering, and what happens when nobody answers or a worker dies.

mod decisions;
mod page;
mod recovery;
mod waiting;

use crate::{ask, give_tool, with_agent};
use auth::RateWindows;
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, OpenAiServer, Script, TestApp};

/// An agent whose tool `pay` writes, and asks as `approval` says.
pub async fn set_up(kind: Kind, approval: &str) -> (TestApp, Key, Value, OpenAiServer) {
    with_payer(TestApp::new(kind).await, approval).await
}

/// The same with a second replica, where the tool always asks. Both are there before the first request: opening a
/// database takes this thread so long on a busy machine that connections kept open are closed meanwhile.
pub async fn set_up_two(kind: Kind) -> ((TestApp, TestApp), Key, Value, OpenAiServer) {
    let app = TestApp::new(kind).await;
    let other = app.replica(RateWindows::local()).await;
    let (app, key, agent, server) = with_payer(app, "always").await;
    ((app, other), key, agent, server)
}

async fn with_payer(app: TestApp, approval: &str) -> (TestApp, Key, Value, OpenAiServer) {
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "pay", &server, json!({ "approval": approval, "http": {} })).await;
    (app, key, agent, server)
}

/// The path under which a run's question is answered.
pub fn path_of(run: &Value) -> String {
    let url = run["required_action"]["approval_url"].as_str().unwrap();
    url.strip_prefix("https://svc.example").unwrap().to_owned()
}

/// A run that asks whether it may pay these sums.
pub async fn asking(app: &TestApp, key: &Key, sums: &[i64], mut run: Value) -> Value {
    let calls = sums.iter().map(|sum| ("pay".to_owned(), json!({ "sum": sum })));
    app.model.then(Script::Call(calls.collect()));
    run["input"] = "Pay".into();
    let run = ask(app, key, run).await.expect(200);
    assert_eq!(run["status"], "requires_action", "{run}");
    run
}

/// Answers as a program does.
pub async fn answer(app: &TestApp, path: &str, body: Value) -> Answer {
    app.ask_beside("POST", path).json(&body).send().await
}

pub async fn approve(app: &TestApp, run: &Value) -> Value {
    answer(app, &path_of(run), json!({ "decision": "approve" })).await.expect(200)
}

pub async fn look(app: &TestApp, path: &str) -> u16 {
    app.ask_beside("GET", path).send().await.status
}

pub fn statuses(run: &Value) -> Vec<&str> {
    run["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect()
}

/// Time passes, and those who look for silent workers look.
pub async fn pass(app: &TestApp, time: Duration) -> usize {
    app.data.clock.advance(time);
    app.service.engine.resume_silent().await.unwrap()
}
