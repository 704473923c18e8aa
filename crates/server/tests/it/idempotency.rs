//! `Idempotency-Key`: a resend gives the first result and never a second effect, whatever happened in between.

use crate::operations::document::well_formed;
use auth::RateWindows;
use auth::schema::idempotency_keys as keys;
use chrono::Duration;
use diesel::prelude::*;
use futures::future::join_all;
use model::{Env, SystemRandom};
use providers::ProviderError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::{Answer, Key, Kind, Script, TestApp, until};

fn post<'a>(app: &'a TestApp, path: &str, key: &Key, value: &str, body: &Value) -> testkit::Asking<'a> {
    app.ask("POST", path).key(key).header("idempotency-key", value).json(body)
}

fn request_id(answer: &Answer) -> &str {
    &answer.headers["x-request-id"]
}

/// That `answer` is `first`, repeated.
#[track_caller]
fn replays(answer: &Answer, first: &Answer) {
    // An error names the request that it answers; everything else is the same.
    let expected = match first.status {
        400.. => first.text.replace(request_id(first), request_id(answer)),
        _ => first.text.clone(),
    };
    assert_eq!((answer.status, &answer.text), (first.status, &expected));
    well_formed(answer, "a replay");
    assert_eq!(
        answer.headers.get("idempotent-replayed").map(String::as_str),
        Some("true"),
        "{}",
        answer.text
    );
    assert_eq!(answer.headers["x-original-request-id"], request_id(first));
    assert_ne!(request_id(answer), request_id(first));
    assert!(!first.headers.contains_key("idempotent-replayed"));
}

/// Runs of the workspace and what they have cost.
async fn effects(app: &TestApp, key: &Key) -> (usize, i64) {
    let runs = app.get("/runs?limit=100", key).await.expect(200);
    let energy = app.get("/billing/energy", key).await.expect(200);
    assert_eq!(energy["reserved"], 0, "nothing is held any more");
    (runs.as_array().unwrap().len(), 1_000_000 - energy["available"].as_i64().unwrap())
}

async fn agent_count(app: &TestApp, key: &Key) -> usize {
    app.get("/agents", key).await.expect(200).as_array().unwrap().len()
}

/// What is stored of answers, by the header's value.
async fn stored_answers(app: &TestApp) -> BTreeMap<String, String> {
    let rows = app.db().read(|read| {
        let rows: Vec<(String, Option<String>)> =
            keys::table.select((keys::key, keys::body)).load(read.connection())?;
        Ok(rows)
    });
    rows.await.unwrap().into_iter().map(|(key, body)| (key, body.unwrap())).collect()
}

async fn store_answer(app: &TestApp, key: &'static str, answer: String) {
    let stored = app.db().write(move |tx| {
        let row = keys::table.filter(keys::key.eq(key));
        Ok(diesel::update(row).set(keys::body.eq(&answer)).execute(tx.connection())?)
    });
    assert_eq!(stored.await.unwrap(), 1);
}

#[testkit::both]
async fn of_requests_at_once_each_value_makes_one_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let (of, by) = (&app, &key);
    let answers = join_all((0..60).map(|number| async move {
        let input = (number % 20).to_string();
        let body = json!({ "input": input, "conversation_id": format!("c{}", number % 20) });
        (input.clone(), post(of, "/runs", by, &format!("k{input}"), &body).send().await)
    }));
    let mut made: BTreeMap<String, String> = BTreeMap::new();
    for (input, answer) in answers.await {
        if answer.status == 409 {
            answer.expect_error(409, "idempotency_in_progress");
            continue;
        }
        let run = answer.expect(200);
        assert_eq!(run["input"], input);
        let id = run["id"].as_str().unwrap().to_owned();
        assert_eq!(made.entry(input).or_insert(id.clone()), &id);
    }
    assert_eq!((made.len(), effects(&app, &key).await.0), (20, 20));
}

