//! Runs: what a caller asks and is told.

use crate::{
    ask, awaited, begin, call, check_books, events, give_tool, id, prompted, read, say, texts, with_agent,
};
use model::Env;
use providers::ProviderError;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Kind, OpenAiServer, Script, TestApp, until};
use tokio::io::AsyncWriteExt;

#[testkit::both]
async fn a_background_run_is_answered_at_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi", "metadata": { "a": "b" } })).await;
    assert_eq!(
        (&run["status"], &run["output"], &run["ephemeral"]),
        (&json!("in_progress"), &Value::Null, &json!(true))
    );
    prompted(&app, 1).await;
    app.model.release();
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(
        (&run["output"], &run["metadata"]["a"], &run["steps"][0]["type"]),
        (&json!("late"), &json!("b"), &json!("model"))
    );
    let listed = app.get("/billing/executions", &key).await.expect(200);
    assert_eq!((&listed[0]["energy"], &listed[0]["status"]), (&json!(1), &json!("completed")), "{listed}");
    assert_eq!(events(&app).await, ["run.completed"]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_long_run_answers_202_and_goes_on(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.service.engine.set_patience(Duration::from_millis(50));
    app.model.then(Script::Wait("late".into()));
    let asking =
        app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1").json(&json!({ "input": "Hi" }));
    let run = asking.send().await.expect(202);
    assert_eq!(run["status"], "in_progress");
    app.model.release();
    awaited(&app, &key, &run, "completed").await;
    // The run's end has taken the place of the first answer.
    let repeated =
        app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1").json(&json!({ "input": "Hi" }));
    let repeated = repeated.send().await;
    assert_eq!(
        (repeated.expect(200)["output"].clone(), id(&repeated.body["data"])),
        (json!("late"), id(&run))
    );
    assert_eq!(repeated.headers["idempotent-replayed"], "true");
    assert_eq!(app.model.prompts().len(), 1);
}

#[testkit::both]
async fn a_caller_that_hangs_up_does_not_stop_its_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("late".into()));
    let body = r#"{"input":"Hi"}"#;
    let mut stream = tokio::net::TcpStream::connect(app.origin.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        key.secret,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    prompted(&app, 1).await;
    drop(stream);
    app.model.release();
    let run = until("that the run ends", async || {
        let runs = app.get("/runs?status=completed", &key).await.expect(200);
        runs.get(0).cloned()
    })
    .await;
    assert_eq!(run["output"], "late");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn failures_cost_nothing_and_name_the_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (fault, status, code) in [
        (ProviderError::Unavailable("down".into()), 502, "model_unavailable"),
        (ProviderError::Refused("no".into()), 502, "agent_failed"),
        (ProviderError::Timeout, 504, "agent_timeout"),
    ] {
        app.model.then(Script::Fail(fault));
        let answer = ask(&app, &key, json!({ "input": "Hi" })).await;
        answer.expect_error(status, code);
        assert_eq!(answer.body["error"]["type"], "agent_error");
        let run = app
            .get(&format!("/runs/{}?include=steps", answer.body["error"]["run_id"].as_str().unwrap()), &key)
            .await
            .expect(200);
        assert_eq!(
            (&run["status"], &run["error"]["code"], &run["energy"]["amount"]),
            (&json!("failed"), &json!(code), &json!(0))
        );
        assert_eq!(run["steps"][0]["status"], "failed");
    }
    let energy = app.get("/billing/energy", &key).await.expect(200);
    assert_eq!((&energy["available"], &energy["reserved"]), (&json!(1_000_000), &json!(0)));
    assert_eq!(events(&app).await, ["run.failed"; 3]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_failed_run_can_be_sent_again(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Fail(ProviderError::Unavailable("down".into()))).then(say("up"));
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi" })).send().await
    };
    let failed = send().await;
    failed.expect_error(502, "model_unavailable");
    let run = send().await.expect(200);
    assert_eq!(
        (&run["output"], &run["error"], &run["usage"]["model_calls"]),
        (&json!("up"), &Value::Null, &json!(1))
    );
    assert_eq!(id(&run), failed.body["error"]["run_id"]);
    let replayed = send().await;
    assert_eq!(
        (replayed.expect(200), replayed.headers["idempotent-replayed"].as_str()),
        (run.clone(), "true")
    );
    assert_eq!(app.model.prompts().len(), 2);
    assert_eq!(app.get("/runs", &key).await.expect(200).as_array().unwrap().len(), 1);
    let steps = read(&app, &key, &run).await["steps"].clone();
    assert_eq!(
        (&steps[0]["status"], &steps[1]["status"], &steps[1]["position"]),
        (&json!("failed"), &json!("completed"), &json!(2))
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_a_failed_attempt_did_is_not_done_again_and_billed_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "write", &server, json!({ "http": { "method": "POST" } })).await;
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi", "conversation_id": "c" })).send().await
    };
    let down = || Script::Fail(ProviderError::Unavailable("down".into()));
    app.model.usage(1000, 100);
    for _ in 0..2 {
        app.model.then(call("write", json!({ "a": 1 }))).then(down());
        send().await.expect_error(502, "model_unavailable");
        app.data.clock.advance(chrono::Duration::seconds(1));
    }
    let balance = async || app.get("/billing/energy", &key).await.expect(200)["available"].clone();
    assert_eq!(balance().await, 1_000_000);
    app.model.then(call("write", json!({ "a": 1 }))).then(say("done"));
    let run = send().await.expect(200);
    assert_eq!((&run["output"], &run["energy"]["amount"]), (&json!("done"), &json!(14)));
    assert_eq!(balance().await, 1_000_000 - 14);
    assert_eq!(server.heads().len(), 1, "the effect happened once");
    let executions = app.get("/billing/executions", &key).await.expect(200);
    let reported: Vec<_> = executions
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["status"].clone(), one["energy"].clone()))
        .collect();
    assert_eq!(
        reported,
        [(json!("completed"), json!(14)), (json!("failed"), json!(0)), (json!("failed"), json!(0))]
    );
    // Each execution shows its own attempt.
    for (one, positions) in executions.as_array().unwrap().iter().zip([[7, 8, 9], [4, 5, 6], [1, 2, 3]]) {
        let detail = app.get(&format!("/billing/executions/{}", id(one)), &key).await.expect(200);
        let steps = detail["steps"].as_array().unwrap().iter();
        assert_eq!(steps.map(|step| step["position"].as_i64().unwrap()).collect::<Vec<_>>(), positions);
        let entries = detail["entries"].as_array().unwrap().iter();
        let energy: i64 = entries.map(|entry| entry["amount"].as_i64().unwrap()).sum();
        assert_eq!(energy, -one["energy"].as_i64().unwrap());
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_failed_run_does_not_push_into_a_busy_conversation(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi", "conversation_id": "c" })).send().await
    };
    app.model
        .then(Script::Fail(ProviderError::Unavailable("down".into())))
        .then(Script::Wait("later".into()));
    let failed = send().await.body["error"]["run_id"].clone();
    let holder = begin(&app, &key, json!({ "input": "Hi", "conversation_id": "c" })).await;
    prompted(&app, 2).await;
    let busy = send().await;
    busy.expect_error(409, "conversation_busy");
    assert_eq!(busy.body["error"]["run_id"], id(&holder));
    app.model.release();
    awaited(&app, &key, &holder, "completed").await;
    // Nor does it run for an agent that was switched off meanwhile.
    app.post(&format!("/agents/{}/deactivate", agent["id"]), &key, json!({})).await.expect(200);
    send().await.expect_error(409, "agent_inactive");
    assert_eq!(read(&app, &key, &json!({ "id": failed })).await["status"], "failed");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn agents_and_versions_are_chosen(kind: Kind) {
    let app = TestApp::new(kind).await;
    let bare = app.bare_workspace("scale", 1000).await;
    let nobody = app.key(bare, Env::Live, &["*"]).await;
    ask(&app, &nobody, json!({ "input": "Hi" })).await.expect_error(409, "agent_not_configured");
    let (key, agent) = with_agent(&app, json!({ "instructions": "one" })).await;
    let other =
        app.post("/agents", &key, json!({ "name": "Other", "instructions": "other" })).await.expect(201);
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "instructions": "two" })).await.expect(200);
    for (run, instructions, version) in [
        (json!({}), "two", 2),
        (json!({ "agent_version": 2 }), "two", 2),
        (json!({ "agent_id": agent["id"], "agent_version": 1 }), "one", 1),
    ] {
        let mut body = run.clone();
        body["input"] = "Hi".into();
        let made = ask(&app, &key, body).await.expect(200);
        assert_eq!(
            (&made["agent_version"], app.model.last_texts()[0].as_str()),
            (&json!(version), instructions),
            "{run}"
        );
    }
    for (field, value) in [("agent_id", 999_999), ("agent_version", 3)] {
        let param =
            ask(&app, &key, json!({ "input": "Hi", field: value })).await.expect_error(404, "not_found");
        assert_eq!(param.as_deref(), Some(field));
    }
    ask(&app, &key, json!({ "input": "Hi", "agent_id": other["id"] }))
        .await
        .expect_error(409, "agent_inactive");
    let param = ask(&app, &nobody, json!({ "input": "Hi", "agent_id": agent["id"] }))
        .await
        .expect_error(404, "not_found");
    assert_eq!(param.as_deref(), Some("agent_id"));
}

