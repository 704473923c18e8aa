//! Attaching tools to agents.

use crate::{texts, with_agent};
use serde_json::{Value, json};
use testkit::{Kind, OpenAiServer, Script, TestApp};

fn tool() -> Value {
    json!({
        "type": "http", "description": "Looks.",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        "http": { "method": "GET", "url": "http://127.9.9.9:40009/{city}" },
    })
}

fn with(field: &str, value: Value) -> Value {
    let mut tool = tool();
    match field.split_once('.') {
        Some((outer, inner)) => tool[outer][inner] = value,
        None => tool[field] = value,
    }
    tool
}

#[testkit::both]
async fn tools_are_attached_replaced_and_taken_away(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}", agent["id"]);
    let version = async || app.get(&path, &key).await.expect(200)["version"].clone();
    let made = app.put(&format!("{path}/tools/look"), &key, tool()).await.expect(200);
    assert_eq!((&made["id"], &made["name"], &made["type"]), (&json!("look"), &json!("look"), &json!("http")));
    assert_eq!((&made["max_calls_per_run"], &made["timeout_seconds"]), (&json!(30), &json!(15)));
    assert_eq!(made["repeatable"], false);
    assert!((20..60).contains(&made["token_estimate"].as_i64().unwrap()), "{made}");
    assert_eq!(version().await, 2);
    // Sending the same tool again is no change.
    app.put(&format!("{path}/tools/look"), &key, tool()).await.expect(200);
    assert_eq!(version().await, 2);
    app.put(&format!("{path}/tools/look"), &key, with("timeout_seconds", json!(60))).await.expect(200);
    assert_eq!(version().await, 3);
    let gone = app.delete(&format!("{path}/tools/look"), &key).await.expect(200);
    assert_eq!((&gone["id"], &gone["deleted"]), (&json!("look"), &json!(true)));
    assert_eq!(version().await, 4);
    app.delete(&format!("{path}/tools/look"), &key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn bad_tools_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}/tools", agent["id"]);
    for (body, param) in [
        (with("type", json!("mcp_tool")), "type"),
        (with("description", json!(" ")), "description"),
        (with("parameters", json!({ "type": "strin" })), "parameters"),
        (with("parameters", json!({ "type": "array" })), "parameters.type"),
        (with("timeout_seconds", json!(61)), "timeout_seconds"),
        (with("max_calls_per_run", json!(0)), "max_calls_per_run"),
        (with("approval", json!("sometimes")), "approval"),
        (with("approval", json!(null)), "approval"),
        (with("http.url", json!("http://10.0.0.1/")), "http.url"),
        (with("http.url", json!("http://169.254.169.254/latest")), "http.url"),
        (with("http.url", json!("file:///etc/passwd")), "http.url"),
        (with("http.url", json!("http://{host}/")), "http.url"),
        (with("http.url", json!("http://127.0.0.1/#part")), "http.url"),
        (with("http.headers", json!({ "Host": "x" })), "http.headers.Host"),
        (with("http.headers", json!({ "X-A": "a\nb" })), "http.headers.X-A"),
        (with("http.headers", json!({ "X-A": "a", "x-a": "b" })), "http.headers.x-a"),
        (with("http.headers", json!({ "X-Svc-Signature": "x" })), "http.headers.X-Svc-Signature"),
        (with("http.headers", json!({ "webhook-id": "x" })), "http.headers.webhook-id"),
        (with("http.headers", json!({ "Keep-Alive": "x" })), "http.headers.Keep-Alive"),
        (with("http.headers", json!({ "Expect": "100-continue" })), "http.headers.Expect"),
        (with("http.headers", json!({ "Proxy-Connection": "x" })), "http.headers.Proxy-Connection"),
        (with("http.headers", json!({ "a b": "x" })), "http.headers.a b"),
        (with("http.url", json!("http://127.9.9.9:40009/{town}")), "http.url"),
        (with("http.url", json!("http://127.9.9.9:40009/{city")), "http.url"),
        (with("http.url", json!("http://127.9.9.9:40009/city}")), "http.url"),
        (with("http.url", json!("http://127.9.9.9:40009/{ci{city}ty}")), "http.url"),
        (with("http.url", json!("http://127.9.9.9:40009/{}")), "http.url"),
        (with("fixed_arguments", json!({ "city": 7 })), "fixed_arguments.city"),
        (with("fixed_arguments", json!({ "a": "x".repeat(16_384) })), "fixed_arguments"),
        (with("repeatable", json!("yes")), "repeatable"),
    ] {
        let param_found =
            app.put(&format!("{path}/look"), &key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(param_found.as_deref(), Some(param), "{body}");
    }
    for name in ["a.b", "a%20b", &"x".repeat(65)] {
        let param =
            app.put(&format!("{path}/{name}"), &key, tool()).await.expect_error(400, "validation_error");
        assert_eq!(param.as_deref(), Some("toolId"));
    }
}

