//! Input that is wrong: what each of it is answered. Nothing that a caller sends may end in a 500.

use crate::operations::answers::seed;
use crate::operations::document::well_formed;
use crate::operations::sweep::Sweep;
use crate::operations::valid::address;
use billing::processor::{InvoiceStatus, NewInvoice, record_invoice};
use model::Env;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Answer, Key, Kind, TestApp};

/// What is expected of a row: the status, the code of an error, and its `param`.
pub type Expected<'a> = (u16, &'a str, Option<&'a str>);

pub const OK: Expected<'static> = (200, "", None);

pub fn invalid(param: &str) -> Expected<'_> {
    (400, "validation_error", Some(param))
}

pub const NOT_FOUND: Expected<'static> = (404, "not_found", None);
pub const NO_WORKSPACE: Expected<'static> = (404, "workspace_not_found", None);
pub const NO_ROUTE: Expected<'static> = (404, "route_not_found", None);

#[track_caller]
pub fn check(what: &str, answer: &Answer, (status, code, param): Expected<'_>) {
    let shown: String = what.chars().take(200).collect();
    well_formed(answer, &shown);
    assert_eq!(answer.status, status, "{shown}: {}", answer.text);
    if status < 400 {
        return;
    }
    let error = &answer.body["error"];
    assert_eq!(
        (error["code"].as_str(), error["param"].as_str()),
        (Some(code), param),
        "{shown}: {}",
        answer.text
    );
    // Specification 7.2 and the exception of decision 7.
    let kind = match status {
        _ if code == "missing_scope" => "invalid_request_error",
        400 => "invalid_request_error",
        401 => "authentication_error",
        429 => "rate_limit_error",
        _ => "api_error",
    };
    assert_eq!(error["type"], kind, "{shown}");
}

/// A body for `POST /runs` that is right but for `extra`.
fn run_with(extra: &str) -> String {
    format!("{{\"input\":\"Hello\",{extra}}}")
}

/// Bodies in which one field, not yet `seen`, has a value that fits no type, or an odd one.
fn spoilt(body: &Value, seen: &mut BTreeSet<String>) -> Vec<String> {
    const ODD: [&str; 10] = [
        "null",
        "true",
        "5.5",
        "-1e300",
        "99999999999999999999",
        "\"\"",
        "\"x y\"",
        "[null]",
        "{\"x\":1}",
        "[[]]",
    ];
    let fields = body.as_object().into_iter().flatten().map(|(name, _)| name);
    let spoilt = fields.filter(|name| seen.insert((*name).clone())).flat_map(|name| {
        ODD.iter().map(move |odd| {
            let mut body = body.clone();
            body[name] = "ODD".into();
            body.to_string().replace("\"ODD\"", odd)
        })
    });
    spoilt.collect()
}

async fn post(app: &TestApp, key: &Key, path: &str, body: &str) -> Answer {
    app.ask("POST", path).key(key).bytes("application/json", body.as_bytes()).send().await
}

/// A row of each kind that has an id, in a workspace of its own.
struct Foreign {
    key: Key,
    agent: String,
    run: String,
    execution: String,
    invoice: String,
}

impl Foreign {
    async fn new(app: &TestApp) -> Self {
        let key = app.full_key().await;
        let run = app.post("/runs", &key, json!({ "input": "Hello" })).await.expect(200);
        let execution = app.get("/billing/executions", &key).await.expect(200)[0]["id"].clone();
        let workspace = key.workspace;
        let invoice = app.db().write(move |tx| {
            let new = NewInvoice {
                processor_id: "in_1".to_owned(),
                number: "1".to_owned(),
                status: InvoiceStatus::Open,
                total_cents: 100,
                currency: "USD".to_owned(),
                pdf_url: None,
                lines: Vec::new(),
                due_at: None,
                paid_at: None,
            };
            record_invoice(tx, workspace, &new)
        });
        Self {
            agent: run["agent_id"].to_string(),
            run: run["id"].as_str().unwrap().to_owned(),
            execution: execution.as_str().unwrap().to_owned(),
            invoice: invoice.await.unwrap().to_string(),
            key,
        }
    }
}

