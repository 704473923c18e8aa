//! Calls of functions.

use crate::{ECHO, body, create, invoke, with};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_call_has_an_output_or_an_error(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = create(&app, &key, with(body("echo", ECHO), json!({ "publish": true }))).await;
    let made = invoke(&app, &key, &path, json!({ "input": { "a": [1, "é", null] } })).await.expect(200);
    assert_eq!((&made["status"], &made["mode"]), (&json!("succeeded"), &json!("live")));
    assert_eq!((&made["version"], &made["error"]), (&json!(1), &Value::Null));
    assert_eq!(made["output"], json!({ "got": { "a": [1, "é", null] } }));
    assert_eq!(made["caller"]["type"], json!("request"));
    let one = format!("{path}/invocations/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&one, &key).await.expect(200), made);
    let list = app.get(&format!("{path}/invocations"), &key).await.expect(200);
    assert_eq!((&list[0]["id"], &list[0]["output"]), (&made["id"], &Value::Null));
    let throws =
        "export default (ctx) => {\n  console.warn('w', 1);\n  throw new RangeError('no ' + ctx.input);\n}";
    let path = create(&app, &key, body("throws", throws)).await;
    let made = invoke(&app, &key, &path, json!({ "input": 7, "mode": "test" })).await.expect(200);
    assert_eq!((&made["status"], &made["output"]), (&json!("failed"), &Value::Null));
    assert_eq!((&made["version"], &made["mode"]), (&Value::Null, &json!("test")));
    assert_eq!((&made["error"]["name"], &made["error"]["message"]), (&json!("RangeError"), &json!("no 7")));
    assert_eq!(made["error"]["code"], json!("function_error"));
    assert!(made["error"]["stack"].as_str().unwrap().contains(":3"), "{}", made["error"]);
    assert_eq!(made["logs"], json!([{ "level": "warn", "message": "w 1" }]));
    let failed = app.get(&format!("{path}/invocations?status=failed"), &key).await.expect(200);
    assert_eq!(failed.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn programs_end_as_they_deserve(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let path = create(&app, &key, with(body("f", ECHO), json!({ "timeout_ms": 300, "memory_mb": 8 }))).await;
    for (code, status, error) in [
        ("export default () => { for (;;) {} }", "timed_out", "function_timeout"),
        (
            "export default () => { const a = []; for (;;) a.push('x'.repeat(65536) + a.length) }",
            "failed",
            "function_memory",
        ),
        ("export default () => { const f = () => f() + 1; return f() }", "failed", "function_error"),
        ("export default () => new Promise(() => {})", "failed", "function_error"),
        ("export default () => { const a = {}; a.a = a; return a }", "failed", "function_output_invalid"),
        ("export default () => () => 1", "failed", "function_output_invalid"),
        ("export default () => ({ a: NaN })", "failed", "function_output_invalid"),
        ("export default () => 10n", "failed", "function_output_invalid"),
        ("export default () => undefined", "failed", "function_output_invalid"),
        ("export default () => 'x'.repeat(262145)", "failed", "function_output_invalid"),
        (
            "export default () => { let a = 1; for (let i = 0; i < 1000; i++) a = [a]; return a }",
            "failed",
            "function_output_invalid",
        ),
    ] {
        app.patch(&path, &key, json!({ "code": code })).await.expect(200);
        let made = invoke(&app, &key, &path, json!({ "version": "draft" })).await.expect(200);
        assert_eq!((&made["status"], &made["error"]["code"]), (&json!(status), &json!(error)), "{code}");
    }
}

#[testkit::both]
async fn inputs_and_outputs_fit_their_schemas(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let settings = json!({
        "input_schema": { "type": "object", "properties": { "kg": { "type": "number" } }, "required": ["kg"] },
        "output_schema": { "type": "object", "required": ["cents"] }, "publish": true,
    });
    let code = "export default (ctx) => ctx.input.kg > 2 ? ({ cents: 990 }) : ({ price: 1 })";
    let path = create(&app, &key, with(body("f", code), settings)).await;
    let fits = invoke(&app, &key, &path, json!({ "input": { "kg": 3 } })).await.expect(200);
    assert_eq!((&fits["output"]["cents"], &fits["warnings"]), (&json!(990), &json!([])));
    let live = invoke(&app, &key, &path, json!({ "input": { "kg": 1 } })).await.expect(200);
    assert_eq!((&live["status"], &live["output"]["price"]), (&json!("succeeded"), &json!(1)));
    assert_eq!(live["warnings"].as_array().unwrap().len(), 1);
    let test = invoke(&app, &key, &path, json!({ "input": { "kg": 1 }, "mode": "test" })).await.expect(200);
    assert_eq!(
        (&test["status"], &test["error"]["code"]),
        (&json!("failed"), &json!("function_output_invalid"))
    );
    for input in [json!(null), json!({}), json!({ "kg": "3" }), json!({ "kg": 3, "a": "x".repeat(262_144) })]
    {
        let refused = invoke(&app, &key, &path, json!({ "input": input })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("input"));
    }
    for number in ["9007199254740993", "0.12345678901234567890123", "1e400"] {
        let raw = format!("{{\"input\":{{\"kg\":{number}}}}}");
        let ask =
            app.ask("POST", &format!("{path}/invoke")).key(&key).bytes("application/json", raw.as_bytes());
        let refused = ask.send().await;
        let param = refused.expect_error(400, "validation_error").unwrap_or_default();
        assert!(param.starts_with("input"), "{number}: {param}");
    }
    for (field, value) in [
        ("mode", json!("both")),
        ("version", json!("newest")),
        ("version", json!(1.5)),
        ("idempotency_key", json!("")),
        ("more", json!(1)),
    ] {
        let refused = invoke(&app, &key, &path, json!({ field: value })).await;
        refused.expect_error(400, "validation_error");
    }
    let fixtures = json!({ "input": { "kg": 3 }, "fixtures": [{ "url": "https://a.example/" }] });
    assert_eq!(
        invoke(&app, &key, &path, fixtures).await.expect_error(400, "validation_error").as_deref(),
        Some("fixtures")
    );
    invoke(&app, &key, &path, json!({ "input": { "kg": 3 }, "version": 2 }))
        .await
        .expect_error(404, "not_found");
}

#[testkit::both]
async fn a_call_has_the_rights_of_its_publisher(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = app.bare_key().await;
    let scopes = ["functions:write", "functions:read", "items:read"];
    let publisher = app.key(owner.workspace, Env::Live, &scopes).await;
    let caller = app.key(owner.workspace, Env::Live, &["functions:write"]).await;
    let tester = app.key(owner.workspace, Env::Test, &["functions:write", "items:read"]).await;
    let new = with(body("f", ECHO), json!({ "scopes": ["items:read"] }));
    let path = create(&app, &caller, new).await;
    let publish = format!("{path}/publish");
    assert_eq!(
        app.post(&publish, &caller, json!({})).await.expect_error(403, "missing_scope").as_deref(),
        Some("items:read")
    );
    let reason = |answer: testkit::Answer| {
        let reason = answer.body["error"]["details"]["reason"].clone();
        answer.expect_error(409, "invalid_state");
        reason
    };
    assert_eq!(reason(invoke(&app, &caller, &path, json!({})).await), json!("not_published"));
    // What a test key published runs in test mode only.
    app.post(&publish, &tester, json!({})).await.expect(200);
    assert_eq!(reason(invoke(&app, &caller, &path, json!({})).await), json!("test_only"));
    invoke(&app, &caller, &path, json!({ "mode": "test", "version": 1 })).await.expect(200);
    invoke(&app, &tester, &path, json!({})).await.expect(200);
    invoke(&app, &tester, &path, json!({ "mode": "live" })).await.expect_error(403, "test_mode_restricted");
    // The same content of another key is another version.
    let second = app.post(&publish, &publisher, json!({})).await.expect(200);
    assert_eq!(second["published_version"], json!(2));
    invoke(&app, &caller, &path, json!({})).await.expect(200);
    app.patch(&path, &owner, json!({ "status": "inactive" })).await.expect(200);
    assert_eq!(reason(invoke(&app, &caller, &path, json!({})).await), json!("inactive"));
    invoke(&app, &caller, &path, json!({ "mode": "test" })).await.expect(200);
    app.patch(&path, &owner, json!({ "status": "active" })).await.expect(200);
    let id = publisher.id.clone();
    app.db().write(move |tx| auth::keys::revoke(tx, &id).map(drop)).await.unwrap();
    app.service.pipeline.directory.forget();
    assert_eq!(reason(invoke(&app, &caller, &path, json!({})).await), json!("key_lost"));
    app.post(&publish, &owner, json!({})).await.expect(200);
    invoke(&app, &caller, &path, json!({})).await.expect(200);
}

#[testkit::both]
async fn tests_repeat_themselves(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let code = "export default (ctx) => [Date.now(), Math.random(), crypto.randomUUID(), ctx.livemode]";
    let path = create(&app, &key, body("f", code)).await;
    let first = invoke(&app, &key, &path, json!({ "mode": "test" })).await.expect(200);
    let second = invoke(&app, &key, &path, json!({ "mode": "test" })).await.expect(200);
    assert_eq!(first["output"], second["output"]);
    assert_eq!((&first["output"][0], &first["output"][3]), (&json!(1_767_268_800_000_i64), &json!(false)));
}
