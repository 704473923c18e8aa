//! Guardrails that ask code functions, with scripted functions.

use crate::fakes::{End, Fakes};
use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, give_tool, read, say, with_agent};
use ports::{FunctionCaller, FunctionEffect};
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, TestApp, until};

async fn set_up(kind: Kind, guardrails: Value) -> (Fakes, TestApp, Key, Value) {
    let fakes = Fakes::default();
    fakes.publish(FunctionEffect::Read, json!({}));
    let app = fakes.app(kind).await;
    let handoff = json!({ "enabled": true });
    let agent =
        json!({ "guardrails": guardrails, "handoff": handoff, "fallback_message": "A person will help." });
    let (key, agent) = with_agent(&app, agent).await;
    (fakes, app, key, agent)
}

fn rule(on: &str, action: &str) -> Value {
    json!({ "on": [on], "type": "function", "function_id": 7, "action": action })
}

fn answers(value: Value) -> End {
    End::Output(value.to_string())
}

fn input(fakes: &Fakes, place: usize) -> Value {
    serde_json::from_str(fakes.calls()[place].input.as_str()).unwrap()
}

fn findings(run: &Value) -> Vec<Value> {
    let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "guardrail");
    steps.map(|step| json!([step["name"], step["output"]["findings"][0]["reason"]])).collect()
}