#[testkit::both]
async fn credentials(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let mut wrong_tail = key.secret.clone();
    wrong_tail.replace_range(47.., if key.secret.ends_with('0') { "1" } else { "0" });
    let of_nobody = model::SeededRandom::new(1);
    let of_nobody = auth::KeySecret::generate(Env::Live, &of_nobody).reveal().to_owned();
    for (header, status, code) in [
        (None, 401, "missing_api_key"),
        (Some(String::new()), 401, "missing_api_key"),
        (Some("Bearer".to_owned()), 401, "invalid_api_key"),
        (Some("Bearer ".to_owned()), 401, "invalid_api_key"),
        (Some(key.secret.clone()), 401, "missing_api_key"),
        (Some(format!("Basic {}", key.secret)), 401, "missing_api_key"),
        (Some("Bearer nonsense".to_owned()), 401, "invalid_api_key"),
        (Some(format!("Bearer {}", key.secret.replace("svc_live", "svc_dead"))), 401, "invalid_api_key"),
        (Some(format!("Bearer {}", key.secret.replace("svc_live", "svc_test"))), 401, "invalid_api_key"),
        (Some(format!("Bearer {}", key.secret.to_uppercase())), 401, "invalid_api_key"),
        (Some(format!("Bearer {wrong_tail}")), 401, "invalid_api_key"),
        (Some(format!("Bearer {of_nobody}")), 401, "invalid_api_key"),
        (Some(format!("Bearer {} {}", key.secret, key.secret)), 401, "invalid_api_key"),
        (Some(format!("Bearer {}", "x".repeat(5000))), 401, "invalid_api_key"),
        (Some("Bearer ü".to_owned()), 401, "invalid_api_key"),
        (Some(format!("bearer {}", key.secret)), 200, ""),
        (Some(format!("Bearer  {}", key.secret)), 200, ""),
    ] {
        let mut asking = app.ask("GET", "/me");
        if let Some(header) = &header {
            asking = asking.header("authorization", header);
        }
        check(&format!("{header:?}"), &asking.send().await, (status, code, None));
    }
}

