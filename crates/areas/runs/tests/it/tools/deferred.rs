//! Deferred tools: what an agent with many tools offers its model.

use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, give_tool, prompted, read, say, with_agent};
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, Script, TestApp};

/// An agent with the tools `deferred` behind `find_tools`, and `look`.
async fn set_up(kind: Kind, deferred: &[(&str, &str)]) -> (TestApp, Key, Value, OpenAiServer) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": { "method": "GET" } })).await;
    for (name, description) in deferred {
        let tool = json!({ "http": { "method": "GET" }, "deferred": true, "description": description });
        give_tool(&app, &key, &agent, name, &server, tool).await;
    }
    (app, key, agent, server)
}

fn offered(app: &TestApp, prompt: usize) -> Vec<String> {
    app.model.prompts()[prompt].tools.iter().map(|tool| tool.name.clone()).collect()
}

fn finds(query: &str) -> Script {
    call("find_tools", json!({ "query": query }))
}

const TWO: [(&str, &str); 2] =
    [("invoices", "Lists the invoices of a customer."), ("trains", "Knows when trains leave.")];

#[testkit::both]
async fn a_deferred_tool_is_offered_when_it_was_found(kind: Kind) {
    let (app, key, _, server) = set_up(kind, &TWO).await;
    app.model
        .then(call("invoices", json!({})))
        .then(finds("invoice"))
        .then(call("invoices", json!({})))
        .then(say("ok"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((run["status"].as_str(), server.requests()), (Some("completed"), 1));
    for prompt in [0, 1] {
        assert_eq!(offered(&app, prompt), ["look", "find_tools"]);
    }
    for prompt in [2, 3] {
        assert_eq!(offered(&app, prompt), ["look", "find_tools", "invoices"]);
    }
    let steps = &read(&app, &key, &run).await["steps"];
    let counts: Vec<&Value> = [0, 2, 4, 6].map(|step| &steps[step]["input"]["tools"]).to_vec();
    assert_eq!(counts, [2, 2, 3, 3]);
    assert!(steps[1]["output"]["result"].as_str().unwrap().contains("find `invoices` with `find_tools`"));
    let found = &steps[3]["output"]["result"]["tools"];
    assert_eq!(
        (found.as_array().unwrap().len(), &found[0]["name"], &found[0]["description"]),
        (1, &json!("invoices"), &json!("Lists the invoices of a customer."))
    );
    assert!(found[0]["parameters"].is_object());
}

#[testkit::both]
async fn a_search_without_a_result_tells_what_there_is(kind: Kind) {
    let (app, key, ..) = set_up(kind, &TWO).await;
    app.model.then(finds("weather")).then(call("find_tools", json!({}))).then(say("ok"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let steps = &read(&app, &key, &run).await["steps"];
    assert_eq!(steps[1]["output"]["result"]["tools"], json!([]));
    assert!(steps[1]["output"]["result"]["note"].as_str().unwrap().ends_with("invoices, trains"));
    assert!(steps[3]["output"]["result"].as_str().unwrap().contains("`query`"));
    assert_eq!(offered(&app, 2), ["look", "find_tools"]);
}

#[testkit::both]
async fn what_was_found_is_offered_by_the_next_worker_too(kind: Kind) {
    let (app, key, _, server) = set_up(kind, &TWO).await;
    app.model.then(finds("when do trains leave")).then(Script::Wait("too late".into()));
    let run = begin(&app, &key, json!({ "input": "Hi" })).await;
    prompted(&app, 2).await;
    let other = replica(&app).await;
    other.model.then(call("trains", json!({}))).then(say("done"));
    assert_eq!(take_over(&other).await, 1);
    awaited(&app, &key, &run, "completed").await;
    assert_eq!((offered(&other, 0), server.requests()), (offered(&app, 1), 1));
    assert_eq!(offered(&other, 0), ["look", "find_tools", "trains"]);
    app.model.release();
}

#[testkit::both]
async fn what_is_behind_forty_operations_is_deferred(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, &[]).await;
    for number in 0..41 {
        let tool = json!({ "http": { "method": "GET" }, "description": format!("Number {number}.") });
        give_tool(&app, &key, &agent, &format!("tool_{number:02}"), &server, tool).await;
    }
    app.model.then(finds("40")).then(say("ok"));
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let names = offered(&app, 0);
    assert_eq!((names.len(), names[39].as_str(), names[40].as_str()), (41, "tool_38", "find_tools"));
    assert_eq!(offered(&app, 1)[41..], ["tool_40"]);
}

#[testkit::both]
async fn so_is_what_is_behind_twenty_thousand_tokens(kind: Kind) {
    let (app, key, agent, server) = set_up(kind, &[]).await;
    for number in 0..3 {
        let long = "x".repeat(30_000);
        let parameters =
            json!({ "type": "object", "properties": { "a": { "type": "string", "description": long } } });
        let tool = json!({ "http": { "method": "GET" }, "parameters": parameters });
        give_tool(&app, &key, &agent, &format!("tool_{number}"), &server, tool).await;
    }
    ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(offered(&app, 0), ["look", "tool_0", "find_tools"]);
}
