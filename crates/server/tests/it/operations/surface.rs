//! What surrounds the operations: the request log, the published documents, the reference page, health.

use auth::RateWindows;
use auth::schema::idempotency_keys;
use chrono::Duration;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{Env, Timestamp};
use operation::schema::request_logs;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::Db;
use testkit::{Answer, Kind, TestApp, TestDb};

/// A row of the request log: every column.
type Row = (
    (String, Timestamp, Option<i64>, Option<String>, Option<String>, String, String, i64),
    (Option<String>, Option<String>, Option<bool>, i64, i64, bool, Option<String>),
);

async fn logged(db: &Db) -> Vec<Row> {
    use request_logs as l;
    db.read(|read| {
        Ok(l::table
            .order(l::id.asc())
            .select((
                (
                    l::id,
                    l::created_at,
                    l::workspace_id,
                    l::key_id,
                    l::operation,
                    l::method,
                    l::path,
                    l::status,
                ),
                (l::code, l::gate, l::livemode, l::latency_us, l::energy, l::replayed, l::client_request_id),
            ))
            .load(read.connection())?)
    })
    .await
    .unwrap()
}

/// Adds 2,500 rows and 2,500 outcomes.
async fn many_rows(data: &TestDb) -> Db {
    let now = data.db.now();
    let added = data.db.write(move |tx| {
        for number in 0..2_500 {
            diesel::insert_into(request_logs::table)
                .values((
                    request_logs::id.eq(format!("req_{number}")),
                    request_logs::created_at.eq(now),
                    request_logs::method.eq("GET"),
                    request_logs::path.eq("/me"),
                    request_logs::status.eq(200),
                    request_logs::latency_us.eq(1),
                    request_logs::energy.eq(0),
                    request_logs::replayed.eq(false),
                ))
                .execute(tx.connection())?;
            diesel::insert_into(idempotency_keys::table)
                .values((
                    idempotency_keys::lineage_id.eq("key_x"),
                    idempotency_keys::key.eq(number.to_string()),
                    idempotency_keys::fingerprint.eq(vec![0; 32]),
                    idempotency_keys::request_id.eq("req_x"),
                    idempotency_keys::state.eq("done"),
                    idempotency_keys::fence.eq(1),
                    idempotency_keys::lease_until.eq(now),
                    idempotency_keys::expires_at.eq(now.plus_seconds(24 * 3600 + number / 1_000)),
                ))
                .execute(tx.connection())?;
        }
        Ok(())
    });
    added.await.unwrap();
    data.db.clone()
}

/// What requests contain and the log must not.
const HIDDEN: [&str; 4] =
    ["hidden-in-the-body", "hidden-in-the-key", "hidden-in-the-query", "hidden-in-the-header"];

/// `GET` outside `/api/v1`.
async fn get(app: &TestApp, path: &str, headers: &str) -> Answer {
    app.raw(format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n").as_bytes()).await
}

#[testkit::both]
async fn every_request_leaves_a_row_without_secrets(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, Env::Live, &["runs:read", "runs:execute"]).await;
    app.model.usage(100, 50);
    let mut answers = Vec::new();
    let secret = json!({ "input": HIDDEN[0] });
    let run = || app.ask("POST", "/runs").key(&key).header("idempotency-key", HIDDEN[1]);
    answers.push(run().header("x-client-request-id", "mine-1").json(&secret).send().await);
    answers.push(run().header("x-client-request-id", "two words").json(&secret).send().await);
    answers.push(app.get(&format!("/agents?note={}", HIDDEN[2]), &key).await);
    answers.push(app.get("/nowhere", &key).await);
    answers.push(app.ask("DELETE", "/runs").key(&key).send().await);
    answers
        .push(app.ask("GET", "/me").header("authorization", &format!("Bearer {}", HIDDEN[3])).send().await);
    answers.push(app.post("/runs", &key, json!({ "input": "" })).await);
    let test_key = app.key(workspace, Env::Test, &["runs:read"]).await;
    answers.push(app.get("/me", &test_key).await);
    let data = app.stop().await;
    let rows = logged(&data.db).await;
    let rows: Vec<&Row> = answers
        .iter()
        .map(|answer| rows.iter().find(|row| row.0.0 == answer.headers["x-request-id"]).expect("a row"))
        .collect();

    let short: Vec<Value> = rows
        .iter()
        .map(
            |(
                (_, _, at, _, operation, method, path, status),
                (code, gate, live, _, energy, replayed, client),
            )| {
                json!([
                    at.is_some(),
                    operation,
                    method,
                    path,
                    status,
                    code,
                    gate,
                    live,
                    energy,
                    replayed,
                    client
                ])
            },
        )
        .collect();
    assert_eq!(
        json!(short),
        json!([
            [true, "createRun", "POST", "/runs", 200, null, null, true, 2, false, "mine-1"],
            [true, "createRun", "POST", "/runs", 200, null, null, true, 0, true, null],
            [true, "listAgents", "GET", "/agents", 403, "missing_scope", "scope", true, 0, false, null],
            [false, null, "GET", "/nowhere", 404, "route_not_found", "route", true, 0, false, null],
            [false, null, "DELETE", "/runs", 405, "method_not_allowed", "route", true, 0, false, null],
            [false, null, "GET", "/me", 401, "invalid_api_key", "credential", null, 0, false, null],
            [true, "createRun", "POST", "/runs", 400, "validation_error", "body", true, 0, false, null],
            [true, "getMe", "GET", "/me", 200, null, null, false, 0, false, null],
        ])
    );
    for row in &rows {
        assert!(row.1.3 >= 0);
        assert_eq!(row.0.1, Timestamp::parse("2026-01-15T12:00:00Z").unwrap());
        assert_eq!(row.0.3.is_some(), row.1.1.as_deref() != Some("credential"), "the key's id");
        let text = format!("{row:?}");
        let tail = &key.secret[9..];
        for hidden in HIDDEN.into_iter().chain([tail, &tail[..12], &test_key.secret[9..]]) {
            testkit::assert_absent(&text, hidden);
        }
    }
}

