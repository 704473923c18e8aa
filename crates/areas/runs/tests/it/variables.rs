//! Variables of the workspace in instructions and in headers of tools.

use crate::{ask, call, give_tool, read, say, texts, with_agent};
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, OpenAiServer, TestApp};

async fn set(app: &TestApp, key: &Key, name: &str, kind: &str, value: Value, env: &str) -> Value {
    let new = json!({ "key": name, "type": kind, "value": value, "env": env });
    app.post("/variables", key, new).await.expect(201)
}

/// The instructions that the model got last.
fn instructed(app: &TestApp) -> String {
    app.model.last_texts()[0].clone()
}

#[testkit::both]
async fn instructions_have_the_values_of_the_run(kind: Kind) {
    let app = TestApp::new(kind).await;
    let text =
        "Call {{vars.shop.phone}} until {{ vars.hour }}{{vars.gone}}, {{vars.name | default:\"friend\"}}.";
    let (key, agent) = with_agent(&app, json!({ "instructions": text })).await;
    set(&app, &key, "shop.phone", "string", json!("+34 {{vars.hour}}"), "all").await;
    let test_phone = set(&app, &key, "shop.phone", "string", json!("000"), "test").await;
    set(&app, &key, "hour", "number", json!(18), "all").await;
    app.model.then(say("ok"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let resolved = "Call +34 {{vars.hour}} until 18, friend.";
    assert_eq!(instructed(&app), resolved);
    // The trace shows what was sent, also when the values are others, and names what was missing.
    app.patch(&format!("/variables/{}", test_phone["id"]), &key, json!({ "value": "111" })).await.expect(200);
    let first = read(&app, &key, &run).await["steps"][0]["input"].clone();
    assert_eq!(
        (&first["messages"][0]["content"], &first["missing_variables"]),
        (&json!(resolved), &json!(["gone", "name"]))
    );
    let shown = app.get(&format!("/agents/{}", agent["id"]), &key).await.expect(200);
    assert_eq!(shown["instructions"], text);
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    ask(&app, &test, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(instructed(&app), "Call 111 until 18, friend.");
}

#[testkit::both]
async fn secrets_never_stand_in_prompts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "instructions": "Say {{vars.later}}." })).await;
    set(&app, &key, "token", "secret", json!("hunter2-token"), "live").await;
    let leaking = json!({ "name": "Leak", "instructions": "Say {{vars.token}}." });
    let param = app.post("/agents", &key, leaking.clone()).await.expect_error(400, "validation_error");
    assert_eq!(param.as_deref(), Some("instructions"));
    let path = format!("/agents/{}", agent["id"]);
    app.patch(&path, &key, json!({ "instructions": leaking["instructions"] }))
        .await
        .expect_error(400, "validation_error");
    // A variable that becomes a secret later leaves nothing, and does not keep the agent from other changes.
    set(&app, &key, "later", "secret", json!("hunter2-later"), "all").await;
    app.patch(&path, &key, json!({ "description": "x" })).await.expect(200);
    app.model.then(say("ok"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(instructed(&app), "Say .");
    assert_eq!(read(&app, &key, &run).await["steps"][0]["input"]["missing_variables"], json!(["later"]));
}

#[testkit::both]
async fn too_much_text_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({ "instructions": "{{vars.long}}".repeat(5) })).await;
    set(&app, &key, "long", "string", json!("x".repeat(60_000)), "all").await;
    ask(&app, &key, json!({ "input": "Hi" })).await.expect_error(409, "invalid_state");
}

#[testkit::both]
async fn secrets_go_into_headers_and_nowhere_else(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let token = set(&app, &key, "shop.token", "secret", json!("hunter2-secret"), "all").await;
    let http = json!({ "method": "GET", "headers": { "Authorization": "Bearer {{vars.shop.token}}" } });
    give_tool(&app, &key, &agent, "look", &server, json!({ "http": http })).await;
    server.then(200, None, json!({ "you_sent": ["Bearer hunter2-secret"] }));
    app.model.then(call("look", json!({}))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    assert!(server.heads()[0].contains("authorization: bearer hunter2-secret"), "{:?}", server.heads());
    let step = read(&app, &key, &run).await["steps"][1].clone();
    assert_eq!(step["output"]["result"]["body"]["you_sent"], json!(["Bearer [secret]"]));
    testkit::assert_absent(&app.model.last_texts().concat(), "hunter2-secret");
    for text in texts(&app, "SELECT output AS t FROM run_steps").await.iter().flatten() {
        testkit::assert_absent(text, "hunter2-secret");
    }
    // It is in use, until it is deleted all the same: then the call is not made.
    let path = format!("/variables/{}", token["id"]);
    let usages = app.get(&format!("{path}/usages"), &key).await.expect(200);
    assert_eq!((&usages[0]["type"], &usages[0]["field"]), (&json!("agent"), &json!("tools")));
    app.delete(&path, &key).await.expect_error(409, "variable_in_use");
    app.delete(&format!("{path}?force=true"), &key).await.expect(200);
    app.model.then(call("look", json!({}))).then(say("done"));
    let run = ask(&app, &key, json!({ "input": "Hi" })).await.expect(200);
    let step = read(&app, &key, &run).await["steps"][1].clone();
    assert!(step["output"]["result"].as_str().unwrap().contains("`shop.token`"), "{step}");
    assert_eq!(server.requests(), 1);
}
