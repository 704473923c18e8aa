//! Runs that reminders start.

use super::Fixture;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_firing_starts_one_run(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let action = json!({ "type": "run_agent", "config": { "input": "Summarize the quotes." } });
    let made = fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } })).await;
    let noted = fixture.create(json!({ "title": "Title", "note": "Note", "due_at": fixture.after(10), "action": { "type": "run_agent" } })).await;
    fixture.wait(10).await;
    fixture.run().await;
    let runs = fixture.runs().await;
    assert_eq!(runs.len(), 2);
    let of = |reminder: &Value| {
        runs.iter()
            .find(|run| run["trigger"] == json!({ "type": "reminder", "id": reminder["id"].to_string() }))
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of(&made)["input"], &of(&made)["livemode"]),
        (&json!("Summarize the quotes."), &json!(true))
    );
    assert_eq!(of(&noted)["input"], "Title\n\nNote");
    fixture.wait(60).await;
    assert_eq!(fixture.runs().await.len(), 3);
    assert_eq!(fixture.get(&made).await["last_error"], Value::Null);
}

#[testkit::both]
async fn a_start_that_is_tried_again_makes_no_second_run(kind: Kind) {
    use ports::{AgentRuns, StartRun, StartedBy};
    let fixture = Fixture::open(kind).await;
    let run = StartRun {
        workspace: fixture.key.workspace,
        key: fixture.key.id.clone(),
        agent: None,
        input: "x".into(),
        trigger: StartedBy::Reminder(model::ReminderId(7)),
        answering: None,
        question: None,
        conversation: None,
        supersedes: false,
        chain: None,
        once: "reminder:7:1".into(),
        options: ports::StartOptions::default(),
    };
    let replica = fixture.app.replica(auth::RateWindows::local()).await;
    let (engine, other) = (&fixture.app.service.engine, &replica.service.engine);
    let started =
        futures::join!(engine.start(run.clone()), other.start(run.clone()), engine.start(run.clone()));
    let all = [started.0, started.1, started.2];
    assert!(all.iter().any(Result::is_ok));
    assert!(
        all.iter()
            .filter_map(|started| started.as_ref().err())
            .all(|error| error.code() == model::Code::IdempotencyInProgress)
    );
    replica.service.engine.idle().await;
    engine.start(run.clone()).await.unwrap();
    other.start(run.clone()).await.unwrap();
    replica.service.engine.idle().await;
    assert_eq!(fixture.runs().await.len(), 1);
    engine.start(StartRun { once: "reminder:7:2".into(), ..run }).await.unwrap();
    assert_eq!(fixture.runs().await.len(), 2);
}

#[testkit::both]
async fn what_a_run_lacks_is_told(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let action = json!({ "type": "run_agent" });
    let single = fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "action": action })).await;
    let series = fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=DAILY" } })).await;
    let agent = fixture.app.get("/agents", &fixture.key).await.expect(200)[0]["id"].clone();
    fixture.app.post(&format!("/agents/{agent}/deactivate"), &fixture.key, json!({})).await.expect(200);
    fixture.wait(10).await;
    for (reminder, status) in [(&single, "failed"), (&series, "scheduled")] {
        let now = fixture.get(reminder).await;
        assert_eq!((&now["status"], &now["last_error"]["code"]), (&json!(status), &json!("agent_inactive")));
    }
    assert_eq!(fixture.runs().await.len(), 0);
    assert_eq!(fixture.fired().await.len(), 2, "the event is published all the same");
    // A revoked key runs nothing.
    let key = fixture.app.key(fixture.key.workspace, Env::Live, &["*"]).await;
    fixture.app.post(&format!("/agents/{agent}/activate"), &fixture.key, json!({})).await.expect(200);
    let due = fixture.after(10);
    let revoked = fixture
        .app
        .post("/reminders", &key, json!({ "title": "x", "due_at": due, "action": action }))
        .await
        .expect(201);
    fixture.app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", key.id)).await;
    fixture.wait(10).await;
    assert_eq!(fixture.get(&revoked).await["last_error"]["code"], "missing_scope");
    assert_eq!(fixture.runs().await.len(), 0);
}

#[testkit::both]
async fn what_test_keys_set_runs_as_a_test(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let test = fixture.app.key(fixture.key.workspace, Env::Test, &["*"]).await;
    let body = json!({ "title": "x", "due_at": fixture.after(10), "action": { "type": "run_agent" } });
    let made = fixture.app.post("/reminders", &test, body).await.expect(201);
    assert_eq!(made["livemode"], false);
    let live = fixture.create(json!({ "title": "y", "due_at": fixture.after(10) })).await;
    fixture.wait(10).await;
    let runs = fixture.runs().await;
    assert_eq!((runs.len(), &runs[0]["livemode"]), (1, &json!(false)));
    for event in fixture.events().await {
        assert_eq!(event["livemode"], json!(event["data"]["reminder"]["id"] == live["id"]));
    }
}
