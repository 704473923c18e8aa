//! How much a key may do: requests per minute, requests per month, and Energy money.

use crate::operations::document::has_rate_headers;
use auth::{KeySecret, RateWindows};
use chrono::Duration;
use futures::future::join_all;
use model::{Env, SeededRandom, SubscriptionStatus, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Answer, Kind, TestApp};

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).map(String::as_str)
}

/// That nobody is told to wait for what takes days.
#[track_caller]
fn waits_until(refused: &Answer, at: &str) {
    assert_eq!(refused.body["error"]["details"], json!({ "resets_at": at }), "{}", refused.text);
    assert_eq!(header(refused, "retry-after"), None);
}

fn window(answer: &Answer) -> [&str; 3] {
    ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
        .map(|name| header(answer, name).unwrap())
}

async fn set_plan(app: &TestApp, workspace: WorkspaceId, plan: &'static str) {
    let set = app.db().write(move |tx| {
        billing::plans::set_plan(tx, workspace, plan, SubscriptionStatus::Active, None).map(drop)
    });
    set.await.unwrap();
}

#[testkit::both]
async fn a_minute_has_so_many_requests(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key_with(workspace, Env::Live, &["runs:read"], |new| new.rate_limit_rpm = Some(3)).await;
    let me = app.get("/me", &key).await;
    assert_eq!(me.expect(200)["api_key"]["rate_limit_rpm"], 3);
    assert_eq!(window(&me), ["3", "2", "60"]);
    app.data.clock.advance(Duration::milliseconds(1_500));
    // Whatever is answered counts, and carries the headers.
    assert_eq!(window(&app.get("/nowhere", &key).await), ["3", "1", "59"]);
    assert_eq!(window(&app.get("/agents", &key).await), ["3", "0", "59"]);
    app.data.clock.advance(Duration::seconds(20));
    let refused = app.get("/me", &key).await;
    refused.expect_error(429, "rate_limited");
    assert_eq!(refused.body["error"]["type"], "rate_limit_error");
    assert_eq!(window(&refused), ["3", "0", "39"]);
    assert_eq!(header(&refused, "retry-after"), Some("39"));
    assert_eq!(header(&refused, "x-svc-should-retry"), None);
    // Another key of the workspace has its own window.
    let other = app.key(workspace, Env::Live, &["runs:read"]).await;
    app.get("/me", &other).await.expect(200);
    // Refused requests do not prolong the window, which the first request opened.
    app.data.clock.advance(Duration::milliseconds(38_499));
    app.get("/me", &key).await.expect_error(429, "rate_limited");
    app.data.clock.advance(Duration::milliseconds(1));
    let fresh = app.get("/me", &key).await;
    fresh.expect(200);
    assert_eq!(window(&fresh), ["3", "2", "60"]);
}

#[testkit::both]
async fn the_stricter_of_key_and_plan_counts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("trial", 0).await;
    let key = app
        .key_with(workspace, Env::Live, &["runs:read"], |new| {
            new.rate_limit_rpm = Some(2_000);
            new.monthly_quota = Some(1_000_000);
        })
        .await;
    let limits = async || {
        let answer = app.get("/me", &key).await;
        let me = answer.expect(200);
        let shown = header(&answer, "x-ratelimit-limit").map(|limit| limit.parse::<i64>().unwrap());
        assert_eq!(json!(shown), me["api_key"]["rate_limit_rpm"]);
        (shown, me["api_key"]["monthly_quota"].clone())
    };
    assert_eq!(limits().await, (Some(60), json!(5_000)));
    // A changed plan is seen within ten seconds, by keys that were made before it.
    set_plan(&app, workspace, "scale").await;
    app.data.clock.advance(Duration::seconds(10));
    assert_eq!(limits().await, (Some(2_000), json!(1_000_000)));
    app.sql(format!(
        "UPDATE api_keys SET rate_limit_rpm = NULL, monthly_quota = NULL WHERE id = '{}'",
        key.id
    ))
    .await;
    assert_eq!(limits().await, (Some(3_000), Value::Null));
    app.sql("UPDATE plans SET rate_limit_rpm = NULL WHERE id = 'scale'").await;
    assert_eq!(limits().await, (None, Value::Null), "no cap, no headers");
}

