//! Answers of servers that have their own idea of OpenAI's API: calls in odd pieces, answers that were cut or failed, and
//! details of any type.

use crate::models::openai::{says, set_up};
use crate::{ask, check_books, give_tool, read, with_agent};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, OpenAiServer, TestApp};

/// A service whose model is one server, with an agent that may call `book` at another one.
async fn booking(kind: Kind) -> (TestApp, Key, OpenAiServer, OpenAiServer) {
    booking_with(kind, json!({ "type": "object", "properties": { "ref": { "type": "integer" } } })).await
}

async fn booking_with(kind: Kind, parameters: Value) -> (TestApp, Key, OpenAiServer, OpenAiServer) {
    let (app, model) = set_up(kind).await;
    let target = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "book", &target, json!({ "parameters": parameters })).await;
    (app, key, model, target)
}

fn calls(arguments: &[&str], finish: Value) -> Value {
    let calls: Vec<Value> = arguments.iter().enumerate().map(|(number, arguments)| {
        json!({ "id": format!("c{number}"), "type": "function", "function": { "name": "book", "arguments": arguments } })
    }).collect();
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "usage": { "prompt_tokens": 9, "completion_tokens": 5 } })
}

fn delta(delta: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }], "usage": { "prompt_tokens": 9, "completion_tokens": 5 } })
}

fn piece(rest: Value, name: Option<&str>, arguments: &str) -> Value {
    let mut piece = rest;
    piece["function"] = json!({ "arguments": arguments });
    if let Some(name) = name {
        piece["function"]["name"] = name.into();
    }
    delta(json!({ "tool_calls": [piece] }))
}

async fn streamed(app: &TestApp, key: &Key) -> Value {
    let stream =
        app.ask("POST", "/runs").key(key).json(&json!({ "input": "Hi", "stream": true })).listen().await;
    let mut stream = stream;
    stream.rest().await.last().unwrap().data.clone()
}

fn hi() -> Value {
    json!({ "input": "Hi" })
}

async fn answered(app: &TestApp, key: &Key) -> Answer {
    ask(app, key, hi()).await
}