#[testkit::both]
async fn a_function_decides_about_the_input(kind: Kind) {
    let (fakes, app, key, _) = set_up(kind, json!([rule("input", "block")])).await;
    fakes
        .then(answers(json!({ "allow": false, "reason": "Not today." })))
        .then(answers(json!({ "allow": true })))
        .then(End::Failure("function_timeout", None));
    let run = ask(&app, &key, json!({ "input": "Hello" })).await.expect(200);
    assert_eq!(
        (&run["status"], &run["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("guardrail"))
    );
    assert_eq!(run["energy"]["amount"], 0, "{run}");
    let run = read(&app, &key, &run).await;
    assert_eq!(findings(&run), [json!(["input", "Not today."])]);
    assert_eq!(input(&fakes, 0), json!({ "stage": "input", "text": "Hello" }));
    assert!(
        matches!(&fakes.calls()[0].by, FunctionCaller::Guardrail { run: id } if id.as_str() == run["id"])
    );
    assert_eq!(app.model.prompts().len(), 0);
    let run = ask(&app, &key, json!({ "input": "Hello" })).await.expect(200);
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("ok")));
    // A function that fails lets nothing through.
    let run = ask(&app, &key, json!({ "input": "Hello" })).await.expect(200);
    assert_eq!(run["incomplete_details"]["reason"], "guardrail");
    let why = "The function failed: It did not work. (function_timeout)";
    assert_eq!(findings(&read(&app, &key, &run).await), [json!(["input", why])]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_function_decides_about_the_answer(kind: Kind) {
    let (fakes, app, key, _) = set_up(kind, json!([rule("output", "mask")])).await;
    fakes
        .then(answers(json!({ "allow": true, "text": "The code is ***." })))
        .then(answers(json!({ "allow": false })))
        .then(answers(json!("yes")));
    app.model.then(say("The code is 1234-5678-9012."));
    let run = ask(&app, &key, json!({ "input": "Code?" })).await.expect(200);
    assert_eq!(run["output"], "The code is ***.");
    let run = read(&app, &key, &run).await;
    assert_eq!(run["steps"][0]["output"]["text"], "The code is ***.");
    testkit::assert_absent(&run.to_string(), "1234-5678-9012");
    assert_eq!(input(&fakes, 0), json!({ "stage": "output", "text": "The code is 1234-5678-9012." }));
    for _ in 0..2 {
        app.model.then(say("The code is 1234-5678-9012."));
        let run = ask(&app, &key, json!({ "input": "Code?" })).await.expect(200);
        assert_eq!(
            (&run["incomplete_details"]["reason"], &run["output"]),
            (&json!("guardrail"), &Value::Null)
        );
        testkit::assert_absent(&read(&app, &key, &run).await.to_string(), "1234-5678-9012.");
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_function_decides_about_calls_and_their_results(kind: Kind) {
    let rules = json!([rule("tool_call", "block"), rule("tool_result", "mask")]);
    let (fakes, app, key, agent) = set_up(kind, rules).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    server.then(200, None, json!("secret-of-somebody"));
    fakes
        .then(answers(json!({ "allow": false, "reason": "No." })))
        .then(answers(json!({ "allow": true })))
        .then(answers(json!({ "allow": true })))
        .then(answers(json!({ "allow": false, "text": "{\"body\":\"***\"}" })));
    app.model
        .then(call("look", json!({ "q": "forbidden-words" })))
        .then(call("look", json!({ "q": "good" })))
        .then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Look" })).await.expect(200);
    assert_eq!((&run["output"], server.requests()), (&json!("Done."), 1));
    assert_eq!(
        input(&fakes, 0),
        json!({ "stage": "tool_call", "text": "{\"q\":\"forbidden-words\"}", "tool": "look" })
    );
    let run = read(&app, &key, &run).await;
    testkit::assert_absent(&run.to_string(), "forbidden-words");
    testkit::assert_absent(&run.to_string(), "secret-of-somebody");
    let result = run["steps"].as_array().unwrap().iter().rfind(|step| step["type"] == "tool").unwrap();
    assert_eq!(result["output"]["result"], json!({ "body": "***" }));
    assert!(findings(&run).contains(&json!(["tool_call", "No."])), "{run}");
    // The withheld call's own result was looked at as well.
    assert_eq!(fakes.calls().len(), 4);
}

#[testkit::both]
async fn handoff_and_flag_work_with_functions(kind: Kind) {
    let (fakes, app, key, _) = set_up(kind, json!([rule("input", "flag"), rule("input", "handoff")])).await;
    fakes.then(End::Failure("function_error", None)).then(answers(json!({ "allow": false })));
    let run = ask(&app, &key, json!({ "input": "Hello" })).await.expect(200);
    assert_eq!(
        (&run["incomplete_details"]["reason"], &run["output"]),
        (&json!("handoff"), &json!("A person will help."))
    );
    assert_eq!(fakes.calls().len(), 2, "a flag stops nothing, also if its function fails");
}

#[testkit::both]
async fn an_input_is_asked_about_once_more_after_a_crash(kind: Kind) {
    let (fakes, app, key, _) = set_up(kind, json!([rule("input", "block")])).await;
    fakes.then(End::Hangs);
    let run = begin(&app, &key, json!({ "input": "Hello" })).await;
    until("that the function is asked", async || (fakes.calls().len() == 1).then_some(())).await;
    fakes.then(answers(json!({ "allow": false, "reason": "No." })));
    let other = replica(&app).await;
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "incomplete").await;
    assert_eq!((findings(&run), other.model.prompts().len()), (vec![json!(["input", "No."])], 0));
}

#[testkit::both]
async fn only_functions_that_read_can_guard(kind: Kind) {
    let (fakes, app, key, agent) = set_up(kind, json!([rule("input", "block")])).await;
    let path = format!("/agents/{}", agent["id"]);
    fakes.publish(FunctionEffect::Write, json!({}));
    let mut unknown = rule("output", "block");
    unknown["function_id"] = 8.into();
    let mut missing = rule("output", "block");
    missing.as_object_mut().unwrap().remove("function_id");
    for (guardrail, field) in [
        (rule("output", "block"), "function_id"),
        (unknown, "function_id"),
        (missing, "function_id"),
        (rule("input", "mask"), "action"),
        (json!({ "on": ["input"], "type": "pii", "action": "mask", "function_id": 7 }), "function_id"),
    ] {
        let refused =
            app.patch(&path, &key, json!({ "guardrails": [rule("input", "block"), guardrail] })).await;
        let param = refused.expect_error(400, "validation_error");
        assert_eq!(param, Some(format!("guardrails[1].{field}")), "{}", refused.text);
    }
    // What is there already stays.
    app.patch(&path, &key, json!({ "description": "New.", "guardrails": [rule("input", "block")] }))
        .await
        .expect(200);
}