#[testkit::both]
async fn a_resend_gives_the_first_result(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let body = json!({ "name": "Second" });
    let first = post(&app, "/agents", &key, "once", &body).send().await;
    first.expect(201);
    app.data.clock.advance(Duration::hours(23));
    replays(&post(&app, "/agents", &key, "once", &body).send().await, &first);
    // Quoted, as the IETF writes it, is the same value.
    replays(&post(&app, "/agents", &key, "\"once\"", &body).send().await, &first);
    assert_eq!(agent_count(&app, &key).await, 2);

    app.model.usage(100, 50);
    let run = post(&app, "/runs", &key, "run", &json!({ "input": "Hello" })).send().await;
    run.expect(200);
    replays(&post(&app, "/runs", &key, "run", &json!({ "input": "Hello" })).send().await, &run);
    assert_eq!(app.model.prompts().len(), 1);
    assert_eq!(effects(&app, &key).await, (1, 2));

    // Without effects there is nothing to remember.
    let get = || app.ask("GET", "/agents").key(&key).header("idempotency-key", "get").send();
    get().await.expect(200);
    assert!(!get().await.headers.contains_key("idempotent-replayed"));
    // After a day it is forgotten, and the name is taken by now.
    app.data.clock.advance(Duration::hours(25));
    post(&app, "/agents", &key, "once", &body).send().await.expect_error(409, "duplicate_value");
}

#[testkit::both]
async fn stored_answers_are_sealed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let new = json!({ "url": "https://example.com/", "enabled_events": ["run.completed"] });
    let made = post(&app, "/webhook-endpoints", &key, "made", &new).send().await;
    let secret = made.expect(201)["secret"].as_str().unwrap().to_owned();
    let path = format!("/webhook-endpoints/{}/rotate-secret", made.body["data"]["id"].as_str().unwrap());
    let rotated = post(&app, &path, &key, "rotated", &json!({})).send().await;
    let newer = rotated.expect(200)["secret"].as_str().unwrap().to_owned();
    // One that speaks to the outside stores its answer by another way.
    let run = post(&app, "/runs", &key, "run", &json!({ "input": "Hello" })).send().await;
    run.expect(200);
    let stored = stored_answers(&app).await;
    assert_eq!(stored.len(), 3);
    for (name, text) in &stored {
        assert!(text.starts_with("v2."), "{name} is sealed: {text}");
        for fragment in
            [secret.as_str(), newer.as_str(), "\"success\":true", "\"object\":\"webhook_endpoint\""]
        {
            testkit::assert_absent(text, fragment);
        }
    }
    replays(&post(&app, "/webhook-endpoints", &key, "made", &new).send().await, &made);
    replays(&post(&app, &path, &key, "rotated", &json!({})).send().await, &rotated);
    replays(&post(&app, "/runs", &key, "run", &json!({ "input": "Hello" })).send().await, &run);

    // An answer opens under its own key only.
    let moved = stored["rotated"].clone();
    store_answer(&app, "made", moved).await;
    post(&app, "/webhook-endpoints", &key, "made", &new).send().await.expect_error(500, "internal_error");
    // What was stored before there was a seal is given again, too.
    store_answer(&app, "made", made.text.clone()).await;
    replays(&post(&app, "/webhook-endpoints", &key, "made", &new).send().await, &made);
}

#[testkit::both]
async fn another_request_may_not_use_the_value(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let agent = app.get("/agents", &key).await.expect(200)[0]["id"].to_string();
    let body = json!({ "name": "Second" });
    post(&app, "/agents", &key, "once", &body).send().await.expect(201);
    for (method, path, body) in [
        ("POST", "/agents".to_owned(), json!({ "name": "Third" })),
        ("POST", "/runs".to_owned(), json!({ "input": "Hello" })),
        ("PATCH", format!("/agents/{agent}"), json!({ "name": "Third" })),
        ("DELETE", format!("/agents/{agent}"), json!({})),
    ] {
        let answer =
            app.ask(method, &path).key(&key).header("idempotency-key", "once").json(&body).send().await;
        let param = answer.expect_error(400, "idempotency_key_reused");
        assert_eq!(param.as_deref(), Some("Idempotency-Key"), "{method} {path}");
    }
    // Query parameters are part of the request.
    let fields = json!({ "name": "C", "fields": [{ "label": "A", "type": "text" }, { "label": "B", "type": "text" }] });
    let made = app.post("/collections", &key, fields).await.expect(201);
    let field = format!("/collections/{}/fields/{}", made["id"], made["fields"][1]["id"]);
    let delete = |path: String| app.ask("DELETE", &path).key(&key).header("idempotency-key", "gone");
    delete(format!("{field}?force=true")).send().await.expect(200);
    delete(field).send().await.expect_error(400, "idempotency_key_reused");
    // The value belongs to the key that used it.
    let other = app.key(key.workspace, Env::Live, &["agents:write"]).await;
    post(&app, "/agents", &other, "once", &json!({ "name": "Third" })).send().await.expect(201);
}

