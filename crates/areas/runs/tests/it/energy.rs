//! What runs cost, and what stops them.

use crate::{
    ask, awaited, begin, call, check_books, give_tool, number, prompted, read, say, texts, with_agent,
};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, OpenAiServer, Script, TestApp, until};

fn reason(run: &Value) -> (&str, &str) {
    (run["status"].as_str().unwrap(), run["incomplete_details"]["reason"].as_str().unwrap_or_default())
}

async fn poor(app: &TestApp, energy: i64) -> (Key, Value) {
    let workspace = app.bare_workspace("scale", energy).await;
    let key = app.key(workspace, Env::Live, &["*"]).await;
    let agent = app.post("/agents", &key, json!({ "name": "A", "status": "active" })).await.expect(201);
    (key, agent)
}

async fn available(app: &TestApp, key: &Key) -> (Value, Value) {
    let energy = app.get("/billing/energy", key).await.expect(200);
    (energy["available"].clone(), energy["reserved"].clone())
}

/// What 1,000 Energy cost, in micros.
async fn price(app: &TestApp, key: &Key) -> i64 {
    let sql = "SELECT usd_micros_per_1000_energy AS n FROM plans WHERE id = (SELECT plan_id FROM workspaces WHERE id = {})";
    number(app, &sql.replace("{}", &key.workspace.to_string())).await
}

/// A run with 60 Energy that may wait, until another one takes what it would need.
async fn refused_at_its_turn(app: &TestApp, key: &Key) -> Answer {
    let run = |conversation: &str| json!({ "input": "Hi", "conversation_id": conversation });
    let before = app.model.prompts().len();
    for _ in 0..2 {
        app.model.then(Script::Wait("x".into()));
    }
    app.model.usage(0, 2048);
    let first = begin(app, key, run("c")).await;
    prompted(app, before + 1).await;
    let rest = async {
        until("that it waits", async || {
            let queued = app.get("/runs?status=queued", key).await.expect(200);
            (queued.as_array().unwrap().len() == 1).then_some(())
        })
        .await;
        let other = begin(app, key, run("d")).await;
        prompted(app, before + 2).await;
        app.model.release();
        awaited(app, key, &first, "completed").await;
        other
    };
    let (refused, other) = tokio::join!(ask(app, key, run("c")), rest);
    app.model.usage(10, 5).release();
    awaited(app, key, &other, "completed").await;
    check_books(app, key.workspace).await;
    refused
}

