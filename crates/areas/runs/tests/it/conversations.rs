//! Conversations: what is remembered, and what a busy one does.

use crate::{ask, awaited, begin, check_books, events, id, number, prompted, read, say, with_agent};
use futures::future::join_all;
use model::Env;
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Key, Kind, Script, TestApp};

async fn turn(app: &TestApp, key: &Key, input: &str, answer: &str) -> Value {
    app.model.then(say(answer));
    ask(app, key, json!({ "input": input, "conversation_id": "c" })).await.expect(200)
}

async fn heard(app: &TestApp, key: &Key, mut run: Value) -> Vec<String> {
    run["input"] = "?".into();
    ask(app, key, run).await.expect(200);
    app.model.last_texts()
}

#[testkit::both]
async fn a_conversation_is_remembered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "memory": { "mode": "window", "max_messages": 4 } })).await;
    let other = app.post("/agents", &key, json!({ "name": "Other", "status": "active" })).await.expect(201);
    let test = app.key(key.workspace, Env::Test, &["runs:execute"]).await;
    // All in the same millisecond: the order is that of acceptance all the same.
    for (input, answer) in [("a", "A"), ("b", "B"), ("c", "C")] {
        turn(&app, &key, input, answer).await;
    }
    app.model.then(Script::Fail(ProviderError::Refused("no".into())));
    ask(&app, &key, json!({ "input": "bad", "conversation_id": "c" }))
        .await
        .expect_error(502, "agent_failed");
    let said = heard(&app, &key, json!({ "conversation_id": "c" })).await;
    assert_eq!(said, ["b", "B", "c", "C", "?"]);
    for stranger in [
        json!({ "conversation_id": "d" }),
        json!({}),
        json!({ "conversation_id": "c", "agent_id": other["id"] }),
    ] {
        assert_eq!(heard(&app, &key, stranger).await, ["?"]);
    }
    assert_eq!(heard(&app, &test, json!({ "conversation_id": "c" })).await, ["?"]);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "memory": { "mode": "none" } }))
        .await
        .expect(200);
    assert_eq!(heard(&app, &key, json!({ "conversation_id": "c" })).await, ["?"]);
}

#[testkit::both]
async fn an_ephemeral_conversation_can_be_continued(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(say("A"));
    let run = ask(&app, &key, json!({ "input": "a" })).await.expect(200);
    let name = run["conversation_id"].as_str().unwrap();
    assert!(name.starts_with("eph_"));
    assert_eq!(heard(&app, &key, json!({ "conversation_id": name })).await, ["a", "A", "?"]);
}

#[testkit::both]
async fn runs_go_in_order_and_ten_wait_at_most(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "memory": { "mode": "none" } })).await;
    app.model.then(Script::Wait("first".into()));
    let mut runs = Vec::new();
    for number in 0..11 {
        let run = begin(&app, &key, json!({ "input": format!("{number}"), "conversation_id": "c" })).await;
        assert_eq!(run["status"], if number == 0 { "in_progress" } else { "queued" });
        runs.push(run);
    }
    // The first is the one that is kept waiting, not one of those in other conversations below.
    prompted(&app, 1).await;
    for on_busy in ["enqueue", "reject"] {
        let refused =
            ask(&app, &key, json!({ "input": "x", "conversation_id": "c", "on_busy": on_busy })).await;
        refused.expect_error(409, "conversation_busy");
        assert_eq!(refused.body["error"]["run_id"], runs[0]["id"]);
    }
    // That passes, so an `Idempotency-Key` does not remember it.
    let repeated = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k");
        asking.json(&json!({ "input": "x", "conversation_id": "c" })).send().await
    };
    repeated().await.expect_error(409, "conversation_busy");
    // Other conversations, and the same name with another agent, are not busy.
    ask(&app, &key, json!({ "input": "y", "conversation_id": "d" })).await.expect(200);
    let other = app.post("/agents", &key, json!({ "name": "Other", "status": "active" })).await.expect(201);
    ask(&app, &key, json!({ "input": "y", "conversation_id": "c", "agent_id": other["id"] }))
        .await
        .expect(200);
    app.model.release();
    for run in &runs {
        awaited(&app, &key, run, "completed").await;
    }
    let inputs: Vec<String> = app
        .model
        .prompts()
        .iter()
        .map(|prompt| prompt.messages.last().unwrap().content.clone())
        .filter(|text| text != "y")
        .collect();
    assert_eq!(inputs, (0..11).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(runs[0]["agent_id"], agent["id"]);
    let done = repeated().await;
    assert_eq!(
        (done.expect(200)["output"].as_str(), done.headers.get("idempotent-replayed")),
        (Some("ok"), None)
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_waiting_run_hears_the_answer_before_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("A".into()));
    let first = begin(&app, &key, json!({ "input": "a", "conversation_id": "c" })).await;
    let second = begin(&app, &key, json!({ "input": "b", "conversation_id": "c" })).await;
    prompted(&app, 1).await;
    app.model.release();
    awaited(&app, &key, &second, "completed").await;
    assert_eq!(app.model.last_texts(), ["a", "A", "b"]);
    awaited(&app, &key, &first, "completed").await;
}

