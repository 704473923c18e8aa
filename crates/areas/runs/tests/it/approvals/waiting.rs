//! Runs that wait for an approval: expiry, their conversation, their time and their Energy.

use super::{answer, approve, asking, look, pass, path_of, set_up, statuses};
use crate::{ask, awaited, begin, call, check_books, events, give_tool, number, read, say};
use chrono::Duration;
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, Script, until};

#[testkit::both]
async fn what_nobody_answers_expires_after_a_day(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({ "conversation_id": "c" })).await;
    assert_eq!(pass(&app, Duration::hours(24) - Duration::seconds(1)).await, 0);
    app.db().write(billing::ledger::sweep_expired_holds).await.unwrap();
    assert_eq!(look(&app, &path_of(&run)).await, 200);
    // An answer comes too late also where nobody has looked yet.
    app.data.clock.advance(Duration::seconds(2));
    answer(&app, &path_of(&run), json!({ "decision": "approve" }))
        .await
        .expect_error(410, "approval_expired");
    assert_eq!((look(&app, &path_of(&run)).await, pass(&app, Duration::zero()).await), (410, 1));
    let ended = awaited(&app, &key, &run, "expired").await;
    assert_eq!(
        (&ended["incomplete_details"]["reason"], &ended["energy"]["amount"]),
        (&json!("unanswered"), &json!(1))
    );
    assert_eq!((statuses(&ended), &ended["required_action"]), (vec!["completed", "cancelled"], &Value::Null));
    assert_eq!(look(&app, &path_of(&run)).await, 410);
    assert_eq!(events(&app).await, ["run.requires_action", "run.expired"]);
    let kept = app.get("/billing/executions", &key).await.expect(200);
    assert_eq!((&kept[0]["status"], &kept[0]["energy"]), (&json!("expired"), &json!(1)), "{kept}");
    // The conversation is free, and does not remember.
    ask(&app, &key, json!({ "input": "Hi", "conversation_id": "c", "on_busy": "reject" })).await.expect(200);
    assert_eq!((app.model.last_texts().last().unwrap().as_str(), server.requests()), ("Hi", 0));
    assert!(!app.model.last_texts().contains(&"Pay".to_owned()));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_conversation_is_busy_while_its_run_waits(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({ "conversation_id": "c" })).await;
    let busy = ask(&app, &key, json!({ "input": "Hi", "conversation_id": "c", "on_busy": "reject" })).await;
    busy.expect_error(409, "conversation_busy");
    assert_eq!(busy.body["error"]["run_id"], run["id"]);
    let waits = begin(&app, &key, json!({ "input": "Hi", "conversation_id": "c" })).await;
    assert_eq!(waits["status"], "queued");
    app.model.then(say("paid")).then(say("hi"));
    approve(&app, &run).await;
    assert_eq!(awaited(&app, &key, &run, "completed").await["output"], "paid");
    assert_eq!(awaited(&app, &key, &waits, "completed").await["output"], "hi");
    assert_eq!(
        (app.model.last_texts()[1..].to_vec(), server.requests()),
        (vec!["Pay".to_owned(), "paid".into(), "Hi".into()], 1)
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_newer_input_cancels_a_run_that_waits(kind: Kind) {
    for (on_busy, reason) in [("interrupt", "interrupted"), ("rollback", "rolled_back")] {
        let (app, key, _, server) = set_up(kind, "always").await;
        let run = asking(&app, &key, &[5], json!({ "conversation_id": "c" })).await;
        ask(&app, &key, json!({ "input": "Hi", "conversation_id": "c", "on_busy": on_busy }))
            .await
            .expect(200);
        let ended = read(&app, &key, &run).await;
        assert_eq!(
            (&ended["status"], &ended["incomplete_details"]["reason"]),
            (&json!("cancelled"), &json!(reason))
        );
        // Its books are closed without anybody looking for it.
        until("that its books are closed", async || (app.open_holds().await == 0).then_some(())).await;
        let ended = read(&app, &key, &run).await;
        assert_eq!(
            (&ended["energy"]["amount"], statuses(&ended)),
            (&json!(1), vec!["completed", "cancelled"])
        );
        assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs WHERE lease_until IS NOT NULL").await, 0);
        answer(&app, &path_of(&run), json!({ "decision": "approve" }))
            .await
            .expect_error(410, "approval_expired");
        assert_eq!((look(&app, &path_of(&run)).await, server.requests()), (410, 0));
        assert_eq!(events(&app).await.iter().filter(|kind| *kind == "run.cancelled").count(), 1);
        check_books(&app, key.workspace).await;
    }
}

#[testkit::both]
async fn waiting_is_not_the_runs_time(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({ "timeout_seconds": 20 })).await;
    app.data.clock.advance(Duration::hours(9));
    app.db().write(billing::ledger::sweep_expired_holds).await.unwrap();
    // The key was revoked and the agent switched off meanwhile: what has begun goes on to its end.
    app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", key.id)).await;
    let other = app.key(key.workspace, Env::Live, &["*"]).await;
    app.post(&format!("/agents/{}/deactivate", agent["id"]), &other, json!({})).await.expect(200);
    app.model.then(call("pay", json!({ "sum": 6 })));
    approve(&app, &run).await;
    let run = awaited(&app, &other, &run, "requires_action").await;
    app.data.clock.advance(Duration::hours(9));
    app.db().write(billing::ledger::sweep_expired_holds).await.unwrap();
    approve(&app, &run).await;
    let run = awaited(&app, &other, &run, "completed").await;
    assert_eq!((server.requests(), &run["energy"]["amount"]), (2, &json!(3)));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn the_month_counts_what_waits(kind: Kind) {
    let (app, key, agent, _) = set_up(kind, "always").await;
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "energy_limit_monthly": 30 }))
        .await
        .expect(200);
    let run = asking(&app, &key, &[5], json!({})).await;
    let param = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    assert_eq!(param.as_deref(), Some("energy_limit_monthly"));
    answer(&app, &path_of(&run), json!({ "decision": "deny" })).await.expect(200);
    awaited(&app, &key, &run, "completed").await;
    app.service.engine.idle().await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_guardrails_note_meanwhile_has_its_place(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, "always").await;
    let flag = json!([{ "on": ["tool_result"], "type": "regex", "pattern": "secret", "action": "mask" }]);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "guardrails": flag })).await.expect(200);
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    server.then(200, None, json!("a secret")).then(200, None, json!("another secret"));
    app.model.then(Script::Call(vec![
        ("pay".into(), json!({ "sum": 1 })),
        ("look".into(), json!({})),
        ("pay".into(), json!({ "sum": 2 })),
    ]));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let calls = &run["required_action"]["calls"];
    let body = json!({ "decision": "approve", "calls": [calls[0]["step_id"]], "note": "no secret for you" });
    answer(&app, &path_of(&run), body).await.expect(200);
    let run = awaited(&app, &key, &run, "completed").await;
    let kinds: Vec<Value> =
        run["steps"].as_array().unwrap().iter().map(|step| json!([step["position"], step["type"]])).collect();
    let kind = |position: i64, kind: &str| json!([position, kind]);
    assert_eq!(
        kinds,
        [
            kind(1, "model"),
            kind(2, "tool"),
            kind(3, "tool"),
            kind(4, "tool"),
            kind(5, "guardrail"),
            kind(6, "guardrail"),
            kind(7, "guardrail"),
            kind(8, "model")
        ]
    );
    // What a person says to the model passes the same checks as what a tool brings.
    assert_eq!(run["steps"][3]["output"]["result"], "a person refused this call and said: no *** for you");
    check_books(&app, key.workspace).await;
}