#[testkit::both]
async fn a_draft_is_tried_with_a_test_key(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 1000).await;
    let live = app.key(workspace, Env::Live, &["*"]).await;
    let test = app.key(workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    app.post("/agents", &live, json!({ "name": "A", "instructions": "one" })).await.expect(201);
    let body = json!({ "input": "Hi", "agent_version": "draft", "conversation_id": "c" });
    let run = ask(&app, &test, body.clone()).await.expect(200);
    assert_eq!((&run["agent_version"], &run["output"]), (&json!(1), &json!("ok")));
    // Also where it has to wait for its turn.
    app.model.then(Script::Wait("first".into())).then(say("second"));
    let first = begin(&app, &test, body.clone()).await;
    let second = begin(&app, &test, body.clone()).await;
    assert_eq!(second["status"], "queued");
    prompted(&app, 2).await;
    app.model.release();
    awaited(&app, &test, &first, "completed").await;
    assert_eq!(awaited(&app, &test, &second, "completed").await["output"], "second");
    ask(&app, &test, json!({ "input": "Hi" })).await.expect_error(409, "agent_inactive");
    for (key, version) in
        [(&live, json!("draft")), (&test, json!("newest")), (&test, json!(0)), (&test, json!(1.5))]
    {
        let refused = ask(&app, key, json!({ "input": "Hi", "agent_version": version })).await;
        assert_eq!(
            refused.expect_error(400, "validation_error").as_deref(),
            Some("agent_version"),
            "{version}"
        );
    }
}