#[testkit::both]
async fn without_energy_nothing_begins(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = poor(&app, 3).await;
    let refused = ask(&app, &key, json!({ "input": "Hi" })).await;
    refused.expect_error(402, "energy_depleted");
    assert!(refused.body["error"].get("recharge_url").is_none(), "there is no such page: {}", refused.text);
    assert_eq!(app.get("/runs", &key).await.expect(200), json!([]));
    assert_eq!((app.model.prompts().len(), available(&app, &key).await), (0, (json!(3), json!(0))));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn energy_that_ends_in_the_middle_keeps_what_was_said(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = poor(&app, 12).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(400, 400).then(call("look", json!({})));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "energy_depleted"), 1));
    assert_eq!(run["energy"]["amount"], 10);
    assert_eq!(available(&app, &key).await, (json!(2), json!(0)));
    // What can be paid is what may be said.
    assert!(app.model.prompts()[0].max_output_tokens < 2048);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_run_has_its_own_limit(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "energy_limit_per_run": 12 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(400, 400).then(call("look", json!({})));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), &run["energy"]["amount"]), (("incomplete", "energy_limit"), &json!(10)));
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_per_run": 1 }))
        .await
        .expect(200);
    let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    assert_eq!(param.as_deref(), Some("energy_limit_per_run"));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_agent_has_a_limit_for_the_month(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "energy_limit_monthly": 60 })).await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute"]).await;
    app.model.usage(0, 2048);
    assert_eq!(ask(&app, &key, json!({ "input": "Hi" })).await.expect(200)["energy"]["amount"], 41);
    // What is left of the month is what may be said.
    app.model.usage(0, 900);
    assert_eq!(ask(&app, &key, json!({ "input": "Hi" })).await.expect(200)["energy"]["amount"], 18);
    assert!((256..=950).contains(&app.model.prompts()[1].max_output_tokens));
    let refused = ask(&app, &key, json!({ "input": "Hi" })).await;
    assert_eq!(refused.expect_error(402, "energy_depleted").as_deref(), Some("energy_limit_monthly"));
    ask(&app, &test, json!({ "input": "Hi" })).await.expect(200);
    // The limit is the agent's, whichever of its versions runs.
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_monthly": 70 }))
        .await
        .expect(200);
    app.model.usage(0, 500);
    ask(&app, &key, json!({ "input": "Hi", "agent_version": 1 })).await.expect(200);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_monthly": null }))
        .await
        .expect(200);
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_monthly": 80 }))
        .await
        .expect(200);
    let refused = ask(&app, &key, json!({ "input": "Hi", "agent_version": 3 })).await;
    refused.expect_error(402, "energy_depleted");
    app.data.clock.advance(chrono::Duration::days(17));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn the_month_ends_runs_that_go_on(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "energy_limit_monthly": 12, "max_steps": 50 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(400, 400).then(call("look", json!({})));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), &run["energy"]["amount"]), (("incomplete", "energy_limit"), &json!(10)));
    assert_eq!((app.model.prompts().len(), server.requests()), (1, 1));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn runs_at_once_never_pass_the_month(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({ "energy_limit_monthly": 100, "max_output_tokens": 256 })).await;
    app.model.usage(0, 256);
    let answers = join_all((0..40).map(|_| ask(&app, &key, json!({ "input": "Hi" })))).await;
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(refused.expect_error(402, "energy_depleted").as_deref(), Some("energy_limit_monthly"));
    }
    check_books(&app, key.workspace).await;
    let spent = number(&app, "SELECT CAST(SUM(energy) AS BIGINT) AS n FROM runs").await;
    assert_eq!(app.agent_month().await, spent);
    // Each costs 6, what the shortest answer worth asking for may cost, so none is made shorter. What others hold may
    // refuse one that could be paid a moment later, but not many of them.
    assert!((50..=100).contains(&spent), "{spent}");
}

#[testkit::both]
async fn a_run_reports_what_was_charged(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = poor(&app, 40).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_per_run": 12 }))
        .await
        .expect(200);
    // It answers far beyond what it was allowed to say, at the last step and at one before it.
    app.model.usage(0, 2048);
    for (first, status) in
        [(say("ok"), ("completed", "")), (call("look", json!({})), ("incomplete", "energy_limit"))]
    {
        app.model.then(first);
        let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        let run = read(&app, &key, &run).await;
        assert_eq!(
            (reason(&run), &run["energy"]["amount"], &run["steps"][0]["energy"]),
            (status, &json!(12), &json!(12))
        );
    }
    app.service.engine.idle().await;
    let reported =
        texts(&app, "SELECT data AS t FROM events WHERE kind LIKE 'run.%' ORDER BY sequence").await;
    let reported: Vec<Value> = reported
        .iter()
        .map(|data| serde_json::from_str::<Value>(data.as_ref().unwrap()).unwrap()["energy"].clone())
        .collect();
    assert_eq!(reported, [json!(12), json!(12)]);
    let executions = app.get("/billing/executions", &key).await.expect(200);
    assert_eq!((&executions[0]["energy"], &executions[1]["energy"]), (&json!(12), &json!(12)));
    assert_eq!(available(&app, &key).await, (json!(16), json!(0)));
    let workspace = key.workspace;
    let wrong = app.db().read(move |read| billing::ledger::check_invariants(read, workspace)).await.unwrap();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(app.energy_absorbed().await, 2 * (41 - 12));
}

#[testkit::both]
async fn absurd_counts_of_tokens_are_not_believed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = poor(&app, 100).await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute"]).await;
    let most = json!(100_000_000);
    app.model.usage(i64::MAX, i64::MAX);
    for key in [&key, &test] {
        let run = ask(&app, key, json!({ "input": "Hi" })).await.expect(200);
        assert_eq!((&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]), (&most, &most));
    }
    app.sql(format!("UPDATE runs SET input_tokens = {}", i64::MAX)).await;
    let usage = app.get(&format!("/agents/{}/usage", agent["id"]), &key).await.expect(200);
    let today = usage["days"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&today["runs"], &today["input_tokens"], &today["output_tokens"]),
        (&json!(2), &json!(i64::MAX), &json!(200_000_000))
    );
}

