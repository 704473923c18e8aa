//! Agents as tools of other agents: runs within runs.

use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, give_tool, id, number, prompted, read, say, with_agent};
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, Script, TestApp};

/// An active agent that the tool `expert` of `outer` runs.
async fn expert(app: &TestApp, key: &Key, outer: &Value, mut settings: Value, tool: Value) -> Value {
    settings["status"] = "active".into();
    if settings["name"].is_null() {
        settings["name"] = format!("Expert of {}", outer["id"]).into();
    }
    let inner = app.post("/agents", key, settings).await.expect(201);
    let mut body = json!({ "type": "agent", "ref": inner["id"], "description": "Knows all about trains." });
    for (field, value) in tool.as_object().unwrap() {
        body[field] = value.clone();
    }
    app.put(&format!("/agents/{}/tools/expert", outer["id"]), key, body).await.expect(200);
    inner
}

async fn set_up(kind: Kind, outer: Value, inner: Value, tool: Value) -> (TestApp, Key, Value, Value) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, outer).await;
    let inner = expert(&app, &key, &agent, inner, tool).await;
    (app, key, agent, inner)
}

fn asks(input: &str) -> Script {
    call("expert", json!({ "input": input }))
}

/// The run of an agent, newest first.
async fn runs_of(app: &TestApp, key: &Key, agent: &Value) -> Vec<Value> {
    let list = app.get(&format!("/runs?agent_id={}", agent["id"]), key).await.expect(200);
    list.as_array().unwrap().clone()
}

