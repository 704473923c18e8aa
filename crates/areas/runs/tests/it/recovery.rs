//! Runs whose workers die. Time is moved on past their leases, and a second replica takes them over.

use crate::{
    ask, awaited, begin, call, check_books, give_tool, id, number, prompted, read, say, texts, with_agent,
};
use auth::RateWindows;
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{Kind, OpenAiServer, Script, TestApp, until};

pub async fn replica(app: &TestApp) -> TestApp {
    app.replica(RateWindows::local()).await
}

/// Lets all leases run out and takes over what they covered.
pub async fn take_over(app: &TestApp) -> usize {
    app.data.clock.advance(Duration::seconds(31));
    app.service.engine.resume_silent().await.unwrap()
}

#[testkit::both]
async fn a_run_goes_on_after_its_last_finished_step(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(100, 50).then(call("look", json!({ "q": 1 }))).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    let other = replica(&app).await;
    assert_eq!(other.service.engine.resume_silent().await.unwrap(), 0, "its worker lives");
    other.model.usage(200, 50).then(say("done"));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((&run["output"], &run["energy"]["amount"]), (&json!("done"), &json!(2 + 2)));
    assert_eq!((&run["usage"]["model_calls"], &run["usage"]["tool_calls"]), (&json!(2), &json!(1)));
    let statuses: Vec<&str> =
        run["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed", "completed", "unknown", "completed"]);
    assert_eq!(
        (server.requests(), other.model.prompts()[0].messages.len()),
        (1, app.model.prompts()[1].messages.len())
    );
    // The old worker wakes up, and nothing that it writes counts.
    app.model.release();
    app.service.engine.idle().await;
    assert_eq!(read(&app, &key, &run).await, run);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_call_in_flight_is_unknown_and_not_repeated(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "pay", &server, json!({ "http": {}, "timeout_seconds": 60 })).await;
    server.then(0, None, Value::Null);
    app.model.then(call("pay", json!({ "sum": 1 })));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    until("the tool is called", async || (server.requests() == 1).then_some(())).await;
    let other = replica(&app).await;
    other.model.then(call("pay", json!({ "sum": 1 }))).then(say("I do not know"));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert!(other.model.prompts()[0].messages.last().unwrap().content.contains("outcome unknown"));
    assert_eq!((server.requests(), &run["steps"][1]["status"]), (1, &json!("unknown")));
    assert!(run["steps"][3]["output"]["result"]["first"].as_str().unwrap().contains("outcome unknown"));
    other.service.engine.idle().await;
    check_books(&other, key.workspace).await;
}

