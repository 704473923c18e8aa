//! Guardrails of type `topic`: the fast tier says what a text is about.

use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, give_tool, prompted, read, say, with_agent};
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, Script, TestApp};

fn rule(on: &str, topics: Value, action: &str) -> Value {
    json!({ "on": [on], "type": "topic", "topics": topics, "action": action })
}

async fn guarded(kind: Kind, guardrails: Value) -> (TestApp, Key, Value) {
    let app = TestApp::new(kind).await;
    let handoff = json!({ "enabled": true });
    let agent = json!({ "guardrails": guardrails, "handoff": handoff, "fallback_message": "One moment." });
    let (key, agent) = with_agent(&app, agent).await;
    (app, key, agent)
}

fn about(topics: &[&str]) -> Script {
    say(&json!({ "topics": topics }).to_string())
}

async fn said(app: &TestApp, key: &Key, input: &str) -> Value {
    let run = ask(app, key, json!({ "input": input })).await.expect(200);
    read(app, key, &run).await
}

fn kinds(run: &Value) -> Vec<&str> {
    run["steps"].as_array().unwrap().iter().map(|step| step["type"].as_str().unwrap()).collect()
}

fn reason(run: &Value) -> &str {
    run["incomplete_details"]["reason"].as_str().unwrap_or_default()
}