#[testkit::both]
async fn pieces_of_a_call_become_one_call(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    let habits = [
        [json!({ "index": 0, "id": "b" }), json!({ "index": 0, "id": "b" })],
        [json!({ "index": 0, "id": "b" }), json!({ "index": 0, "id": "c" })],
        [json!({ "index": 1 }), json!({ "index": 2 })],
        [json!({}), json!({})],
    ];
    for habit in habits {
        let [one, two] = habit;
        let first = piece(json!({ "index": 0, "id": "a", "type": "function" }), Some("book"), "");
        model.then_events([first, piece(one, None, "{\"re"), piece(two, None, "f\":7}"), end("tool_calls")]);
        model.then_events([delta(json!({ "content": "fine" })), end("stop")]);
        let last = streamed(&app, &key).await;
        assert_eq!(last["data"]["output"], "fine");
    }
    assert_eq!(target.texts(), ["{\"ref\":7}"; 4]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn calls_with_one_index_are_all_made(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    for id in [json!({ "index": 0, "id": "" }), json!({ "index": 0 }), json!({})] {
        let whole = |arguments: &str| piece(id.clone(), Some("book"), arguments);
        model.then_events([whole("{\"ref\":1}"), whole("{\"ref\":2}"), end("tool_calls")]);
        model.then_events([delta(json!({ "content": "fine" })), end("stop")]);
        assert_eq!(streamed(&app, &key).await["data"]["output"], "fine");
    }
    assert_eq!(target.texts(), ["{\"ref\":1}", "{\"ref\":2}"].repeat(3));
}

#[testkit::both]
async fn calls_that_were_cut_are_not_made(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    for reason in ["length", "max_tokens", "MAX_TOKENS", "model_length"] {
        model.then(200, None, calls(&[""], reason.into())).then(200, None, says("sorry"));
        let run = answered(&app, &key).await.expect(200);
        assert_eq!((&run["status"], &run["output"]), (&json!("completed"), &json!("sorry")));
        let told = model.texts().pop().unwrap();
        assert!(told.contains("the answer ended before them"), "{told}");
    }
    assert_eq!(target.requests(), 0);
    // What came before the cut is whole.
    model.then(200, None, calls(&["{\"ref\":1}", ""], "length".into())).then(200, None, says("one"));
    answered(&app, &key).await.expect(200);
    assert_eq!(target.texts(), ["{\"ref\":1}"]);
    model.then(200, None, calls(&["{\"ref\":1}"], "content_filter".into()));
    let held = answered(&app, &key).await.expect(200);
    assert_eq!(
        (&held["status"], &held["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("content_filter"))
    );
    // Nobody asks for the same again and again.
    model.then(200, None, calls(&["{\"re"], "length".into())).then(
        200,
        None,
        calls(&["{\"re"], "length".into()),
    );
    let cut = answered(&app, &key).await.expect(200);
    assert_eq!(
        (&cut["status"], &cut["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(target.requests(), 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn calls_without_an_end_are_not_made_with_nothing(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    let begin = piece(json!({ "index": 0, "id": "a" }), Some("book"), "");
    model.then_events([begin.clone()]);
    model.then_events([delta(json!({ "content": "sorry" })), end("stop")]);
    assert_eq!(streamed(&app, &key).await["data"]["output"], "sorry");
    assert_eq!(target.requests(), 0);
    // A call that has ended and needs nothing is made.
    model.then_events([begin, end("tool_calls")]);
    model.then_events([delta(json!({ "content": "done" })), end("stop")]);
    assert_eq!(streamed(&app, &key).await["data"]["output"], "done");
    assert_eq!(target.texts(), ["{}"]);
}

#[testkit::both]
async fn wrong_arguments_do_not_go_back_to_the_server(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    for wrong in ["{\"ref\":", "no JSON at all", "[1]", "{\"ref\":1}{\"ref\":2}", "\"text\""] {
        let before = model.requests();
        model.then(200, None, calls(&[wrong], "tool_calls".into())).then(200, None, says("corrected"));
        let run = answered(&app, &key).await.expect(200);
        assert_eq!(run["output"], "corrected");
        let messages = model.bodies()[before + 1]["messages"].clone();
        let asking =
            messages.as_array().unwrap().iter().find(|message| message["role"] == "assistant").unwrap();
        assert_eq!(asking["tool_calls"][0]["function"]["arguments"], "{}", "{wrong}");
        let result = messages.as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
        assert!(
            result["content"].as_str().unwrap().contains("The call was not made. They were: "),
            "{result}"
        );
        // The trace has what the model wrote.
        let steps = read(&app, &key, &run).await["steps"].clone();
        assert_eq!(steps[0]["output"]["tool_calls"][0]["arguments"], wrong);
    }
    assert_eq!(target.requests(), 0);
}

#[testkit::both]
async fn answers_that_failed_are_asked_for_again(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let mut failed = says("half of");
    failed["choices"][0]["finish_reason"] = "error".into();
    failed["choices"][0]["error"] = json!({ "code": 502, "message": "upstream" });
    server.then(200, None, failed).then(200, None, says("whole"));
    let run = answered(&app, &key).await.expect(200);
    assert_eq!((&run["output"], server.requests()), (&json!("whole"), 2));
    let attempts = json!([{ "model": "scripted", "reason": "unavailable" }]);
    assert_eq!(read(&app, &key, &run).await["steps"][0]["output"]["failed_attempts"], attempts);
    server.then_events([delta(json!({ "content": "half of an" })), end("error")]);
    server.then_events([delta(json!({ "content": "whole" })), end("stop")]);
    assert_eq!(streamed(&app, &key).await["data"]["output"], "whole");
    // An error in the place of an answer, as a status that it names.
    server.then(200, None, json!({ "error": { "code": 429, "message": "slow down" } })).then(
        200,
        None,
        says("up"),
    );
    assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "up");
    server.then(200, None, json!({ "error": { "code": 400, "message": "too long" } }));
    ask(&app, &key, hi()).await.expect_error(502, "agent_failed");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_reason_that_nobody_knows_is_not_the_best_one(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for (reason, status, why) in [
        ("max_tokens", "incomplete", json!("max_output_tokens")),
        ("MAX_TOKENS", "incomplete", json!("max_output_tokens")),
        ("model_length", "incomplete", json!("max_output_tokens")),
        ("SAFETY", "incomplete", json!("content_filter")),
        ("surprise", "incomplete", json!("unknown_finish_reason")),
        ("end_turn", "completed", Value::Null),
        ("STOP", "completed", Value::Null),
    ] {
        let mut answer = says("Once upon");
        answer["choices"][0]["finish_reason"] = reason.into();
        server.then(200, None, answer);
        let run = ask(&app, &key, hi()).await.expect(200);
        assert_eq!((&run["status"], &run["output"]), (&json!(status), &json!("Once upon")), "{reason}");
        assert_eq!(run["incomplete_details"]["reason"], why, "{reason}");
    }
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn details_do_not_lose_an_answer(kind: Kind) {
    let (app, key, model, target) = booking(kind).await;
    let counted = |usage: &str| {
        says("hello")
            .to_string()
            .replace("{\"prompt_tokens\":10,\"completion_tokens\":5}", usage)
            .replace("{\"completion_tokens\":5,\"prompt_tokens\":10}", usage)
    };
    let parts = says("hello")
        .to_string()
        .replace("\"hello\"", r#"[{"type":"thinking","thinking":[]},{"type":"text","text":"hello"}]"#);
    for body in [
        counted(
            r#"{"prompt_tokens":5,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":null}}"#,
        ),
        counted(r#"{"prompt_tokens":5,"completion_tokens":null}"#),
        counted(r#"{"prompt_tokens":5.0,"completion_tokens":"3"}"#),
        counted("null"),
        counted("NaN"),
        parts,
    ] {
        model.then_raw(200, &[("content-type", "application/json")], body.clone());
        assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "hello", "{body}");
    }
    model.then_raw(200, &[], says("hello").to_string().replace("hello", "hello \\ud83d"));
    assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "hello \u{fffd}");
    let mut object = calls(&["x"], "tool_calls".into());
    object["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = json!({ "ref": 3 });
    model.then(200, None, object).then(200, None, says("fine"));
    assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "fine");
    assert_eq!(target.texts(), ["{\"ref\":3}"]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_stream_is_read_whatever_it_is_called(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let mut one = delta(json!({ "content": [{ "type": "text", "text": "hel" }] }));
    one["choices"][0]["index"] = Value::Null;
    one["usage"] = json!({ "prompt_tokens": null });
    let mut two = delta(json!({ "content": "lo \u{fffd}", "tool_calls": null }));
    two["choices"][0]["index"] = Value::Null;
    let half = two.to_string().replace('\u{fffd}', "\\ud83d");
    let events = format!(
        ": hi\n\ndata: {one}\n\ndata: {half}\n\ndata: ping\n\ndata: {}\n\ndata: [DONE]\n\n",
        end("stop")
    );
    server.then_raw(200, &[("content-type", "text/plain")], events);
    assert_eq!(streamed(&app, &key).await["data"]["output"], "hello \u{fffd}");
    server.then_raw(200, &[("content-type", "text/event-stream")], says("whole").to_string());
    assert_eq!(streamed(&app, &key).await["data"]["output"], "whole");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn thoughts_are_no_part_of_an_answer(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    for text in [
        "<think>Hm, secret plans.</think>Good morning",
        "\n<think>\nHm, secret plans.\n</think>\n\nGood morning",
        "Hm, secret plans.</think>\nGood morning",
    ] {
        server.then(200, None, says(text));
        let run = ask(&app, &key, hi()).await.expect(200);
        assert_eq!(run["output"], "Good morning");
        testkit::assert_absent(&read(&app, &key, &run).await.to_string(), "secret plans");
    }
    let pieces = ["<th", "ink>Hm, secret", " plans.</thi", "nk>\nGood", " morning"];
    let events = pieces
        .iter()
        .map(|piece| delta(json!({ "content": piece, "reasoning_content": "Hm, secret plans." })));
    server.then_events(events.chain([end("stop")]));
    let mut stream =
        app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi", "stream": true })).listen().await;
    let told = stream.rest().await;
    assert_eq!(told.last().unwrap().data["data"]["output"], "Good morning");
    let all = told.iter().map(|event| event.data.to_string()).collect::<String>();
    testkit::assert_absent(&all, "ink>Hm, secret");
    testkit::assert_absent(&all, " plans.</thi");
    // An answer that is all thoughts was cut; it is asked for once more.
    let mut cut = says("<think>I go on and on");
    cut["choices"][0]["finish_reason"] = "length".into();
    server.then(200, None, cut).then(200, None, says("Short."));
    assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "Short.");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn structured_answers_come_in_fences_and_without_a_format(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] });
    let (key, _) = with_agent(&app, json!({ "instructions": "Be brief.", "response_format": { "type": "json_schema", "schema": schema } })).await;
    for text in [
        "```json\n{\"a\": 1}\n```",
        "<think>x</think>```\n{\"a\": 1}\n```",
        "Here:\n```json\n{\"a\": 1}\n```",
    ] {
        server.then(200, None, says(text));
        let run = ask(&app, &key, hi()).await.expect(200);
        assert_eq!((&run["output"], &run["output_data"]), (&json!("{\"a\": 1}"), &json!({ "a": 1 })));
        assert_eq!(run["usage"]["model_calls"], 1);
    }
    let before = server.requests();
    server.then(400, None, json!({ "error": { "message": "response_format is not supported" } })).then(
        200,
        None,
        says("{\"a\":2}"),
    );
    let run = ask(&app, &key, hi()).await.expect(200);
    assert_eq!((&run["output_data"]["a"], server.requests()), (&json!(2), before + 2));
    let asked = &server.bodies()[before + 1];
    assert_eq!(asked.get("response_format"), None);
    let system = asked["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("Be brief.") && system.contains("\"required\":[\"a\"]"), "{system}");
    // A server that refuses both is not asked again.
    server.then(400, None, json!({ "error": "no" })).then(400, None, json!({ "error": "no" }));
    ask(&app, &key, hi()).await.expect_error(502, "agent_failed");
    assert_eq!(server.requests(), before + 4);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_wait_may_be_a_date_or_a_fraction(kind: Kind) {
    let (app, server) = set_up(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    // Longer than the run has: nobody waits.
    server.then_raw(429, &[("retry-after", "Tue, 01 Jan 2999 00:00:00 GMT")], "{}");
    ask(&app, &key, hi()).await.expect_error(502, "model_unavailable");
    assert_eq!(server.requests(), 1);
    for header in ["Sun, 06 Nov 1994 08:49:37 GMT", "0.01"] {
        server.then_raw(429, &[("retry-after", header)], "{}").then(200, None, says("up"));
        assert_eq!(ask(&app, &key, hi()).await.expect(200)["output"], "up");
    }
}