#[testkit::both]
async fn what_a_finished_call_brought_outlives_the_next_one(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "pay", &server, json!({ "http": {}, "timeout_seconds": 60 })).await;
    server.then(200, None, json!({ "paid": 1 })).then(0, None, Value::Null);
    let calls = [1, 2].map(|sum| ("pay".to_owned(), json!({ "sum": sum })));
    app.model.then(Script::Call(calls.to_vec()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    until("both are called", async || (server.requests() == 2).then_some(())).await;
    let other = replica(&app).await;
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(
        (&run["steps"][1]["status"], &run["steps"][2]["status"]),
        (&json!("completed"), &json!("unknown"))
    );
    assert_eq!(run["steps"][1]["output"]["result"]["body"], json!({ "paid": 1 }));
    let reported =
        other.model.prompts()[0].messages.iter().map(|message| message.content.clone()).collect::<Vec<_>>();
    assert!(
        reported.iter().any(|text| text.contains("paid"))
            && reported.iter().any(|text| text.contains("outcome unknown"))
    );
    other.service.engine.idle().await;
    check_books(&other, key.workspace).await;
}

#[testkit::both]
async fn a_run_that_outlives_five_workers_is_given_up(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("never".into()));
    let run = begin(&app, &key, json!({ "input": "Hi", "timeout_seconds": 600 })).await;
    prompted(&app, 1).await;
    let other = replica(&app).await;
    for worker in 1..5 {
        other.model.then(Script::Wait("never".into()));
        assert_eq!(take_over(&other).await, 1);
        prompted(&other, worker).await;
    }
    assert_eq!(read(&app, &key, &run).await["status"], "in_progress");
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "failed").await;
    assert_eq!((&run["error"]["code"], &run["energy"]["amount"]), (&json!("agent_failed"), &json!(0)));
    assert_eq!(take_over(&other).await, 0);
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_caller_hears_the_worker_that_took_over(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let other = replica(&app).await;
    app.model.then(Script::Wait("too late".into()));
    other.model.then(say("in time"));
    let taking = async {
        prompted(&app, 1).await;
        assert_eq!(take_over(&other).await, 1);
        prompted(&other, 1).await;
        app.model.release();
    };
    let (answer, ()) = tokio::join!(ask(&app, &key, json!({ "input": "Hi" })), taking);
    assert_eq!(answer.expect(200)["output"], "in time");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_request_that_is_sent_again_finds_its_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.service.engine.set_patience(std::time::Duration::from_secs(60));
    let send = async |app: &TestApp| {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi" })).send().await
    };
    let other = replica(&app).await;
    app.model.then(Script::Wait("too late".into()));
    other.model.then(Script::Wait("in time".into()));
    let rest = async {
        prompted(&app, 1).await;
        assert_eq!(take_over(&other).await, 1);
        prompted(&other, 1).await;
        // The first request's claim has run out too; the second finds the run at work and waits for it.
        let (repeated, ()) = tokio::join!(send(&other), async {
            until("the claim is taken over", async || {
                (number(&app, "SELECT fence AS n FROM idempotency_keys").await == 2).then_some(())
            })
            .await;
            other.model.release();
        });
        app.model.release();
        repeated
    };
    let (first, repeated) = tokio::join!(send(&app), rest);
    assert_eq!(
        (first.expect(200)["output"].clone(), first.expect(200)),
        (json!("in time"), repeated.expect(200))
    );
    let replayed = send(&app).await;
    assert_eq!(
        (replayed.expect(200), replayed.headers["idempotent-replayed"].as_str()),
        (repeated.expect(200), "true")
    );
    assert_eq!((app.model.prompts().len(), other.model.prompts().len()), (1, 1));
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs").await, 1);
    let reported = "SELECT COUNT(*) AS n FROM events WHERE kind = 'run.completed' AND idempotency_key = 'k1'";
    assert_eq!(number(&app, reported).await, 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_cannot_be_paid_any_more_ends_incomplete(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "energy_limit_per_run": 60 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(10, 2000).then(call("look", json!({}))).then(Script::Wait("never".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    // The hold of the dead worker is swept, and what is left in the account belongs to others by now.
    app.data.clock.advance(Duration::seconds(16 * 60));
    app.db().write(billing::ledger::sweep_expired_holds).await.unwrap();
    let other = replica(&app).await;
    app.reserve_all_but(key.workspace, 2).await;
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "incomplete").await;
    assert_eq!(
        (&run["incomplete_details"]["reason"], &run["energy"]["amount"]),
        (&json!("energy_depleted"), &json!(41))
    );
    app.free_energy(key.workspace).await;
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn two_replicas_share_what_is_to_be_resumed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let mut runs = Vec::new();
    for _ in 0..8 {
        app.model.then(Script::Wait("never".into()));
        runs.push(begin(&app, &key, json!({ "input": "Hi" })).await);
    }
    prompted(&app, 8).await;
    let (one, two) = (replica(&app).await, replica(&app).await);
    app.data.clock.advance(Duration::seconds(31));
    let (first, second) =
        tokio::join!(one.service.engine.resume_silent(), two.service.engine.resume_silent());
    assert_eq!(first.unwrap() + second.unwrap(), 8);
    for run in &runs {
        awaited(&app, &key, run, "completed").await;
    }
    assert_eq!(one.model.prompts().len() + two.model.prompts().len(), 8);
    one.service.engine.idle().await;
    two.service.engine.idle().await;
    assert_eq!(app.get("/billing/executions?limit=100", &key).await.expect(200).as_array().unwrap().len(), 8);
    for _ in 0..8 {
        app.model.release();
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn those_who_wait_are_taken_over_in_their_order(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("never".into()));
    let mut runs = Vec::new();
    for number in 0..3 {
        runs.push(begin(&app, &key, json!({ "input": format!("{number}"), "conversation_id": "c" })).await);
    }
    prompted(&app, 1).await;
    let other = replica(&app).await;
    assert_eq!(take_over(&other).await, 3);
    for run in &runs {
        awaited(&app, &key, run, "completed").await;
    }
    assert_eq!(other.model.last_texts(), ["0", "ok", "1", "ok", "2"]);
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_cancelled_run_is_closed_though_its_worker_died(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("never".into()));
    let run = begin(&app, &key, json!({ "input": "one", "conversation_id": "c" })).await;
    prompted(&app, 1).await;
    let other = replica(&app).await;
    let newer = json!({ "input": "two", "conversation_id": "c", "on_busy": "interrupt" });
    ask(&other, &key, newer).await.expect(200);
    assert_eq!(other.model.last_texts(), ["one", "two"]);
    assert_eq!(app.open_holds().await, 1);
    assert_eq!(take_over(&other).await, 1);
    other.service.engine.idle().await;
    until("that its books are closed", async || (app.open_holds().await == 0).then_some(())).await;
    assert_eq!(awaited(&app, &key, &run, "cancelled").await["energy"]["amount"], 0);
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs WHERE lease_until IS NOT NULL").await, 0);
    app.model.release();
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn ephemeral_texts_are_forgotten_after_three_days(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.then(call("look", json!({ "secret": 1 })));
    let first = ask(&app, &key, json!({ "input": "a" })).await.expect(200);
    let kept = ask(&app, &key, json!({ "input": "b", "conversation_id": "named" })).await.expect(200);
    let hours = |hours| app.data.clock.advance(Duration::hours(hours));
    hours(71);
    assert_eq!(app.service.engine.purge_ephemeral().await.unwrap(), 0);
    let second = ask(&app, &key, json!({ "input": "c", "conversation_id": first["conversation_id"] }))
        .await
        .expect(200);
    hours(2);
    assert_eq!(app.service.engine.purge_ephemeral().await.unwrap(), 0, "a later run is younger");
    hours(71);
    assert_eq!(app.service.engine.purge_ephemeral().await.unwrap(), 2);
    assert_eq!(app.service.engine.purge_ephemeral().await.unwrap(), 0);
    for run in [&first, &second] {
        let run = read(&app, &key, run).await;
        assert_eq!(
            (&run["input"], &run["output"], &run["status"]),
            (&Value::Null, &Value::Null, &json!("completed"))
        );
        assert!(run["purged_at"].is_string() && run["energy"]["amount"].as_i64() > Some(0));
        for step in run["steps"].as_array().unwrap() {
            assert_eq!((&step["input"], &step["output"]), (&Value::Null, &Value::Null));
        }
    }
    assert_eq!(read(&app, &key, &kept).await["input"], "b");
    let left =
        texts(&app, &format!("SELECT output AS t FROM run_steps WHERE run_id = '{}'", id(&first))).await;
    assert_eq!(left, [None, None, None]);
}
