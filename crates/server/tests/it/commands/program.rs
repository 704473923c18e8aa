//! The program as its operator meets it: what stops its start, how it stops, and its smaller commands.

use diesel::connection::SimpleConnection;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use store::Backend;
use testkit::{Kind, Program, until};

const BINARY: &str = env!("CARGO_BIN_EXE_svc");
/// 32 bytes, and others.
const ONE_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const ANOTHER_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

#[testkit::both]
async fn another_secret_key_stops_the_start(kind: Kind) {
    let program = Program::new(kind, BINARY).await.with("SVC_SECRET_KEY", ONE_KEY);
    program.serve().await.stop().await;
    let program = program.with("SVC_SECRET_KEY", ANOTHER_KEY);
    let printed = program.fails(&["serve"]);
    assert!(printed.contains("SVC_SECRET_KEY"), "{printed}");
    testkit::assert_absent(&printed, &ANOTHER_KEY[..12]);
    // The one that the secrets were sealed under still starts.
    program.with("SVC_SECRET_KEY", ONE_KEY).serve().await.stop().await;
}

#[testkit::both]
async fn what_goes_on_has_one_deadline(kind: Kind) {
    let program = Program::new(kind, BINARY).await.with("SVC_SHUTDOWN_SECONDS", "4");
    let key = program.key("agents:write,runs:execute");
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    let client = program.client();
    let serving = program.serve().await;
    let agent = json!({ "name": "Assistant", "status": "active" });
    client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    // A request that waits for its run, and a run that nobody waits for: each would use the time up.
    program.model.then_silence();
    program.model.then_silence();
    let run = |background: bool| {
        let body = json!({ "input": "Hello", "background": background });
        client.ask("POST", "/runs").key(&key).json(&body).try_send()
    };
    run(true).await.unwrap().expect(200);
    let stopping = async {
        until("the models are asked", async || (program.model.requests() == 2).then_some(())).await;
        let began = Instant::now();
        serving.stop().await;
        began.elapsed()
    };
    let (_, took) = tokio::join!(run(false), stopping);
    assert!(took >= Duration::from_millis(3_900), "{took:?}");
    // One deadline after the other would take eight seconds.
    assert!(took < Duration::from_millis(7_900), "{took:?}");
}

#[testkit::both]
async fn a_newer_schema_stops_the_program(kind: Kind) {
    let program = Program::new(kind, BINARY).await;
    let newer = program.data.db.write(|tx| {
        let newer = "INSERT INTO __diesel_schema_migrations (version) VALUES ('9999')";
        store::each!(tx.connection(), |connection| connection.batch_execute(newer))?;
        Ok(())
    });
    newer.await.unwrap();
    for command in [&["serve"] as &[&str], &["migrate"], &["workspace", "list"], &["secrets", "rotate"]] {
        let output = program.command().args(command).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.contains("a newer version of svc has migrated this database"),
            "{command:?}: {message}"
        );
        assert_eq!(output.status.code(), Some(1), "{command:?}");
    }
}

#[testkit::both]
async fn migrations_are_listed(kind: Kind) {
    let program = Program::new(kind, BINARY).await;
    // The test's database has them all.
    assert_eq!(program.run(&["migrate"]), json!([]));
}

#[testkit::both]
async fn a_partner_is_made_and_operates_its_clients(kind: Kind) {
    let program = Program::new(kind, BINARY).await;
    let made = program.run(&["partner", "create", "--name", "Agency"]);
    let partner = made["id"].to_string();
    let client = program.run(&["workspace", "create", "--name", "Client"])["id"].to_string();
    program.run(&["plan", "set", "--workspace", &client, "--plan", "scale"]);
    let printed = program.fails(&["workspace", "attribute", &client, "--partner", "999"]);
    assert!(printed.contains("partner"), "{printed}");
    assert_eq!(
        program.run(&["workspace", "attribute", &client, "--partner", &partner])["partner"],
        made["id"]
    );
    assert_eq!(program.run(&["partner", "list"])[0]["workspaces"], 1);
    let create = |partner: &str| {
        ["key", "create", "--partner", partner, "--env", "live", "--scopes", "runs:read"].map(str::to_owned)
    };
    let printed = program.fails(&create("999").each_ref().map(String::as_str));
    assert!(printed.contains("not the id of a partner"), "{printed}");
    let secret = program.run(&create(&partner).each_ref().map(String::as_str))["secret"].clone();

    let _serving = program.serve().await;
    let bearer = format!("Bearer {}", secret.as_str().unwrap());
    let http = program.client();
    let me = || http.ask("GET", "/me").header("authorization", &bearer).send();
    assert_eq!(me().await.expect(200)["workspace"]["id"].to_string(), client);
    program.run(&["workspace", "attribute", &client, "--none"]);
    assert_eq!(program.run(&["partner", "list"])[0]["workspaces"], 0);
    until("the key notices", async || (me().await.status != 200).then_some(())).await;
}

#[tokio::test]
async fn postgres_needs_a_secret_key() {
    let program = Program::new(Kind::Postgres, BINARY).await.with("SVC_SECRET_KEY", "");
    let printed = program.fails(&["serve"]);
    assert!(printed.contains("SVC_SECRET_KEY is not set"), "{printed}");
    let Backend::Postgres(_) = &program.data.backend else { panic!("another database") };
}

#[tokio::test]
async fn what_is_set_to_nothing_is_not_set() {
    let program = Program::new(Kind::Sqlite, BINARY).await.with("SVC_REDIS_URL", "").with("SVC_CONFIG", "");
    let serving = program.serve().await;
    let health = program.client().ask_beside("GET", "/health").send().await;
    assert_eq!(health.body, json!({ "status": "ok" }));
    serving.stop().await;
}

#[tokio::test]
async fn settings_that_cannot_be_read_stop_the_start() {
    let program = Program::new(Kind::Sqlite, BINARY).await;
    for (name, value) in
        [("SVC_LOG", "auth=loud"), ("SVC_DEFAULT_RPM", "0"), ("SVC_REDIS_URL", "memcached://x")]
    {
        let printed = program.fails_with(name, value, &["serve"]);
        assert!(printed.contains(name) || printed.contains("default-rpm"), "{name}: {printed}");
    }
}

#[tokio::test]
async fn commands_print_json_and_refuse_numbers_as_slugs() {
    let program = Program::new(Kind::Sqlite, BINARY).await;
    let document: Value = program.run(&["openapi"]);
    assert_eq!(document["openapi"], "3.1.0");
    let printed = program.fails(&["workspace", "create", "--name", "Numbers", "--slug", "12345"]);
    assert!(printed.contains("slug"), "{printed}");
    assert_eq!(
        program.run(&["workspace", "create", "--name", "Numbers", "--slug", "12345a"])["slug"],
        "12345a"
    );
}