#[testkit::both]
async fn what_would_fail_again_is_remembered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let agents = app.get("/agents", &key).await.expect(200);
    let default = agents[0]["id"].to_string();
    let delete =
        || app.ask("DELETE", &format!("/agents/{default}")).key(&key).header("idempotency-key", "d").send();
    let first = delete().await;
    first.expect_error(409, "resource_in_use");
    let second = app.post("/agents", &key, json!({ "name": "Second" })).await.expect(201)["id"].to_string();
    app.ask("PUT", &format!("/agents/{second}/default")).key(&key).send().await.expect(200);
    replays(&delete().await, &first);

    let run = json!({ "input": "Hello", "agent_id": second.parse::<i64>().unwrap() });
    let inactive = post(&app, "/runs", &key, "inactive", &run).send().await;
    inactive.expect_error(409, "agent_inactive");
    let unknown = json!({ "input": "Hello", "agent_id": 999_999 });
    let missing = post(&app, "/runs", &key, "missing", &unknown).send().await;
    missing.expect_error(404, "not_found");
    app.ask("POST", &format!("/agents/{second}/activate")).key(&key).send().await.expect(200);
    replays(&post(&app, "/runs", &key, "inactive", &run).send().await, &inactive);
    replays(&post(&app, "/runs", &key, "missing", &unknown).send().await, &missing);
}

#[testkit::both]
async fn what_may_succeed_later_is_not(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let run = json!({ "input": "Hello" });
    post(&app, "/runs", &key, "a", &json!({ "input": " " }))
        .send()
        .await
        .expect_error(400, "validation_error");
    post(&app, "/runs", &key, "a", &run).send().await.expect(200);

    let change = |what: String| app.sql(format!("UPDATE api_keys SET {what} WHERE id = '{}'", key.id));
    change("scopes = 'runs:read'".to_owned()).await;
    post(&app, "/runs", &key, "b", &run).send().await.expect_error(403, "missing_scope");
    change("scopes = 'runs:execute,runs:read,billing:read', monthly_quota = 0".to_owned()).await;
    post(&app, "/runs", &key, "b", &run).send().await.expect_error(429, "quota_exceeded");
    change("monthly_quota = NULL".to_owned()).await;
    let workspace = key.workspace;
    app.sql(format!("UPDATE energy_accounts SET reserved = balance WHERE workspace_id = {workspace}")).await;
    post(&app, "/runs", &key, "b", &run).send().await.expect_error(402, "energy_depleted");
    app.sql(format!("UPDATE energy_accounts SET reserved = 0 WHERE workspace_id = {workspace}")).await;
    let answered = post(&app, "/runs", &key, "b", &run).send().await;
    answered.expect(200);
    assert_eq!(effects(&app, &key).await.0, 2);

    // A replay passes no later gate, and costs nothing of the quota.
    change("monthly_quota = 0, budget_cents = 0".to_owned()).await;
    replays(&post(&app, "/runs", &key, "b", &run).send().await, &answered);

    let test = app.key(workspace, Env::Test, &["runs:execute"]).await;
    app.sql("UPDATE plans SET test_runs_per_day = 0 WHERE id = 'scale'").await;
    post(&app, "/runs", &test, "c", &run).send().await.expect_error(429, "test_run_daily_cap");
    app.sql("UPDATE plans SET test_runs_per_day = 5 WHERE id = 'scale'").await;
    post(&app, "/runs", &test, "c", &run).send().await.expect(200);
}

#[testkit::both]
async fn eight_at_once_have_one_effect(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    one_effect(&[&app, &app], &key).await;
}

#[testkit::both]
async fn a_duplicate_waits_for_a_while(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.model.then(Script::Wait("Done.".into()));
    let run = json!({ "input": "Hello" });
    let first = post(&app, "/runs", &key, "once", &run).send();
    let others = async {
        until("the run begins", async || (app.model.prompts().len() == 1).then_some(())).await;
        let busy = post(&app, "/runs", &key, "once", &run).send().await;
        busy.expect_error(409, "idempotency_in_progress");
        assert_eq!(busy.headers["retry-after"], "2");
        let other = post(&app, "/runs", &key, "once", &json!({ "input": "Bye" })).send().await;
        other.expect_error(400, "idempotency_key_reused");
        app.model.release();
    };
    tokio::join!(first, others).0.expect(200);
    assert_eq!(app.model.prompts().len(), 1);
}

