//! The limits of an agent and of a run.

use crate::{ask, call, check_books, give_tool, read, say, with_agent};
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Kind, OpenAiServer, Script, TestApp};

fn reason(run: &Value) -> (&str, &str) {
    (run["status"].as_str().unwrap(), run["incomplete_details"]["reason"].as_str().unwrap_or_default())
}

#[testkit::both]
async fn steps_and_tool_calls_are_limited(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "max_steps": 3, "max_tool_calls": 2 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    for number in 0..3 {
        app.model.then(call("look", json!({ "n": number })));
    }
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "max_tool_calls"), 2));
    assert_eq!((&run["usage"]["model_calls"], &run["usage"]["tool_calls"]), (&json!(3), &json!(2)));
    app.model.then(call("look", json!({ "n": 1 })));
    let run = ask(&app, &key, json!({ "input": "Hi", "max_steps": 1 })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "max_steps"), 2));
    assert_eq!(run["energy"]["amount"], 1, "what was used stays paid");
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn an_answer_that_is_cut_is_kept(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({ "max_output_tokens": 16 })).await;
    app.model.then(Script::Cut("Once upon".into()));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), &run["output"]), (("incomplete", "max_output_tokens"), &json!("Once upon")));
    assert_eq!(app.model.prompts()[0].max_output_tokens, 16);
}

#[testkit::both]
async fn an_answer_that_is_cut_before_it_begins_is_requested_once_more(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let cut = |text: &str| Script::Cut(text.to_owned());
    app.model.then(cut(" ")).then(say("Paris."));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(
        (&run["status"], &run["output"], &run["usage"]["model_calls"]),
        (&json!("completed"), &json!("Paris."), &json!(2))
    );
    assert_eq!(run["energy"]["amount"], 2, "both are paid");
    let reported = app.model.last_texts();
    assert!(reported.len() == 2 && reported[1].contains("cut at its limit before it began"), "{reported:?}");
    // There is one more question, and no second one.
    app.model.then(cut("")).then(cut(""));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), &run["output"]), (("incomplete", "max_output_tokens"), &Value::Null));
    assert_eq!(app.model.prompts().len(), 4);
    // Nor one where no step is left for it.
    app.model.then(cut(""));
    let run = ask(&app, &key, json!({ "input": "Hi", "max_steps": 1 })).await.expect(200);
    assert_eq!((reason(&run), app.model.prompts().len()), (("incomplete", "max_output_tokens"), 5));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn the_same_call_again_and_again_is_a_loop(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "max_steps": 50 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    for arguments in [
        json!({ "a": 1, "b": 2 }),
        json!("{\"b\":2,\"a\":1}"),
        json!("{ \"a\": 1, \"b\": 2 }"),
        json!({ "b": 2, "a": 1 }),
    ] {
        app.model.then(call("look", arguments));
    }
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "loop_detected"), 3));
    let prompts = app.model.prompts();
    let last = |place: usize| prompts[place].messages.last().unwrap().content.clone();
    assert!(last(3).contains("the same call with the same arguments three times"), "{}", last(3));
    assert!(last(2).starts_with("<tool_result"), "{}", last(2));
    // Whoever takes the warning goes on, and hears it once.
    for arguments in [json!({ "a": 1 }), json!({ "a": 1 }), json!({ "a": 1 }), json!({ "a": 2 })] {
        app.model.then(call("look", arguments));
    }
    server.then(200, None, json!("one")).then(200, None, json!("one")).then(200, None, json!("one")).then(
        200,
        None,
        json!("two"),
    );
    app.model.then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["status"], "completed");
    assert!(!app.model.last_texts().join("").contains("the same call"));
    let steps = read(&app, &key, &run).await["steps"].clone();
    let reported = steps[6]["input"]["messages"].as_array().unwrap().clone();
    assert!(reported.last().unwrap()["content"].as_str().unwrap().contains("the same call"), "{reported:?}");
}

#[testkit::both]
async fn calls_that_bring_nothing_new_are_a_loop(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({ "max_steps": 50 })).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    give_tool(&app, &key, &agent, "write", &server, json!({ "http": { "method": "POST" } })).await;
    // The server always says the same: the first time is news, and three more rounds are not.
    for number in 0..6 {
        app.model.then(call("look", json!({ "n": number })));
    }
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "loop_detected"), 5));
    let warned: Vec<bool> = app
        .model
        .prompts()
        .iter()
        .map(|prompt| prompt.messages.last().unwrap().content.contains("brought nothing new"))
        .collect();
    assert_eq!(warned, [false, false, false, false, true, false]);
    app.model.forget();
    // A change that was not made before is always news, whatever the server says to it.
    for number in 0..6 {
        app.model.then(call("write", json!({ "n": number })));
    }
    app.model.then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((run["status"].as_str(), server.requests()), (Some("completed"), 11));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn time_is_limited(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    app.model.then(Script::Wait("unheard".into()));
    // The shortest time that a run can have does pass here.
    let answer = ask(&app, &key, json!({ "input": "Hi", "timeout_seconds": 5 })).await;
    answer.expect_error(504, "agent_timeout");
    let patience = app.model.prompts()[0].patience.as_secs_f64();
    assert!((4.0..=5.0).contains(&patience), "{patience}");
    let run = app
        .get(&format!("/runs/{}", answer.body["error"]["run_id"].as_str().unwrap()), &key)
        .await
        .expect(200);
    assert_eq!((&run["status"], &run["energy"]["amount"]), (&json!("failed"), &json!(0)));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_was_said_before_the_time_was_over_is_kept(kind: Kind) {
    let app = TestApp::new(kind).await;
    let format = json!({ "type": "json_schema", "schema": { "type": "object" } });
    let (key, _) = with_agent(&app, json!({ "response_format": format })).await;
    app.model.then(say("no JSON")).then(Script::Fail(ProviderError::Timeout));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), &run["output"]), (("incomplete", "timeout"), &json!("no JSON")));
    assert_eq!(run["energy"]["amount"], 1);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn what_was_done_before_the_time_was_over_stays_paid(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "write", &server, json!({ "http": { "method": "POST" } })).await;
    // It has called a tool, and said nothing.
    app.model.usage(400, 400).then(call("write", json!({}))).then(Script::Fail(ProviderError::Timeout));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(
        (reason(&run), &run["output"], &run["error"]),
        (("incomplete", "timeout"), &Value::Null, &Value::Null)
    );
    assert_eq!((&run["energy"]["amount"], server.requests()), (&json!(10), 1));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn bad_arguments_go_back_three_times(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let parameters =
        json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    give_tool(
        &app,
        &key,
        &agent,
        "look",
        &server,
        json!({ "parameters": parameters, "http": { "method": "GET" } }),
    )
    .await;
    let bad = [json!("{\"n\":"), json!({ "n": "1" }), json!({})];
    for arguments in bad.clone() {
        app.model.then(call("look", arguments));
    }
    app.model.then(call("look", json!({ "n": 1 }))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((run["status"].as_str(), server.requests()), (Some("completed"), 1), "the fourth was right");
    let steps = read(&app, &key, &run).await["steps"].clone();
    assert!(steps[1]["output"]["result"].as_str().unwrap().contains("not a JSON object"), "{steps}");
    assert!(steps[3]["output"]["result"].as_str().unwrap().contains("`n` must be"), "{steps}");
    for arguments in bad {
        app.model.then(call("look", arguments));
    }
    app.model.then(call("look", json!({ "n": [] })));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((reason(&run), server.requests()), (("incomplete", "loop_detected"), 1));
}