#[testkit::both]
async fn a_changed_limit_counts_in_the_window_that_is_open(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("trial", 0).await;
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    for answer in join_all((0..60).map(|_| app.get("/me", &key))).await {
        answer.expect(200);
    }
    app.get("/me", &key).await.expect_error(429, "rate_limited");
    set_plan(&app, workspace, "starter").await;
    app.data.clock.advance(Duration::seconds(10));
    let answer = app.get("/me", &key).await;
    answer.expect(200);
    assert_eq!(window(&answer), ["300", "238", "50"]);
}

#[testkit::both]
async fn guessing_keys_is_not_free(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.get("/me", &key).await.expect(200);
    for batch in 0..10 {
        for answer in join_all((0..30).map(|_| app.ask("GET", "/me").send())).await {
            answer.expect_error(401, "missing_api_key");
            has_rate_headers(&answer, &format!("batch {batch}"));
        }
    }
    let guess = app.ask("GET", "/me").header("authorization", "Bearer svc_live_guess").send().await;
    guess.expect_error(429, "rate_limited");
    assert_eq!(header(&guess, "retry-after"), Some("60"));
    // A key that is known is not held up by its neighbours.
    app.get("/me", &key).await.expect(200);
    app.data.clock.advance(Duration::seconds(60));
    app.ask("GET", "/me").send().await.expect_error(401, "missing_api_key");
}

#[testkit::both]
async fn an_address_that_guesses_does_not_keep_the_database_busy(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let known = app.key(workspace, Env::Live, &["runs:read"]).await;
    app.get("/me", &known).await.expect(200);
    for _ in 0..10 {
        join_all((0..30).map(|_| app.ask("GET", "/me").send())).await;
    }
    // Well formed, so that only the database could tell them from a key.
    let invented: Vec<String> = (0..20)
        .map(|seed| KeySecret::generate(Env::Live, &SeededRandom::new(seed)).reveal().to_owned())
        .collect();
    let before = app.db().stats().reads;
    for secret in &invented {
        let bearer = format!("Bearer {secret}");
        let answer = app.ask("GET", "/me").header("authorization", &bearer).send().await;
        answer.expect_error(429, "rate_limited");
        assert_eq!(window(&answer), ["300", "0", "60"]);
    }
    assert_eq!(app.db().stats().reads, before);
    // A key that was seen is looked up again, however long ago that was.
    app.data.clock.advance(Duration::seconds(11));
    app.get("/me", &known).await.expect(200);
    app.data.clock.advance(Duration::seconds(49));
    let bearer = format!("Bearer {}", invented[0]);
    app.ask("GET", "/me").header("authorization", &bearer).send().await.expect_error(401, "invalid_api_key");
}

#[testkit::both]
async fn without_a_plan_there_is_a_cap(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let key = app.key(workspace, Env::Live, &["runs:read"]).await;
    app.sql(format!("UPDATE workspaces SET plan_id = NULL WHERE id = {workspace}")).await;
    let blocked = app.get("/me", &key).await;
    blocked.expect_error(403, "workspace_blocked");
    assert_eq!(window(&blocked), ["300", "299", "60"]);
}

#[testkit::both]
async fn a_refused_request_costs_nothing_of_the_month(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app
        .key_with(workspace, Env::Live, &["runs:read"], |new| {
            new.monthly_quota = Some(1);
            new.budget_cents = Some(0);
        })
        .await;
    let me = || app.get("/me", &key);
    me().await.expect_error(429, "budget_exceeded");
    app.sql(format!("UPDATE api_keys SET budget_cents = NULL WHERE id = '{}'", key.id)).await;
    me().await.expect(200);
    for _ in 0..5 {
        me().await.expect_error(429, "quota_exceeded");
    }
    // Whoever has more afterwards has all of it.
    app.sql(format!("UPDATE api_keys SET monthly_quota = 3 WHERE id = '{}'", key.id)).await;
    me().await.expect(200);
    me().await.expect(200);
    me().await.expect_error(429, "quota_exceeded");
    // At once, too, no more get through than there are.
    app.sql(format!("UPDATE api_keys SET monthly_quota = 8 WHERE id = '{}'", key.id)).await;
    let answers = join_all((0..12).map(|_| me())).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 5);
}

