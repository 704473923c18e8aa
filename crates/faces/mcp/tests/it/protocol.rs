//! The protocol: statuses and codes of both eras, headers, origins, challenges, long work.

use crate::fixtures::{endpoint, serve};
use mcp::Settings;
use model::Env;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::Duration;
use testkit::{Answer, Client, Key, Kind, TestApp};

/// A service with the tools of tests.
struct Bed {
    app: TestApp,
    client: Client,
    key: Key,
}

impl Bed {
    async fn new(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", 0).await;
        let key = app.key(workspace, Env::Live, &["mcp:use"]).await;
        let settings = Settings {
            origins: vec!["https://app.example".to_owned()],
            patience: Duration::from_millis(200),
            ..Settings::new("https://svc.example", "v1")
        };
        let mount = endpoint(&app, settings);
        let client = Client::new(&serve(&app, mount, TcpListener::bind("127.0.0.1:0").unwrap()));
        Self { app, client, key }
    }

    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        let asking = self.client.ask("POST", "/mcp").key(&self.key).json(body);
        headers.iter().fold(asking, |asking, (name, value)| asking.header(name, value)).send().await
    }

    /// Sends a request of 2026-07-28 with all that it needs.
    async fn modern(&self, method: &str, name: Option<&str>, params: Value) -> Answer {
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        self.post(&headers, &modern(method, params)).await
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn modern(method: &str, mut params: Value) -> Value {
    if params["_meta"].is_null() {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    request(method, params)
}

fn code(answer: &Answer) -> i64 {
    let code = answer.body["error"]["code"].as_i64();
    assert!(code.is_some(), "no JSON-RPC error: {}", answer.text);
    code.unwrap()
}

#[testkit::both]
async fn initialize_negotiates_the_revision(kind: Kind) {
    let bed = Bed::new(kind).await;
    for (wanted, got) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": wanted, "capabilities": {}, "clientInfo": info });
        let answer = bed
            .post(&[("mcp-session-id", "x"), ("last-event-id", "7")], &request("initialize", params))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let result = &answer.body["result"];
        assert_eq!(result["protocolVersion"], got, "{wanted}");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        assert_eq!(result["serverInfo"]["name"], "svc");
        assert!(!answer.headers.contains_key("mcp-session-id"));
        assert!(
            answer.headers.contains_key("x-request-id") && answer.headers.contains_key("x-ratelimit-limit")
        );
    }
}

#[testkit::both]
async fn the_older_era_has_its_methods(kind: Kind) {
    let bed = Bed::new(kind).await;
    for version in [None, Some("2025-03-26"), Some("2025-06-18"), Some("2025-11-25")] {
        let headers: Vec<_> = version.iter().map(|version| ("mcp-protocol-version", *version)).collect();
        let pong = bed.post(&headers, &request("ping", json!({}))).await;
        assert_eq!((pong.status, &pong.body), (200, &json!({ "jsonrpc": "2.0", "id": 1, "result": {} })));
        let list = bed.post(&headers, &request("tools/list", json!({}))).await;
        assert_eq!(list.body["result"]["tools"][0]["name"], "test_simple_text");
        assert_eq!(list.body["result"].get("ttlMs"), None);
        let called = bed.post(&headers, &request("tools/call", json!({ "name": "test_simple_text" }))).await;
        let text = "This is a simple text response for testing.";
        assert_eq!(called.body["result"], json!({ "content": [{ "type": "text", "text": text }] }));
    }
    for (method, params, status, expected) in [
        ("resources/list", json!({}), 200, -32601),
        ("subscriptions/listen", json!({}), 200, -32601),
        ("a\0b", json!({}), 200, -32601),
        ("tools/call", json!({ "name": "nothing" }), 200, -32602),
        ("tools/call", json!({ "name": 7 }), 200, -32602),
        ("tools/call", json!({}), 200, -32602),
        ("tools/call", json!({ "name": "test_simple_text", "arguments": [1] }), 200, -32602),
        ("tools/list", json!({ "cursor": "x" }), 200, -32602),
    ] {
        let answer = bed.post(&[], &request(method, params)).await;
        assert_eq!(
            (answer.status, code(&answer), &answer.body["id"]),
            (status, expected, &json!(1)),
            "{method}"
        );
    }
    let unknown = bed.post(&[("mcp-protocol-version", "2099-01-01")], &request("ping", json!({}))).await;
    assert_eq!((unknown.status, code(&unknown)), (400, -32022));
    assert_eq!(unknown.body["error"]["data"]["requested"], "2099-01-01");
    for other in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "result": {} }),
    ] {
        let answer = bed.post(&[], &other).await;
        assert_eq!((answer.status, answer.text.as_str()), (202, ""));
    }
}

