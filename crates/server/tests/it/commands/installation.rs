//! What an operator can get wrong about an installation, and what a browser meets at its address.

use testkit::{Kind, Program, Serving, until};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

async fn serving(program: &Program) -> Serving {
    let serving = program.serve().await;
    let client = program.client();
    let ready = || client.ask_beside("GET", "/ready").try_send();
    until("it is ready", async || ready().await.ok().filter(|answer| answer.status == 200)).await;
    serving
}

#[tokio::test]
async fn one_process_serves_a_sqlite_database() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let first = serving(&program).await;
    let elsewhere = Program::address();
    let refused = program.fails_with("SVC_LISTEN", &elsewhere, &["serve"]);
    assert!(refused.contains("another process serves") && refused.contains("SVC_DATA_DIR"), "{refused}");
    // Commands work beside it, and the next one serves as soon as it is gone, however it ended.
    program.run(&["workspace", "list"]);
    first.kill();
    serving(&program).await.stop().await;
}

#[tokio::test]
async fn several_processes_serve_a_postgresql_database() {
    let program = Program::new(Kind::Postgres, SVC).await;
    let first = serving(&program).await;
    let second = program.serve_at(&Program::address()).await;
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn a_secret_key_that_is_missing_is_not_made_anew() {
    let program = Program::new(Kind::Sqlite, SVC).await.with("SVC_SECRET_KEY", "");
    serving(&program).await.stop().await;
    let path = program.data_dir().join("secret.key");
    let key = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let refused = program.fails(&["serve"]);
    assert!(refused.contains(path.to_str().unwrap()) && refused.contains("missing"), "{refused}");
    assert!(!path.exists());
    std::fs::write(&path, key).unwrap();
    serving(&program).await.stop().await;
}

#[tokio::test]
async fn settings_that_are_none_are_named() {
    let program =
        Program::new(Kind::Sqlite, SVC).await.with("SVC_LISTENS", "127.0.0.1:1").with("SVC_WHATEVER", "x");
    let output = program.command().args(["doctor", "--json"]).output().unwrap();
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let settings = findings.iter().find(|finding| finding["check"] == "settings").unwrap();
    assert_eq!(settings["status"], "warn");
    assert_eq!(
        settings["message"],
        "SVC_LISTENS is no setting. Did you mean SVC_LISTEN? SVC_WHATEVER is no setting."
    );
    let refused = program.fails_with("SVC_BASE_URL", "https://svc.example/api/v1", &["workspace", "list"]);
    assert!(refused.contains("write https://svc.example"), "{refused}");
    // Nothing of it keeps the service from starting.
    serving(&program).await.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_opened_are_named() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let folder = program.data_dir().to_str().unwrap();
    let database = format!("sqlite:{folder}");
    for command in [&["serve"] as &[&str], &["workspace", "list"], &["migrate"]] {
        let refused = program.fails_with("SVC_DATABASE_URL", &database, command);
        assert!(refused.contains(folder), "{command:?}: {refused}");
    }
    let files = program.data_dir().join("files");
    std::fs::write(&files, "no folder").unwrap();
    let refused = program.fails(&["serve"]);
    assert!(refused.contains(files.to_str().unwrap()), "{refused}");
}

#[tokio::test]
async fn browsers_may_call_from_the_origins_that_are_listed() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let key = program.key("agents:read");
    let client = program.client();
    let preflight = async |origin: &str| {
        let asking = client.ask("OPTIONS", "/agents").header("origin", origin);
        let asking = asking.header("access-control-request-method", "POST");
        asking.header("access-control-request-headers", "authorization,idempotency-key").send().await
    };
    let allowed = "https://app.example.com";
    let first = program.serve().await;
    assert!(!preflight(allowed).await.headers.contains_key("access-control-allow-origin"), "off by default");
    first.stop().await;

    let program = program.with("SVC_CORS_ORIGINS", "https://app.example.com,http://localhost:5173");
    let second = program.serve().await;
    let answer = preflight(allowed).await;
    assert_eq!((answer.status, answer.headers["access-control-allow-origin"].as_str()), (200, allowed));
    assert!(answer.headers["access-control-allow-methods"].contains("POST"));
    let headers = answer.headers["access-control-allow-headers"].to_lowercase();
    assert!(headers.contains("authorization") && headers.contains("idempotency-key"), "{headers}");
    let get = client.ask("GET", "/agents").key(&key).header("origin", allowed).send().await;
    get.expect(200);
    assert_eq!(get.headers["access-control-allow-origin"], allowed);
    assert!(!get.headers.contains_key("access-control-allow-credentials"), "there are no cookies");
    // An error can be read as well, and its request id with it.
    let refused = client.ask("GET", "/agents").header("origin", allowed).send().await;
    refused.expect_error(401, "missing_api_key");
    assert_eq!(refused.headers["access-control-allow-origin"], allowed);
    assert!(
        refused.headers["access-control-expose-headers"].contains('*')
            || refused.headers["access-control-expose-headers"].contains("x-request-id")
    );
    // A page of another origin reads nothing, and a program without an origin is served as before.
    let stranger =
        client.ask("GET", "/agents").key(&key).header("origin", "https://evil.example").send().await;
    assert!(!stranger.headers.contains_key("access-control-allow-origin"));
    client.ask("GET", "/agents").key(&key).send().await.expect(200);
    second.stop().await;
}

#[tokio::test]
async fn the_address_itself_is_a_page() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let (demo, _) = program.serve_demo().await;
    let page = program.client().ask_beside("GET", "/").send().await;
    assert_eq!((page.status, page.headers["content-type"].as_str()), (200, "text/html; charset=utf-8"));
    for part in ["<h1>Agent automation service</h1>", "href=\"/docs/\"", ">Chat</a>", "openapi.public.json"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.text.contains("<!--"), "{}", page.text);
    demo.stop().await;
    let plain = program.serve().await;
    let page = program.client().ask_beside("GET", "/").send().await;
    assert!(page.status == 200 && !page.text.contains(">Chat</a>"), "{}", page.text);
    plain.stop().await;
}
