//! Traces: what comes with a request goes on to models, tools and webhooks.

use crate::{awaited, call, give_tool, id, prompted, say, with_agent};
use auth::RateWindows;
use chrono::Duration;
use diesel::prelude::*;
use model::Trace;
use serde_json::json;
use testkit::{Kind, OpenAiServer, Receiver, Script, TestApp, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "congo=t61rcWkgMzE";

/// Checks that a `traceparent` is in the trace of [`PARENT`], below another span.
#[track_caller]
fn is_child(parent: &str) {
    assert!(parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-01"), "{parent}");
    assert!(parent.len() == PARENT.len() && parent != PARENT, "{parent}");
}

async fn logged_trace(app: &TestApp, request: &str) -> Option<String> {
    use operation::schema::request_logs::dsl::{request_logs, trace_id};
    let request = request.to_owned();
    until("the request is logged", async || {
        let request = request.clone();
        let read = move |read: &mut store::Read| {
            Ok(request_logs.find(request).select(trace_id).get_result(read.connection()).optional()?)
        };
        app.db().read(read).await.unwrap()
    })
    .await
}

#[testkit::both]
async fn a_trace_goes_through_a_run_and_survives_its_worker(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (server, receiver) = (OpenAiServer::start().await, Receiver::start().await);
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let endpoint = json!({ "url": receiver.url("/"), "enabled_events": ["run.completed"] });
    app.post("/webhook-endpoints", &key, endpoint).await.expect(201);
    app.model.then(call("look", json!({}))).then(Script::Wait("too late".into()));
    let begun = app
        .ask("POST", "/runs")
        .key(&key)
        .header("traceparent", PARENT)
        .header("tracestate", STATE)
        .json(&json!({ "input": "Hi", "background": true }))
        .send()
        .await;
    assert_eq!(begun.headers["traceparent"], PARENT);
    assert_eq!(logged_trace(&app, &begun.headers["x-request-id"]).await.as_deref(), Some(TRACE));
    let run = begun.expect(200);
    assert_eq!(run["trace_id"], TRACE);
    prompted(&app, 2).await;
    for prompt in app.model.prompts() {
        is_child(&prompt.trace.unwrap().parent());
    }
    let head = &server.heads()[0];
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    is_child(header("traceparent:"));
    assert_eq!(header("tracestate:"), STATE.to_lowercase());

    let other = app.replica(RateWindows::local()).await;
    other.model.then(say("done"));
    app.data.clock.advance(Duration::seconds(31));
    assert_eq!(other.service.engine.resume_silent().await.unwrap(), 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(run["trace_id"], TRACE);
    is_child(&other.model.prompts()[0].trace.clone().unwrap().parent());
    assert_eq!(app.deliver().await, 1);
    let delivered = receiver.delivered().remove(0);
    is_child(&delivered.headers["traceparent"]);
}

#[testkit::both]
async fn a_trace_begins_with_a_request_that_has_none(kind: Kind) {
    let app = TestApp::new(kind).await;
    let receiver = Receiver::start().await;
    let (key, _) = with_agent(&app, json!({})).await;
    let endpoint = json!({ "url": receiver.url("/"), "enabled_events": ["run.completed"] });
    app.post("/webhook-endpoints", &key, endpoint).await.expect(201);
    for (number, bad) in
        ["", "nonsense", "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"].into_iter().enumerate()
    {
        let asking = app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi" }));
        let asking = if bad.is_empty() { asking } else { asking.header("traceparent", bad) };
        let answer = asking.header("tracestate", STATE).send().await;
        let request = answer.headers["x-request-id"].clone();
        assert_eq!(answer.headers.get("traceparent"), None);
        assert_eq!(logged_trace(&app, &request).await, None);
        let run = answer.expect(200);
        let trace = Trace::of_id(&request).id();
        assert_eq!(run["trace_id"], trace, "{}", id(&run));
        assert_eq!(app.deliver().await, 1);
        let delivered = receiver.delivered().remove(number);
        assert_eq!(&delivered.headers["traceparent"][3..35], trace);
        assert_eq!(delivered.headers.get("tracestate"), None);
    }
    // One that came twice is none.
    let asking = app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi" }));
    let twice = asking.header("traceparent", PARENT).header("traceparent", PARENT).send().await;
    assert_ne!(twice.expect(200)["trace_id"], TRACE);
}
