//! Calls whose outcome is unknown, and what checks it.

use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, give_tool, read, say, with_agent};
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, TestApp, until};

/// An agent with the tool `pay`, which `paid` checks.
async fn set_up(kind: Kind, timeout: i64) -> (TestApp, Key, OpenAiServer) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let order =
        json!({ "type": "object", "required": ["order"], "properties": { "order": { "type": "integer" } } });
    let paid = json!({ "http": { "method": "GET", "url": "/paid/{order}" }, "parameters": order });
    give_tool(&app, &key, &agent, "paid", &server, paid).await;
    let all = json!({ "type": "object", "properties": { "order": { "type": "integer" }, "sum": { "type": "integer" } } });
    let pay = json!({ "http": {}, "parameters": all, "timeout_seconds": timeout, "verify_with": "paid" });
    give_tool(&app, &key, &agent, "pay", &server, pay).await;
    (app, key, server)
}

fn expect_checked(step: &Value) {
    let result = &step["output"]["result"];
    assert_eq!((&step["output"]["ok"], &result["verified_with"]), (&json!(false), &json!("paid")));
    assert!(result["error"].as_str().unwrap().starts_with("outcome unknown"), "{result}");
    assert_eq!(result["check"], json!({ "ok": true, "result": { "status": 200, "body": { "paid": true } } }));
}

#[testkit::both]
async fn a_call_that_a_crash_interrupted_is_checked(kind: Kind) {
    let (app, key, server) = set_up(kind, 60).await;
    server.then(0, None, Value::Null).then(200, None, json!({ "paid": true }));
    app.model.then(call("pay", json!({ "order": 7, "sum": 3 })));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    until("the tool is called", async || (server.requests() == 1).then_some(())).await;
    let other = replica(&app).await;
    other.model.then(say("It is paid."));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((&run["output"], &run["steps"][1]["status"]), (&json!("It is paid."), &json!("unknown")));
    expect_checked(&run["steps"][1]);
    assert_eq!((&run["usage"]["tool_calls"], server.requests()), (&json!(1), 2));
    assert!(server.heads()[1].starts_with("get /paid/7 "), "{:?}", server.heads());
    assert!(other.model.prompts()[0].messages.last().unwrap().content.contains("\"paid\":true"));
    other.service.engine.idle().await;
    check_books(&other, key.workspace).await;
}

#[testkit::both]
async fn so_is_one_that_took_too_long(kind: Kind) {
    let (app, key, server) = set_up(kind, 1).await;
    server.then(0, None, Value::Null).then(200, None, json!({ "paid": true }));
    app.model.then(call("pay", json!({ "order": 7 }))).then(say("It is paid."));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let step = &read(&app, &key, &run).await["steps"][1];
    assert_eq!(step["status"], "failed");
    expect_checked(step);
}

#[testkit::both]
async fn what_cannot_be_checked_stays_unknown(kind: Kind) {
    let (app, key, server) = set_up(kind, 1).await;
    server.then(0, None, Value::Null);
    app.model.then(call("pay", json!({ "sum": 3 }))).then(say("I do not know."));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let result = read(&app, &key, &run).await["steps"][1]["output"]["result"].clone();
    assert_eq!((&result["check"]["ok"], server.requests()), (&json!(false), 1));
    assert!(result["check"]["result"].as_str().unwrap().contains("do not fit `paid`"), "{result}");
    // A call that failed for sure needs no check.
    server.then(500, None, json!("broken"));
    app.model.then(call("pay", json!({ "order": 7 }))).then(say("It failed."));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(read(&app, &key, &run).await["steps"][1]["output"]["result"]["status"], 500);
    assert_eq!(server.requests(), 2);
}