#[testkit::both]
async fn a_newer_input_takes_the_place_of_those_before(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (on_busy, reason, remembered) in [
        ("interrupt", "interrupted", vec!["one", "two", "three"]),
        ("rollback", "rolled_back", vec!["three"]),
    ] {
        let before = app.model.prompts().len();
        app.model.then(Script::Wait("never".into()));
        let run = |input: &str| json!({ "input": input, "conversation_id": on_busy });
        let going = begin(&app, &key, run("one")).await;
        prompted(&app, before + 1).await;
        let waiting = begin(&app, &key, run("two")).await;
        let mut newer = run("three");
        newer["on_busy"] = on_busy.into();
        ask(&app, &key, newer).await.expect(200);
        assert_eq!(app.model.last_texts(), remembered);
        for cancelled in [&going, &waiting] {
            let now = awaited(&app, &key, cancelled, "cancelled").await;
            assert_eq!(now["incomplete_details"]["reason"], reason);
            assert_eq!(now["energy"]["amount"], 0);
        }
        check_books(&app, key.workspace).await;
        assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs WHERE lease_until IS NOT NULL").await, 0);
    }
    let reported = events(&app).await;
    assert_eq!(reported.iter().filter(|kind| *kind == "run.cancelled").count(), 4, "{reported:?}");
}

#[testkit::both]
async fn a_run_that_waits_too_long_expires(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({ "timeout_seconds": 600 })).await;
    app.model.then(Script::Wait("late".into()));
    let first = begin(&app, &key, json!({ "input": "a", "conversation_id": "c" })).await;
    let second = begin(&app, &key, json!({ "input": "b", "conversation_id": "c" })).await;
    prompted(&app, 1).await;
    app.data.clock.advance(chrono::Duration::seconds(599));
    let third = begin(&app, &key, json!({ "input": "c", "conversation_id": "c" })).await;
    // Runs of one moment are entered a millisecond apart.
    app.data.clock.advance(chrono::Duration::seconds(2));
    let second = awaited(&app, &key, &second, "expired").await;
    assert_eq!(
        (&second["started_at"], &second["incomplete_details"]["reason"]),
        (&Value::Null, &json!("queue_timeout"))
    );
    assert_eq!(events(&app).await, ["run.expired"]);
    app.model.release();
    awaited(&app, &key, &first, "completed").await;
    awaited(&app, &key, &third, "completed").await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn runs_that_wait_fail_when_their_agent_is_switched_off(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for deletes in [false, true] {
        let agent = json!({ "name": format!("Gone {deletes}"), "status": "active" });
        let agent = app.post("/agents", &key, agent).await.expect(201);
        let path = format!("/agents/{}", agent["id"]);
        let before = app.model.prompts().len();
        app.model.then(Script::Wait("late".into()));
        let run = json!({ "input": "a", "conversation_id": "c", "agent_id": agent["id"] });
        let first = begin(&app, &key, run.clone()).await;
        let (second, third) = (begin(&app, &key, run.clone()).await, begin(&app, &key, run).await);
        prompted(&app, before + 1).await;
        if deletes {
            app.delete(&path, &key).await.expect(200);
        } else {
            app.post(&format!("{path}/deactivate"), &key, json!({})).await.expect(200);
        }
        // They do not wait for the one that goes on, which finishes.
        for waiting in [&second, &third] {
            let failed = awaited(&app, &key, waiting, "failed").await;
            assert_eq!(failed["error"]["code"], "agent_inactive");
        }
        assert_eq!(read(&app, &key, &first).await["status"], "in_progress");
        app.model.release();
        awaited(&app, &key, &first, "completed").await;
    }
    assert_eq!(events(&app).await, ["run.failed", "run.failed", "run.completed"].repeat(2));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn of_runs_accepted_at_once_one_goes_first(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for round in 0..5 {
        let run = || json!({ "input": "Hi", "conversation_id": format!("c{round}"), "on_busy": "reject" });
        let before = app.model.prompts().len();
        for _ in 0..6 {
            app.model.then(Script::Wait("ok".into()));
        }
        let made = join_all((0..6).map(|_| async { begin_or_not(&app, &key, run()).await })).await;
        assert_eq!(made.iter().flatten().count(), 1, "{made:?}");
        prompted(&app, before + 1).await;
        app.model.release();
        awaited(&app, &key, made.iter().flatten().next().unwrap(), "completed").await;
        assert_eq!(app.model.prompts().len(), before + 1);
        app.model.forget();
    }
}

async fn begin_or_not(app: &TestApp, key: &Key, mut run: Value) -> Option<Value> {
    run["background"] = true.into();
    let answer = ask(app, key, run).await;
    if answer.status == 409 {
        answer.expect_error(409, "conversation_busy");
        return None;
    }
    let run = answer.expect(200);
    assert!(!id(&run).is_empty());
    Some(run)
}