#[testkit::both]
async fn a_duplicate_that_has_time_gets_the_first_result(kind: Kind) {
    let app = TestApp::with_duplicate_wait(kind, std::time::Duration::from_secs(60)).await;
    let key = app.full_key().await;
    app.model.then(Script::Wait("Done.".into()));
    let run = json!({ "input": "Hello" });
    let first = post(&app, "/runs", &key, "once", &run).send();
    let others = async {
        until("the run begins", async || (app.model.prompts().len() == 1).then_some(())).await;
        let waiting = post(&app, "/runs", &key, "once", &run).send();
        let release = async { app.model.release() };
        tokio::join!(waiting, release).0
    };
    let (first, waited) = tokio::join!(first, others);
    first.expect(200);
    replays(&waited, &first);
    assert_eq!(app.model.prompts().len(), 1);
}

#[testkit::both]
async fn a_failed_run_is_tried_again_and_billed_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.model.usage(100, 50);
    let run = json!({ "input": "Hello" });
    let mut ids: Option<String> = None;
    for error in [
        ProviderError::Unavailable("down".into()),
        ProviderError::Refused("no".into()),
        ProviderError::Timeout,
    ] {
        app.model.then(Script::Fail(error));
        let failed = post(&app, "/runs", &key, "once", &run).send().await;
        assert!((502..=504).contains(&failed.status), "{}", failed.text);
        assert_eq!(failed.body["error"]["type"], "agent_error");
        assert!(!failed.headers.contains_key("idempotent-replayed"));
        let id = failed.body["error"]["run_id"].as_str().unwrap().to_owned();
        assert_eq!(ids.get_or_insert_with(|| id.clone()), &id, "it is the same run");
        assert_eq!(app.get(&format!("/runs/{id}"), &key).await.expect(200)["status"], "failed");
        assert_eq!(effects(&app, &key).await.1, 0, "a failure costs nothing");
    }
    let answered = post(&app, "/runs", &key, "once", &run).send().await;
    let id = answered.expect(200)["id"].clone();
    assert_eq!(ids.as_deref(), id.as_str());
    replays(&post(&app, "/runs", &key, "once", &run).send().await, &answered);
    assert_eq!(app.model.prompts().len(), 4);
    assert_eq!(effects(&app, &key).await.1, 2);
    let runs = app.get("/runs", &key).await.expect(200);
    assert_eq!(runs.as_array().unwrap().len(), 1);
    // Never more than one debit that stands.
    let ledger = app.get("/billing/energy/ledger", &key).await.expect(200);
    let of_runs = ledger.as_array().unwrap().iter().filter(|row| row["run_id"].is_string());
    let moved: Vec<(&Value, i64)> =
        of_runs.map(|row| (&row["run_id"], row["amount"].as_i64().unwrap())).collect();
    assert_eq!(moved.iter().map(|(_, amount)| amount).sum::<i64>(), -2);
    assert_eq!(moved.iter().filter(|(run, _)| **run == id).map(|(_, amount)| amount).sum::<i64>(), -2);
}

#[testkit::both]
async fn a_dead_owner_is_replaced(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.model.then(Script::Wait("Too late.".into()));
    let second = app.replica(RateWindows::local()).await;
    second.model.then(Script::Say("In time.".into())).usage(100, 50);
    let run = json!({ "input": "Hello" });
    let silent = post(&app, "/runs", &key, "once", &run).send();
    let others = async {
        until("the run begins", async || (app.model.prompts().len() == 1).then_some(())).await;
        post(&second, "/runs", &key, "once", &run).send().await.expect_error(409, "idempotency_in_progress");
        // The owner says nothing any more: its leases end, and another process takes run and claim over.
        app.data.clock.advance(Duration::seconds(31));
        let resumed = async {
            until("the run is taken over", async || {
                let count = second.service.engine.resume_silent().await.unwrap();
                (count > 0 || !second.model.prompts().is_empty()).then_some(())
            })
            .await;
        };
        let (answered, ()) = tokio::join!(post(&second, "/runs", &key, "once", &run).send(), resumed);
        assert_eq!(answered.expect(200)["output"], "In time.");
        let again = post(&second, "/runs", &key, "once", &run).send().await;
        assert_eq!((again.status, &again.body["data"]), (200, &answered.body["data"]));
        // What the old owner still says counts for nothing.
        app.model.release();
        answered
    };
    let (_, answered) = tokio::join!(silent, others);
    app.service.engine.idle().await;
    assert_eq!(effects(&app, &key).await, (1, 2));
    let stored = app.get(&format!("/runs/{}", answered.body["data"]["id"].as_str().unwrap()), &key).await;
    assert_eq!(stored.expect(200)["output"], "In time.");
}

