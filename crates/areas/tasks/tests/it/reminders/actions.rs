//! Runs that reminders start.

use super::Desk;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_firing_starts_one_run(kind: Kind) {
    let desk = Desk::open(kind).await;
    let action = json!({ "type": "run_agent", "config": { "input": "Summarize the quotes." } });
    let made = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } })).await;
    let noted = desk.create(json!({ "title": "Title", "note": "Note", "due_at": desk.after(10), "action": { "type": "run_agent" } })).await;
    desk.wait(10).await;
    desk.run().await;
    let runs = desk.runs().await;
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
    desk.wait(60).await;
    assert_eq!(desk.runs().await.len(), 3);
    assert_eq!(desk.get(&made).await["last_error"], Value::Null);
}

#[testkit::both]
async fn a_start_that_is_tried_again_makes_no_second_run(kind: Kind) {
    use ports::{AgentRuns, StartRun, StartedBy};
    let desk = Desk::open(kind).await;
    let run = StartRun {
        workspace: desk.key.workspace,
        key: desk.key.id.clone(),
        agent: None,
        input: "x".into(),
        trigger: StartedBy::Reminder(model::ReminderId(7)),
        answering: None,
        question: None,
        conversation: None,
        supersedes: false,
        once: "reminder:7:1".into(),
    };
    let replica = desk.app.replica(auth::RateWindows::local()).await;
    let (engine, other) = (&desk.app.service.engine, &replica.service.engine);
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
    assert_eq!(desk.runs().await.len(), 1);
    engine.start(StartRun { once: "reminder:7:2".into(), ..run }).await.unwrap();
    assert_eq!(desk.runs().await.len(), 2);
}

#[testkit::both]
async fn what_a_run_lacks_is_told(kind: Kind) {
    let desk = Desk::open(kind).await;
    let action = json!({ "type": "run_agent" });
    let single = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action })).await;
    let series = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=DAILY" } })).await;
    let agent = desk.app.get("/agents", &desk.key).await.expect(200)[0]["id"].clone();
    desk.app.post(&format!("/agents/{agent}/deactivate"), &desk.key, json!({})).await.expect(200);
    desk.wait(10).await;
    for (reminder, status) in [(&single, "failed"), (&series, "scheduled")] {
        let now = desk.get(reminder).await;
        assert_eq!((&now["status"], &now["last_error"]["code"]), (&json!(status), &json!("agent_inactive")));
    }
    assert_eq!(desk.runs().await.len(), 0);
    assert_eq!(desk.fired().await.len(), 2, "the event is published all the same");
    // Of a key that was revoked nothing is run.
    let key = desk.app.key(desk.key.workspace, Env::Live, &["*"]).await;
    desk.app.post(&format!("/agents/{agent}/activate"), &desk.key, json!({})).await.expect(200);
    let due = desk.after(10);
    let revoked = desk
        .app
        .post("/reminders", &key, json!({ "title": "x", "due_at": due, "action": action }))
        .await
        .expect(201);
    desk.app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", key.id)).await;
    desk.wait(10).await;
    assert_eq!(desk.get(&revoked).await["last_error"]["code"], "missing_scope");
    assert_eq!(desk.runs().await.len(), 0);
}

#[testkit::both]
async fn what_test_keys_set_runs_as_a_test(kind: Kind) {
    let desk = Desk::open(kind).await;
    let test = desk.app.key(desk.key.workspace, Env::Test, &["*"]).await;
    let body = json!({ "title": "x", "due_at": desk.after(10), "action": { "type": "run_agent" } });
    let made = desk.app.post("/reminders", &test, body).await.expect(201);
    assert_eq!(made["livemode"], false);
    let live = desk.create(json!({ "title": "y", "due_at": desk.after(10) })).await;
    desk.wait(10).await;
    let runs = desk.runs().await;
    assert_eq!((runs.len(), &runs[0]["livemode"]), (1, &json!(false)));
    for event in desk.events().await {
        assert_eq!(event["livemode"], json!(event["data"]["reminder"]["id"] == live["id"]));
    }
}
