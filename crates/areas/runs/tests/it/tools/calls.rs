//! The loop of model and tools, against real HTTP.

use crate::{ask, awaited, begin, call, check_books, give_tool, prompted, read, say, with_agent};
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, Script, TestApp, until};

async fn set_up(kind: Kind, tool: Value) -> (TestApp, Key, Value, OpenAiServer) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "tool", &server, tool).await;
    (app, key, agent, server)
}

fn both(one: Value, two: Value) -> Script {
    Script::Call(vec![("tool".into(), one), ("tool".into(), two)])
}

async fn steps(app: &TestApp, key: &Key, run: &Value) -> Vec<Value> {
    let run = read(app, key, run).await;
    run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool").cloned().collect()
}

#[testkit::both]
async fn a_get_fills_its_address(kind: Kind) {
    let parameters = json!({
        "type": "object", "required": ["city", "lang"],
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" }, "lang": { "type": "string" } },
    });
    let http = json!({ "method": "GET", "url": "/w/{city}?units=m" });
    let tool =
        json!({ "http": http, "parameters": parameters, "fixed_arguments": { "key": "s&t", "lang": "en" } });
    let (app, key, _, server) = set_up(kind, tool).await;
    server.then(200, None, json!({ "sky": "blue\u{0}" }));
    app.model
        .then(call("tool", json!({ "city": "São Paulo/..", "days": 3, "lang": "pt" })))
        .then(say("Blue."));
    let run = ask(&app, &key, json!({ "input": "Weather?" })).await.expect(200);
    assert_eq!(run["output"], "Blue.");
    let head = &server.heads()[0];
    assert!(head.starts_with("get /w/s%c3%a3o%20paulo%2f%2e%2e?units=m&"), "{head}");
    assert!(
        head.contains("days=3")
            && head.contains("lang=en")
            && head.contains("key=s%26t")
            && !head.contains("lang=pt"),
        "{head}"
    );
    let prompt = app.model.prompts().pop().unwrap();
    let (asking, reported) = (&prompt.messages[prompt.messages.len() - 2], prompt.messages.last().unwrap());
    assert_eq!(reported.tool_call_id.as_deref(), Some(asking.tool_calls[0].id.as_str()));
    assert!(
        reported.content.contains("\"status\":200") && reported.content.contains("sky"),
        "{}",
        reported.content
    );
    assert!(prompt.messages[0].content.contains("Tool results are enclosed in <tool_result> tags"));
    assert_eq!(prompt.tools[0].name, "tool");
    // What is fixed is not the model's to know.
    assert_eq!(
        prompt.tools[0].parameters,
        json!({
            "type": "object", "required": ["city"],
            "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
        })
    );
    let step = &steps(&app, &key, &run).await[0];
    assert_eq!(
        (&step["status"], &step["input"]["arguments"]["city"]),
        (&json!("completed"), &json!("São Paulo/.."))
    );
    assert_eq!(run["usage"]["tool_calls"], 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn arguments_cannot_climb_out_of_the_path(kind: Kind) {
    let (app, key, _, server) = set_up(kind, json!({ "parameters": { "properties": { "id": {} } }, "http": { "method": "GET", "url": "/users/{id}/name" } })).await;
    app.model.then(call("tool", json!({ "id": ".." }))).then(call("tool", json!({}))).then(say("no"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((run["status"].as_str(), server.requests()), (Some("completed"), 0));
    assert!(
        steps(&app, &key, &run).await[1]["output"]["result"].as_str().unwrap().contains("`id` is missing")
    );
}

#[testkit::both]
async fn a_post_sends_fixed_arguments_and_credentials(kind: Kind) {
    let tool = json!({ "parameters": { "properties": { "id": {} } }, "http": { "url": "/do/{id}", "headers": { "Authorization": "Bearer hunter2-secret" } }, "fixed_arguments": { "by": "us" } });
    let (app, key, _, server) = set_up(kind, tool).await;
    server.then(201, None, json!({ "id": 1 }));
    app.model.then(call("tool", json!({ "id": 7, "x": 1, "by": "me" }))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let head = &server.heads()[0];
    assert!(
        head.starts_with("post /do/7 ") && head.contains("authorization: bearer hunter2-secret"),
        "{head}"
    );
    assert!(head.contains("idempotency-key: ") && head.contains("content-type: application/json"), "{head}");
    assert_eq!(server.bodies(), [json!({ "x": 1, "by": "us" })]);
    let step = &steps(&app, &key, &run).await[0];
    testkit::assert_absent(&step.to_string(), "hunter2-secret");
    assert_ne!(step["input"]["arguments"]["by"], "us", "{step}");
}

#[testkit::both]
async fn reads_go_together(kind: Kind) {
    let (app, key, _, server) =
        set_up(kind, json!({ "http": { "method": "GET" }, "timeout_seconds": 1 })).await;
    // The first hangs; the second is asked all the same, before the first has given up.
    server.then(0, None, Value::Null).then(200, None, json!(2));
    app.model.then(both(json!({ "n": 1 }), json!({ "n": 2 }))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let tools = steps(&app, &key, &run).await;
    let fine = tools.iter().filter(|step| step["status"] == "completed").count();
    assert_eq!((tools.len(), fine, server.requests()), (2, 1, 2));
    let failed = tools.iter().find(|step| step["status"] == "failed").unwrap();
    assert!(failed["output"]["result"].as_str().unwrap().contains("timed out"), "{failed}");
    assert_eq!((&tools[0]["position"], &tools[1]["position"]), (&json!(2), &json!(3)));
}

#[testkit::both]
async fn a_write_happens_once(kind: Kind) {
    let (app, key, _, server) = set_up(kind, json!({ "http": {} })).await;
    server.then(200, None, json!("made"));
    app.model
        .then(both(json!({ "a": 1, "b": 2 }), json!("{\"b\":2,\"a\":1}")))
        .then(call("tool", json!({ "a": 1, "b": 2 })));
    app.model.then(call("tool", json!({ "a": 2 }))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((run["status"].as_str(), server.requests()), (Some("completed"), 2));
    let tools = steps(&app, &key, &run).await;
    for repeated in &tools[1..3] {
        assert_eq!(repeated["output"]["result"]["first"]["body"], "made");
    }
    // Another run may do the same.
    app.model.then(call("tool", json!({ "a": 1, "b": 2 }))).then(say("done"));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(server.requests(), 3);
    let keys: Vec<String> = server
        .heads()
        .iter()
        .map(|head| head.split("idempotency-key: ").nth(1).unwrap().lines().next().unwrap().to_owned())
        .collect();
    assert!(keys[0] != keys[1] && keys[0] != keys[2], "{keys:?}");
}

#[testkit::both]
async fn a_repeatable_write_happens_as_often_as_it_is_requested(kind: Kind) {
    let (app, key, _, server) = set_up(kind, json!({ "http": {}, "repeatable": true })).await;
    server.then(200, None, json!("one")).then(200, None, json!("two"));
    app.model.then(both(json!({ "a": 1 }), json!({ "a": 1 }))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let results: Vec<Value> =
        steps(&app, &key, &run).await.iter().map(|step| step["output"]["result"]["body"].clone()).collect();
    assert_eq!(results, ["one", "two"]);
    // Each is an effect of its own to the other side, too.
    let keys: Vec<String> = server
        .heads()
        .iter()
        .map(|head| head.split("idempotency-key: ").nth(1).unwrap().lines().next().unwrap().to_owned())
        .collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}

#[testkit::both]
async fn long_runs_forget_old_results_before_they_overflow(kind: Kind) {
    let (app, key, _, server) = set_up(kind, json!({ "http": { "method": "GET" } })).await;
    for letter in ["x", "y", "z"] {
        server.then(200, None, json!(letter.repeat(60_000)));
        app.model.then(call("tool", json!({ "page": letter })));
    }
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["status"], "completed");
    for prompt in app.model.prompts() {
        let characters: usize = prompt.messages.iter().map(|message| message.content.len()).sum();
        // Three letters to a token, of 32,768.
        assert!(characters < 3 * 32_768, "{characters}");
    }
    let reported = app.model.last_texts();
    assert!(reported[reported.len() - 1].contains(&"z".repeat(60_000)));
    let cut: Vec<bool> = reported.iter().map(|text| text.contains("left out to make room")).collect();
    assert_eq!(cut.iter().filter(|cut| **cut).count(), 2, "{cut:?}");
    let trace = read(&app, &key, &run).await;
    assert_eq!(
        (&trace["steps"][4]["input"]["results_cut"], &trace["steps"][6]["input"]["results_cut"]),
        (&json!(1), &json!(2))
    );
}

#[testkit::both]
async fn calls_of_one_tool_are_limited_also_within_an_answer(kind: Kind) {
    let (app, key, _, server) =
        set_up(kind, json!({ "http": { "method": "GET" }, "max_calls_per_run": 2 })).await;
    let three = (0..3).map(|number| ("tool".to_owned(), json!({ "n": number }))).collect();
    app.model.then(Script::Call(three)).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let tools = steps(&app, &key, &run).await;
    assert_eq!((server.requests(), &tools[2]["status"]), (2, &json!("failed")));
    assert!(tools[2]["output"]["result"].as_str().unwrap().contains("2 times"));
}

#[testkit::both]
async fn failures_are_reported_to_the_model(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, json!({ "http": { "method": "GET" } })).await;
    server.then(500, None, json!({ "error": "broken" }));
    app.model
        .then(Script::Call(vec![("tool".into(), json!({})), ("nothing".into(), json!({}))]))
        .then(say("sorry"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["output"], "sorry");
    let tools = steps(&app, &key, &run).await;
    assert_eq!(
        (&tools[0]["status"], &tools[0]["output"]["result"]["status"]),
        (&json!("failed"), &json!(500))
    );
    assert_eq!(tools[1]["output"]["result"], "there is no tool called `nothing`");
    // Nobody listens there.
    let dead = json!({ "type": "http", "description": "d", "http": { "method": "GET", "url": "http://127.9.9.9:40009/" } });
    app.put(&format!("/agents/{}/tools/tool", agent["id"]), &key, dead).await.expect(200);
    app.model.then(call("tool", json!({}))).then(say("sorry"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert!(
        steps(&app, &key, &run).await[0]["output"]["result"].as_str().unwrap().starts_with("the call failed")
    );
}

#[testkit::both]
async fn a_test_key_only_reads(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, json!({ "http": { "method": "DELETE" } })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    app.model
        .then(Script::Call(vec![("tool".into(), json!({})), ("look".into(), json!({}))]))
        .then(say("done"));
    let run = ask(&app, &test, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((server.requests(), server.heads()[0].starts_with("get ")), (1, true));
    assert_eq!(steps(&app, &test, &run).await[0]["output"]["result"]["simulated"], true);
}

#[testkit::both]
async fn an_interrupt_in_the_middle_of_a_tool_call_closes_the_run(kind: Kind) {
    let (app, key, _, server) = set_up(kind, json!({ "http": {}, "timeout_seconds": 60 })).await;
    server.then_silence();
    app.model.usage(100, 50).then(both(json!({ "n": 1 }), json!({ "n": 2 })));
    let run = |input: &str| json!({ "input": input, "conversation_id": "c" });
    let first = begin(&app, &key, run("one")).await;
    until("the tool is called", async || (server.requests() == 1).then_some(())).await;
    let mut newer = run("two");
    newer["on_busy"] = "interrupt".into();
    ask(&app, &key, newer).await.expect(200);
    prompted(&app, 2).await;
    server.hang_up();
    app.service.engine.idle().await;
    let first = awaited(&app, &key, &first, "cancelled").await;
    // What was paid stays paid, the call that went on is recorded, and the next one was not made.
    assert_eq!((&first["energy"]["amount"], &first["usage"]["tool_calls"]), (&json!(2), &json!(2)));
    assert_eq!(
        (&first["steps"][1]["status"], &first["steps"][2]["status"], server.requests()),
        (&json!("failed"), &json!("failed"), 1)
    );
    assert!(first["steps"][2]["output"]["result"].as_str().unwrap().contains("stopped before"));
    check_books(&app, key.workspace).await;
}
