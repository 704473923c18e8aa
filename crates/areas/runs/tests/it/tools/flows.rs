//! Flows as tools, with scripted flows.

use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, read, say, with_agent};
use model::{Code, Env, Error, FlowId};
use ports::{FlowResponse, FlowStarter, Unstartable};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Answer, FlowEnd, Key, Kind, ScriptedFlows, TestApp};

fn schema() -> Value {
    json!({
        "title": "Quote", "type": "object", "required": ["stück"], "additionalProperties": false,
        "properties": { "stück": { "type": "number", "title": "Pieces" }, "currency": { "type": "string" } },
    })
}

async fn set_up(kind: Kind, tool: Value) -> (ScriptedFlows, TestApp, Key, Value) {
    let flows = ScriptedFlows::default();
    let app = TestApp::with_services(kind, flows.services()).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    flows.publish(key.workspace, 7, schema());
    give(&app, &key, &agent, tool).await.expect(200);
    (flows, app, key, agent)
}

async fn give(app: &TestApp, key: &Key, agent: &Value, more: Value) -> Answer {
    let mut tool = json!({ "type": "flow", "ref": 7 });
    for (name, value) in more.as_object().unwrap() {
        tool[name] = value.clone();
    }
    app.put(&format!("/agents/{}/tools/quote", agent["id"]), key, tool).await
}

async fn results(app: &TestApp, key: &Key, run: &Value) -> Vec<Value> {
    let run = read(app, key, run).await;
    let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool");
    steps.map(|step| step["output"].clone()).collect()
}