#[testkit::both]
async fn bodies(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let deep = |depth: usize| run_with(&format!("\"metadata\":{}1{}", "[".repeat(depth), "]".repeat(depth)));
    let long = "x".repeat(100_001);
    let long_enough = "ü".repeat(100_000);
    let padded = |bytes: usize| format!("{{\"input\":\"Hello\"{}}}", " ".repeat(bytes - 17));
    let run = |body: &str| body.to_owned();
    for (body, expected) in [
        (run(""), invalid("body")),
        (run("{"), invalid("body")),
        (run("{}x"), invalid("body")),
        (run("{'input':'x'}"), invalid("body")),
        (run("{\"input\":\"x\",}"), invalid("body")),
        (run("\u{feff}{\"input\":\"x\"}"), invalid("body")),
        (run("[]"), invalid("body")),
        (run("null"), invalid("body")),
        (run("1e999"), invalid("body")),
        (run("{\"input\":\"\\ud800\"}"), invalid("body")),
        (run("{\"input\":\"\\udc00\\ud800\"}"), invalid("body")),
        (deep(200), invalid("body")),
        (deep(100), invalid("metadata")),
        (run("{\"input\":\"a\\u0000b\"}"), invalid("input")),
        (run_with("\"metadata\":{\"a\":\"\\u0000\"}"), invalid("metadata.a")),
        (run_with("\"metadata\":{\"a\\u0000\":\"b\"}"), invalid("metadata.a")),
        (run("{}"), invalid("input")),
        (run_with("\"surprise\":1"), invalid("surprise")),
        (run_with("\"Input\":\"x\""), invalid("Input")),
        (
            run_with("\"response_format\":{\"type\":\"text\",\"strict\":true}"),
            invalid("response_format.strict"),
        ),
        (run("{\"input\":null}"), invalid("input")),
        (run("{\"input\":5}"), invalid("input")),
        (run("{\"input\":[\"x\"]}"), invalid("input")),
        (run("{\"input\":\"\"}"), invalid("input")),
        (run("{\"input\":\" \\n\\t \"}"), invalid("input")),
        (json!({ "input": long }).to_string(), invalid("input")),
        (json!({ "input": long_enough }).to_string(), OK),
        (run_with("\"conversation_id\":\"a b\""), invalid("conversation_id")),
        (run_with("\"conversation_id\":\"\""), invalid("conversation_id")),
        (run_with("\"conversation_id\":\"ü\""), invalid("conversation_id")),
        (run_with(&format!("\"conversation_id\":\"{}\"", "x".repeat(129))), invalid("conversation_id")),
        (run_with("\"background\":\"true\""), invalid("background")),
        (run_with("\"on_busy\":\"shout\""), invalid("on_busy")),
        (run_with("\"stream\":true,\"background\":true"), invalid("stream")),
        (run_with("\"stream\":1"), invalid("stream")),
        (run_with("\"stream\":false"), OK),
        (run_with("\"max_steps\":0"), invalid("max_steps")),
        (run_with("\"max_steps\":51"), invalid("max_steps")),
        (run_with("\"max_steps\":-1"), invalid("max_steps")),
        (run_with("\"max_steps\":1.5"), invalid("max_steps")),
        (run_with("\"max_steps\":1e300"), invalid("max_steps")),
        (run_with("\"max_steps\":\"5\""), invalid("max_steps")),
        (run_with("\"max_steps\":5.0"), OK),
        (run_with("\"max_steps\":1e1"), OK),
        (run_with("\"max_steps\":50.000"), OK),
        (run_with("\"max_steps\":51.0"), invalid("max_steps")),
        (run_with("\"agent_version\":7.0"), (404, "not_found", Some("agent_version"))),
        (run_with("\"agent_version\":9007199254740993.0"), invalid("agent_version")),
        (run_with("\"agent_version\":-1e19"), invalid("agent_version")),
        (run_with("\"agent_version\":99999999999999999999"), invalid("agent_version")),
        (run_with("\"agent_version\":9223372036854775808"), invalid("agent_version")),
        (run_with("\"agent_version\":9223372036854775807"), (404, "not_found", Some("agent_version"))),
        (run_with("\"agent_id\":-1"), (404, "not_found", Some("agent_id"))),
        (run_with("\"agent_id\":9223372036854775807"), (404, "not_found", Some("agent_id"))),
        (run_with("\"agent_id\":1e30"), invalid("agent_id")),
        (run_with("\"agent_id\":\"1\""), invalid("agent_id")),
        (run_with("\"metadata\":{\"a\":1}"), invalid("metadata.a")),
        (run_with(&format!("\"metadata\":{{\"a\":\"{}\"}}", "x".repeat(513))), invalid("metadata.a")),
        (run_with(&format!("\"metadata\":{{\"{}\":\"b\"}}", "x".repeat(65))), invalid("metadata")),
        (run_with("\"response_format\":{\"type\":\"json_schema\"}"), invalid("response_format.schema")),
        (padded(1 << 20), OK),
        (padded((1 << 20) + 1), (413, "payload_too_large", None)),
    ] {
        check(&body, &post(&app, &key, "/runs", &body).await, expected);
    }
    for (body, param) in [
        (json!({ "name": "A", "model": "gpt-4" }), "model"),
        (json!({ "name": "A", "model": "Fast" }), "model"),
        (json!({ "name": "A", "status": "archived" }), "status"),
        (json!({ "name": "A", "temperature": 2.1 }), "temperature"),
        (json!({ "name": "A", "memory": { "mode": "vector" } }), "memory.mode"),
        (json!({ "name": "A", "skills": [] }), "skills"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "x".repeat(101) }), "name"),
    ] {
        let answer = app.post("/agents", &key, body.clone()).await;
        check(&body.to_string(), &answer, invalid(param));
    }
    let many = app.post("/runs", &key, json!({ "input": "", "max_steps": 0, "surprise": 1 })).await;
    let listed: Vec<&str> =
        many.body["error"]["errors"].as_array().unwrap().iter().filter_map(|e| e["param"].as_str()).collect();
    assert!(["input", "max_steps", "surprise"].iter().all(|param| listed.contains(param)), "{listed:?}");
}