#[testkit::both]
async fn a_run_that_must_wait_needs_energy_too(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = poor(&app, 30).await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    let run = json!({ "input": "Hi", "conversation_id": "c" });
    app.model.then(Script::Wait("x".into())).usage(10, 5);
    let first = begin(&app, &key, run.clone()).await;
    prompted(&app, 1).await;
    let refused = ask(&app, &key, run.clone()).await;
    refused.expect_error(402, "energy_depleted");
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs").await, 1);
    app.model.then(Script::Wait("y".into()));
    let holder = begin(&app, &test, run.clone()).await;
    let waiting = begin(&app, &test, run.clone()).await;
    assert_eq!(waiting["status"], "queued");
    prompted(&app, 2).await;
    for _ in 0..2 {
        app.model.release();
    }
    awaited(&app, &key, &first, "completed").await;
    awaited(&app, &test, &holder, "completed").await;
    awaited(&app, &test, &waiting, "completed").await;
    ask(&app, &key, run).await.expect(200);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_run_that_is_refused_at_its_turn_says_what_to_do(kind: Kind) {
    let app = TestApp::new(kind).await;
    // Either has 60 Energy: the one is all that there is, the other has no larger budget.
    let (poor, _) = poor(&app, 60).await;
    let (rich, _) = with_agent(&app, json!({})).await;
    let cents = 60 * price(&app, &rich).await / 10_000_000;
    let capped = app
        .key_with(rich.workspace, Env::Live, &["runs:execute", "runs:read"], move |new| {
            new.budget_cents = Some(cents);
        })
        .await;
    for (key, status, code) in [(&poor, 402, "energy_depleted"), (&capped, 429, "budget_exceeded")] {
        let refused = refused_at_its_turn(&app, key).await;
        refused.expect_error(status, code);
        let error = &refused.body["error"];
        assert_eq!(error["details"]["resets_at"].is_string(), status == 429, "{}", refused.text);
        assert!(!refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
        let run = app.get(&format!("/runs/{}", error["run_id"].as_str().unwrap()), key).await.expect(200);
        assert_eq!((&run["error"]["code"], run["error"].as_object().unwrap().len()), (&json!(code), 2));
    }
}

#[testkit::both]
async fn the_month_counts_what_goes_on(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({ "energy_limit_monthly": 30 })).await;
    // The first run may still use 41 Energy, so the month is spoken for until it has used less.
    app.model.then(Script::Wait("x".into())).usage(100, 50);
    let first = begin(&app, &key, json!({ "input": "Hi" })).await;
    let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    assert_eq!(param.as_deref(), Some("energy_limit_monthly"));
    app.model.release();
    awaited(&app, &key, &first, "completed").await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_budget_with_cut_off_stops_runs(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let price = price(&app, &key).await;
    // One cent pays for this much.
    let cent = 10_000 * 1000 / price;
    let capped = app
        .key_with(key.workspace, Env::Live, &["runs:execute", "runs:read"], |new| new.budget_cents = Some(1))
        .await;
    // All but one Energy of it goes with the first step.
    app.model.usage(0, (cent - 1) * 50).then(call("look", json!({}))).then(say("never"));
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "max_output_tokens": 32_000 }))
        .await
        .expect(200);
    let run = ask(&app, &capped, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(reason(&run), ("incomplete", "budget_exceeded"), "{run}");
    ask(&app, &capped, json!({ "input": "Hi" })).await.expect_error(429, "budget_exceeded");
    app.model.usage(10, 5);
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn holds_cover_dense_scripts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = poor(&app, 700).await;
    let input = "天气".repeat(20_000);
    // Two tokens for a character, and an answer of the length that was allowed.
    app.model.usage(0, 0);
    ask(&app, &key, json!({ "input": input, "conversation_id": "a" })).await.expect(200);
    let allowed = app.model.prompts()[0].max_output_tokens;
    app.model.usage(40_000 * 2, allowed);
    let run = ask(&app, &key, json!({ "input": input, "conversation_id": "b" })).await.expect(200);
    assert!(run["energy"]["amount"].as_i64().unwrap() <= 700);
    check_books(&app, key.workspace).await;
}