#[testkit::both]
async fn what_is_remembered_is_logged_like_the_first(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ask = || {
        let new = json!({ "name": "Assistant" });
        app.ask("POST", "/agents").key(&key).header("idempotency-key", "once").json(&new).send()
    };
    let answers = [ask().await, ask().await];
    for answer in &answers {
        assert_eq!((answer.status, &answer.body["error"]["code"]), (409, &json!("duplicate_value")));
    }
    let rows = logged(&app.stop().await.db).await;
    let answered = answers.map(|answer| {
        let row = rows.iter().find(|row| row.0.0 == answer.headers["x-request-id"]).expect("a row");
        (row.0.7, row.1.0.clone().unwrap(), row.1.1.clone().unwrap(), row.1.5)
    });
    let row = |gate: &str, replayed| (409, "duplicate_value".to_owned(), gate.to_owned(), replayed);
    assert_eq!(answered, [row("operation", false), row("idempotency", true)]);
}

#[testkit::both]
async fn rows_and_outcomes_are_kept_as_long_as_promised(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let made = app.ask("POST", "/agents").key(&key).header("idempotency-key", "once");
    made.json(&json!({ "name": "Second" })).send().await.expect(201);
    // More than one transaction deletes.
    let data = app.stop().await;
    let many = many_rows(&data).await;
    let app = TestApp::start(data, many, RateWindows::local(), None).await;
    let left = async || {
        let outcomes =
            app.db().read(|read| Ok(idempotency_keys::table.count().get_result::<i64>(read.connection())?));
        (logged(app.db()).await.len(), outcomes.await.unwrap())
    };
    let (rows, outcomes) = left().await;
    assert!(rows > 2_500 && outcomes == 2_501, "{rows} {outcomes}");
    app.data.clock.advance(Duration::hours(23));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(left().await, (rows, outcomes));
    app.data.clock.advance(Duration::hours(2));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(left().await, (rows, 0));
    app.data.clock.advance(Duration::days(29));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(left().await.0, 0);
}

#[testkit::both]
async fn secrets_are_nowhere_in_the_database(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let agent = app.get("/agents", &key).await.expect(200)[0]["id"].to_string();
    let tool = json!({
        "type": "http",
        "description": "Looks something up.",
        "http": { "url": "https://example.com/", "headers": { "authorization": "Bearer hidden-in-the-tool" } },
    });
    let shown = app.put(&format!("/agents/{agent}/tools/look_up"), &key, tool).await;
    shown.expect(200);
    testkit::assert_absent(&shown.text, "hidden-in-the-tool");
    let (backend, stored) = (app.data.backend.clone(), app.stop().await);
    // What PostgreSQL writes is not ours to read; SQLite's file shows that nothing is stored as it came.
    if let store::Backend::Sqlite(path) = backend {
        stored.db.tidy().await.unwrap();
        for file in [path.clone(), format!("{path}-wal")] {
            let bytes = std::fs::read(file).unwrap_or_default();
            for secret in [&key.secret[9..], "hidden-in-the-tool"] {
                assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
            }
        }
    }
}

