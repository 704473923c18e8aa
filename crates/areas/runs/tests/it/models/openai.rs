//! Servers that speak OpenAI's chat completions, behind the whole service.

use crate::{ask, check_books, give_tool, read, with_agent};
use egress::{Connector, Policy};
use model::{SeededRandom, Trace};
use providers::{
    Message, OpenAi, OpenAiSettings, Prompt, Provider, ProviderError, Role, Route, TierSetup, Tiers,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use telemetry::Tracer;
use testkit::{Kind, OpenAiServer, TestApp};

fn provider(server: &OpenAiServer) -> Arc<dyn Provider> {
    let connector = Connector::new(Policy::allowing(["127.0.0.0/8"]).unwrap()).unwrap();
    let settings = OpenAiSettings { base_url: server.base_url(), api_key: Some("sk-1".into()) };
    Arc::new(OpenAi::new(settings, connector))
}

pub async fn set_up(kind: Kind) -> (TestApp, OpenAiServer) {
    let server = OpenAiServer::start().await;
    (TestApp::with_provider(kind, provider(&server)).await, server)
}

pub fn says(text: &str) -> Value {
    json!({ "choices": [{ "message": { "content": text }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } })
}

#[testkit::both]
async fn tools_schemas_and_usage_go_over_the_wire(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let schema = json!({ "type": "object" });
    let format = json!({ "type": "json_schema", "schema": schema });
    let (key, agent) = with_agent(
        &app,
        json!({ "instructions": "Be brief.", "temperature": 0.5, "response_format": format }),
    )
    .await;
    let target = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &target, json!({ "http": { "method": "GET" } })).await;
    server.then(200, None, json!({
        "choices": [{ "finish_reason": "tool_calls", "message": { "content": null, "tool_calls": [
            { "id": "call_9", "type": "function", "function": { "name": "look", "arguments": "{\"q\":1}" } },
        ] } }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100,
            "prompt_tokens_details": { "cached_tokens": 400 }, "completion_tokens_details": { "reasoning_tokens": 60 } },
    }));
    server.then(200, None, says("{\"a\":\"\\u0000b\"}"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["output_data"], json!({ "a": "\u{0}b" }));
    let used = json!({ "input_tokens": 1010, "cached_tokens": 400, "output_tokens": 105, "reasoning_tokens": 60, "model_calls": 2, "tool_calls": 1 });
    assert_eq!(run["usage"], used);
    // 600 × 5 + 400 × 2 + 100 × 20 thousandths, rounded up, and 1 for the second step.
    assert_eq!(run["energy"]["amount"], 6 + 1);
    let (first, second) = (&server.bodies()[0], &server.bodies()[1]);
    assert_eq!(
        (&first["model"], &first["temperature"], &first["max_tokens"]),
        (&json!("scripted"), &json!(0.5), &json!(2048))
    );
    assert_eq!(first["tools"][0]["function"]["name"], "look");
    assert_eq!(first["response_format"]["json_schema"]["schema"], schema);
    assert_eq!(first["messages"][1], json!({ "role": "user", "content": "Hi" }));
    assert_eq!(second["messages"][2]["tool_calls"][0]["id"], "call_9");
    assert_eq!(
        (&second["messages"][3]["role"], &second["messages"][3]["tool_call_id"]),
        (&json!("tool"), &json!("call_9"))
    );
    assert!(
        server.heads()[0].contains("authorization: bearer sk-1")
            && server.heads()[0].starts_with("post /v1/chat/completions")
    );
    let steps = read(&app, &key, &run).await["steps"].clone();
    assert_eq!(
        (&steps[0]["name"], &steps[0]["input_tokens"], &steps[0]["energy"]),
        (&json!("scripted-1"), &json!(1000), &json!(6))
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn usage_that_is_not_reported_is_estimated(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({ "instructions": "x".repeat(4001) })).await;
    server.then(200, None, json!({ "choices": [{ "message": { "content": "12345" } }] })).then(
        200,
        None,
        says("told"),
    );
    let run = ask(&app, &key, json!({ "input": "1234567" })).await.expect(200);
    // A token for four characters, rounded up: 4,008 and 5 characters.
    assert_eq!((&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]), (&json!(1002), &json!(2)));
    assert_eq!(run["energy"]["amount"], 6, "1,002 × 5 + 2 × 20 thousandths");
    assert_eq!(read(&app, &key, &run).await["steps"][0]["output"]["usage_estimated"], true);
    let reported = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(read(&app, &key, &reported).await["steps"][0]["output"].get("usage_estimated"), None);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn faults_that_may_pass_are_tried_again(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    server.then(429, Some(0), json!({})).then(500, Some(0), json!({})).then(503, Some(0), json!({})).then(
        200,
        None,
        says("up"),
    );
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((&run["output"], server.requests()), (&json!("up"), 4));
    let failed = json!({ "model": "scripted", "reason": "unavailable" });
    let output = &read(&app, &key, &run).await["steps"][0]["output"];
    assert_eq!(output["failed_attempts"], json!([failed, failed, failed]));
    for _ in 0..4 {
        server.then(500, Some(0), json!({}));
    }
    let down = ask(&app, &key, json!({ "input": "Hi" })).await;
    let id = down.body["error"]["run_id"].clone();
    down.expect_error(502, "model_unavailable");
    let step = &read(&app, &key, &json!({ "id": id })).await["steps"][0];
    assert_eq!(
        (&step["status"], &step["output"]),
        (&json!("failed"), &json!({ "failed_attempts": [failed, failed, failed, failed] }))
    );
    assert_eq!(server.requests(), 8);
    // Who asks for more patience than the run has is not waited for.
    server.then(429, Some(600), json!({}));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(502, "model_unavailable");
    assert_eq!(server.requests(), 9);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_a_server_holds_back_is_no_whole_answer(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let mut answer = says("Once upon");
    answer["choices"][0]["finish_reason"] = json!("content_filter");
    server.then(200, None, answer);
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((&run["status"], &run["output"]), (&json!("incomplete"), &json!("Once upon")));
    assert_eq!(run["incomplete_details"]["reason"], "content_filter");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn faults_that_stay_are_not(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (number, (status, body, code)) in [
        (400, json!({ "error": "too long" }), "agent_failed"),
        (401, json!({}), "model_unavailable"),
        (200, json!({}), "model_unavailable"),
        (200, json!({ "choices": [] }), "model_unavailable"),
        (200, json!("<html>"), "model_unavailable"),
    ]
    .into_iter()
    .enumerate()
    {
        server.then(status, None, body);
        ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(502, code);
        assert_eq!(server.requests(), number + 1);
    }
    check_books(&app, key.workspace).await;
}

pub fn prompt(patience: Duration) -> Prompt {
    Prompt {
        model: String::new(),
        messages: vec![Message::text(Role::User, "Hi")],
        tools: Vec::new(),
        output_schema: None,
        max_output_tokens: 16,
        temperature: None,
        patience,
        cancel: Default::default(),
        sink: None,
        attempts: Default::default(),
        trace: Trace::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Some("a=b")),
        tracer: Tracer::off(Arc::new(SeededRandom::new(1))),
    }
}

fn tier(servers: &[&OpenAiServer]) -> TierSetup {
    let route = |(number, server): (usize, &&OpenAiServer)| Route {
        provider: provider(server),
        model: format!("m{number}"),
        label: format!("label-{number}"),
        context_tokens: 8192,
    };
    TierSetup { routes: servers.iter().enumerate().map(route).collect(), prices: Tiers::DEFAULT_PRICES[0] }
}

#[tokio::test]
async fn where_a_model_is_unavailable_the_next_answers() {
    let (one, two) = (OpenAiServer::start().await, OpenAiServer::start().await);
    let tier = tier(&[&one, &two]);
    one.then(401, None, json!({}));
    two.then(200, None, says("second"));
    let answered = tier.complete(prompt(Duration::from_secs(20))).await.unwrap();
    assert_eq!((answered.completion.text.as_str(), answered.label.as_str()), ("second", "label-1"));
    assert_eq!((&one.bodies()[0]["model"], &two.bodies()[0]["model"]), (&json!("m0"), &json!("m1")));
    for server in [&one, &two] {
        let head = &server.heads()[0];
        let trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-";
        assert!(head.contains(trace) && head.contains("tracestate: a=b"), "{head}");
        assert!(!head.contains("b7ad6b7169203331"), "each request has a span id of its own: {head}");
    }
    // What a model refuses, others are not asked.
    one.then(400, None, json!({}));
    let refused = tier.complete(prompt(Duration::from_secs(20))).await;
    assert!(matches!(refused, Err(ProviderError::Refused(_))));
    assert_eq!(two.requests(), 1);
}

#[tokio::test]
async fn a_model_that_hangs_leaves_time_for_the_next() {
    let (one, two) = (OpenAiServer::start().await, OpenAiServer::start().await);
    one.then(0, None, Value::Null);
    two.then(200, None, says("second"));
    let answered = tier(&[&one, &two]).complete(prompt(Duration::from_secs(4))).await.unwrap();
    assert_eq!((answered.completion.text.as_str(), one.requests()), ("second", 1));
}

#[tokio::test]
async fn requests_follow_the_options_of_the_model() {
    let server = OpenAiServer::start().await;
    let refusal =
        |param: &str, code: &str| json!({ "error": { "message": "No.", "param": param, "code": code } });
    server.then(400, None, refusal("max_tokens", "unsupported_parameter"));
    server.then(400, None, refusal("temperature", "unsupported_value"));
    server.then(200, None, says("one")).then(200, None, says("two"));
    let tier = tier(&[&server]);
    for text in ["one", "two"] {
        let asking = Prompt { temperature: Some(0.5), ..prompt(Duration::from_secs(20)) };
        assert_eq!(tier.complete(asking).await.unwrap().completion.text, text);
    }
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 4, "what was learned is remembered");
    assert_eq!((&bodies[0]["max_tokens"], &bodies[0]["temperature"]), (&json!(16), &json!(0.5)));
    assert_eq!((&bodies[1]["max_completion_tokens"], &bodies[1]["temperature"]), (&json!(16), &json!(0.5)));
    let learned = json!({ "model": "m0", "messages": bodies[0]["messages"], "max_completion_tokens": 16 });
    assert_eq!((&bodies[2], &bodies[3]), (&learned, &learned));
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_and_a_cancelled_call_ends() {
    let server = OpenAiServer::start().await;
    server.then(0, None, Value::Null).then(0, None, Value::Null);
    let tier = tier(&[&server]);
    let late = tier.complete(prompt(Duration::from_secs(1))).await;
    assert_eq!(late.unwrap_err(), ProviderError::Timeout);
    let asking = prompt(Duration::from_secs(60));
    let cancel = asking.cancel.clone();
    let (answer, ()) = tokio::join!(tier.complete(asking), async {
        testkit::until("the server is asked", async || (server.requests() == 2).then_some(())).await;
        cancel.cancel();
    });
    assert_eq!(answer.unwrap_err(), ProviderError::Cancelled);
}
