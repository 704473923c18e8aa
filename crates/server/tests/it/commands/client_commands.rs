//! The commands that send requests to a service: `svc login`, `svc logout`, `svc api`.

use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testkit::{Key, Kind, Program};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// Somebody who uses a service from a machine of their own, with a configuration folder and nothing set.
struct User {
    home: tempfile::TempDir,
    url: String,
}

impl User {
    fn of(program: &Program) -> Self {
        Self { home: tempfile::tempdir().unwrap(), url: format!("http://{}", program.listen) }
    }

    fn svc(&self, words: &[&str]) -> Command {
        let mut command = Command::new(SVC);
        command.current_dir(self.home.path()).args(words).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SVC_")) {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command
    }

    /// What a command writes to standard output and to standard error. `is_success` is how it must end.
    fn run(&self, words: &[&str], is_success: bool) -> (String, String) {
        outcome(&self.svc(words).output().unwrap(), is_success)
    }

    /// The same with something on standard input.
    fn run_with(&self, words: &[&str], input: &str) -> (String, String) {
        let mut command = self.svc(words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        outcome(&child.wait_with_output().unwrap(), true)
    }

    fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.run(words, true).0).unwrap()
    }

    fn profile(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("config/svc/profiles").join(format!("{name}.toml"))
    }
}

fn outcome(output: &Output, is_success: bool) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.success(), is_success, "{stdout}\n{stderr}");
    (stdout, stderr)
}

async fn installed() -> (Program, Key, User) {
    let program = Program::new(Kind::Sqlite, SVC).await;
    let key = program.key("agents:write,agents:read,runs:execute,runs:read,events:read");
    let user = User::of(&program);
    (program, key, user)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_profile_is_checked_and_stored_for_its_owner_only() {
    let (program, key, user) = installed().await;
    let _serving = program.serve().await;
    let (stdout, stderr) =
        user.run_with(&["login", "--url", &user.url, "--key", "-"], &format!("{}\n", key.secret));
    assert!(stdout.contains("program") && !stdout.contains(&key.secret), "{stdout}");
    assert_eq!(stderr, "");
    let file = user.profile("default");
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert_eq!(user.json(&["api", "get", "me"])["data"]["api_key"]["id"], json!(key.id));

    // What the service rejects is not stored, and the earlier profile stays.
    let invalid = key.secret.replace("svc_live_", "svc_test_");
    let (_, stderr) = user.run(&["login", "--url", &user.url, "--key", &invalid], false);
    assert!(stderr.contains("401") && stderr.contains("nothing was stored"), "{stderr}");
    user.run(&["api", "GET", "/me"], true);

    // A key that may not read `/me` is a key all the same.
    let other = program.run(&[
        "key",
        "create",
        "--workspace",
        &key.workspace.to_string(),
        "--env",
        "live",
        "--scopes",
        "events:read",
    ]);
    let url = format!("{}/api/v1/", user.url);
    user.run(
        &["login", "--profile", "events", "--url", &url, "--key", other["secret"].as_str().unwrap()],
        true,
    );
    user.run(&["api", "--profile", "events", "GET", "/events"], true);
    let (_, stderr) = user.run(&["api", "--profile", "events", "GET", "/me"], false);
    assert!(stderr.contains("the service answered 403"), "{stderr}");

    // A stored key goes to no other service.
    let (_, stderr) = user.run(&["api", "GET", "/me", "--url", "http://127.0.0.1:1"], false);
    assert!(stderr.contains("belongs to another URL"), "{stderr}");

    user.run(&["logout"], true);
    assert!(!file.exists() && user.profile("events").exists());
    let (_, stderr) = user.run(&["api", "GET", "/me"], false);
    assert!(stderr.contains("svc login"), "{stderr}");
    assert!(
        user.svc(&["api", "GET", "/me"])
            .env("SVC_API_KEY", &key.secret)
            .env("SVC_API_URL", &user.url)
            .status()
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn requests_are_sent_and_answers_printed() {
    let (program, key, user) = installed().await;
    let _serving = program.serve().await;
    user.run(&["login", "--url", &user.url, "--key", &key.secret], true);

    let body = json!({ "name": "Assistant", "status": "active" }).to_string();
    let made = user.json(&["api", "POST", "/agents", "-d", &body, "-H", "Idempotency-Key: once"]);
    let replayed = user
        .run(&["api", "-i", "POST", "/api/v1/agents", "-d", &body, "-H", "Idempotency-Key: once"], true)
        .0;
    assert!(
        replayed.starts_with("HTTP 201\n") && replayed.contains("idempotent-replayed: true"),
        "{replayed}"
    );
    assert!(replayed.contains(&made["data"]["id"].to_string()), "{replayed}");

    std::fs::write(user.home.path().join("agent.json"), body.replace("Assistant", "Other")).unwrap();
    user.run(&["api", "POST", "/agents", "--data", "@agent.json"], true);
    let (stdout, _) =
        user.run_with(&["api", "POST", "/agents", "-d", "-"], &body.replace("Assistant", "Third"));
    assert!(stdout.contains("Third"), "{stdout}");
    assert_eq!(user.json(&["api", "GET", "/agents?limit=1"])["data"].as_array().unwrap().len(), 1);
    assert_eq!(user.json(&["api", "GET", "/agents", "-q", "limit=2"])["data"].as_array().unwrap().len(), 2);

    let (stdout, stderr) = user.run(&["api", "-i", "GET", "/agents", "-q", "limit=0"], false);
    assert_eq!(stdout, "");
    assert!(stderr.contains("HTTP 400") && stderr.contains("param: limit"), "{stderr}");
    assert!(!stderr.contains(&key.secret), "{stderr}");
}

#[tokio::test]
async fn events_of_a_stream_are_printed_as_they_come() {
    let (program, key, user) = installed().await;
    let _serving = program.serve().await;
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    user.run(&["login", "--url", &user.url, "--key", &key.secret], true);
    user.run(&["api", "POST", "/agents", "-d", r#"{"name":"Assistant","status":"active"}"#], true);
    let mut command = user.svc(&["api", "POST", "/runs", "-d", r#"{"input":"Hi","stream":true}"#]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let (stdout, _) = outcome(&output, true);
    assert!(stdout.contains("event: ") && stdout.contains("\"ok\""), "{stdout}");
}