#[testkit::both]
async fn approval_goes_with_versions_and_copies(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}", agent["id"]);
    let shown =
        async |path: &str| app.get(&format!("{path}/tools"), &key).await.expect(200)[0]["approval"].clone();
    for (approval, version) in [("never", 2), ("always", 3), ("always", 3), ("on_write", 4)] {
        app.put(&format!("{path}/tools/look"), &key, with("approval", json!(approval))).await.expect(200);
        assert_eq!(
            (shown(&path).await, &app.get(&path, &key).await.expect(200)["version"]),
            (json!(approval), &json!(version))
        );
    }
    let third = app.get(&format!("{path}/versions/3"), &key).await.expect(200);
    assert_eq!(third["tools"][0]["approval"], "always");
    app.post(&format!("{path}/versions/3/restore"), &key, json!({})).await.expect(200);
    let copy = app.post(&format!("{path}/duplicate"), &key, json!({})).await.expect(201);
    assert_eq!(
        (shown(&path).await, shown(&format!("/agents/{}", copy["id"])).await),
        (json!("always"), json!("always"))
    );
    // The default is `never`, also for tools that were attached before this setting existed.
    app.put(&format!("{path}/tools/look"), &key, tool()).await.expect(200);
    assert_eq!(shown(&path).await, "never");
    app.sql("UPDATE agent_tools SET settings = REPLACE(settings, '\"approval\":\"never\",', '')").await;
    assert!(
        !texts(&app, "SELECT settings AS t FROM agent_tools").await[0].as_ref().unwrap().contains("never")
    );
    assert_eq!(shown(&path).await, "never");
}

#[testkit::both]
async fn headers_are_sealed_and_go_with_copies(kind: Kind) {
    let app = TestApp::new(kind).await;
    let server = OpenAiServer::start().await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let url = format!("http://{}/x", server.address);
    let http = json!({ "method": "GET", "url": url, "headers": { "X-Api-Key": "hunter2-secret" } });
    let tool = json!({ "type": "http", "description": "Looks.", "http": http });
    let path = format!("/agents/{}", agent["id"]);
    for _ in 0..2 {
        app.put(&format!("{path}/tools/look"), &key, tool.clone()).await.expect(200);
    }
    assert_eq!(app.get(&path, &key).await.expect(200)["version"], 2, "sealed anew, but the same");
    let shown = app.get(&format!("{path}/tools"), &key).await;
    assert_eq!(shown.expect(200)[0]["http"]["header_names"], json!(["X-Api-Key"]));
    let version = app.get(&format!("{path}/versions/2"), &key).await;
    for answer in [shown.text, version.text] {
        testkit::assert_absent(&answer, "hunter2-secret");
        testkit::assert_absent(&answer, "sealed_headers");
    }
    for table in ["SELECT settings AS t FROM agent_tools", "SELECT tools AS t FROM agent_versions"] {
        for text in texts(&app, table).await.iter().flatten() {
            testkit::assert_absent(text, "hunter2-secret");
        }
    }
    let copy = app.post(&format!("{path}/duplicate"), &key, json!({})).await.expect(201);
    app.post(&format!("/agents/{}/activate", copy["id"]), &key, json!({})).await.expect(200);
    app.model.then(Script::Call(vec![("look".into(), json!({}))])).then(Script::Say("done".into()));
    app.post("/runs", &key, json!({ "input": "Look", "agent_id": copy["id"] })).await.expect(200);
    assert!(server.heads()[0].contains("x-api-key: hunter2"), "{:?}", server.heads());
}

#[testkit::both]
async fn headers_are_stored_without_the_values_of_their_variables(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let token = json!({ "key": "shop.token", "type": "secret", "value": "hunter2-secret", "env": "all" });
    app.post("/variables", &key, token).await.expect(201);
    let headers = json!({ "Authorization": "Bearer {{vars.shop.token}}" });
    let path = format!("/agents/{}/tools/look", agent["id"]);
    app.put(&path, &key, with("http.headers", headers)).await.expect(200);
    for table in ["SELECT settings AS t FROM agent_tools", "SELECT tools AS t FROM agent_versions"] {
        for text in texts(&app, table).await.iter().flatten() {
            testkit::assert_absent(text, "hunter2-secret");
        }
    }
}

#[testkit::both]
async fn an_agent_has_at_most_128_tools(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}/tools", agent["id"]);
    let now = "2026-01-15 12:00:00";
    let settings = r#"{"description":"d","parameters":{"type":"object"},"fixed_arguments":{},"http":{"method":"GET","url":"http://127.9.9.9:40009/","header_names":[]},"sealed_headers":null,"max_calls_per_run":1,"timeout_seconds":1}"#;
    let rows: Vec<String> = (0..128)
        .map(|number| {
            format!(
                "({}, 't{number}', {}, 'http', '{settings}', '{now}', '{now}')",
                agent["id"], key.workspace
            )
        })
        .collect();
    app.sql(format!("INSERT INTO agent_tools (agent_id, name, workspace_id, kind, settings, created_at, updated_at) VALUES {}", rows.join(","))).await;
    app.put(&format!("{path}/one-more"), &key, tool()).await.expect_error(409, "limit_reached");
    app.put(&format!("{path}/t0"), &key, tool()).await.expect(200);
}
