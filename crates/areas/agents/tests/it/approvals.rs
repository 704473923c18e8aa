//! Calls that a person must allow: asking, answering, and what happens when nobody answers or a worker dies.

use crate::{
    ask, awaited, begin, call, check_books, events, give_tool, id, number, prompted, read, say, texts,
    with_agent,
};
use auth::RateWindows;
use chrono::Duration;
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, OpenAiServer, Script, TestApp, until};

/// An agent whose tool `pay` writes, and asks as `approval` says.
pub async fn set_up(kind: Kind, approval: &str) -> (TestApp, Key, Value, OpenAiServer) {
    with_payer(TestApp::new(kind).await, approval).await
}

/// The same with a second replica, where the tool always asks. Both are there before the first request: opening a
/// database takes this thread so long on a busy machine that connections kept open are closed meanwhile.
async fn set_up_two(kind: Kind) -> ((TestApp, TestApp), Key, Value, OpenAiServer) {
    let app = TestApp::new(kind).await;
    let other = app.replica(RateWindows::local()).await;
    let (app, key, agent, server) = with_payer(app, "always").await;
    ((app, other), key, agent, server)
}

async fn with_payer(app: TestApp, approval: &str) -> (TestApp, Key, Value, OpenAiServer) {
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "pay", &server, json!({ "approval": approval, "http": {} })).await;
    (app, key, agent, server)
}

/// The path under which a run's question is answered.
pub fn path_of(run: &Value) -> String {
    let url = run["required_action"]["approval_url"].as_str().unwrap();
    url.strip_prefix("https://svc.example").unwrap().to_owned()
}

/// A run that asks whether it may pay these sums.
pub async fn asking(app: &TestApp, key: &Key, sums: &[i64], mut run: Value) -> Value {
    let calls = sums.iter().map(|sum| ("pay".to_owned(), json!({ "sum": sum })));
    app.model.then(Script::Call(calls.collect()));
    run["input"] = "Pay".into();
    let run = ask(app, key, run).await.expect(200);
    assert_eq!(run["status"], "requires_action", "{run}");
    run
}

/// Answers as a program does.
pub async fn answer(app: &TestApp, path: &str, body: Value) -> Answer {
    app.ask_beside("POST", path).json(&body).send().await
}

async fn approve(app: &TestApp, run: &Value) -> Value {
    answer(app, &path_of(run), json!({ "decision": "approve" })).await.expect(200)
}

async fn look(app: &TestApp, path: &str) -> u16 {
    app.ask_beside("GET", path).send().await.status
}

fn statuses(run: &Value) -> Vec<&str> {
    run["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect()
}

/// Time passes, and those who look for silent workers look.
async fn pass(app: &TestApp, time: Duration) -> usize {
    app.data.clock.advance(time);
    app.service.engine.resume_silent().await.unwrap()
}

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