#[testkit::both]
async fn a_run_reports_its_times_its_trigger_and_its_prices(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    app.model.usage(1000, 100).then(call("look", json!({}))).then(Script::Wait("done".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    assert_eq!(
        (&run["trigger"], &run["created_at"]),
        (&json!({ "type": "api", "id": null }), &run["queued_at"])
    );
    assert_eq!(run["updated_at"], run["started_at"]);
    prompted(&app, 2).await;
    app.data.clock.advance(chrono::Duration::seconds(7));
    app.model.release();
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(run["updated_at"], run["completed_at"]);
    assert_ne!(run["updated_at"], run["started_at"]);
    let steps = run["steps"].as_array().unwrap();
    let item = |step: &Value| json!({ "step_id": step["id"], "model": step["name"], "tier": "balanced", "energy": 7 });
    assert_eq!(
        run["energy"],
        json!({ "amount": 14, "simulated": 0, "items": [item(&steps[0]), item(&steps[2])] })
    );
    assert_eq!((&steps[0]["tier"], &steps[0]["effect_key"]), (&json!("balanced"), &Value::Null));
    assert_eq!(steps[1]["tier"], Value::Null);
    assert_eq!(steps[1]["effect_key"].as_str().map(str::len), Some(32));
    for plain in [
        app.get(&format!("/runs/{}", id(&run)), &key).await.expect(200),
        app.get("/runs", &key).await.expect(200)[0].clone(),
    ] {
        assert!(plain.get("steps").is_none() && plain["energy"].get("items").is_none(), "{plain}");
    }
    app.data.clock.advance(chrono::Duration::hours(73));
    app.service.engine.purge_ephemeral().await.unwrap();
    let run = read(&app, &key, &run).await;
    assert_eq!((&run["updated_at"], &run["steps"][0]["input"]), (&run["purged_at"], &Value::Null));
}

#[testkit::both]
async fn what_failed_attempts_cost_is_no_item(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let send = async || {
        let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "k1");
        asking.json(&json!({ "input": "Hi" })).send().await
    };
    let down = || Script::Fail(ProviderError::Unavailable("down".into()));
    app.model.usage(1000, 100).then(call("look", json!({}))).then(down());
    let failed = json!({ "id": send().await.body["error"]["run_id"] });
    let run = read(&app, &key, &failed).await;
    assert_eq!(run["energy"], json!({ "amount": 0, "simulated": 0, "items": [] }));
    app.model.then(say("done"));
    send().await.expect(200);
    let run = read(&app, &key, &failed).await;
    let steps = run["steps"].as_array().unwrap();
    assert_eq!(
        (&run["energy"]["amount"], &run["energy"]["items"][0]["step_id"]),
        (&json!(7), &steps[3]["id"])
    );
    assert_eq!(run["energy"]["items"].as_array().unwrap().len(), 1);
    // Each attempt begins from the start.
    let reported = |step: &Value| {
        (step["input"]["earlier"].clone(), step["input"]["messages"].as_array().unwrap().len())
    };
    assert_eq!(
        [reported(&steps[0]), reported(&steps[2]), reported(&steps[3])],
        [(json!(0), 2), (json!(2), 2), (json!(0), 2)]
    );
}

#[testkit::both]
async fn the_trace_has_the_prompts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) =
        with_agent(&app, json!({ "instructions": "Be kind.", "memory": { "pinned": "We are Acme." } })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
    for input in ["first", "second"] {
        app.model.then(call("look", json!({ "q": 1 }))).then(say("no JSON")).then(say("{}"));
        let run =
            ask(&app, &key, json!({ "input": input, "conversation_id": "c", "response_format": format }))
                .await
                .expect(200);
        // Later versions of the agent change nothing of it.
        app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "description": input }))
            .await
            .expect(200);
        let steps = read(&app, &key, &run).await["steps"].clone();
        let prompts = app.model.prompts();
        let mut reported: Vec<Value> = Vec::new();
        let calls = steps.as_array().unwrap().iter().filter(|step| step["type"] == "model");
        for (step, prompt) in calls.zip(&prompts[prompts.len() - 3..]) {
            assert_eq!(step["input"]["earlier"], reported.len(), "{step}");
            reported.extend(step["input"]["messages"].as_array().unwrap().iter().cloned());
            let really: Vec<Value> = prompt.messages.iter().map(|message| json!(message)).collect();
            assert_eq!(reported, really);
        }
        assert!(reported.len() >= 6, "{reported:?}");
    }
    // A plain run stores no more of it than the numbers.
    app.delete(&format!("/agents/{}/tools/look", agent["id"]), &key).await.expect(200);
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let stored =
        texts(&app, &format!("SELECT input AS t FROM run_steps WHERE run_id = '{}'", id(&run))).await;
    assert_eq!(
        stored[0].as_deref(),
        Some(r#"{"messages":2,"tools":0,"max_output_tokens":2048,"first":true}"#)
    );
    let reported = &read(&app, &key, &run).await["steps"][0]["input"]["messages"];
    assert_eq!(reported[0]["content"], "Be kind.\n\nWhat always holds:\n<pinned>\nWe are Acme.\n</pinned>");
    assert_eq!((&reported[1]["role"], &reported[1]["content"]), (&json!("user"), &json!("Hi")));
}