#[tokio::test]
async fn documents_are_public_and_cacheable() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    for name in ["openapi.public.json", "openapi.partner.json"] {
        let path = format!("/api/v1/{name}");
        let first = get(&app, &path, "").await;
        assert_eq!(first.status, 200);
        assert_eq!(first.headers["content-type"], "application/json");
        assert_eq!(first.body["openapi"], "3.1.0");
        let etag = first.headers["etag"].clone();
        for known in [etag.clone(), format!("W/{etag}"), format!("\"other\", {etag}"), "*".to_owned()] {
            let again = get(&app, &path, &format!("if-none-match: {known}\r\n")).await;
            assert_eq!((again.status, again.text.as_str()), (304, ""), "{known}");
            assert_eq!(again.headers["etag"], etag);
        }
        assert_eq!(get(&app, &path, "if-none-match: \"other\"\r\n").await.status, 200);
        // Compressed, it is another representation, with a tag of its own.
        let zipped = get(&app, &path, "accept-encoding: br, gzip;q=0.8\r\n").await;
        assert_eq!((zipped.status, zipped.headers["content-encoding"].as_str()), (200, "gzip"));
        let length: usize = zipped.headers["content-length"].parse().unwrap();
        assert!(length < first.text.len(), "{length}");
        let known = format!("accept-encoding: gzip\r\nif-none-match: {}\r\n", zipped.headers["etag"]);
        assert_eq!(get(&app, &path, &known).await.status, 304);
        assert_ne!(zipped.headers["etag"], etag);
        for plain in ["accept-encoding: gzip;q=0\r\n", "accept-encoding: identity\r\n"] {
            let answer = get(&app, &path, plain).await;
            assert_eq!((answer.headers.get("content-encoding"), &answer.headers["etag"]), (None, &etag));
        }
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    let mut seen = BTreeSet::new();
    for (method, path) in [
        ("GET", "/api/v1/openapi.public.json"),
        ("GET", "/api/v1/openapi.partner.json"),
        ("POST", "/api/v1/openapi.public.json"),
        ("GET", "/health"),
        ("POST", "/health"),
        ("GET", "/docs"),
        ("GET", "/docs/"),
        ("GET", "/docs/nothing.js"),
        ("GET", "/d/nothing"),
        ("GET", "/f/nothing"),
        ("POST", "/hooks/nothing"),
        ("GET", "/"),
        ("GET", "/somewhere"),
        ("GET", "/api/v1/me"),
    ] {
        let answer = app.ask_beside(method, path).send().await;
        let id = answer.headers.get("x-request-id").unwrap_or_else(|| panic!("{method} {path}"));
        assert!(id.starts_with("req_") && seen.insert(id.clone()), "{method} {path}: {id}");
    }
}

#[tokio::test]
async fn health_needs_no_key() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    let health = get(&app, "/health", "").await;
    assert_eq!((health.status, &health.body), (200, &json!({ "status": "ok" })));
    let outside = get(&app, "/somewhere", "").await;
    outside.expect_error(404, "route_not_found");
}

#[tokio::test]
async fn the_reference_page_loads_nothing_from_elsewhere() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    let moved = get(&app, "/docs", "").await;
    assert_eq!((moved.status, moved.headers["location"].as_str()), (308, "/docs/"));
    let page = get(&app, "/docs/", "").await;
    assert_eq!((page.status, page.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    let policy = &page.headers["content-security-policy"];
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
    // A source that is neither quoted nor one of these is a host.
    let sources = policy.split("; ").flat_map(|directive| directive.split(' ').skip(1));
    for source in sources {
        assert!(source.starts_with('\'') || ["data:", "blob:"].contains(&source), "{source}");
    }
    let mut files = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        files.extend(page.text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()));
    }
    let published = files.iter().position(|file| *file == "/api/v1/openapi.public.json").unwrap();
    files.remove(published);
    files.retain(|file| *file != "data:,");
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert!(!file.contains('/'), "{file} comes from elsewhere");
        let path = format!("/docs/{file}");
        let answer = get(&app, &path, "").await;
        assert_eq!(answer.status, 200, "{file}");
        assert_eq!(answer.headers["cache-control"], "public, max-age=31536000, immutable");
        assert_eq!(answer.headers["content-security-policy"], *policy);
        assert_eq!(answer.headers.contains_key("content-encoding"), file.ends_with("scalar.js"));
        let known = format!("if-none-match: {}\r\n", answer.headers["etag"]);
        assert_eq!(get(&app, &path, &known).await.status, 304);
        // The address changes with the content, so that no other content is ever stored under it.
        assert_eq!(get(&app, &format!("/docs/x{file}"), "").await.status, 404);
        if file.ends_with("page.js") {
            assert!(
                answer.text.contains("sessionStorage") && !answer.text.contains("://"),
                "{}",
                answer.text
            );
        }
    }
}

#[tokio::test]
async fn the_reference_page_shows_one_table_of_errors_for_each_operation() {
    let app = TestApp::new(testkit::Kind::Sqlite).await;
    let mut operations = 0;
    for name in ["openapi.public.json", "openapi.partner.json"] {
        let published = get(&app, &format!("/api/v1/{name}"), "").await.body;
        let copy = get(&app, &format!("/docs/{name}"), "").await.body;
        assert_eq!(copy["components"]["schemas"], published["components"]["schemas"]);
        for (path, methods) in published["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let shown = &copy["paths"][path][method]["responses"];
                let table = shown["default"]["description"].as_str().unwrap();
                for (status, response) in operation["responses"].as_object().unwrap() {
                    if status.starts_with('2') {
                        assert_eq!(shown[status], *response);
                    } else {
                        assert!(shown[status].is_null(), "{method} {path} {status}");
                        assert!(table.contains(&format!("\n| {status} | ")), "{method} {path}: {table}");
                    }
                }
                assert!(table.contains("| 401 | missing_api_key, invalid_api_key, "), "{table}");
                operations += 1;
            }
        }
    }
    assert!(operations > 0);
}