#[testkit::both]
async fn a_flow_is_started_and_its_output_is_the_result(kind: Kind) {
    let fixed = json!({ "fixed_arguments": { "currency": "EUR" } });
    let (flows, app, key, agent) = set_up(kind, fixed).await;
    flows.then(FlowEnd::Completed(json!({ "price": 3 })));
    app.model.then(call("quote", json!({ "st_ck": 2 }))).then(say("It is 3."));
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    assert_eq!(run["output"], "It is 3.");
    let offered = &app.model.prompts()[0].tools[0];
    assert_eq!(offered.description, "Quotes prices, version 1.");
    let shown = json!({
        "type": "object", "required": ["st_ck"], "additionalProperties": false,
        "properties": { "st_ck": { "type": "number" } },
    });
    assert_eq!(offered.parameters, shown);
    let started = flows.started();
    let start = &started[0].start;
    assert_eq!((start.workspace, start.flow, start.livemode), (key.workspace, FlowId(7), true));
    assert_eq!(start.input, json!({ "stück": 2, "currency": "EUR" }));
    assert!(matches!(&start.by, FlowStarter::Agent { run: id, .. } if id.as_str() == run["id"]));
    assert_eq!(start.payload["run_id"], run["id"]);
    assert_eq!(start.chain.as_ref().map(|chain| chain.depth), Some(1));
    assert_eq!(started[0].patience, Some(Duration::from_secs(20)));
    let result = json!({ "flow_run_id": started[0].run, "output": { "price": 3 } });
    assert_eq!(results(&app, &key, &run).await, [json!({ "ok": true, "result": result })]);
    let tool = &app.get(&format!("/agents/{}/tools", agent["id"]), &key).await.expect(200)[0];
    assert_eq!((&tool["ref"], &tool["type"], &tool["version"]), (&json!(7), &json!("flow"), &Value::Null));
    assert_eq!((&tool["functions"][0]["writes"], &tool["timeout_seconds"]), (&json!(true), &json!(20)));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn each_end_of_a_run_is_told_to_the_model(kind: Kind) {
    let (flows, app, key, _) = set_up(kind, json!({})).await;
    let response =
        |status: u16, body: Value| FlowEnd::Response(FlowResponse { status, headers: vec![], body });
    flows
        .then(response(201, json!({ "ok": 1 })))
        .then(response(409, json!("taken")))
        .then(FlowEnd::Pending)
        .then(FlowEnd::Ended("failed", "The supplier does not answer."))
        .then(FlowEnd::Refused(|| Error::new(Code::EnergyDepleted, "No Energy.")))
        .then(FlowEnd::Refused(|| Error::internal("the database is gone")))
        .then(FlowEnd::Refused(|| Error::invalid("input.stück", "must be small")))
        .then(FlowEnd::Completed(json!("é".repeat(40_000))));
    for number in 1..=8 {
        app.model.then(call("quote", json!({ "st_ck": number })));
    }
    let run = ask(&app, &key, json!({ "input": "Price?" })).await.expect(200);
    let outputs = results(&app, &key, &run).await;
    let told: Vec<(&Value, &Value)> =
        outputs.iter().map(|output| (&output["ok"], &output["result"])).collect();
    let runs: Vec<Value> = flows.started().iter().map(|started| json!(started.run)).collect();
    assert_eq!(
        told[0],
        (&json!(true), &json!({ "flow_run_id": runs[0], "status": 201, "body": { "ok": 1 } }))
    );
    assert_eq!(told[1], (&json!(false), &json!({ "flow_run_id": runs[1], "status": 409, "body": "taken" })));
    assert_eq!(
        (told[2].0, &told[2].1["status"], &told[2].1["flow_run_id"]),
        (&json!(true), &json!("pending"), &runs[2])
    );
    let failed =
        json!({ "flow_run_id": runs[3], "status": "failed", "error": "The supplier does not answer." });
    assert_eq!(told[3], (&json!(false), &failed));
    assert_eq!((told[4].0, &told[4].1["code"]), (&json!(false), &json!("energy_depleted")));
    assert_eq!(told[5], (&json!(false), &json!("the function or flow cannot be called")));
    assert!(told[6].1.as_str().unwrap().contains("must be small"), "{}", told[6].1);
    assert!(told[7].1["output"]["truncated"].as_str().unwrap().contains("80002 bytes"));
}

#[testkit::both]
async fn a_flow_is_an_effect_that_happens_once(kind: Kind) {
    let (flows, app, key, agent) = set_up(kind, json!({})).await;
    let arguments = json!({ "st_ck": 1 });
    app.model.then(call("quote", arguments.clone())).then(call("quote", arguments.clone()));
    app.model.then(call("quote", json!({ "st_ck": 2 }))).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(flows.started().len(), 2);
    assert!(results(&app, &key, &run).await[1]["result"]["first"].is_object());
    // With a test key it is started as a test run.
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    app.model.then(call("quote", arguments.clone())).then(say("Done."));
    ask(&app, &test, json!({ "input": "Do it." })).await.expect(200);
    let livemodes: Vec<bool> = flows.started().iter().map(|started| started.start.livemode).collect();
    assert_eq!(livemodes, [true, true, false]);
    // It can need an approval.
    give(&app, &key, &agent, json!({ "approval": "on_write" })).await.expect(200);
    app.model.then(call("quote", arguments.clone()));
    let run = begin(&app, &key, json!({ "input": "Do it." })).await;
    let held = awaited(&app, &key, &run, "requires_action").await;
    assert_eq!(flows.started().len(), 3);
    let approval = held["required_action"]["calls"][0]["step_id"].clone();
    assert!(approval.is_string(), "{held}");
    // A new version has another schema from the next run on, and a flow that is switched off says so.
    give(&app, &key, &agent, json!({})).await.expect(200);
    flows.publish(key.workspace, 7, json!({ "type": "object", "properties": { "other": {} } }));
    app.model.then(call("quote", json!({ "other": 1 }))).then(say("Done."));
    ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(app.model.prompts().last().unwrap().tools[0].description, "Quotes prices, version 2.");
    assert_eq!(flows.started().len(), 4);
    flows.withdraw(key.workspace, 7, Unstartable::Inactive);
    app.model.then(call("quote", json!({ "st_ck": 1 }))).then(say("Done."));
    let run = ask(&app, &key, json!({ "input": "Do it." })).await.expect(200);
    assert_eq!(results(&app, &key, &run).await[0]["result"]["details"]["reason"], "inactive");
}

#[testkit::both]
async fn a_call_that_a_crash_interrupted_finds_its_run(kind: Kind) {
    let (flows, app, key, _) = set_up(kind, json!({})).await;
    flows.then(FlowEnd::Hangs);
    app.model.then(call("quote", json!({ "st_ck": 1 })));
    let run = begin(&app, &key, json!({ "input": "Do it." })).await;
    testkit::until("that the flow is started", async || (flows.started().len() == 1).then_some(())).await;
    let other = replica(&app).await;
    other.model.then(say("Done."));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(&app, &key, &run, "completed").await;
    assert_eq!(run["steps"][1]["output"]["result"]["output"], json!({}));
    assert_eq!(flows.started().len(), 1);
}

#[testkit::both]
async fn what_a_flow_tool_cannot_have_is_refused(kind: Kind) {
    let (flows, app, key, agent) = set_up(kind, json!({})).await;
    flows.withdraw(key.workspace, 9, Unstartable::NotPublished);
    flows.withdraw(key.workspace, 10, Unstartable::Inactive);
    flows.publish(key.workspace, 11, json!({ "type": "string" }));
    for (more, param) in [
        (json!({ "ref": null }), "ref"),
        (json!({ "ref": 8 }), "ref"),
        (json!({ "ref": 9 }), "ref"),
        (json!({ "ref": 10 }), "ref"),
        (json!({ "ref": 11 }), "ref"),
        (json!({ "version": 1 }), "version"),
        (json!({ "fixed_arguments": { "x": 1 } }), "fixed_arguments.x"),
        (json!({ "fixed_arguments": { "currency": 1 } }), "fixed_arguments.currency"),
        (json!({ "http": { "url": "https://example.com" } }), "http"),
        (json!({ "parameters": { "type": "object" } }), "parameters"),
        (json!({ "access": "read" }), "access"),
        (json!({ "scope": "all" }), "scope"),
        (json!({ "contact_field": "c" }), "contact_field"),
        (json!({ "timeout_seconds": 61 }), "timeout_seconds"),
    ] {
        let refused = give(&app, &key, &agent, more.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{more}");
    }
    let weak = app.key(key.workspace, Env::Live, &["agents:write"]).await;
    let refused = give(&app, &weak, &agent, json!({})).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("automations:execute"));
    let uses = app.service.pipeline.services.get::<ports::ObjectUses>().unwrap();
    let used = async |flow: i64| {
        let (uses, workspace) = (uses.clone(), key.workspace);
        let look =
            move |read: &mut store::Read| uses.of(read, workspace, ports::UsedObject::Flow(FlowId(flow)));
        app.db().read(look).await.unwrap().into_iter().map(|used| (used.r#type, used.id)).collect::<Vec<_>>()
    };
    assert_eq!(used(7).await, [("agent", agent["id"].to_string())]);
    assert_eq!(used(8).await, []);
    app.delete(&format!("/agents/{}/tools/quote", agent["id"]), &key).await.expect(200);
    assert_eq!(used(7).await, []);
}
