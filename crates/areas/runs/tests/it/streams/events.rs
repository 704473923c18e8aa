//! Events of a stream: their order, their texts, and what they cost.

use super::{asking, is_replayed, last_run, listen, names, pieces, texts};
use crate::approvals;
use crate::models::openai::{says, set_up};
use crate::{
    ask, awaited, begin, call, check_books, events, give_tool, id, number, prompted, read, say, with_agent,
};
use chrono::Duration;
use model::Env;
use providers::{ProviderError, Route, Sink, TierSetup, Tiers};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use testkit::{Kind, OpenAiServer, Script, ScriptedModel, TestApp, until};

#[testkit::both]
async fn events_come_in_their_order(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(
        &app,
        json!({
            "guardrails": [{ "on": ["input"], "type": "pii", "action": "flag" }],
        }),
    )
    .await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    let two = Script::Call(vec![("look".into(), json!({ "q": 1 })), ("look".into(), json!({ "q": 2 }))]);
    app.model.usage(100, 50).then(two).then(pieces(&["né", "e\n", "!"]));
    app.model.release();
    app.model.release();
    let mut stream = listen(&app, &key, json!({ "input": "a@b.example", "metadata": { "a": "b" } })).await;
    assert_eq!(stream.headers["cache-control"], "no-store");
    assert_eq!(stream.headers["x-accel-buffering"], "no");
    assert!(stream.headers.contains_key("x-request-id") && stream.headers.contains_key("x-ratelimit-limit"));
    let reported = stream.rest().await;
    assert_eq!(
        names(&reported),
        [
            "run.created",
            "step.started",
            "step.completed",
            "step.started",
            "step.completed",
            "step.started",
            "step.started",
            "step.completed",
            "step.completed",
            "step.started",
            "output.delta",
            "output.delta",
            "output.delta",
            "step.completed",
            "run.completed",
        ]
    );
    assert!(reported.iter().zip(1..).all(|(event, number)| event.id == number));
    let created = &reported[0].data["data"];
    assert_eq!(
        (&reported[0].data["success"], &created["status"], &created["metadata"]["a"]),
        (&json!(true), &json!("in_progress"), &json!("b"))
    );
    let run = last_run(&reported);
    assert_eq!(
        (&run["output"], &run["energy"]["amount"], id(&run)),
        (&json!("née\n!"), &json!(4), id(created))
    );
    assert_eq!(texts(&reported), ["née\n!"]);
    let offsets: Vec<&Value> = reported
        .iter()
        .filter(|event| event.name == "output.delta")
        .map(|event| &event.data["offset"])
        .collect();
    assert_eq!(offsets, [&json!(0), &json!(2), &json!(4)]);
    // What was told is what is stored.
    let mut stored = read(&app, &key, &run).await;
    let steps = stored.as_object_mut().unwrap().remove("steps").unwrap();
    stored["energy"].as_object_mut().unwrap().remove("items").unwrap();
    assert_eq!(stored, run);
    let ended: Vec<Value> = reported
        .iter()
        .filter(|event| event.name == "step.completed")
        .map(|event| event.data["step"].clone())
        .collect();
    assert_eq!(Value::from(ended), steps);
    for (event, step) in
        reported.iter().filter(|event| event.name == "step.started").zip(steps.as_array().unwrap())
    {
        let head = json!({ "run_id": run["id"], "step_id": step["id"], "position": step["position"], "type": step["type"], "name": step["name"] });
        assert_eq!(event.data, head);
    }
    assert_eq!(events(&app).await, ["run.completed"]);
    check_books(&app, key.workspace).await;
    // The request log has the row when the stream has ended, with what was spent.
    until("the row of the log", async || {
        let sql = "SELECT COUNT(*) AS n FROM request_logs WHERE operation = 'createRun' AND status = 200 AND energy = 4 AND code IS NULL";
        (number(&app, sql).await == 1).then_some(())
    }).await;
}

