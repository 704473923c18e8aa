//! Numbers beyond 64 bits and the texts of tools, which arrive as they were written.

use crate::models::openai::{says, set_up};
use crate::{ask, check_books, give_tool, read, with_agent};
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, TestApp};

const LONG: &str = "12345678901234567890123";

async fn with_tool(kind: Kind, tool: Value) -> (TestApp, Key, OpenAiServer, OpenAiServer) {
    let (app, model) = set_up(kind).await;
    let target = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let parameters = json!({ "type": "object", "properties": { "ref": { "type": ["number", "string"] } } });
    let mut tool = tool;
    tool["parameters"] = parameters;
    give_tool(&app, &key, &agent, "book", &target, tool).await;
    (app, key, model, target)
}

fn calls(arguments: &[&str]) -> Value {
    let call = |arguments: &&str| json!({ "type": "function", "function": { "name": "book", "arguments": arguments } });
    let calls: Vec<Value> = arguments.iter().map(call).collect();
    json!({ "choices": [{ "message": { "content": null, "tool_calls": calls }, "finish_reason": "tool_calls" }], "usage": { "prompt_tokens": 9, "completion_tokens": 5 } })
}

fn raw_call(arguments: &str) -> String {
    calls(&["ARGUMENTS"]).to_string().replace("\"ARGUMENTS\"", arguments)
}

#[testkit::both]
async fn arguments_keep_their_digits(kind: Kind) {
    let (app, key, model, target) = with_tool(kind, json!({ "fixed_arguments": { "by": "us" } })).await;
    // Two numbers that are one as floats are two bookings, and the same one twice is one.
    let (one, two) = (format!("{{\"ref\": {LONG}}}"), "{\"ref\":12345678901234567890124}");
    model.then(200, None, calls(&[&one, two, &format!("{{\"ref\":{LONG}}}")])).then(200, None, says("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["output"], "done");
    assert_eq!(
        target.texts(),
        [
            format!("{{\"ref\":{LONG},\"by\":\"us\"}}"),
            "{\"ref\":12345678901234567890124,\"by\":\"us\"}".to_owned()
        ]
    );
    let path = format!("/runs/{}?include=steps", run["id"].as_str().unwrap());
    let stored = app.ask("GET", &path).key(&key).send().await;
    assert!(stored.text.contains(&format!("\"arguments\":{{\"ref\":{LONG}}}")), "{}", stored.text);
    // An object in the place of its text.
    model.then_raw(200, &[], raw_call("{\"ref\":0.1234567890123456789,\"n\":[98765432109876543210]}")).then(
        200,
        None,
        says("done"),
    );
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(
        target.texts().pop().unwrap(),
        "{\"ref\":0.1234567890123456789,\"n\":[98765432109876543210],\"by\":\"us\"}"
    );
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn addresses_keep_their_digits(kind: Kind) {
    let (app, key, model, target) =
        with_tool(kind, json!({ "http": { "method": "GET", "url": "/refs/{ref}" } })).await;
    model.then(200, None, calls(&[&format!("{{\"ref\":{LONG},\"q\":{LONG}}}")])).then(
        200,
        None,
        says("done"),
    );
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let head = &target.heads()[0];
    assert!(head.starts_with(&format!("get /refs/{LONG}?q={LONG} ")), "{head}");
}

#[testkit::both]
async fn a_person_sees_all_digits(kind: Kind) {
    let (app, key, model, target) = with_tool(kind, json!({ "approval": "always" })).await;
    model.then(200, None, calls(&[&format!("{{\"ref\":{LONG}}}")])).then(200, None, says("done"));
    let waiting = app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi" })).send().await;
    assert!(waiting.text.contains(&format!("\"arguments\":{{\"ref\":{LONG}}}")), "{}", waiting.text);
    assert_eq!(target.requests(), 0);
}

#[testkit::both]
async fn results_come_as_they_are(kind: Kind) {
    let (app, key, model, target) = with_tool(kind, json!({ "http": { "method": "GET" } })).await;
    let results: [(&str, Vec<u8>, &str); 6] = [
        (
            "application/json",
            format!("{{\"z\": {LONG},\n \"rate\": 0.1234567890123456789}}").into_bytes(),
            "{\"z\":12345678901234567890123,\"rate\":0.1234567890123456789}",
        ),
        ("text/plain; charset=ISO-8859-1", b"Mu\xf1oz, regi\xf3n".to_vec(), "\"Muñoz, región\""),
        (
            "application/json; charset=windows-1252",
            b"{\"name\":\"Mu\xf1oz\"}".to_vec(),
            "{\"name\":\"Muñoz\"}",
        ),
        ("application/json", "\u{feff}{\"a\":1}".into(), "{\"a\":1}"),
        ("application/json", br#"{"name":"Ana \ud83d"}"#.to_vec(), r#"{"name":"Ana \ufffd"}"#),
        ("text/plain; charset=Shift_JIS", b"\x93\xfa\x96{".to_vec(), "\"日本\""),
    ];
    for (number, (kind, body, shown)) in results.into_iter().enumerate() {
        target.then_raw(200, &[("content-type", kind)], body);
        model.then(200, None, calls(&[&format!("{{\"ref\":{number}}}")])).then(200, None, says("done"));
        let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
        let told = model.bodies().pop().unwrap()["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(told.contains(&format!("\"body\":{shown}")), "{told}");
        assert_eq!(read(&app, &key, &run).await["steps"][1]["status"], "completed");
    }
}

#[testkit::both]
async fn structured_answers_keep_their_digits(kind: Kind) {
    let (app, model) = set_up(kind).await;
    let (key, _) = with_agent(
        &app,
        json!({ "response_format": { "type": "json_schema", "schema": { "type": "object" } } }),
    )
    .await;
    model.then(200, None, says(&format!("{{\"n\": {LONG},\n\"d\": 0.1234567890123456789}}")));
    let run = app.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hi" })).send().await;
    assert!(
        run.text.contains(&format!("\"output_data\":{{\"n\":{LONG},\"d\":0.1234567890123456789}}")),
        "{}",
        run.text
    );
}