#[testkit::both]
async fn a_blocked_input_costs_only_its_check(kind: Kind) {
    let blocked = rule("input", json!({ "blocked": ["politics", "medicine"] }), "block");
    let (app, key, _) = guarded(kind, json!([blocked])).await;
    app.model.usage(1000, 500).then(about(&["politics"]));
    let run = said(&app, &key, "Whom shall I vote for?").await;
    assert_eq!(
        (&run["status"], reason(&run), &run["output"]),
        (&json!("incomplete"), "guardrail", &Value::Null)
    );
    assert_eq!(kinds(&run), ["check", "guardrail"]);
    let check = &run["steps"][0];
    assert_eq!((&check["status"], &check["tier"]), (&json!("completed"), &json!("fast")));
    assert_eq!(check["input"], json!({ "stage": "input", "topics": ["politics", "medicine"] }));
    assert_eq!(check["output"]["topics"], json!(["politics"]));
    assert!(check["energy"].as_i64() > Some(0), "{check}");
    assert_eq!(run["energy"]["amount"], check["energy"]);
    assert_eq!(run["energy"]["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        run["steps"][1]["output"],
        json!({ "blocked": true, "findings": [{ "guardrail": 0, "type": "topic", "action": "block", "matches": 1 }] })
    );
    let prompts = app.model.prompts();
    assert_eq!((prompts.len(), &*prompts[0].messages[1].content), (1, "Whom shall I vote for?"));
    assert!(prompts[0].messages[0].content.contains("- medicine") && prompts[0].output_schema.is_some());
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_wanted_input_goes_on(kind: Kind) {
    let rules = json!([
        { "on": ["input"], "type": "pii", "action": "mask" },
        rule("input", json!({ "allowed": ["orders"] }), "handoff"),
        rule("input", json!({ "blocked": ["refunds"] }), "flag"),
    ]);
    let (app, key, _) = guarded(kind, rules).await;
    app.model.usage(100, 50).then(about(&["orders"])).then(say("It is on its way."));
    let run = said(&app, &key, "Where is my order? ada@mail.example").await;
    assert_eq!(
        (&run["output"], kinds(&run)),
        (&json!("It is on its way."), vec!["guardrail", "check", "model"])
    );
    // The check has what the guardrails before it leave.
    assert_eq!(app.model.prompts()[0].messages[1].content, "Where is my order? [email]");
    app.model.then(about(&["no topic"])).then(say("Hello!"));
    assert_eq!(said(&app, &key, "Hi").await["output"], "Hello!");
    app.model.then(about(&["another topic"]));
    let run = said(&app, &key, "Tell me a joke.").await;
    assert_eq!((reason(&run), &run["output"]), ("handoff", &json!("One moment.")));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_answer_is_checked_before_anybody_sees_it(kind: Kind) {
    let blocked = |action: &str| rule("output", json!({ "blocked": ["politics"] }), action);
    let (app, key, agent) = guarded(kind, json!([blocked("block")])).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(100, 50);
    app.model.then(call("look", json!({}))).then(say("Vote for the blue ones.")).then(about(&["politics"]));
    let run = said(&app, &key, "Hi").await;
    assert_eq!((reason(&run), &run["output"]), ("guardrail", &Value::Null));
    assert_eq!(kinds(&run), ["model", "tool", "model", "check", "guardrail"]);
    testkit::assert_absent(&run.to_string(), "for the blue ones");
    app.model.then(say("It is on its way.")).then(about(&["another topic"]));
    let run = said(&app, &key, "Hi").await;
    assert_eq!((&run["output"], kinds(&run)), (&json!("It is on its way."), vec!["model", "check"]));
    assert_eq!(run["steps"][0]["output"]["text"], "It is on its way.");
    let total: i64 =
        run["steps"].as_array().unwrap().iter().map(|step| step["energy"].as_i64().unwrap()).sum();
    assert_eq!(run["energy"]["amount"], total);

    let mut replace = blocked("replace");
    replace["replacement"] = "I cannot say.".into();
    let path = format!("/agents/{}", agent["id"]);
    app.patch(&path, &key, json!({ "guardrails": [replace] })).await.expect(200);
    app.model.then(say("Vote for the blue ones.")).then(about(&["politics"]));
    let run = said(&app, &key, "Hi").await;
    assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("I cannot say.")));
    testkit::assert_absent(&run.to_string(), "for the blue ones");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_has_nothing_of_a_blocked_answer(kind: Kind) {
    let (app, key, _) =
        guarded(kind, json!([rule("output", json!({ "blocked": ["politics"] }), "block")])).await;
    for (topics, is_sent) in [(["politics"], false), (["no topic"], true)] {
        app.model.then(Script::Pieces(vec!["Vote blue.".into()])).then(about(&topics));
        let asking = app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi", "stream": true }));
        let text = asking.send().await.text;
        assert_eq!(text.contains("Vote blue."), is_sent, "{text}");
        assert!(text.contains(if is_sent { "run.completed" } else { "run.incomplete" }), "{text}");
    }
}

#[testkit::both]
async fn without_a_check_nothing_goes_further(kind: Kind) {
    let blocks = json!([
        rule("input", json!({ "blocked": ["politics"] }), "block"),
        rule("output", json!({ "blocked": ["politics"] }), "block"),
    ]);
    let (app, key, agent) = guarded(kind, blocks).await;
    for broken in [Script::Fail(ProviderError::Refused("no".into())), say("I do not know"), about(&["cats"])]
    {
        app.model.then(broken.clone());
        let run = said(&app, &key, "Whom shall I vote for?").await;
        assert_eq!((reason(&run), kinds(&run)), ("guardrail_unavailable", vec!["check"]));
        assert_eq!(run["steps"][0]["status"], "failed");
        assert!(run["steps"][0]["output"]["error"].is_string());
        app.model.then(about(&["no topic"])).then(say("Vote for the blue ones.")).then(broken);
        let run = said(&app, &key, "Hi").await;
        assert_eq!((reason(&run), &run["output"]), ("guardrail_unavailable", &Value::Null));
        testkit::assert_absent(&run.to_string(), "for the blue ones");
    }
    // What is only noted does not stop a run.
    let flags = json!([rule("input", json!({ "blocked": ["politics"] }), "flag")]);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "guardrails": flags })).await.expect(200);
    app.model.then(say("I do not know")).then(say("Hello!"));
    let run = said(&app, &key, "Hi").await;
    assert_eq!((&run["output"], kinds(&run)), (&json!("Hello!"), vec!["check", "model"]));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_check_that_a_crash_interrupted_is_made_once_more(kind: Kind) {
    let (app, key, _) =
        guarded(kind, json!([rule("input", json!({ "blocked": ["politics"] }), "block")])).await;
    app.model.then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "Whom shall I vote for?" })).await;
    prompted(&app, 1).await;
    let other = replica(&app).await;
    other.model.then(about(&["politics"]));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "incomplete").await;
    assert_eq!((reason(&run), kinds(&run)), ("guardrail", vec!["check", "check", "guardrail"]));
    assert_eq!(run["steps"][0]["status"], "unknown");
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_answer_whose_check_a_crash_interrupted_is_given_once_more(kind: Kind) {
    let (app, key, _) =
        guarded(kind, json!([rule("output", json!({ "blocked": ["politics"] }), "block")])).await;
    app.model.then(say("Vote for the blue ones.")).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    testkit::assert_absent(&read(&app, &key, &run).await.to_string(), "for the blue ones");
    let other = replica(&app).await;
    other.model.then(say("Hello!")).then(about(&["no topic"]));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((&run["output"], kinds(&run)), (&json!("Hello!"), vec!["model", "check", "model", "check"]));
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_check_that_cannot_be_paid_is_not_made(kind: Kind) {
    let blocked = rule("input", json!({ "blocked": ["politics"] }), "block");
    let (app, key, _) = guarded(kind, json!([blocked])).await;
    app.reserve_all_but(key.workspace, 0).await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    assert_eq!(app.model.prompts().len(), 0);
    app.free_energy(key.workspace).await;
    check_books(&app, key.workspace).await;
}
