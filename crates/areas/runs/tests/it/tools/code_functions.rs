//! Code functions as tools, with scripted functions.

use crate::fakes::{End, Fakes};
use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, read, say, with_agent};
use model::Env;
use ports::{FunctionCaller, FunctionEffect};
use serde_json::{Value, json};
use testkit::{Key, Kind, Script, TestApp, until};

fn schema() -> Value {
    json!({
        "title": "Price", "type": "object", "required": ["stück", "currency"], "additionalProperties": false,
        "properties": {
            "stück": { "type": "number", "title": "Pieces" }, "currency": { "type": "string" }, "note": { "type": "string" },
        },
    })
}

async fn set_up(kind: Kind, effect: FunctionEffect, tool: Value) -> (Fakes, TestApp, Key, Value) {
    let fakes = Fakes::default();
    fakes.publish(effect, schema());
    let app = fakes.app(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give(&app, &key, &agent, tool).await.expect(200);
    (fakes, app, key, agent)
}

async fn give(app: &TestApp, key: &Key, agent: &Value, more: Value) -> testkit::Answer {
    let mut tool = json!({ "type": "function", "ref": 7 });
    for (name, value) in more.as_object().unwrap() {
        tool[name] = value.clone();
    }
    app.put(&format!("/agents/{}/tools/price", agent["id"]), key, tool).await
}

async fn results(app: &TestApp, key: &Key, run: &Value) -> Vec<Value> {
    let run = read(app, key, run).await;
    let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool");
    steps.map(|step| step["output"].clone()).collect()
}

#[testkit::both]
async fn a_code_function_is_called_with_its_own_names_and_exact_numbers(kind: Kind) {
    let fixed = json!({ "fixed_arguments": { "currency": "EUR" } });
    let (fakes, app, key, agent) = set_up(kind, FunctionEffect::Read, fixed).await;
    fakes.then(End::Output("{\"price\":0.10000000000000000555}".to_owned()));
    app.model
        .then(call("price", json!("{\"st_ck\": 12345678901234567890.5, \"note\": \"x\"}")))
        .then(call("price", json!({ "st_ck": 1, "more": 2 })))
        .then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    assert_eq!(run["output"], "Done.");
    let offered = &app.model.prompts()[0].tools[0];
    assert_eq!(offered.description, "Computes prices, version 1.");
    assert_eq!(
        offered.parameters,
        json!({
            "type": "object", "required": ["st_ck"], "additionalProperties": false,
            "properties": { "st_ck": { "type": "number" }, "note": { "type": "string" } },
        })
    );
    let calls = fakes.calls();
    assert_eq!(calls.len(), 1, "arguments that do not fit are not sent");
    assert_eq!(
        calls[0].input.as_str(),
        "{\"stück\":12345678901234567890.5,\"note\":\"x\",\"currency\":\"EUR\"}"
    );
    assert!(matches!(&calls[0].by, FunctionCaller::Run { run: id, .. } if id.as_str() == run["id"]));
    assert_eq!((calls[0].version, calls[0].caller.livemode()), (Some(1), true));
    assert_eq!(calls[0].caller.chain.as_ref().map(|chain| chain.depth), Some(1));
    let told = app.model.prompts()[1].messages.last().unwrap().content.clone();
    assert!(told.contains("0.10000000000000000555"), "{told}");
    assert!(results(&app, &key, &run).await[1]["result"].as_str().unwrap().contains("the arguments"));
    let tool = &app.get(&format!("/agents/{}/tools", agent["id"]), &key).await.expect(200)[0];
    assert_eq!(
        (&tool["ref"], &tool["version"], &tool["type"]),
        (&json!(7), &Value::Null, &json!("function"))
    );
    assert_eq!(tool["functions"][0]["writes"], false);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn failures_are_told_to_the_model(kind: Kind) {
    let (fakes, app, key, _) = set_up(kind, FunctionEffect::Read, json!({})).await;
    fakes
        .then(End::Failure("function_error", Some(1500)))
        .then(End::Refused("The key that published the function was revoked."))
        .then(End::Output(format!("\"{}\"", "é".repeat(40_000))));
    for number in 1..=3 {
        app.model.then(call("price", json!({ "st_ck": number, "currency": "EUR" })));
    }
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    assert_eq!(run["status"], "completed");
    let outputs = results(&app, &key, &run).await;
    let failure =
        json!({ "code": "function_error", "message": "It did not work.", "retry_after_seconds": 2 });
    assert_eq!(outputs[0], json!({ "ok": false, "result": failure }));
    assert_eq!(outputs[1]["result"]["message"], "The key that published the function was revoked.");
    assert!(
        outputs[2]["result"]["truncated"].as_str().unwrap().contains("80002 bytes"),
        "{}",
        outputs[2]["ok"]
    );
}

#[testkit::both]
async fn a_writing_function_writes_once_and_simulates_its_own_tests(kind: Kind) {
    let (fakes, app, key, agent) = set_up(kind, FunctionEffect::Write, json!({})).await;
    fakes.then(End::Output("1".to_owned())).then(End::Failure("function_interrupted", None));
    let arguments = json!({ "st_ck": 1, "currency": "EUR" });
    let other = json!({ "st_ck": 2, "currency": "EUR" });
    app.model.then(call("price", arguments.clone())).then(call("price", arguments.clone()));
    app.model.then(call("price", other)).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    let outputs = results(&app, &key, &run).await;
    assert_eq!((fakes.calls().len(), &outputs[1]["result"]["first"]), (2, &json!(1)));
    assert!(outputs[2]["result"].as_str().unwrap().starts_with("outcome unknown: "), "{}", outputs[2]);
    let keys: Vec<String> = fakes.calls().into_iter().map(|call| call.once).collect();
    assert_ne!(keys[0], keys[1]);
    // With a test key it is called: functions simulate their effects themselves.
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    app.model.then(call("price", arguments.clone())).then(say("Done."));
    ask(&app, &test, json!({ "input": "Do it." })).await.expect(200);
    assert!(fakes.calls().last().is_some_and(|call| !call.caller.livemode()) && fakes.calls().len() == 3);
    // What writes can need an approval.
    give(&app, &key, &agent, json!({ "approval": "on_write" })).await.expect(200);
    app.model.then(call("price", arguments));
    let run = begin(&app, &key, json!({ "input": "Do it." })).await;
    awaited(&app, &key, &run, "requires_action").await;
    assert_eq!(fakes.calls().len(), 3);
}

#[testkit::both]
async fn a_run_keeps_the_version_that_it_began_with(kind: Kind) {
    let (fakes, app, key, agent) = set_up(kind, FunctionEffect::Write, json!({})).await;
    fakes.then(End::Hangs);
    let arguments = json!({ "st_ck": 1, "currency": "EUR" });
    app.model.then(call("price", arguments.clone()));
    let run = begin(&app, &key, json!({ "input": "Do it." })).await;
    until("that the function is called", async || (fakes.calls().len() == 1).then_some(())).await;
    fakes.publish(FunctionEffect::Read, json!({ "type": "object", "properties": { "other": {} } }));
    let other = replica(&app).await;
    fakes.then(End::Output("2".to_owned()));
    other.model.then(say("Done."));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(run["steps"][1]["output"]["result"], 2, "the interrupted call is made once more");
    let calls = fakes.calls();
    assert_eq!((calls[0].version, calls[1].version), (Some(1), Some(1)));
    assert_eq!(calls[0].once, calls[1].once, "as the same effect");
    // The next run has the new one, unless the tool is fixed to the other.
    app.model.then(call("price", json!({ "other": 1 }))).then(say("Done."));
    ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(fakes.calls()[2].version, Some(2));
    assert_eq!(give(&app, &key, &agent, json!({ "version": 1 })).await.expect(200)["version"], 1);
    app.model.then(call("price", arguments.clone())).then(say("Done."));
    ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(fakes.calls()[3].version, Some(1));
    // A function that is switched off stays offered, and says so.
    fakes.switch_off();
    fakes.then(End::Refused("The function is switched off."));
    app.model.then(call("price", arguments)).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(results(&app, &key, &run).await[0]["result"]["message"], "The function is switched off.");
    for (more, param) in [(json!({ "version": 9 }), "ref"), (json!({ "fixed_arguments": { "x": 1 } }), "ref")]
    {
        let refused = give(&app, &key, &agent, more).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}

#[testkit::both]
async fn what_a_function_does_not_have_is_refused(kind: Kind) {
    let (_, app, key, agent) = set_up(kind, FunctionEffect::Read, json!({})).await;
    for (more, param) in [
        (json!({ "ref": 8 }), "ref"),
        (json!({ "version": 2 }), "version"),
        (json!({ "fixed_arguments": { "x": 1 } }), "fixed_arguments.x"),
        (json!({ "fixed_arguments": { "note": 1 } }), "fixed_arguments.note"),
    ] {
        let refused = give(&app, &key, &agent, more).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    // Reads of one answer go together.
    let arguments = |number: i64| ("price".to_owned(), json!({ "st_ck": number, "currency": "EUR" }));
    app.model.then(Script::Call(vec![arguments(1), arguments(1)])).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(results(&app, &key, &run).await.len(), 2);
}

#[testkit::both]
async fn a_published_function_runs_in_the_sandbox(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let code = "export default async (ctx) => ({ twice: ctx.input.pieces * 2, run: ctx.run !== undefined })";
    let pieces =
        json!({ "type": "object", "properties": { "pieces": { "type": "number" } }, "required": ["pieces"] });
    let body = json!({ "name": "price", "code": code, "effect": "read", "input_schema": pieces });
    let function = app.post("/functions", &key, body).await.expect(201);
    let path = format!("/functions/{}", function["id"]);
    let tool = json!({ "type": "function", "ref": function["id"] });
    let tool_path = format!("/agents/{}/tools/price", agent["id"]);
    let refused = app.put(&tool_path, &key, tool.clone()).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("ref"), "it is not published");
    app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    app.put(&tool_path, &key, tool).await.expect(200);
    app.model.then(call("price", json!({ "pieces": 21 }))).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    assert_eq!(
        results(&app, &key, &run).await[0],
        json!({ "ok": true, "result": { "twice": 42, "run": true } })
    );
    let history = app.get(&format!("{path}/invocations"), &key).await.expect(200);
    assert_eq!(history[0]["caller"]["type"], "run", "{history}");
    // A guardrail uses it as well.
    let rule =
        json!([{ "on": ["output"], "type": "function", "function_id": function["id"], "action": "block" }]);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "guardrails": rule })).await.expect(200);
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    assert_eq!(run["incomplete_details"]["reason"], "guardrail", "its input has no pieces, so it fails");
    app.delete(&tool_path, &key).await.expect(200);
    let refused = app.delete(&path, &key).await;
    refused.expect_error(409, "resource_in_use");
    let used_by =
        json!([{ "type": "agent", "id": agent["id"].to_string(), "name": "Assistant", "version": null }]);
    assert_eq!(refused.body["error"]["details"]["used_by"], used_by);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "guardrails": [] })).await.expect(200);
    app.delete(&path, &key).await.expect(200);
}
