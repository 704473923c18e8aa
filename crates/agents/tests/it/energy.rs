//! What runs cost, and what stops them.

use crate::{ask, awaited, begin, call, check_books, give_tool, say, texts, with_agent};
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, OpenAiServer, TestApp};

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

testkit::on_both! {
    async fn without_energy_nothing_begins(kind: Kind) {
        let app = TestApp::new(kind).await;
        let (key, _) = poor(&app, 3).await;
        let refused = ask(&app, &key, json!({ "input": "Hi" })).await;
        refused.expect_error(402, "energy_depleted");
        assert!(refused.body["error"]["recharge_url"].as_str().is_some_and(|url| url.starts_with("https://")), "{}", refused.text);
        assert_eq!(app.get("/runs", &key).await.expect(200), json!([]));
        assert_eq!((app.model.asked().len(), available(&app, &key).await), (0, (json!(3), json!(0))));
        check_books(&app, key.workspace).await;
    }

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
        assert!(app.model.asked()[0].max_output_tokens < 2048);
        check_books(&app, key.workspace).await;
    }

    async fn a_run_has_its_own_limit(kind: Kind) {
        let app = TestApp::new(kind).await;
        let server = OpenAiServer::start().await;
        let (key, agent) = with_agent(&app, json!({ "energy_limit_per_run": 12 })).await;
        give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
        app.model.usage(400, 400).then(call("look", json!({})));
        let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        assert_eq!((reason(&run), &run["energy"]["amount"]), (("incomplete", "energy_limit"), &json!(10)));
        app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_per_run": 1 })).await.expect(200);
        let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
        assert_eq!(param.as_deref(), Some("energy_limit_per_run"));
        check_books(&app, key.workspace).await;
    }

    async fn an_agent_has_a_limit_for_the_month(kind: Kind) {
        let app = TestApp::new(kind).await;
        let (key, _) = with_agent(&app, json!({ "energy_limit_monthly": 60 })).await;
        let test = app.key(key.workspace, Env::Test, &["runs:execute"]).await;
        // Each spends 41.
        app.model.then(testkit::Script::Wait("x".into())).usage(0, 2048);
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(begin(&app, &key, json!({ "input": "Hi", "conversation_id": "c" })).await);
        }
        app.model.release();
        for (run, status) in runs.iter().zip(["completed", "completed", "failed"]) {
            let run = awaited(&app, &key, run, status).await;
            assert_eq!(run["error"]["code"].as_str(), (status == "failed").then_some("energy_depleted"));
        }
        let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
        assert_eq!(param.as_deref(), Some("energy_limit_monthly"));
        ask(&app, &test, json!({ "input": "Hi" })).await.expect(200);
        app.data.clock.advance(chrono::Duration::days(17));
        ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        check_books(&app, key.workspace).await;
    }

    async fn the_month_counts_what_goes_on(kind: Kind) {
        let app = TestApp::new(kind).await;
        let (key, _) = with_agent(&app, json!({ "energy_limit_monthly": 30 })).await;
        // The first run may still use 41 Energy, so the month is spoken for until it has used less.
        app.model.then(testkit::Script::Wait("x".into())).usage(100, 50);
        let first = begin(&app, &key, json!({ "input": "Hi" })).await;
        let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
        assert_eq!(param.as_deref(), Some("energy_limit_monthly"));
        app.model.release();
        awaited(&app, &key, &first, "completed").await;
        ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        check_books(&app, key.workspace).await;
    }

    async fn a_budget_with_cut_off_stops_runs(kind: Kind) {
        let app = TestApp::new(kind).await;
        let server = OpenAiServer::start().await;
        let (key, agent) = with_agent(&app, json!({})).await;
        give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
        let price = texts(&app, &format!("SELECT CAST(usd_micros_per_1000_energy AS TEXT) AS t FROM plans WHERE id = (SELECT plan_id FROM workspaces WHERE id = {})", key.workspace)).await;
        let price: i64 = price[0].as_ref().unwrap().parse().unwrap();
        // One cent pays for this much.
        let cent = 10_000 * 1000 / price;
        let capped = app.key_with(key.workspace, Env::Live, &["runs:execute", "runs:read"], |new| new.budget_cents = Some(1)).await;
        // All but one Energy of it goes with the first step.
        app.model.usage(0, (cent - 1) * 50).then(call("look", json!({}))).then(say("never"));
        app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "max_output_tokens": 32_000 })).await.expect(200);
        let run = ask(&app, &capped, json!({ "input": "Hi" })).await.expect(200);
        assert_eq!(reason(&run), ("incomplete", "budget_exceeded"), "{run}");
        ask(&app, &capped, json!({ "input": "Hi" })).await.expect_error(429, "budget_exceeded");
        app.model.usage(10, 5);
        ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        check_books(&app, key.workspace).await;
    }

    async fn holds_cover_dense_scripts(kind: Kind) {
        let app = TestApp::new(kind).await;
        let (key, _) = poor(&app, 700).await;
        let input = "天气".repeat(20_000);
        // Two tokens for a character, and an answer of the length that was allowed.
        app.model.usage(0, 0);
        ask(&app, &key, json!({ "input": input, "conversation_id": "a" })).await.expect(200);
        let allowed = app.model.asked()[0].max_output_tokens;
        app.model.usage(40_000 * 2, allowed);
        let run = ask(&app, &key, json!({ "input": input, "conversation_id": "b" })).await.expect(200);
        assert!(run["energy"]["amount"].as_i64().unwrap() <= 700);
        check_books(&app, key.workspace).await;
    }
}
