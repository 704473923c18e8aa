//! Approvals whose workers die.

use super::{answer, approve, asking, pass, path_of, set_up_two, statuses};
use crate::{awaited, begin, call, check_books, give_tool, number, prompted, read};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{Kind, Script, TestApp, until};

#[testkit::both]
async fn a_worker_that_dies_before_the_call_leaves_it_to_be_made_once(kind: Kind) {
    let ((app, other), key, _, server) = set_up_two(kind).await;
    let run = asking(&app, &key, &[5], json!({})).await;
    app.service.engine.idle().await;
    // What an answer leaves behind whose process dies at once.
    app.sql("UPDATE run_steps SET status = 'approved' WHERE status = 'requires_action'").await;
    app.sql("UPDATE runs SET status = 'in_progress', epoch = epoch + 1, lease_until = queued_at").await;
    assert_eq!((pass(&other, Duration::seconds(31)).await, pass(&app, Duration::zero()).await), (1, 0));
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((server.requests(), statuses(&run)), (1, vec!["completed", "completed", "completed"]));
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_worker_that_dies_in_the_call_leaves_it_unknown(kind: Kind) {
    let ((app, other), key, _, server) = set_up_two(kind).await;
    server.then(0, None, Value::Null);
    let run = asking(&app, &key, &[5, 6], json!({})).await;
    let allowed = &run["required_action"]["calls"][0]["step_id"];
    answer(&app, &path_of(&run), json!({ "decision": "approve", "calls": [allowed] })).await.expect(200);
    until("the tool is called", async || (server.requests() == 1).then_some(())).await;
    assert_eq!(pass(&other, Duration::seconds(31)).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(
        (server.requests(), statuses(&run)),
        (1, vec!["completed", "unknown", "refused", "completed"])
    );
    other.service.engine.idle().await;
}

#[testkit::both]
async fn a_worker_that_dies_before_it_asks_is_followed_by_one_that_asks(kind: Kind) {
    let ((app, other), key, agent, server) = set_up_two(kind).await;
    give_tool(
        &app,
        &key,
        &agent,
        "look",
        &server,
        json!({ "http": { "method": "GET" }, "timeout_seconds": 60 }),
    )
    .await;
    server.then(0, None, Value::Null);
    app.model.then(Script::Call(vec![("look".into(), json!({})), ("pay".into(), json!({ "sum": 1 }))]));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    until("the tool is called", async || (server.requests() == 1).then_some(())).await;
    let now = read(&app, &key, &run).await;
    assert_eq!(
        (&now["status"], statuses(&now)),
        (&json!("in_progress"), vec!["completed", "running", "requires_action"])
    );
    assert_eq!(pass(&other, Duration::seconds(31)).await, 1);
    let run = awaited(&app, &key, &run, "requires_action").await;
    assert_eq!(statuses(&run), ["completed", "unknown", "requires_action"]);
    approve(&other, &run).await;
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(
        (server.requests(), statuses(&run)),
        (2, vec!["completed", "unknown", "completed", "completed"])
    );
    other.service.engine.idle().await;
    check_books(&other, key.workspace).await;
}

#[testkit::both]
async fn calls_of_a_failed_attempt_need_approval_in_the_next(kind: Kind) {
    let ((app, other), key, agent, server) = set_up_two(kind).await;
    give_tool(
        &app,
        &key,
        &agent,
        "look",
        &server,
        json!({ "http": { "method": "GET" }, "timeout_seconds": 60 }),
    )
    .await;
    server.then(0, None, Value::Null);
    app.model.then(Script::Call(vec![("look".into(), json!({})), ("pay".into(), json!({ "sum": 1 }))]));
    let send = async |app: &TestApp| {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "once");
        asking.json(&json!({ "input": "Pay" })).send().await
    };
    let give_up = async {
        until("the tool is called", async || (server.requests() == 1).then_some(())).await;
        app.sql("UPDATE runs SET epoch = 6").await;
        assert_eq!(pass(&other, Duration::seconds(31)).await, 1);
        until("that the run failed", async || {
            (number(&app, "SELECT COUNT(*) AS n FROM runs WHERE status = 'failed'").await == 1).then_some(())
        })
        .await;
        other.service.engine.idle().await;
        other.model.then(call("pay", json!({ "sum": 1 })));
        send(&other).await
    };
    let repeated = tokio::select! {
        _ = send(&app) => unreachable!("its tool hangs"),
        repeated = give_up => repeated,
    };
    let run = repeated.expect(200);
    assert_eq!((&run["status"], server.requests()), (&json!("requires_action"), 1));
    let steps = read(&other, &key, &run).await;
    assert_eq!(statuses(&steps), ["completed", "unknown", "cancelled", "completed", "requires_action"]);
    approve(&other, &run).await;
    awaited(&other, &key, &run, "completed").await;
    assert_eq!(server.requests(), 2);
    check_books(&other, key.workspace).await;
}

#[testkit::both]
async fn answers_are_no_deaths_of_workers(kind: Kind) {
    let ((app, other), key, _, server) = set_up_two(kind).await;
    let mut run = asking(&app, &key, &[0], json!({})).await;
    for sum in 1..7 {
        app.model.then(call("pay", json!({ "sum": sum })));
        approve(&app, &run).await;
        run = until("that it asks again", async || {
            let run = read(&app, &key, &run).await;
            (run["required_action"]["calls"][0]["arguments"]["sum"] == sum).then_some(run)
        })
        .await;
    }
    app.model.then(Script::Wait("never".into()));
    approve(&app, &run).await;
    prompted(&app, 8).await;
    assert_eq!(pass(&other, Duration::seconds(31)).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((server.requests(), &run["usage"]["tool_calls"]), (7, &json!(7)));
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}