#[testkit::both]
async fn bad_requests_are_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (body, param) in [
        (json!({}), "input"),
        (json!({ "input": " \n" }), "input"),
        (json!({ "input": "x".repeat(100_001) }), "input"),
        (json!({ "input": "x\u{0}" }), "input"),
        (json!({ "input": "Hi", "conversation_id": "a b" }), "conversation_id"),
        (json!({ "input": "Hi", "conversation_id": "x".repeat(129) }), "conversation_id"),
        (json!({ "input": "Hi", "max_steps": 0 }), "max_steps"),
        (json!({ "input": "Hi", "timeout_seconds": 601 }), "timeout_seconds"),
        (json!({ "input": "Hi", "response_format": { "type": "json_schema" } }), "response_format.schema"),
        (json!({ "input": "Hi", "stream": true, "background": true }), "stream"),
    ] {
        let found = ask(&app, &key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(found.as_deref(), Some(param), "{body}");
    }
    app.get("/runs/run_nothing", &key).await.expect_error(404, "not_found");
    app.get("/runs/7", &key).await.expect_error(404, "not_found");
    app.get("/runs?status=odd", &key).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn runs_are_listed_newest_first(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let mut made = Vec::new();
    for number in 0..5 {
        app.data.clock.advance(chrono::Duration::seconds(1));
        let conversation = format!("c{}", number % 2);
        made.insert(
            0,
            id(&ask(&app, &key, json!({ "input": "Hi", "conversation_id": conversation })).await.expect(200)),
        );
    }
    let ids = |answer: &testkit::Answer| -> Vec<String> {
        answer.expect(200).as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids(&app.get("/runs", &key).await), made);
    let first = app.get("/runs?limit=3", &key).await;
    assert_eq!((ids(&first), &first.body["has_more"]), (made[..3].to_vec(), &json!(true)));
    let rest = app.get(&format!("/runs?limit=3&starting_after={}", made[2]), &key).await;
    assert_eq!((ids(&rest), &rest.body["has_more"]), (made[3..].to_vec(), &json!(false)));
    assert_eq!(ids(&app.get("/runs?conversation_id=c1", &key).await).len(), 2);
    assert_eq!(
        ids(&app.get(&format!("/runs?status=completed&agent_id={}", agent["id"]), &key).await).len(),
        5
    );
    assert_eq!(ids(&app.get("/runs?status=failed", &key).await).len(), 0);
    assert!(app.get("/runs", &key).await.expect(200)[0].get("steps").is_none());
    app.get("/runs?starting_after=nonsense", &key).await.expect_error(400, "validation_error");
    let stranger = with_agent(&app, json!({})).await.0;
    assert_eq!(ids(&app.get("/runs", &stranger).await).len(), 0);
    app.get(&format!("/runs/{}", made[0]), &stranger).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn answers_fit_the_schema_or_are_sent_back(kind: Kind) {
    let app = TestApp::new(kind).await;
    let schema =
        json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } } });
    let format = json!({ "type": "json_schema", "schema": schema });
    let (key, agent) = with_agent(&app, json!({ "response_format": format })).await;
    app.model.then(say(" {\"city\":\"Rome\"} "));
    let run = ask(&app, &key, json!({ "input": "Where?" })).await.expect(200);
    assert_eq!(
        (&run["output"], &run["output_data"]),
        (&json!("{\"city\":\"Rome\"}"), &json!({ "city": "Rome" }))
    );
    assert_eq!(app.model.prompts()[0].output_schema, Some(schema.clone()));
    let listed = app.get("/runs", &key).await.expect(200);
    assert_eq!(listed[0]["output_data"], json!({ "city": "Rome" }));
    app.model.then(say("Rome")).then(say("{\"city\":7}")).then(say("{\"city\":\"Oslo\"}"));
    let run = ask(&app, &key, json!({ "input": "Where?" })).await.expect(200);
    assert_eq!((&run["output_data"]["city"], &run["usage"]["model_calls"]), (&json!("Oslo"), &json!(3)));
    let last = app.model.last_texts();
    assert!(
        last[last.len() - 1].contains("`city` must be a string") && last[last.len() - 3].contains("not JSON"),
        "{last:?}"
    );
    app.model.then(say("a")).then(say("b")).then(say("c"));
    let run = ask(&app, &key, json!({ "input": "Where?" })).await.expect(200);
    assert_eq!(
        (&run["status"], &run["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("output_invalid"))
    );
    assert_eq!((&run["output"], &run["output_data"]), (&json!("c"), &Value::Null));
    // A run may ask for another form than its agent.
    app.model.then(say("Rome"));
    let run = ask(&app, &key, json!({ "input": "Where?", "response_format": { "type": "text" } }))
        .await
        .expect(200);
    assert_eq!((&run["status"], &run["output_data"]), (&json!("completed"), &Value::Null));
    // What a later version of the agent wants does not change how an earlier run reads.
    app.patch(&format!("/agents/{}", agent["id"]), &key, json!({ "response_format": { "type": "text" } }))
        .await
        .expect(200);
    let stored = app.get("/runs?status=completed&limit=100", &key).await.expect(200);
    assert_eq!(stored.as_array().unwrap().iter().filter(|run| !run["output_data"].is_null()).count(), 2);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn test_runs_cost_nothing_and_are_capped(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (live, _) = with_agent(&app, json!({})).await;
    let key = app.key(live.workspace, Env::Test, &["runs:execute", "runs:read", "billing:read"]).await;
    app.model.usage(1000, 100);
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["energy"], json!({ "amount": 0, "simulated": 7 }));
    assert_eq!(
        (&run["livemode"], &read(&app, &key, &run).await["steps"][0]["energy"]),
        (&json!(false), &json!(0))
    );
    let listed = app.get("/billing/executions", &key).await.expect(200);
    assert_eq!((&listed[0]["livemode"], &listed[0]["energy"]), (&json!(false), &json!(0)), "{listed}");
    let reported =
        texts(&app, "SELECT CAST(livemode AS TEXT) AS t FROM events WHERE kind = 'run.completed'").await;
    assert!(matches!(reported[0].as_deref(), Some("0" | "false")), "{reported:?}");
    app.sql(format!(
        "UPDATE plans SET test_runs_per_day = 2 WHERE id = (SELECT plan_id FROM workspaces WHERE id = {})",
        live.workspace
    ))
    .await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let prompts_before = app.model.prompts().len();
    let refused = ask(&app, &key, json!({ "input": "Hi" })).await;
    refused.expect_error(429, "test_run_daily_cap");
    assert_eq!(refused.body["error"]["details"], json!({ "resets_at": "2026-01-16T00:00:00.000Z" }));
    assert!(!refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
    assert_eq!(app.model.prompts().len(), prompts_before);
    ask(&app, &live, json!({ "input": "Hi" })).await.expect(200);
    app.data.clock.advance(chrono::Duration::hours(12));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    check_books(&app, live.workspace).await;
}

#[testkit::both]
async fn a_plain_run_is_two_transactions(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    app.service.engine.idle().await;
    let before = app.db().stats();
    for _ in 0..50 {
        ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    }
    let after = app.db().stats();
    // The request log and the counts of requests are written now and then, whatever was asked.
    let writes = after.writes - before.writes;
    assert!((100..140).contains(&writes), "{writes}");
    assert!(after.reads - before.reads < 10, "{} reads", after.reads - before.reads);
}

#[testkit::both]
async fn texts_with_nul_are_stored_without(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Call(vec![("no\u{0}tool".into(), json!("{\"a\":\"\u{0}"))])).then(say("a\u{0}b"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["output"], "ab");
    assert_eq!(read(&app, &key, &run).await["steps"][1]["name"], "notool");
}