#[testkit::both]
async fn the_first_words_come_before_the_last_ones_are_said(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(pieces(&["Hello", ", world"]));
    let mut stream = listen(&app, &key, json!({ "input": "Hi" })).await;
    let first = stream.until("output.delta").await;
    assert_eq!((&first.data["delta"], &first.data["offset"]), (&json!("Hello"), &json!(0)));
    // Nothing more comes but signs of life, until the model goes on.
    for _ in 0..3 {
        assert_eq!(stream.comment().await, ": keep-alive");
    }
    let run = json!({ "id": first.data["run_id"] });
    assert_eq!(read(&app, &key, &run).await["status"], "in_progress");
    app.model.release();
    let rest = stream.rest().await;
    assert_eq!(names(&rest), ["output.delta", "step.completed", "run.completed"]);
    assert_eq!((&rest[0].data["delta"], &rest[0].data["offset"]), (&json!(", world"), &json!(5)));
    assert_eq!(last_run(&rest)["output"], "Hello, world");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn it_costs_and_answers_the_same_without(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let target = OpenAiServer::start().await;
    give_tool(&app, &key, &agent, "look", &target, json!({ "http": { "method": "GET" } })).await;
    let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": { "cached_tokens": 400 } });
    let calls = |arguments: [&str; 2]| {
        json!([
            { "id": "call_1", "type": "function", "function": { "name": "look", "arguments": arguments[0] } },
            { "id": "call_2", "type": "function", "function": { "name": "look", "arguments": arguments[1] } },
        ])
    };
    server.then(200, None, json!({
        "choices": [{ "finish_reason": "tool_calls", "message": { "content": null, "tool_calls": calls(["{\"q\":1}", "{\"q\":2}"]) } }],
        "usage": usage,
    })).then(200, None, says("Seen."));
    let plain = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);

    let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let call = |index: u64, call: Value| {
        let mut call = call;
        call["index"] = index.into();
        delta(json!({ "tool_calls": [call] }))
    };
    let end = |reason: &str| json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    server.then_events([
        delta(json!({ "role": "assistant", "content": null })),
        call(0, json!({ "id": "call_1", "type": "function", "function": { "name": "look", "arguments": "" } })),
        call(0, json!({ "function": { "arguments": "{\"q\"" } })),
        call(0, json!({ "function": { "arguments": ":1}" } })),
        call(1, json!({ "id": "call_2", "type": "function", "function": { "name": "look", "arguments": "{\"q\":2}" } })),
        end("tool_calls"),
        json!({ "choices": [], "usage": usage }),
    ]).then_events([
        delta(json!({ "role": "assistant", "content": "" })),
        delta(json!({ "content": "Se" })),
        delta(json!({ "content": "en\u{0}." })),
        end("stop"),
        json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } }),
    ]);
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    let run = last_run(&reported);
    assert_eq!(texts(&reported), ["Seen."]);
    for field in ["output", "usage", "energy", "status", "model"] {
        assert_eq!(run[field], plain[field], "{field}");
    }
    assert_eq!(target.requests(), 4);
    let bodies = server.bodies();
    assert_eq!((bodies[0].get("stream"), bodies[0].get("stream_options")), (None, None));
    assert_eq!(
        (&bodies[2]["stream"], &bodies[2]["stream_options"]),
        (&json!(true), &json!({ "include_usage": true }))
    );
    assert_eq!(bodies[3]["messages"], bodies[1]["messages"]);
    // A server that cannot send events answers as a whole.
    server.then(200, None, says("Whole."));
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    assert_eq!(
        (texts(&reported), last_run(&reported)["output"].clone()),
        (vec!["Whole.".to_owned()], json!("Whole."))
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_attempt_that_breaks_off_begins_anew(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let delta = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    server.then_break_off([delta("Hel"), delta("lo")]).then_events([delta("Bye"), delta("!"), end]);
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    let run = last_run(&reported);
    assert_eq!(
        (&run["output"], server.requests(), &run["usage"]["model_calls"]),
        (&json!("Bye!"), 2, &json!(1))
    );
    let deltas: Vec<_> = reported
        .iter()
        .filter(|event| event.name == "output.delta")
        .map(|event| (event.data["offset"].as_u64().unwrap(), event.data["delta"].as_str().unwrap()))
        .collect();
    assert_eq!(deltas, [(0, "Hel"), (3, "lo"), (0, ""), (0, "Bye"), (3, "!")]);
    assert_eq!(texts(&reported), ["Bye!"]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn answers_that_break_off_or_make_no_sense_fail(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (number, events) in
        [vec![], vec![json!("x")], vec![json!({ "choices": [{ "delta": 5 }] })]].into_iter().enumerate()
    {
        server.then_events(events);
        let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
        let last = reported.last().unwrap();
        assert_eq!(
            (last.name.as_str(), &last.data["error"]["code"]),
            ("run.failed", &json!("model_unavailable"))
        );
        assert_eq!(server.requests(), number + 1, "what cannot be read is not asked for again");
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn guardrails_see_an_answer_before_anybody_else(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(
        &app,
        json!({ "guardrails": [
        { "on": ["output"], "type": "pii", "pii": ["phone"], "action": "mask" },
        { "on": ["output"], "type": "blocklist", "words": ["secret"], "action": "block" },
    ] }),
    )
    .await;
    app.model.then(pieces(&["Call +49 30", " 1234567."])).release();
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    assert_eq!(
        names(&reported),
        [
            "run.created",
            "step.started",
            "output.delta",
            "step.completed",
            "step.started",
            "step.completed",
            "run.completed"
        ]
    );
    assert_eq!(
        (&reported[2].data["delta"], &last_run(&reported)["output"]),
        (&json!("Call [phone]."), &json!("Call [phone]."))
    );
    assert!(!format!("{reported:?}").contains("+49"));
    app.model.then(pieces(&["The sec", "ret is 42."])).release();
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    assert_eq!(
        names(&reported),
        ["run.created", "step.started", "step.completed", "step.started", "step.completed", "run.incomplete"]
    );
    assert_eq!(
        (&last_run(&reported)["output"], &last_run(&reported)["incomplete_details"]["reason"]),
        (&Value::Null, &json!("guardrail"))
    );
    assert!(!format!("{reported:?}").contains("is 42"));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_corrected_answer_is_streamed_step_by_step(kind: Kind) {
    let app = TestApp::new(kind).await;
    let schema = json!({ "type": "object", "required": ["a"] });
    let (key, _) =
        with_agent(&app, json!({ "response_format": { "type": "json_schema", "schema": schema } })).await;
    app.model.then(pieces(&["{}"])).then(say("{\"a\":1}"));
    let reported = listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    assert_eq!(texts(&reported), ["{}", "{\"a\":1}"]);
    assert_eq!(last_run(&reported)["output_data"], json!({ "a": 1 }));
}

#[testkit::both]
async fn a_run_that_waits_for_its_turn_says_so(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("first".into())).then(say("second"));
    let first = begin(&app, &key, json!({ "input": "1", "conversation_id": "c" })).await;
    prompted(&app, 1).await;
    let mut stream = listen(&app, &key, json!({ "input": "2", "conversation_id": "c" })).await;
    let created = stream.next().await.unwrap();
    assert_eq!((created.name.as_str(), &created.data["data"]["status"]), ("run.created", &json!("queued")));
    stream.comment().await;
    app.model.release();
    let rest = stream.rest().await;
    assert_eq!(names(&rest), ["step.started", "output.delta", "step.completed", "run.completed"]);
    assert_eq!(last_run(&rest)["output"], "second");
    awaited(&app, &key, &first, "completed").await;

    // One that is cancelled, and one that never comes to its turn.
    app.model.then(pieces(&["never", "said"])).then(Script::Wait("third".into()));
    let mut cancelled = listen(&app, &key, json!({ "input": "3", "conversation_id": "c" })).await;
    cancelled.until("output.delta").await;
    begin(&app, &key, json!({ "input": "4", "conversation_id": "c", "on_busy": "interrupt" })).await;
    let rest = cancelled.rest().await;
    assert_eq!(names(&rest), ["step.completed", "run.cancelled"]);
    assert_eq!(last_run(&rest)["incomplete_details"]["reason"], "interrupted");
    prompted(&app, 4).await;
    let body = json!({ "input": "5", "conversation_id": "c" });
    let expiring = || asking(&app, &key, body.clone()).header("idempotency-key", "k5");
    let mut expired = expiring().listen().await;
    expired.until("run.created").await;
    app.data.clock.advance(Duration::seconds(601));
    let rest = expired.rest().await;
    assert_eq!((names(&rest), &last_run(&rest)["status"]), (vec!["run.expired"], &json!("expired")));
    let repeated = expiring().send().await;
    assert_eq!((repeated.expect(200)["status"].clone(), is_replayed(&repeated)), (json!("expired"), true));
    app.model.release();
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_ends_at_an_approval_request(kind: Kind) {
    let (app, key, _, server) = approvals::set_up(kind, "on_write").await;
    app.model.then(call("pay", json!({ "sum": 5 })));
    let reported = listen(&app, &key, json!({ "input": "Pay" })).await.rest().await;
    assert_eq!(
        names(&reported),
        ["run.created", "step.started", "step.completed", "step.started", "run.requires_action"]
    );
    let run = last_run(&reported);
    assert_eq!(run["required_action"]["calls"][0]["step_id"], reported[3].data["step_id"]);
    app.model.then(say("Paid."));
    approvals::answer(&app, &approvals::path_of(&run), json!({ "decision": "approve" })).await.expect(200);
    assert_eq!(awaited(&app, &key, &run, "completed").await["output"], "Paid.");
    assert_eq!(server.requests(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn test_keys_stream_too(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (live, _) = with_agent(&app, json!({})).await;
    let key = app.key(live.workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    app.model.usage(100, 50).then(pieces(&["Hello"]));
    let path = format!("/workspaces/{}/runs", key.workspace);
    let reported = app
        .ask("POST", &path)
        .key(&key)
        .json(&json!({ "input": "Hi", "stream": true }))
        .listen()
        .await
        .rest()
        .await;
    let run = last_run(&reported);
    assert_eq!((&run["livemode"], &run["energy"]), (&json!(false), &json!({ "amount": 0, "simulated": 2 })));
    assert_eq!(texts(&reported), ["Hello"]);
    check_books(&app, key.workspace).await;
}

/// Writes down what it hears.
#[derive(Debug, Default)]
struct Notes(Mutex<Vec<String>>);

impl Sink for Notes {
    fn say(&self, piece: &str) {
        self.0.lock().unwrap().push(piece.to_owned());
    }

    fn begin_anew(&self) {
        self.0.lock().unwrap().push("(anew)".to_owned());
    }
}

#[tokio::test]
async fn a_model_to_fall_back_on_begins_anew() {
    let (first, second) = (Arc::new(ScriptedModel::default()), Arc::new(ScriptedModel::default()));
    let down = ProviderError::Unavailable("down".into());
    first.then(Script::BreakOff(vec!["Hel".into(), "lo".into()], down));
    second.then(pieces(&["Bye"]));
    let route = |provider: &Arc<ScriptedModel>| Route {
        provider: provider.clone(),
        model: "m".into(),
        label: "m-1".into(),
        context_tokens: 8192,
    };
    let tier = TierSetup { routes: vec![route(&first), route(&second)], prices: Tiers::DEFAULT_PRICES[0] };
    let notes = Arc::new(Notes::default());
    let mut prompt = crate::models::openai::prompt(std::time::Duration::from_secs(20));
    prompt.sink = Some(notes.clone());
    assert_eq!(tier.complete(prompt).await.unwrap().completion.text, "Bye");
    assert_eq!(*notes.0.lock().unwrap(), ["Hel", "lo", "(anew)", "Bye"]);
}

#[tokio::test]
async fn a_model_streams_only_to_a_listener() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(call("nothing", json!({})));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert!(app.model.prompts().iter().all(|prompt| prompt.sink.is_none()));
    listen(&app, &key, json!({ "input": "Hi" })).await.rest().await;
    assert!(app.model.prompts().last().unwrap().sink.is_some());
}