#[testkit::both]
async fn the_era_without_sessions_checks_headers_and_meta(kind: Kind) {
    let bed = Bed::new(kind).await;
    let found = bed.modern("server/discover", None, json!({})).await;
    assert_eq!(found.status, 200, "{}", found.text);
    let result = &found.body["result"];
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(result["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]));
    assert_eq!(
        result["capabilities"],
        json!({ "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
    );
    let list = bed.modern("tools/list", None, json!({})).await;
    let result = &list.body["result"];
    assert_eq!((&result["resultType"], &result["ttlMs"]), (&json!("complete"), &json!(60_000)));
    let params = json!({ "name": "test_error_handling" });
    let failed = bed.modern("tools/call", Some("test_error_handling"), params.clone()).await;
    assert_eq!((failed.status, &failed.body["result"]["isError"]), (200, &json!(true)));
    // A name that a header cannot have.
    let encoded =
        bed.modern("tools/call", Some("=?base64?dGVzdF9lcnJvcl9oYW5kbGluZw==?="), params.clone()).await;
    assert_eq!(encoded.body["result"]["isError"], true);

    let version = ("mcp-protocol-version", "2026-07-28");
    let call = ("mcp-method", "tools/call");
    let name = ("mcp-name", "test_error_handling");
    let meta = |meta: Value| json!({ "name": "test_error_handling", "_meta": meta });
    let without_version = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    let without_capabilities = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let newer = json!({ "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {} });
    let cases = [
        ("no headers", vec![], params.clone(), -32020),
        ("no version header", vec![call, name], params.clone(), -32020),
        ("no method header", vec![version, name], params.clone(), -32020),
        ("no name header", vec![version, call], params.clone(), -32020),
        ("another version", vec![("mcp-protocol-version", "2025-11-25"), call, name], params.clone(), -32020),
        ("another method", vec![version, ("mcp-method", "tools/list"), name], params.clone(), -32020),
        ("another name", vec![version, call, ("mcp-name", "test_simple_text")], params.clone(), -32020),
        (
            "a name that is no base64",
            vec![version, call, ("mcp-name", "=?base64?!!?=")],
            params.clone(),
            -32020,
        ),
        ("two names", vec![version, call, name, name], params.clone(), -32020),
        ("another method among two", vec![version, call, ("mcp-method", "x"), name], params.clone(), -32020),
        ("no version in _meta", vec![version, call, name], meta(without_version), -32602),
        ("no capabilities in _meta", vec![version, call, name], meta(without_capabilities), -32602),
        ("_meta of a wrong type", vec![version, call, name], meta(json!("x")), -32602),
        ("an unknown version", vec![("mcp-protocol-version", "2099-01-01"), call, name], meta(newer), -32022),
    ];
    for (what, headers, params, expected) in cases {
        let answer = bed.post(&headers, &modern("tools/call", params)).await;
        assert_eq!((answer.status, code(&answer)), (400, expected), "{what}: {}", answer.text);
        assert_eq!(answer.body["id"], 1, "{what}");
    }
    for removed in ["initialize", "ping", "logging/setLevel", "nothing"] {
        let answer = bed.modern(removed, None, json!({})).await;
        assert_eq!((answer.status, code(&answer)), (404, -32601), "{removed}: {}", answer.text);
    }
    let unknown = bed.modern("tools/call", Some("nothing"), json!({ "name": "nothing" })).await;
    assert_eq!((unknown.status, code(&unknown)), (200, -32602));
}

#[testkit::both]
async fn bodies_that_are_no_message_are_refused(kind: Kind) {
    let bed = Bed::new(kind).await;
    let ping = request("ping", json!({}));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(Vec<u8>, i64); 7] = [
        (json!([ping, ping]).to_string().into_bytes(), -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}".to_vec(), -32600),
        (b"hello".to_vec(), -32700),
        (Vec::new(), -32700),
        (deep.into_bytes(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\ud800\"}".to_vec(), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\0\"}".to_vec(), -32700),
    ];
    for (body, expected) in cases {
        let answer =
            bed.client.ask("POST", "/mcp").key(&bed.key).bytes("application/json", &body).send().await;
        let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!((answer.status, code(&answer)), (400, expected), "{start}: {}", answer.text);
        assert_eq!(answer.body.get("id"), None, "{start}");
    }
    let large = vec![b' '; 5 << 20];
    let answer = bed.client.ask("POST", "/mcp").key(&bed.key).bytes("application/json", &large).send().await;
    answer.expect_error(413, "payload_too_large");
    let form = bed.client.ask("POST", "/mcp").key(&bed.key).bytes("text/plain", b"{}").send().await;
    form.expect_error(415, "unsupported_media_type");
}

#[testkit::both]
async fn other_methods_and_origins_are_refused_before_any_work(kind: Kind) {
    let bed = Bed::new(kind).await;
    for method in ["GET", "DELETE", "PUT", "PATCH"] {
        let answer = bed.client.ask(method, "/mcp").send().await;
        assert_eq!(answer.headers["allow"], "POST", "{method}");
        answer.expect_error(405, "method_not_allowed");
    }
    let ping = request("ping", json!({}));
    for origin in ["https://svc.example", "https://app.example", "http://localhost:6274", "http://127.0.0.1"]
    {
        let answer = bed.post(&[("origin", origin)], &ping).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.headers["access-control-allow-origin"], origin);
        assert!(answer.headers["access-control-expose-headers"].contains("WWW-Authenticate"));
        let preflight = bed.client.ask("OPTIONS", "/mcp").header("origin", origin).send().await;
        assert_eq!((preflight.status, preflight.text.as_str()), (204, ""));
        assert!(preflight.headers["access-control-allow-headers"].contains("Mcp-Method"));
    }
    for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
        let answer = bed.post(&[("origin", origin)], &ping).await;
        assert_eq!((answer.status, code(&answer)), (403, -32600), "{origin}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
    // A page that may use the endpoint can read why it was refused.
    let asking = bed.client.ask("POST", "/mcp").header("origin", "https://app.example").json(&ping);
    let refused = asking.send().await;
    assert_eq!(refused.headers["access-control-allow-origin"], "https://app.example");
    refused.expect_error(401, "missing_api_key");
}

#[testkit::both]
async fn challenges_name_the_authorization_server_and_the_scopes(kind: Kind) {
    let bed = Bed::new(kind).await;
    let metadata =
        "resource_metadata=\"https://svc.example/.well-known/oauth-protected-resource/api/v1/mcp\"";
    let ping = request("ping", json!({}));
    for authorization in [None, Some("Bearer svc_live_wrong"), Some("Bearer svc_at_wrong"), Some("Basic x")] {
        let asking = bed.client.ask("POST", "/mcp").json(&ping);
        let asking = authorization.iter().fold(asking, |asking, value| asking.header("authorization", value));
        let answer = asking.send().await;
        assert_eq!(answer.status, 401);
        let challenge = &answer.headers["www-authenticate"];
        assert!(challenge.starts_with(&format!("Bearer {metadata}, scope=\"")), "{challenge}");
        for scope in ["mcp:use", "runs:read", "contacts:write"] {
            assert!(challenge.contains(scope), "{challenge}");
        }
        assert_eq!(answer.body["success"], false);
    }
    // A key cannot be given more scopes, so it gets no challenge.
    let closed = bed.app.key(bed.key.workspace, Env::Live, &["contacts:read"]).await;
    let answer = bed.client.ask("POST", "/mcp").key(&closed).json(&ping).send().await;
    assert!(!answer.headers.contains_key("www-authenticate"));
    answer.expect_error(403, "missing_scope");
    let lacking = bed.post(&[], &request("tools/call", json!({ "name": "test_scopes" }))).await;
    assert_eq!(lacking.status, 403);
    let challenge = &lacking.headers["www-authenticate"];
    assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    assert!(challenge.contains("scope=\"mcp:use contacts:write tasks:read\""), "{challenge}");
    assert!(challenge.contains(metadata), "{challenge}");
}

#[testkit::both]
async fn long_work_is_reported_awaited_or_followed(kind: Kind) {
    let bed = Bed::new(kind).await;
    // With a token: progress, then the result, as events.
    let params = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": "t" } });
    let answer = bed.post(&[], &request("tools/call", params)).await;
    assert!(answer.headers["content-type"].starts_with("text/event-stream"));
    let messages: Vec<Value> = answer
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let (last, progress) = messages.split_last().unwrap();
    assert_eq!(progress.len(), 4);
    for (number, message) in (1..).zip(progress) {
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(
            (&message["params"]["progressToken"], &message["params"]["progress"]),
            (&json!("t"), &json!(number))
        );
    }
    assert_eq!(last["result"]["structuredContent"]["status"], "completed");
    // Without: the result, or after a while the id.
    let ended = bed.post(&[], &request("tools/call", json!({ "name": "test_tool_with_progress" }))).await;
    assert_eq!(ended.body["result"]["structuredContent"]["status"], "completed");
    let unfinished = bed.post(&[], &request("tools/call", json!({ "name": "test_long" }))).await;
    assert_eq!(unfinished.body["result"]["structuredContent"]["id"], "run_1");
    assert!(unfinished.body["result"]["content"][0]["text"].as_str().unwrap().contains("getRun"));
    // A client that knows tasks gets one at once.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
    });
    let params = json!({ "name": "test_long", "_meta": meta.clone() });
    let answer = bed.modern("tools/call", Some("test_long"), params).await;
    let task = &answer.body["result"];
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working")),
        "{}",
        answer.text
    );
    let id = task["taskId"].as_str().unwrap();
    let cancelled =
        bed.modern("tasks/cancel", Some(id), json!({ "taskId": id, "_meta": meta.clone() })).await;
    assert_eq!(cancelled.body["result"], json!({ "resultType": "complete" }));
    // The id of a task is sealed, and holds for its key.
    let mut forged = id.to_owned();
    forged.replace_range(0..1, if id.starts_with('A') { "B" } else { "A" });
    for wrong in [forged.as_str(), "", "run_1"] {
        let answer =
            bed.modern("tasks/cancel", Some(wrong), json!({ "taskId": wrong, "_meta": meta.clone() })).await;
        assert_eq!((answer.status, code(&answer)), (200, -32602), "{wrong}");
    }
    let other = bed.app.key(bed.key.workspace, Env::Live, &["mcp:use"]).await;
    let other = Bed { app: bed.app, client: bed.client, key: other };
    let answer = other.modern("tasks/get", Some(id), json!({ "taskId": id, "_meta": meta })).await;
    assert_eq!((answer.status, code(&answer)), (200, -32602));
    // A client that does not declare tasks cannot ask for them.
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = other.modern(method, Some(id), json!({ "taskId": id })).await;
        assert_eq!((answer.status, code(&answer)), (400, -32021), "{method}");
        let needed = &answer.body["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*needed, json!({ "io.modelcontextprotocol/tasks": {} }));
    }
}