#[testkit::both]
async fn bodies_of_every_operation(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    let mut refused = 0;
    for (document, op) in sweep.enveloped() {
        let Some(schema) = &op.body else { continue };
        let path = address(&op, document, &ids);
        let mut seen = BTreeSet::new();
        for body in document.variants(schema, "body", 1) {
            for wrong in spoilt(&body, &mut seen) {
                sweep.app.data.clock.advance(chrono::Duration::seconds(61));
                let key = sweep.credential(&op, sweep.key(&op, true)).await;
                let asking = sweep.app.ask(&op.method, &path).key(&key);
                // What its sentences may not say is looked for in every answer that a test gets.
                let answer = asking.bytes("application/json", wrong.as_bytes()).send().await;
                let what = format!("{} {wrong}", op.id);
                if answer.status >= 400 {
                    well_formed(&answer, &what);
                }
                if answer.status == 400 {
                    refused += 1;
                    assert!(answer.body["error"]["param"].is_string(), "{what}: {}", answer.text);
                }
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[testkit::both]
async fn content_types(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for (content_type, expected) in [
        ("text/plain", (415, "unsupported_media_type", None)),
        ("application/x-www-form-urlencoded", (415, "unsupported_media_type", None)),
        ("application/jsonp", (415, "unsupported_media_type", None)),
        ("", (415, "unsupported_media_type", None)),
        ("application/json", OK),
        ("Application/JSON; charset=utf-8", OK),
    ] {
        let asking = app.ask("POST", "/runs").key(&key).bytes(content_type, b"{\"input\":\"Hello\"}");
        check(content_type, &asking.send().await, expected);
    }
    for second in ["text/plain", "application/json"] {
        let asking = app.ask("POST", "/runs").key(&key).bytes("application/json", b"{\"input\":\"Hello\"}");
        check(second, &asking.header("content-type", second).send().await, invalid("Content-Type"));
    }
}

#[testkit::both]
async fn queries(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    app.post("/agents", &key, json!({ "name": "Second" })).await.expect(201);
    let page = app.get("/agents?paginate=true&limit=1", &key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let tampered = format!("{}A{}", &cursor[..9], &cursor[10..]);
    let other = app.full_key().await;
    let other = app.post("/agents", &other, json!({ "name": "Second" })).await.expect(201)["id"].to_string();
    for (path, expected) in [
        ("/runs?limit=0".to_owned(), invalid("limit")),
        ("/runs?limit=-5".to_owned(), invalid("limit")),
        ("/runs?limit=abc".to_owned(), invalid("limit")),
        ("/runs?limit=".to_owned(), invalid("limit")),
        ("/runs?limit=1.0".to_owned(), invalid("limit")),
        ("/runs?limit=99999999999999999999".to_owned(), invalid("limit")),
        ("/runs?limit=101".to_owned(), OK),
        ("/runs?limit=9223372036854775807".to_owned(), OK),
        ("/agents?paginate=true&limit=100".to_owned(), OK),
        ("/agents?paginate=true&limit=101".to_owned(), invalid("limit")),
        ("/agents?paginate=true&limit=0".to_owned(), invalid("limit")),
        ("/agents?limit=100".to_owned(), OK),
        ("/agents?limit=101".to_owned(), invalid("limit")),
        ("/agents?paginate=true&limit=%2B5".to_owned(), invalid("limit")),
        ("/runs?limit=05".to_owned(), invalid("limit")),
        ("/runs?agent_id=%2B1".to_owned(), invalid("agent_id")),
        ("/runs?agent_id=01".to_owned(), invalid("agent_id")),
        ("/runs?agent_id=1.0".to_owned(), invalid("agent_id")),
        ("/agents?paginate=yes".to_owned(), invalid("paginate")),
        ("/billing/executions?offset=-1".to_owned(), invalid("offset")),
        ("/billing/executions?offset=x".to_owned(), invalid("offset")),
        ("/billing/executions?offset=9223372036854775807".to_owned(), OK),
        ("/billing/executions?starting_after=garbage".to_owned(), OK),
        ("/runs?starting_after=garbage".to_owned(), invalid("starting_after")),
        ("/runs?starting_after=".to_owned(), invalid("starting_after")),
        ("/runs?starting_after=run_00000000000000000000000000".to_owned(), OK),
        (format!("/runs?starting_after={cursor}"), invalid("starting_after")),
        (format!("/agents?paginate=true&starting_after={cursor}"), OK),
        (format!("/agents?starting_after={cursor}"), OK),
        (format!("/agents?paginate=true&starting_after={tampered}"), invalid("starting_after")),
        (format!("/agents?paginate=true&status=active&starting_after={cursor}"), invalid("starting_after")),
        (format!("/billing/energy/ledger?starting_after={cursor}"), invalid("starting_after")),
        (format!("/billing/invoices?paginate=true&starting_after={cursor}"), invalid("starting_after")),
        (format!("/agents?starting_after={other}"), invalid("starting_after")),
        ("/agents?starting_after=".to_owned(), invalid("starting_after")),
        (format!("/agents?starting_after={}", "x".repeat(1500)), invalid("starting_after")),
        ("/runs?status=sleeping".to_owned(), invalid("status")),
        ("/runs?agent_id=abc".to_owned(), invalid("agent_id")),
        ("/runs?agent_id=-1".to_owned(), OK),
        (format!("/runs?conversation_id={}", "x".repeat(129)), invalid("conversation_id")),
        ("/billing/usage?from=2026-13-01".to_owned(), invalid("from")),
        ("/billing/usage?from=2026-01-02&to=2026-01-01".to_owned(), invalid("from")),
        ("/billing/usage?from=2025-01-01&to=2026-01-01".to_owned(), invalid("to")),
        ("/billing/usage?from=%2B262142-01-01".to_owned(), invalid("from")),
        ("/billing/usage?group_by=planet".to_owned(), invalid("group_by")),
        ("/runs?conversation_id=%00".to_owned(), invalid("conversation_id")),
        ("/runs?unknown=%00".to_owned(), invalid("unknown")),
        ("/runs?%00=x".to_owned(), invalid("query")),
        ("/runs?conversation_id=%ff".to_owned(), OK),
        ("/runs?conversation_id=%zz&=&&".to_owned(), OK),
        ("/runs?conversation_id=%zz&=&&a=b=c&%".to_owned(), invalid("a")),
        ("/runs?unknown=1".to_owned(), invalid("unknown")),
        ("/runs?agentid=1".to_owned(), invalid("agentid")),
        ("/runs?limit[x]=1".to_owned(), invalid("limit[x]")),
        (format!("/runs?{}", (0..300).map(|name| format!("n{name}&")).collect::<String>()), invalid("n0")),
        // The last of several counts.
        ("/runs?limit=5&limit=abc".to_owned(), invalid("limit")),
        ("/runs?limit=abc&limit=5".to_owned(), OK),
        ("/runs?status=queued&status=sleeping".to_owned(), invalid("status")),
    ] {
        check(&path, &app.get(&path, &key).await, expected);
    }
}

#[testkit::both]
async fn ids_of_others(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let Foreign { key: owner, agent, run, execution, invoice } = Foreign::new(&app).await;
    let workspace = owner.workspace;
    let patch = Some(json!({ "name": "Mine" }));
    for (method, path, body) in [
        ("GET", format!("/agents/{agent}"), None),
        ("PATCH", format!("/agents/{agent}"), patch.clone()),
        ("DELETE", format!("/agents/{agent}"), None),
        ("POST", format!("/agents/{agent}/duplicate"), Some(json!({}))),
        ("POST", format!("/agents/{agent}/deactivate"), None),
        ("PUT", format!("/agents/{agent}/default"), None),
        ("PUT", format!("/agents/{agent}/skills"), Some(json!({ "skills": [] }))),
        ("GET", format!("/agents/{agent}/tools"), None),
        ("GET", format!("/agents/{agent}/versions"), None),
        ("GET", format!("/agents/{agent}/versions/1"), None),
        ("POST", format!("/agents/{agent}/versions/1/restore"), None),
        ("GET", format!("/agents/{agent}/usage"), None),
        ("GET", format!("/runs/{run}"), None),
        ("GET", format!("/billing/executions/{execution}"), None),
        ("GET", format!("/billing/invoices/{invoice}"), None),
    ] {
        let send = |key: Key| {
            let asking = app.ask(method, &path).key(&key);
            let asking = if let Some(body) = &body { asking.json(body) } else { asking };
            asking.send()
        };
        check(&path, &send(key.clone()).await, NOT_FOUND);
        if method == "GET" {
            check(&path, &send(owner.clone()).await, OK);
        }
    }
    let body = json!({ "input": "Hello", "agent_id": agent.parse::<i64>().unwrap() });
    let answer = app.post("/runs", &key, body.clone()).await;
    check("a run of a foreign agent", &answer, (404, "not_found", Some("agent_id")));
    let answer = app.post(&format!("/workspaces/{workspace}/runs"), &key, body).await;
    check("a run in a foreign workspace", &answer, NO_WORKSPACE);
    let answer = app.get("/billing/invoices?starting_after=in_1", &key).await;
    check("a foreign invoice as cursor", &answer, invalid("starting_after"));
    let runs: Value = app.get(&format!("/runs?starting_after={run}"), &key).await.expect(200);
    assert_eq!(runs, json!([]));
}