#[testkit::both]
async fn another_agent_answers_within_a_run(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    app.model
        .usage(100, 50)
        .then(asks("How long?"))
        .then(say("Three hours."))
        .then(say("It takes three hours."));
    let run = ask(&app, &key, json!({ "input": "How long is the ride?" })).await.expect(200);
    assert_eq!(run["output"], "It takes three hours.");
    let prompts = app.model.prompts();
    // The inner agent has the text and nothing else.
    assert_eq!(
        prompts[1].messages.iter().map(|message| &*message.content).collect::<Vec<_>>(),
        ["How long?"]
    );
    assert!(prompts[2].messages.last().unwrap().content.contains("Three hours."));
    let within = &runs_of(&app, &key, &inner).await[0];
    assert_eq!(within["trigger"], json!({ "type": "agent", "id": run["id"] }));
    assert_eq!((&within["livemode"], &within["ephemeral"]), (&json!(true), &json!(true)));
    assert_eq!(within["trace_id"], run["trace_id"]);
    let step = &read(&app, &key, &run).await["steps"][1];
    assert_eq!((&step["name"], &step["status"]), (&json!("expert"), &json!("completed")));
    assert_eq!(step["output"]["result"], json!({ "answer": "Three hours." }));
    assert_eq!(step["output"]["run"], json!({ "id": within["id"], "energy": 2 }));
    // Each run has the Energy of its own steps.
    assert_eq!((&run["energy"]["amount"], &within["energy"]["amount"]), (&json!(4), &json!(2)));
    let depths = "SELECT depth AS n FROM events WHERE kind = 'run.completed' AND data LIKE '%{}%'";
    let depth =
        async |run: &Value| number(&app, &depths.replace("{}", &format!("\"run_id\":\"{}\"", id(run)))).await;
    assert_eq!((depth(&run).await, depth(within).await), (0, 1));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn json_of_the_inner_agent_stays_json(kind: Kind) {
    let schema = json!({ "type": "object", "properties": { "hours": { "type": "integer" } } });
    let format = json!({ "response_format": { "type": "json_schema", "schema": schema } });
    let (app, key, ..) = set_up(kind, json!({}), format, json!({})).await;
    app.model.then(asks("How long?")).then(say("{\"hours\":3}")).then(say("ok"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let step = &read(&app, &key, &run).await["steps"][1];
    assert_eq!(step["output"]["result"], json!({ "answer": { "hours": 3 } }));
}

#[testkit::both]
async fn what_goes_wrong_within_is_told_to_the_model(kind: Kind) {
    let (app, key, agent, inner) = set_up(kind, json!({}), json!({}), json!({ "timeout_seconds": 2 })).await;
    let result = async |script: &[Script]| {
        for script in script {
            app.model.then(script.clone());
        }
        let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        assert_eq!(run["status"], "completed", "{run}");
        let step = read(&app, &key, &run).await["steps"][1].clone();
        (step["status"].clone(), step["output"]["result"].to_string())
    };
    let (status, told) = result(&[call("expert", json!({})), say("ok")]).await;
    assert!(status == "failed" && told.contains("`input`"), "{told}");
    let (status, told) = result(&[call("expert", json!({ "input": " " })), say("ok")]).await;
    assert!(status == "failed" && told.contains("empty"), "{told}");
    let (status, told) = result(&[asks("a"), Script::Cut("Half".into()), say("ok")]).await;
    assert!(status == "failed" && told.contains("max_output_tokens") && told.contains("Half"), "{told}");
    let (status, told) = result(&[asks("b"), Script::Wait("late".into()), say("ok")]).await;
    assert!(status == "failed" && told.contains("the agent failed"), "{told}");
    app.post(&format!("/agents/{}/deactivate", inner["id"]), &key, json!({})).await.expect(200);
    let (status, told) = result(&[asks("c"), say("ok")]).await;
    assert!(status == "failed" && told.contains("not active"), "{told}");
    let _ = agent;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_worker_that_takes_over_finds_the_inner_run(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    app.model.then(asks("How long?")).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    let other = replica(&app).await;
    other.model.then(say("Three hours.")).then(say("done"));
    assert_eq!(take_over(&other).await, 2);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!((&run["output"], run["steps"].as_array().unwrap().len()), (&json!("done"), 3));
    assert!(other.model.prompts()[1].messages.last().unwrap().content.contains("Three hours."));
    assert_eq!(runs_of(&app, &key, &inner).await.len(), 1);
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn who_cancels_the_outer_run_cancels_the_inner_one(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    app.model.then(asks("How long?")).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "one", "conversation_id": "c" })).await;
    prompted(&app, 2).await;
    let newer = json!({ "input": "two", "conversation_id": "c", "on_busy": "interrupt" });
    assert_eq!(ask(&app, &key, newer).await.expect(200)["status"], "completed");
    awaited(&app, &key, &run, "cancelled").await;
    let within = runs_of(&app, &key, &inner).await.remove(0);
    let within = awaited(&app, &key, &within, "cancelled").await;
    assert_eq!(within["incomplete_details"]["reason"], "outer_ended");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_inner_run_whose_outer_worker_died_ends_with_its_outer_run(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &inner, "pay", &server, json!({ "http": {} })).await;
    app.model.then(asks("Pay.")).then(Script::WaitAndCall(vec![("pay".into(), json!({}))]));
    let run = begin(&app, &key, json!({ "input": "one", "conversation_id": "c" })).await;
    prompted(&app, 2).await;
    // Another replica cancels the outer run, of which its worker does not hear in time.
    let other = replica(&app).await;
    let newer = json!({ "input": "two", "conversation_id": "c", "on_busy": "interrupt" });
    ask(&other, &key, newer).await.expect(200);
    awaited(&app, &key, &run, "cancelled").await;
    app.model.release();
    let within = runs_of(&app, &key, &inner).await.remove(0);
    let within = awaited(&app, &key, &within, "cancelled").await;
    assert_eq!((&within["incomplete_details"]["reason"], server.requests()), (&json!("outer_ended"), 0));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_person_who_does_not_answer_holds_the_outer_run_for_its_timeout_only(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({ "timeout_seconds": 1 })).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &key, &inner, "pay", &server, json!({ "http": {}, "approval": "always" })).await;
    app.model.then(asks("Pay.")).then(call("pay", json!({}))).then(say("sorry"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["output"], "sorry");
    let told = read(&app, &key, &run).await["steps"][1]["output"]["result"].to_string();
    assert!(told.contains("longer than the tool's timeout"), "{told}");
    // The worker of the inner run writes the sum of its steps last.
    app.service.engine.idle().await;
    let within = runs_of(&app, &key, &inner).await.remove(0);
    assert_eq!((&within["status"], server.requests()), (&json!("cancelled"), 0));
    let energy = within["energy"]["amount"].as_i64();
    assert_eq!(read(&app, &key, &run).await["steps"][1]["output"]["run"]["energy"].as_i64(), energy);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_person_allows_the_call_of_an_agent(kind: Kind) {
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({ "approval": "on_write" })).await;
    app.model.then(asks("How long?")).then(say("Three hours.")).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["status"], "requires_action");
    assert!(runs_of(&app, &key, &inner).await.is_empty());
}

#[testkit::both]
async fn energy_within_counts_for_the_limits_of_the_outer_run(kind: Kind) {
    let outer = json!({ "energy_limit_per_run": 26, "energy_limit_monthly": 1000 });
    let (app, key, agent, inner) = set_up(kind, outer, json!({}), json!({})).await;
    // Each call costs 11, so the third cannot be paid.
    app.model.usage(10, 500).then(asks("a")).then(say("Three hours.")).then(say("never"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(
        (&run["status"], &run["incomplete_details"]["reason"], &run["energy"]["amount"]),
        (&json!("incomplete"), &json!("energy_limit"), &json!(11))
    );
    let within = &runs_of(&app, &key, &inner).await[0];
    assert_eq!((&within["status"], &within["energy"]["amount"]), (&json!("completed"), &json!(11)));
    check_books(&app, key.workspace).await;
    let limit = async |limits: Value| {
        app.patch(&format!("/agents/{}", agent["id"]), &key, limits).await.expect(200);
    };
    // Both are of the outer agent's month.
    app.model.forget();
    limit(json!({ "energy_limit_monthly": 25, "energy_limit_per_run": null })).await;
    let refused = ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(402, "energy_depleted");
    assert_eq!(refused.as_deref(), Some("energy_limit_monthly"));
    // What the first call leaves does not pay for an answer within.
    limit(json!({ "energy_limit_monthly": null, "energy_limit_per_run": 15 })).await;
    app.model.then(asks("b")).then(say("never"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["incomplete_details"]["reason"], "energy_limit");
    let told = read(&app, &key, &run).await["steps"][1]["output"]["result"].to_string();
    assert!(told.contains("The run may use"), "{told}");
    assert_eq!(runs_of(&app, &key, &inner).await.len(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn energy_deeper_within_counts_too(kind: Kind) {
    let (app, key, _, inner) =
        set_up(kind, json!({ "energy_limit_per_run": 50 }), json!({}), json!({})).await;
    let innermost = expert(&app, &key, &inner, json!({}), json!({})).await;
    // Four calls cost 11 each, so the fifth cannot be paid.
    app.model.usage(10, 500).then(asks("a")).then(asks("b")).then(say("c")).then(say("d")).then(say("never"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(
        (&run["incomplete_details"]["reason"], &run["energy"]["amount"]),
        (&json!("energy_limit"), &json!(11))
    );
    assert_eq!(read(&app, &key, &run).await["steps"][1]["output"]["run"]["energy"], 33);
    assert_eq!(runs_of(&app, &key, &innermost).await[0]["status"], "completed");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn agents_are_called_three_deep_and_no_deeper(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, a) = with_agent(&app, json!({ "name": "A" })).await;
    let b = expert(&app, &key, &a, json!({ "name": "B" }), json!({})).await;
    let c = expert(&app, &key, &b, json!({ "name": "C" }), json!({})).await;
    // A version of `first` still knows A, also when its chain is as long as chains can be.
    let first = app.post("/agents", &key, json!({ "name": "First", "status": "active" })).await.expect(201);
    let path = format!("/agents/{}/tools/expert", first["id"]);
    app.put(&path, &key, json!({ "type": "agent", "ref": a["id"], "description": "A." })).await.expect(200);
    app.delete(&path, &key).await.expect(200);
    expert(&app, &key, &c, json!({ "name": "D" }), json!({})).await;
    for _ in 0..4 {
        app.model.then(asks("Go on."));
    }
    let run = json!({ "input": "Hi", "agent_id": first["id"], "agent_version": 2 });
    assert_eq!(ask(&app, &key, run).await.expect(200)["status"], "completed");
    let deepest = runs_of(&app, &key, &c).await.remove(0);
    let told = read(&app, &key, &deepest).await["steps"][1]["output"]["result"].to_string();
    assert!(told.contains("at most 3 deep"), "{told}");
    assert_eq!(number(&app, "SELECT COUNT(*) AS n FROM runs").await, 4);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn with_a_test_key_the_inner_run_is_a_test_too(kind: Kind) {
    let (app, live, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    let key = app.key(live.workspace, Env::Test, &["*"]).await;
    let server = OpenAiServer::start().await;
    give_tool(&app, &live, &inner, "pay", &server, json!({ "http": {} })).await;
    app.model.then(asks("Pay.")).then(call("pay", json!({}))).then(say("Paid.")).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((&run["output"], &run["livemode"]), (&json!("done"), &json!(false)));
    let within = runs_of(&app, &live, &inner).await.remove(0);
    let within = read(&app, &live, &within).await;
    assert_eq!((&within["livemode"], server.requests()), (&json!(false), 0));
    assert_eq!(within["steps"][1]["output"]["result"]["simulated"], true);
}

/// More outer runs than the service has threads for runs, connections and places in any queue: all wait at once, and none of them
/// holds what the inner runs need.
#[testkit::both]
async fn many_outer_runs_that_wait_leave_room_for_their_inner_runs(kind: Kind) {
    const MANY: usize = 40;
    let (app, key, _, inner) = set_up(kind, json!({}), json!({}), json!({})).await;
    for _ in 0..MANY {
        app.model.then(Script::WaitAndCall(vec![("expert".into(), json!({ "input": "Go." }))]));
    }
    let mut runs = Vec::new();
    for _ in 0..MANY {
        runs.push(begin(&app, &key, json!({ "input": "Hi" })).await);
    }
    prompted(&app, MANY).await;
    (0..MANY).for_each(|_| app.model.release());
    for run in &runs {
        awaited(&app, &key, run, "completed").await;
    }
    let done =
        format!("SELECT COUNT(*) AS n FROM runs WHERE agent_id = {} AND status = 'completed'", inner["id"]);
    assert_eq!(number(&app, &done).await, 40);
    check_books(&app, key.workspace).await;
}
