//! `svc doctor`: what is right and what is wrong with an installation.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Kind, Program};

const SVC: &str = env!("CARGO_BIN_EXE_svc");
const ANOTHER_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// The status and the message of each check, and whether the command succeeded.
pub async fn doctor(
    program: &Program,
    settings: &[(&str, &str)],
) -> (BTreeMap<String, (String, String)>, bool) {
    program.model.then(200, None, json!({ "object": "list", "data": [{ "id": "x" }] }));
    let mut command = program.command();
    command.args(["doctor", "--json"]).envs(settings.iter().copied());
    // The model's server is this process, so it must not wait.
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
    let findings =
        rows.iter().map(|row| (text(row, "check"), (text(row, "status"), text(row, "message")))).collect();
    (findings, output.status.success())
}

#[testkit::both]
async fn an_installation_in_order_passes(kind: Kind) {
    let redis = std::env::var("SVC_TEST_REDIS_URL").expect("run tests with `scripts/with-services`");
    let program = Program::new(kind, SVC).await.with("SVC_REDIS_URL", redis);
    let serving = program.serve().await;
    let (findings, is_success) = doctor(&program, &[]).await;
    assert!(is_success, "{findings:?}");
    let wrong: Vec<_> = findings.iter().filter(|(_, (status, _))| status == "fail").collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    for check in ["database", "secret key", "files", "logs", "clock", "redis", "model server", "sandbox"] {
        assert_eq!(findings[check].0, "ok", "{check}: {}", findings[check].1);
    }
    assert!(findings["listen address"].1.contains("running svc"), "{findings:?}");
    serving.stop().await;
    let (findings, _) = doctor(&program, &[]).await;
    assert!(findings["listen address"].1.contains("free"), "{findings:?}");
    let (findings, _) = doctor(&program, &[("SVC_SANDBOX", "off")]).await;
    let expected = "Code of functions and skills is refused: SVC_SANDBOX is off.";
    assert_eq!(findings["sandbox"], ("ok".to_owned(), expected.to_owned()));
}

#[testkit::both]
async fn each_fault_is_found_and_no_secret_shown(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    program.serve().await.stop().await;
    #[cfg(feature = "otlp")]
    let program = program.with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (check, name, value) in [
        ("secret key", "SVC_SECRET_KEY", ANOTHER_KEY),
        ("redis", "SVC_REDIS_URL", "redis://:hunter2-secret@127.0.0.1:1/"),
        ("redis", "SVC_REDIS_URL", "memcached://:hunter2-secret@x"),
        ("database", "SVC_DATABASE_URL", "postgres://x:hunter2-secret@127.0.0.1:1/x"),
        ("embedded model", "SVC_MODEL_FAST", "nonsense"),
        ("model server", "SVC_OPENAI_BASE_URL", "http://127.0.0.1:1/v1"),
        ("outbound", "SVC_ALLOW_OUTBOUND", "10.0.0.0/99"),
        #[cfg(feature = "otlp")]
        ("traces", "OTEL_TRACES_SAMPLER", "nonsense"),
        ("listen address", "SVC_LISTEN", "nonsense"),
        ("listen address", "SVC_LISTEN", &taken),
        ("admin address", "SVC_ADMIN_LISTEN", &taken),
    ] {
        let (findings, is_success) = doctor(&program, &[(name, value)]).await;
        assert!(!is_success, "{name}");
        assert_eq!(findings[check].0, "fail", "{name}={value}: {findings:?}");
        let text = format!("{findings:?}");
        testkit::assert_absent(&text, "hunter2-secret");
        testkit::assert_absent(&text, &ANOTHER_KEY[..12]);
    }
    // The service starts without it.
    let (findings, _) = doctor(&program, &[("SVC_MODEL_FAST", "local")]).await;
    let (status, message) = &findings["embedded model"];
    assert!(status == "warn" && message.contains("model_not_configured"), "{findings:?}");
}

#[tokio::test]
async fn nothing_is_made() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("data");
    let (findings, is_success) = doctor(
        &program,
        &[("SVC_DATA_DIR", absent.to_str().unwrap()), ("SVC_DATABASE_URL", ""), ("SVC_SECRET_KEY", "")],
    )
    .await;
    assert!(is_success, "{findings:?}");
    assert_eq!(findings["database"].0, "warn");
    assert!(!absent.exists());

    // A database without tables stays one.
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    let (findings, _) =
        doctor(&program, &[("SVC_DATABASE_URL", &format!("sqlite:{}", empty.display()))]).await;
    assert!(findings["database"].1.contains("migrations are pending"), "{findings:?}");
    let program = program.with("SVC_DATABASE_URL", format!("sqlite:{}", empty.display()));
    assert!(!program.run(&["migrate"]).as_array().unwrap().is_empty());
}

#[tokio::test]
async fn people_get_a_line_for_each_check() {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let mut command = program.command();
    command.args(["doctor", "--model-file", "/dev/null", "--model-fast", "local"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(
        lines.lines().all(|line| ["ok    ", "warn  ", "fail  "].iter().any(|word| line.starts_with(word))),
        "{lines}"
    );
    assert!(lines.contains("fail  embedded model  /dev/null"), "{lines}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("checks failed"));
}
