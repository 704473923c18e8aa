//! Nodes that run code.

use super::{Flow, act, contact, failure, node, output};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, TestApp, assert_absent};

#[testkit::both]
async fn inline_code_computes_and_has_no_outside(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let code = "export default (ctx) => ({ sum: ctx.input.a + ctx.input.b, contact: ctx.contact.id, run: ctx.run.id })";
    let config = json!({ "code": code, "input": { "a": "{{ $input.a }}", "b": 2 } });
    let flow = Flow::publish(&app, &key, vec![node("act", "code", config)]).await;
    let run = flow.run(json!({ "contact_id": ana, "input": { "a": 40 } })).await;
    assert_eq!(output(&flow.step(&run, "act").await), json!({ "sum": 42, "contact": ana, "run": run["id"] }));
    for (code, expected) in [
        ("export default () => { throw new Error('no price') }", "function_error"),
        ("export default async (ctx) => (await ctx.fetch('https://example.com')).status", "function_error"),
        ("export default async (ctx) => ctx.kv.get('a')", "function_error"),
        ("export default (", "function_error"),
        ("export const a = 1", "function_error"),
        ("export default () => () => 1", "function_output_invalid"),
        (
            "export default () => { const a = []; for (;;) a.push(new Array(1e6).fill(a.length)) }",
            "function_memory",
        ),
    ] {
        let step = act(&app, &key, "code", json!({ "code": code }), json!({})).await;
        assert_eq!(failure(&step), expected, "{code}: {step}");
    }
    let endless = json!({
        "id": "act", "type": "code", "config": { "code": "export default () => { for (;;) {} }" }, "timeout_seconds": 1,
    });
    let flow = Flow::publish(&app, &key, vec![endless]).await;
    let run = flow.run(json!({})).await;
    assert_eq!(failure(&flow.step(&run, "act").await), "function_timeout");
}

async fn function(app: &TestApp, key: &testkit::Key, code: &str, effect: &str) -> Value {
    let new = json!({ "name": format!("f{}", code.len()), "code": code, "effect": effect });
    let made = app.post("/functions", key, new).await.expect(201);
    let path = format!("/functions/{}", made["id"]);
    app.post(&format!("{path}/publish"), key, json!({})).await.expect(200);
    app.patch(&path, key, json!({ "status": "active" })).await.expect(200);
    made["id"].clone()
}

#[testkit::both]
async fn a_function_is_called_by_the_flow(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let id = function(
        &app,
        &key,
        "export default (ctx) => ({ got: ctx.input.n * 2, key: ctx.idempotencyKey })",
        "write",
    )
    .await;
    let config = json!({ "function_id": id, "input": { "n": "{{ $input.n }}" } });
    let flow = Flow::publish(&app, &key, vec![node("act", "function", config)]).await;
    let run = flow.run(json!({ "input": { "n": 21 } })).await;
    let given = output(&flow.step(&run, "act").await);
    assert_eq!(given["got"], 42);
    assert!(
        given["key"].as_str().unwrap().starts_with(&format!("flow:{}:act:", run["id"].as_str().unwrap())),
        "{given}"
    );
    let calls = app.get(&format!("/functions/{id}/invocations"), &key).await.expect(200);
    assert_eq!(
        (&calls[0]["caller"]["type"], &calls[0]["caller"]["run_id"], &calls[0]["mode"]),
        (&json!("flow"), &run["id"], &json!("live"))
    );
    // Started by a test key, it is called in test mode. A moment later, so that the call is the newest.
    app.data.clock.advance(chrono::Duration::milliseconds(1));
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    let run = flow.run_by(&test, json!({ "input": { "n": 1 } })).await;
    assert_eq!(run["status"], "completed", "{run}");
    let calls = app.get(&format!("/functions/{id}/invocations"), &key).await.expect(200);
    assert_eq!(calls[0]["mode"], "test");
}

#[testkit::both]
async fn failures_of_functions_are_failures_of_nodes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let throwing =
        function(&app, &key, "export default () => { throw new RangeError('no price for 40 kg') }", "read")
            .await;
    let step = act(&app, &key, "function", json!({ "function_id": throwing }), json!({})).await;
    assert_eq!(
        (failure(&step).as_str(), &step["error"]["message"]),
        ("function_error", &json!("no price for 40 kg"))
    );
    app.patch(&format!("/functions/{throwing}"), &key, json!({ "status": "inactive" })).await.expect(200);
    let flow =
        Flow::publish(&app, &key, vec![node("act", "function", json!({ "function_id": throwing }))]).await;
    let run = flow.run(json!({})).await;
    assert_eq!(failure(&flow.step(&run, "act").await), "invalid_state");
}

#[testkit::both]
async fn secrets_in_the_input_of_a_function_are_not_in_its_history(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.post("/variables", &key, json!({ "key": "token", "type": "secret", "value": "s3cret-Token" }))
        .await
        .expect(201);
    let id = function(
        &app,
        &key,
        "export default (ctx) => ({ length: ctx.input.token.length, echo: ctx.input.token })",
        "read",
    )
    .await;
    let config = json!({ "function_id": id, "input": { "token": "{{ $vars.token }}" } });
    let step = act(&app, &key, "function", config, json!({})).await;
    assert_eq!(output(&step)["length"], 12);
    assert_absent(&step.to_string(), "s3cret-Token");
    let calls = app.get(&format!("/functions/{id}/invocations"), &key).await.expect(200);
    let path = format!("/functions/{id}/invocations/{}", calls[0]["id"].as_str().unwrap());
    let call = app.get(&path, &key).await.expect(200);
    assert_eq!(call["input"], json!({ "token": "[secret]" }));
    assert_absent(&call.to_string(), "s3cret-Token");
}
