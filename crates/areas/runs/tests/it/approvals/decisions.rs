//! Approvals and refusals of calls, and who may decide.

use super::{answer, approve, asking, look, path_of, set_up, set_up_two, statuses};
use crate::{ask, awaited, call, check_books, events, give_tool, id, number, read, say, texts};
use chrono::Duration;
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, Script, until};

#[testkit::both]
async fn an_approved_call_is_made_and_the_run_goes_on(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, "on_write").await;
    app.model.usage(100, 50);
    let run = asking(&app, &key, &[5], json!({ "metadata": { "order": "1" } })).await;
    let action = &run["required_action"];
    assert_eq!((&action["type"], &action["calls"][0]["tool"]), (&json!("approval"), &json!("pay")));
    assert_eq!(action["calls"][0]["arguments"], json!({ "sum": 5 }));
    let expires = model::Timestamp::parse(action["expires_at"].as_str().unwrap()).unwrap();
    assert_eq!(expires.seconds() - app.db().now().seconds(), 24 * 3600);
    app.service.engine.idle().await;
    assert_eq!(
        (server.requests(), read(&app, &key, &run).await["required_action"].clone()),
        (0, action.clone())
    );

    // The event says what is asked, and not with what, nor where it is answered.
    let reported = texts(&app, "SELECT data AS t FROM events WHERE kind = 'run.requires_action'").await;
    let reported: Value = serde_json::from_str(reported[0].as_ref().unwrap()).unwrap();
    let expected = json!({
        "run_id": run["id"], "status": "requires_action", "agent_id": agent["id"], "agent_version": 2,
        "conversation_id": run["conversation_id"], "metadata": { "order": "1" }, "expires_at": action["expires_at"],
        "calls": [{ "step_id": action["calls"][0]["step_id"], "tool": "pay" }],
    });
    assert_eq!(reported, expected);
    let listed = app.get("/runs?status=requires_action", &key).await.expect(200);
    assert_eq!((&listed[0]["id"], &listed[0]["required_action"]["approval_url"]), (&run["id"], &Value::Null));
    assert_eq!(listed[0]["required_action"]["calls"], action["calls"]);

    app.data.clock.advance(Duration::minutes(1));
    let answered =
        answer(&app, &path_of(&run), json!({ "decision": "approve", "note": " Go on.\r\n " })).await;
    let given = answered.expect(200);
    assert_eq!(
        (&given["object"], &given["run_id"], &given["decision"]),
        (&json!("approval"), &run["id"], &json!("approved"))
    );
    assert_eq!((&given["note"], &given["calls"][0]["decision"]), (&json!("Go on."), &json!("approved")));
    let done = awaited(&app, &key, &run, "completed").await;
    assert_eq!(
        (server.requests(), &done["output"], &done["required_action"]),
        (1, &json!("ok"), &Value::Null)
    );
    assert_eq!(statuses(&done), ["completed", "completed", "completed"]);
    let approval = &done["steps"][1]["input"]["approval"];
    assert_eq!(
        (&approval["decision"], &approval["note"], &approval["decided_at"]),
        (&json!("approved"), &json!("Go on."), &given["decided_at"])
    );
    assert_eq!((&done["energy"]["amount"], &done["usage"]["tool_calls"]), (&json!(4), &json!(1)));
    assert_eq!(events(&app).await, ["run.requires_action", "run.completed"]);

    answer(&app, &path_of(&run), json!({ "decision": "deny" })).await.expect_error(409, "invalid_state");
    assert_eq!((look(&app, &path_of(&run)).await, server.requests()), (409, 1));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn the_model_gets_a_refusal_as_a_result(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({})).await;
    // It asks again for the same, which is refused without asking anybody.
    app.model.then(call("pay", json!({ "sum": 5 }))).then(say("sorry"));
    let given =
        answer(&app, &path_of(&run), json!({ "decision": "deny", "note": "Too much" })).await.expect(200);
    assert_eq!((&given["decision"], &given["calls"][0]["decision"]), (&json!("refused"), &json!("refused")));
    let done = awaited(&app, &key, &run, "completed").await;
    assert_eq!((server.requests(), &done["output"]), (0, &json!("sorry")));
    assert_eq!(statuses(&done), ["completed", "refused", "completed", "failed", "completed"]);
    assert_eq!(
        done["steps"][1]["output"],
        json!({ "ok": false, "result": "a person refused this call and said: Too much" })
    );
    let prompt = &app.model.prompts()[1];
    assert!(
        prompt.messages.last().unwrap().content.contains("a person refused this call and said: Too much")
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn only_calls_that_need_approval_wait_for_it(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, "on_write").await;
    let limited = json!({ "approval": "always", "http": { "method": "GET" }, "max_calls_per_run": 1,
        "parameters": { "type": "object", "required": ["n"] } });
    give_tool(&app, &key, &agent, "peek", &server, limited).await;
    give_tool(
        &app,
        &key,
        &agent,
        "look",
        &server,
        json!({ "approval": "on_write", "http": { "method": "GET" } }),
    )
    .await;
    let calls = [
        ("peek", json!({ "n": 1 })),
        ("look", json!({})),
        ("pay", json!({ "sum": 1 })),
        ("peek", json!({})),
        ("pay", json!({ "sum": 1 })),
        ("nothing", json!({})),
        ("pay", json!({ "sum": 2 })),
        ("peek", json!({ "n": 2 })),
    ];
    app.model.then(Script::Call(calls.map(|(name, arguments)| (name.to_owned(), arguments)).into()));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["status"], "requires_action");
    // The reading call is made, bad calls are answered, and of equal ones that write one is asked about.
    let pending: Vec<&Value> = run["required_action"]["calls"].as_array().unwrap().iter().collect();
    let what: Vec<Value> = pending.iter().map(|one| json!([one["tool"], one["arguments"]])).collect();
    assert_eq!(json!(what), json!([["peek", { "n": 1 }], ["pay", { "sum": 1 }], ["pay", { "sum": 2 }]]));
    assert_eq!(server.requests(), 1);
    let steps = read(&app, &key, &run).await;
    let (wait, done, bad) = ("requires_action", "completed", "failed");
    assert_eq!(statuses(&steps), [done, wait, done, wait, bad, "approved", bad, wait, bad]);
    let allowed = json!([pending[0]["step_id"], pending[1]["step_id"]]);
    answer(&app, &path_of(&run), json!({ "decision": "approve", "calls": allowed })).await.expect(200);
    let run = awaited(&app, &key, &run, done).await;
    assert_eq!(statuses(&run), [done, done, done, done, bad, done, bad, "refused", bad, done]);
    assert_eq!((server.requests(), &run["usage"]["tool_calls"]), (3, &json!(8)));
    assert!(run["steps"][5]["output"]["result"]["first"].is_object(), "{run}");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn of_people_who_answer_at_once_one_wins(kind: Kind) {
    let ((app, other), key, _, server) = set_up_two(kind).await;
    let mut paid = 0;
    for round in 0..3 {
        let run = asking(&app, &key, &[round], json!({})).await;
        let path = path_of(&run);
        let answers = join_all((0..8).map(async |number| {
            let decision = if number % 2 == 0 { "approve" } else { "deny" };
            answer(if number % 3 == 0 { &app } else { &other }, &path, json!({ "decision": decision })).await
        }))
        .await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
        assert_eq!((won.len(), lost.len()), (1, 7));
        for answer in lost {
            answer.expect_error(409, "invalid_state");
        }
        let done = awaited(&app, &key, &run, "completed").await;
        let decision = &done["steps"][1]["input"]["approval"]["decision"];
        assert_eq!(decision, &won[0].body["data"]["decision"]);
        paid += usize::from(decision == "approved");
        assert_eq!(server.requests(), paid);
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn only_who_may_run_sees_the_link(kind: Kind) {
    let (app, key, _, _) = set_up(kind, "always").await;
    let reader = app.key(key.workspace, Env::Live, &["runs:read"]).await;
    let run = asking(&app, &key, &[5], json!({})).await;
    let seen = read(&app, &reader, &run).await;
    assert_eq!(seen["required_action"]["approval_url"], Value::Null);
    assert_eq!(seen["required_action"]["calls"], run["required_action"]["calls"]);
    // Nowhere else it stands either: not in events, not in what is delivered or logged.
    let signature = path_of(&run).rsplit('.').next().unwrap().to_owned();
    for table in [
        "SELECT data AS t FROM events",
        "SELECT path AS t FROM request_logs",
        "SELECT options AS t FROM runs",
    ] {
        let all = texts(&app, table).await;
        assert!(!all.iter().flatten().any(|text| text.contains(&signature)), "{table}");
    }
    let mine = app.key(app.workspace().await, Env::Live, &["*"]).await;
    app.get(&format!("/runs/{}", id(&run)), &mine).await.expect_error(404, "not_found");
    answer(&app, &path_of(&run), json!({ "decision": "deny" })).await.expect(200);
    awaited(&app, &key, &run, "completed").await;
}

#[testkit::both]
async fn nobody_decides_for_a_blocked_workspace(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let run = asking(&app, &key, &[5], json!({})).await;
    app.sql(format!("UPDATE workspaces SET blocked_reason = 'Unpaid.' WHERE id = {}", key.workspace)).await;
    assert_eq!(look(&app, &path_of(&run)).await, 403);
    let refused = answer(&app, &path_of(&run), json!({ "decision": "approve" })).await;
    refused.expect_error(403, "workspace_blocked");
    assert_eq!(server.requests(), 0);
    app.sql(format!("UPDATE workspaces SET blocked_reason = NULL WHERE id = {}", key.workspace)).await;
    approve(&app, &run).await;
    awaited(&app, &key, &run, "completed").await;
    assert_eq!(server.requests(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_link_answers_its_own_question_only(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let first = asking(&app, &key, &[1], json!({})).await;
    app.model.then(call("pay", json!({ "sum": 2 })));
    approve(&app, &first).await;
    let second = until("that it asks again", async || {
        let run = read(&app, &key, &first).await;
        (run["required_action"]["calls"][0]["arguments"]["sum"] == 2).then_some(run)
    })
    .await;
    assert_ne!(path_of(&first), path_of(&second));
    answer(&app, &path_of(&first), json!({ "decision": "approve" })).await.expect_error(409, "invalid_state");
    assert_eq!((look(&app, &path_of(&first)).await, look(&app, &path_of(&second)).await), (409, 200));
    answer(&app, &path_of(&second), json!({ "decision": "deny" })).await.expect(200);
    awaited(&app, &key, &first, "completed").await;
    assert_eq!(server.requests(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn under_a_test_key_the_call_is_simulated(kind: Kind) {
    let (app, key, _, server) = set_up(kind, "always").await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    let run = asking(&app, &test, &[5], json!({})).await;
    let page = app.ask_beside("GET", &path_of(&run)).send().await;
    assert!(page.text.contains("This is a test"), "{}", page.text);
    approve(&app, &run).await;
    let run = awaited(&app, &test, &run, "completed").await;
    assert_eq!((&run["steps"][1]["output"]["result"]["simulated"], server.requests()), (&json!(true), 0));
    assert_eq!((&run["energy"]["amount"], &run["livemode"]), (&json!(0), &json!(false)));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_resend_gets_the_same_answer(kind: Kind) {
    let (app, key, _, _) = set_up(kind, "always").await;
    app.model.then(call("pay", json!({ "sum": 5 })));
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "once");
        asking.json(&json!({ "input": "Pay" })).send().await
    };
    let first = send().await.expect(200);
    let repeated = send().await;
    assert_eq!(
        (repeated.headers["idempotent-replayed"].as_str(), repeated.expect(200)),
        ("true", first.clone())
    );
    assert!(first["required_action"]["approval_url"].is_string());
    approve(&app, &first).await;
    awaited(&app, &key, &first, "completed").await;
    let reported = "SELECT COUNT(*) AS n FROM events WHERE idempotency_key = 'once'";
    assert_eq!(number(&app, reported).await, 2);
    check_books(&app, key.workspace).await;
}