/// Sends the same agent and the same run eight times at once, spread over replicas.
async fn one_effect(replicas: &[&TestApp], key: &Key) {
    let app = replicas[0];
    let eight =
        |path: &'static str, body: Value| {
            let body = Arc::new(body);
            join_all((0..8).map(move |number| {
                let body = body.clone();
                async move {
                    post(replicas[number % replicas.len()], path, key, "once-at-a-time", &body).send().await
                }
            }))
        };
    let before = agent_count(app, key).await;
    for (path, body, status) in
        [("/agents", json!({ "name": "Only" }), 201), ("/runs", json!({ "input": "Hello" }), 200)]
    {
        let answers = if path == "/agents" {
            eight(path, body).await
        } else {
            // Another value, because the first belongs to the agent now.
            join_all((0..8).map(|number| {
                let body = body.clone();
                async move {
                    post(replicas[number % replicas.len()], path, key, "run-at-a-time", &body).send().await
                }
            }))
            .await
        };
        let (done, waiting): (Vec<&Answer>, Vec<&Answer>) =
            answers.iter().partition(|answer| answer.status == status);
        for answer in waiting {
            answer.expect_error(409, "idempotency_in_progress");
        }
        let firsts: Vec<&&Answer> =
            done.iter().filter(|answer| !answer.headers.contains_key("idempotent-replayed")).collect();
        assert_eq!(firsts.len(), 1, "{path}");
        for answer in done.iter().filter(|answer| request_id(answer) != request_id(firsts[0])) {
            replays(answer, firsts[0]);
        }
    }
    assert_eq!(agent_count(app, key).await, before + 1);
    assert_eq!(effects(app, key).await.0, 1);
}

#[tokio::test]
async fn two_replicas_have_one_effect() {
    let app = TestApp::new(Kind::Postgres).await;
    let second = app.replica(RateWindows::local()).await;
    let key = app.full_key().await;
    one_effect(&[&app, &second], &key).await;
}

#[tokio::test]
async fn two_replicas_share_a_running_run() {
    let app = TestApp::new(Kind::Postgres).await;
    let second = app.replica(RateWindows::local()).await;
    let key = app.full_key().await;
    app.model.then(Script::Wait("Done.".into()));
    let run = json!({ "input": "Hello" });
    let others = async {
        until("the run begins", async || (app.model.prompts().len() == 1).then_some(())).await;
        post(&second, "/runs", &key, "once", &run).send().await.expect_error(409, "idempotency_in_progress");
        app.model.release();
    };
    let (first, ()) = tokio::join!(post(&app, "/runs", &key, "once", &run).send(), others);
    first.expect(200);
    replays(&post(&second, "/runs", &key, "once", &run).send().await, &first);
    assert!(second.model.prompts().is_empty());
}

#[tokio::test]
async fn two_replicas_count_requests_together() {
    let url = std::env::var("SVC_TEST_REDIS_URL").expect("run tests with `scripts/with-services`");
    let data = testkit::TestDb::new(Kind::Postgres);
    let db = data.db.clone();
    let windows = async || RateWindows::shared(&url, &SystemRandom::default()).await.unwrap();
    let app = TestApp::start(data, db, windows().await, None).await;
    let second = app.replica(windows().await).await;
    let workspace = app.workspace().await;
    let key = app.key_with(workspace, Env::Live, &["runs:read"], |new| new.rate_limit_rpm = Some(10)).await;
    let answers = join_all((0..24).map(|number| [&app, &second][number % 2].get("/me", &key))).await;
    let mut remaining: Vec<i64> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.headers["x-ratelimit-remaining"].parse().unwrap())
        .collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..10).collect::<Vec<i64>>());
    assert_eq!(answers.iter().filter(|answer| answer.status == 429).count(), 14);
}
