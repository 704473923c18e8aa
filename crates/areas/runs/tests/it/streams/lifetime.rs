//! How streams begin and end, and what a request gets that is sent again.

use super::{asking, is_replayed, last_run, listen, names, once, pieces, texts};
use crate::{ask, awaited, begin, check_books, id, number, prompted, read, say, with_agent};
use auth::RateWindows;
use chrono::Duration;
use model::Env;
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Kind, Script, TestApp, until};

#[testkit::both]
async fn what_is_refused_is_no_stream(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let send = async |body: Value| {
        let answer = asking(&app, &key, body).send().await;
        assert_eq!(answer.headers["content-type"], "application/json");
        answer
    };
    assert_eq!(
        send(json!({ "input": " " })).await.expect_error(400, "validation_error").as_deref(),
        Some("input")
    );
    assert_eq!(
        send(json!({ "input": "Hi", "background": true }))
            .await
            .expect_error(400, "validation_error")
            .as_deref(),
        Some("stream")
    );
    send(json!({ "input": "Hi", "agent_id": 999_999 })).await.expect_error(404, "not_found");
    app.model.then(Script::Wait("late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi", "conversation_id": "c" })).await;
    send(json!({ "input": "Hi", "conversation_id": "c", "on_busy": "reject" }))
        .await
        .expect_error(409, "conversation_busy");
    app.model.release();
    awaited(&app, &key, &run, "completed").await;
    app.reserve_all_but(key.workspace, 0).await;
    send(json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    app.free_energy(key.workspace).await;
    app.post(&format!("/agents/{}/deactivate", agent["id"]), &key, json!({})).await.expect(200);
    send(json!({ "input": "Hi" })).await.expect_error(409, "agent_inactive");
    let none = app.ask("POST", "/runs").json(&json!({ "input": "Hi", "stream": true })).send().await;
    none.expect_error(401, "missing_api_key");
}