#[testkit::both]
async fn a_month_has_so_many_requests(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key_with(workspace, Env::Live, &["runs:read"], |new| new.monthly_quota = Some(5)).await;
    app.get("/me", &key).await.expect(200);
    // Refused before they got to the count: they cost nothing of it.
    for _ in 0..10 {
        app.get("/agents", &key).await.expect_error(403, "missing_scope");
        app.get("/nowhere", &key).await.expect_error(404, "route_not_found");
    }
    app.get("/runs", &key).await.expect(200);
    app.get("/runs?limit=x", &key).await.expect_error(400, "validation_error");

    // Another process goes on where this one has written to.
    app.service.pipeline.quotas.flush().await.unwrap();
    let second = app.replica(RateWindows::local()).await;
    second.get("/me", &key).await.expect(200);
    second.get("/me", &key).await.expect(200);
    let refused = second.get("/me", &key).await;
    refused.expect_error(429, "quota_exceeded");
    assert_eq!(refused.body["error"]["type"], "rate_limit_error");
    assert_eq!(header(&refused, "x-svc-should-retry"), Some("false"));
    waits_until(&refused, "2026-02-01T00:00:00.000Z");
    // And the first learns of it when it writes next.
    second.service.pipeline.quotas.flush().await.unwrap();
    app.get("/me", &key).await.expect(200);
    app.service.pipeline.quotas.flush().await.unwrap();
    app.get("/me", &key).await.expect_error(429, "quota_exceeded");

    app.data.clock.advance(Duration::seconds(1_425_600));
    app.get("/me", &key).await.expect(200);
}

#[testkit::both]
async fn a_budget_with_cutoff_is_never_overshot(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    // Five cents are 50 Energy; an answer of 2,000 tokens costs 40.
    app.model.usage(0, 2_000);
    let scopes = ["runs:execute", "runs:read", "billing:read"];
    let key = app.key_with(workspace, Env::Live, &scopes, |new| new.budget_cents = Some(5)).await;
    let mut runs = 0;
    let refused = loop {
        let answer = app.post("/runs", &key, json!({ "input": "Hello" })).await;
        if answer.status != 200 {
            break answer;
        }
        runs += 1;
        assert!(runs < 10, "the budget never ends");
    };
    refused.expect_error(429, "budget_exceeded");
    waits_until(&refused, "2026-02-01T00:00:00.000Z");
    assert!(runs >= 1);
    let watcher = app.key(workspace, Env::Live, &["billing:read"]).await;
    let budgets = app.get("/billing/budgets", &watcher).await.expect(200);
    let budget = budgets.as_array().unwrap().iter().find(|row| row["key_id"] == key.id.as_str()).unwrap();
    assert!(budget["spent_cents"].as_i64().unwrap() <= 5, "{budget}");
    assert_eq!(budget["reserved_cents"], 0);

    // At the cap nothing of the key works; without cut-off everything does.
    app.sql(format!("UPDATE key_months SET spent_micros = 50000 WHERE lineage_id = '{}'", key.id)).await;
    app.data.clock.advance(Duration::seconds(2));
    let answer = app.get("/me", &key).await;
    answer.expect_error(429, "budget_exceeded");
    assert_eq!(header(&answer, "x-svc-should-retry"), Some("false"));
    waits_until(&answer, "2026-02-01T00:00:00.000Z");
    app.sql(format!("UPDATE api_keys SET budget_cutoff = false WHERE id = '{}'", key.id)).await;
    app.get("/me", &key).await.expect(200);
    app.post("/runs", &key, json!({ "input": "Hello" })).await.expect(200);
}

#[testkit::both]
async fn a_budget_is_whole_again_from_the_first_moment_of_a_month(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key_with(workspace, Env::Live, &["runs:read"], |new| new.budget_cents = Some(5)).await;
    let month = app.db().now();
    let left = month.next_month_start().millis() - month.millis();
    app.data.clock.advance(Duration::milliseconds(left - 1));
    app.sql(format!("INSERT INTO key_months VALUES ('{}', '2026-01', 50000, 0)", key.id)).await;
    app.get("/me", &key).await.expect_error(429, "budget_exceeded");
    // What was remembered two milliseconds ago was another month's.
    app.data.clock.advance(Duration::milliseconds(1));
    app.get("/me", &key).await.expect(200);
}

#[testkit::both]
async fn a_day_has_so_many_test_runs(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    app.sql("UPDATE plans SET test_runs_per_day = 2 WHERE id = 'scale'").await;
    let key = app.key(workspace, Env::Test, &["runs:execute"]).await;
    let run = || app.post("/runs", &key, json!({ "input": "Hello" }));
    run().await.expect(200);
    run().await.expect(200);
    let refused = run().await;
    refused.expect_error(429, "test_run_daily_cap");
    assert_eq!(header(&refused, "x-svc-should-retry"), Some("false"));
    waits_until(&refused, "2026-01-16T00:00:00.000Z");
    app.data.clock.advance(Duration::hours(12));
    run().await.expect(200);
}