#[testkit::both]
async fn a_caller_that_hangs_up_does_not_stop_its_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(pieces(&["Hello", ", world"]));
    let mut stream = listen(&app, &key, json!({ "input": "Hi" })).await;
    let run = json!({ "id": stream.until("output.delta").await.data["run_id"] });
    drop(stream);
    // The request is over: its row is written.
    until("the row of the log", async || {
        (number(&app, "SELECT COUNT(*) AS n FROM request_logs WHERE operation = 'createRun'").await == 1)
            .then_some(())
    })
    .await;
    assert_eq!(read(&app, &key, &run).await["status"], "in_progress");
    app.model.release();
    assert_eq!(awaited(&app, &key, &run, "completed").await["output"], "Hello, world");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_ends_with_its_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (change, code) in [
        ("revoked_at = created_at", "api_key_revoked"),
        ("expires_at = created_at", "api_key_expired"),
        ("scopes = 'runs:read'", "missing_scope"),
    ] {
        let own = app.key(key.workspace, Env::Live, &["runs:execute"]).await;
        app.model.then(pieces(&["Hello", ", world"]));
        let mut stream = listen(&app, &own, json!({ "input": "Hi" })).await;
        let run = json!({ "id": stream.until("output.delta").await.data["run_id"] });
        app.sql(format!("UPDATE api_keys SET {change} WHERE id = '{}'", own.id)).await;
        let rest = stream.rest().await;
        assert_eq!(names(&rest), ["error"]);
        assert_eq!((&rest[0].data["success"], &rest[0].data["error"]["code"]), (&json!(false), &json!(code)));
        app.model.release();
        assert_eq!(awaited(&app, &key, &run, "completed").await["output"], "Hello, world");
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_ends_with_the_workspace_that_it_is_about(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let (_, partner) = app.partner_key(Env::Live, &["runs:execute"], &[key.workspace]).await;
    for (change, back, code) in [
        ("blocked_reason = 'Unpaid.'", "blocked_reason = NULL", "workspace_blocked"),
        ("partner_id = NULL", "name = name", "workspace_not_found"),
    ] {
        app.model.then(pieces(&["Hello", ", world"]));
        let mut stream = listen(&app, &partner, json!({ "input": "Hi" })).await;
        let run = json!({ "id": stream.until("output.delta").await.data["run_id"] });
        app.sql(format!("UPDATE workspaces SET {change} WHERE id = {}", key.workspace)).await;
        let rest = stream.rest().await;
        assert_eq!((names(&rest), &rest[0].data["error"]["code"]), (vec!["error"], &json!(code)));
        app.sql(format!("UPDATE workspaces SET {back} WHERE id = {}", key.workspace)).await;
        app.model.release();
        assert_eq!(awaited(&app, &key, &run, "completed").await["output"], "Hello, world");
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_failed_run_ends_with_its_error(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::BreakOff(vec!["Hel".into()], ProviderError::Unavailable("down".into())));
    let mut stream = listen(&app, &key, json!({ "input": "Hi" })).await;
    let reported = stream.rest().await;
    assert_eq!(
        names(&reported),
        ["run.created", "step.started", "output.delta", "output.delta", "step.completed", "run.failed"]
    );
    assert_eq!(
        (texts(&reported), &reported[4].data["step"]["status"]),
        (vec![String::new()], &json!("failed"))
    );
    let last = &reported[5].data;
    assert_eq!(
        (&last["success"], &last["error"]["code"], &last["error"]["type"]),
        (&json!(false), &json!("model_unavailable"), &json!("agent_error"))
    );
    assert_eq!(
        (&last["error"]["run_id"], last["request_id"].as_str()),
        (&reported[0].data["data"]["id"], Some(stream.headers["x-request-id"].as_str()))
    );
    app.model.then(Script::Fail(ProviderError::Unavailable("down".into())));
    let mut plain = ask(&app, &key, json!({ "input": "Hi" })).await.body;
    let mut last = last.clone();
    for body in [&mut plain, &mut last] {
        body["request_id"] = Value::Null;
        body["error"]["run_id"] = Value::Null;
    }
    assert_eq!(last, plain);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_resend_gets_the_run_as_json(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(pieces(&["Hello", ", world"]));
    let mut stream = once(&app, &key).listen().await;
    let run = json!({ "id": stream.until("output.delta").await.data["run_id"] });
    let meanwhile = once(&app, &key).send().await;
    let shown = meanwhile.expect(202);
    assert_eq!(
        (id(&shown), &shown["status"], is_replayed(&meanwhile)),
        (id(&run), &json!("in_progress"), true)
    );
    app.model.release();
    let reported = stream.rest().await;
    let after = once(&app, &key).send().await;
    assert_eq!((after.expect(200), is_replayed(&after)), (last_run(&reported), true));
    assert_eq!(app.model.prompts().len(), 1);
    // Without `stream` it is another request.
    let other =
        app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1").json(&json!({ "input": "Hi" }));
    other.send().await.expect_error(400, "idempotency_key_reused");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_resend_after_a_failure_begins_the_same_run_anew(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Fail(ProviderError::Unavailable("down".into()))).then(pieces(&["up"]));
    let failed = once(&app, &key).listen().await.rest().await;
    assert_eq!(failed.last().unwrap().name, "run.failed");
    let reported = once(&app, &key).listen().await.rest().await;
    // Steps of the attempt before are not told again.
    assert_eq!(
        names(&reported),
        ["run.created", "step.started", "output.delta", "step.completed", "run.completed"]
    );
    assert_eq!(
        (id(&last_run(&reported)), reported[1].data["position"].as_i64()),
        (id(&failed[0].data["data"]), Some(2))
    );
    let after = once(&app, &key).send().await;
    assert_eq!((after.expect(200)["output"].clone(), is_replayed(&after)), (json!("up"), true));
    assert_eq!(app.get("/runs", &key).await.expect(200).as_array().unwrap().len(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_waits_for_the_worker_that_took_over(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let other = app.replica(RateWindows::local()).await;
    app.model.then(pieces(&["too", "late"]));
    other.model.then(say("in time"));
    let mut stream = once(&app, &key).listen().await;
    stream.until("output.delta").await;
    app.data.clock.advance(Duration::seconds(31));
    assert_eq!(other.service.engine.resume_silent().await.unwrap(), 1);
    prompted(&other, 1).await;
    app.model.release();
    let rest = stream.rest().await;
    let run = last_run(&rest);
    assert_eq!(run["output"], "in time");
    // What the old worker still said does not count, and its step has no outcome.
    let steps: Vec<&Value> = rest
        .iter()
        .filter(|event| event.name == "step.completed")
        .map(|event| &event.data["step"]["status"])
        .collect();
    assert_eq!(steps, [&json!("unknown"), &json!("completed")]);
    // The worker that took over replaced what was stored for the request.
    let after = once(&app, &key).send().await;
    assert_eq!((after.expect(200), is_replayed(&after)), (run, true));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_long_run_that_fails_in_the_end_can_be_sent_again(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.service.engine.set_patience(std::time::Duration::from_millis(50));
    let other = app.replica(RateWindows::local()).await;
    app.model.then(Script::Wait("too late".into()));
    other.model.then(Script::Fail(ProviderError::Unavailable("down".into())));
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi" })).send().await
    };
    let run = send().await.expect(202);
    app.data.clock.advance(Duration::seconds(31));
    assert_eq!(other.service.engine.resume_silent().await.unwrap(), 1);
    awaited(&app, &key, &run, "failed").await;
    app.model.release();
    app.service.engine.idle().await;
    app.service.engine.set_patience(std::time::Duration::from_secs(60));
    app.model.then(say("up"));
    let repeated = send().await.expect(200);
    assert_eq!((id(&repeated), &repeated["output"]), (id(&run), &json!("up")));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stopping_service_ends_its_streams(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(pieces(&["Hello", ", world"]));
    let mut stream = listen(&app, &key, json!({ "input": "Hi" })).await;
    stream.until("output.delta").await;
    let model = app.model.clone();
    let reading = async {
        // The server has begun to stop, and still shows signs of life.
        stream.comment().await;
        model.release();
        stream.rest().await
    };
    let (_, rest) = tokio::join!(app.stop(), reading);
    assert_eq!(
        (names(&rest).last(), last_run(&rest)["output"].as_str()),
        (Some(&"run.completed"), Some("Hello, world"))
    );
}
