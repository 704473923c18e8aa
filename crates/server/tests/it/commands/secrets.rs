//! `svc secrets rotate`: everything that is sealed opens before, while and after the key is rotated.

use super::app_tokens::refreshed;
use crate::operations::schema::{Tables, actual};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use ring::hmac;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use testkit::{Key, Kind, Program};

const SVC: &str = env!("CARGO_BIN_EXE_svc");
const ONE_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const ANOTHER_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

/// An installation that has sealed something in every table that can hold it.
struct Installation {
    program: Program,
    key: Key,
    agent: String,
    hook: Value,
}

fn tool() -> Value {
    json!({
        "type": "http", "description": "Looks.",
        "http": { "method": "GET", "url": "https://example.com/", "headers": { "X-Api-Key": "hunter2" } },
    })
}

impl Installation {
    /// Serves `program` until everything is made.
    async fn of(program: Program) -> Self {
        let key =
            program.key("agents:write,agents:read,webhooks:manage,events:read,runs:read,variables:write");
        let serving = program.serve().await;
        let client = program.client();
        let post = async |path: &str, body: Value| {
            client
                .ask("POST", path)
                .key(&key)
                .header("idempotency-key", path)
                .json(&body)
                .send()
                .await
                .expect(201)
        };
        let connected = program.run(&[
            "channel",
            "connect",
            "--no-check",
            "--workspace",
            &key.workspace.to_string(),
            "--name",
            "Support",
            "--provider",
            "simulator",
            "--network-url",
            "http://127.0.0.1:9",
            "--number-id",
            "1",
            "--business-id",
            "1",
            "--access-token",
            "a",
            "--app-secret",
            "b",
            "--verify-token",
            "c",
        ]);
        assert_eq!(connected["status"], "connecting");
        let agent = format!(
            "/agents/{}",
            post("/agents", json!({ "name": "Assistant", "status": "active" })).await["id"]
        );
        client.ask("PUT", &format!("{agent}/tools/look")).key(&key).json(&tool()).send().await.expect(200);
        let endpoint = json!({
            "url": "https://example.com/hook", "enabled_events": ["run.*"], "headers": { "X-Token": "hunter3" },
        });
        let endpoint = post("/webhook-endpoints", endpoint).await;
        let rotate = format!("/webhook-endpoints/{}/rotate-secret", endpoint["id"].as_str().unwrap());
        let overlap = json!({ "overlap_seconds": 3600 });
        client.ask("POST", &rotate).key(&key).json(&overlap).send().await.expect(200);
        let hook = json!({
            "name": "In", "verification": { "type": "hmac", "header": "X-Sig", "secrets": ["hunter4"], "signed": "{body}" },
        });
        let hook = post("/inbound-webhooks", hook).await;
        post("/variables", json!({ "key": "api_key", "type": "secret", "value": "hunter5" })).await;
        refreshed(&program, key.workspace).await;
        serving.stop().await;
        Self { key, agent, hook, program }
    }

    /// Everything that was sealed still opens.
    async fn check(&self) {
        let (client, key) = (self.program.client(), &self.key);
        // The response that is stored for an idempotency key.
        let body = json!({ "name": "Assistant", "status": "active" });
        let replayed = client
            .ask("POST", "/agents")
            .key(key)
            .header("idempotency-key", "/agents")
            .json(&body)
            .send()
            .await;
        assert_eq!(replayed.headers["idempotent-replayed"], "true");
        assert_eq!(format!("/agents/{}", replayed.expect(201)["id"]), self.agent);
        // The headers of an endpoint.
        let endpoints = client.ask("GET", "/webhook-endpoints").key(key).send().await.expect(200);
        assert_eq!(endpoints[0]["headers"], json!(["X-Token"]));
        // The URL of an inbound webhook, and its sender's secret.
        let path = format!("/inbound-webhooks/{}", self.hook["id"].as_str().unwrap());
        let hook = client.ask("GET", &path).key(key).send().await.expect(200);
        assert_eq!(hook["url"], self.hook["url"]);
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"hunter4"), b"{}");
        let signature: String = signature.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let url = hook["url"].as_str().unwrap();
        let sent = client.ask_beside("POST", &url[url.find("/hooks/").unwrap()..]);
        let sent = sent.header("x-sig", &signature).bytes("application/json", b"{}").send().await;
        assert!(sent.status < 300, "{}", sent.text);
    }

    /// The headers of a tool open: attaching what is attached already makes no new version of the agent.
    async fn check_tool(&self) {
        let client = self.program.client();
        let version = async || {
            client.ask("GET", &self.agent).key(&self.key).send().await.expect(200)["version"].clone()
        };
        let before = version().await;
        let path = format!("{}/tools/look", self.agent);
        client.ask("PUT", &path).key(&self.key).json(&tool()).send().await.expect(200);
        assert_eq!(version().await, before);
        // So do those in the version, which a restored agent gets.
        let restore = format!("{}/versions/{before}/restore", self.agent);
        client.ask("POST", &restore).key(&self.key).send().await.expect(200);
        let restored = version().await;
        client.ask("PUT", &path).key(&self.key).json(&tool()).send().await.expect(200);
        assert_eq!(version().await, restored);
    }

    /// The columns with values that look sealed.
    async fn sealed_columns(&self) -> BTreeSet<(String, String)> {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            number: i64,
        }
        let count = |read: &mut store::Read| {
            let tables: Tables = actual(read)?;
            let mut found = BTreeSet::new();
            for (table, (columns, _)) in tables {
                let texts =
                    columns.iter().filter_map(|column| column.split_once(" Text").map(|(name, _)| name));
                for column in texts {
                    let sql = format!(
                        "SELECT COUNT(*) AS number FROM {table} \
                         WHERE \"{column}\" LIKE 'v2.________.%' OR \"{column}\" LIKE '%\"v2.________.%'"
                    );
                    if diesel::sql_query(sql).get_result::<Count>(read.connection())?.number > 0 {
                        found.insert((table.clone(), column.to_owned()));
                    }
                }
            }
            Ok(found)
        };
        self.program.data.db.read(count).await.unwrap()
    }
}

fn declared() -> BTreeSet<(String, String)> {
    let columns = |sealed: &'static auth::SealedTable| {
        sealed.columns.iter().map(|column| (sealed.table.to_owned(), (*column).to_owned()))
    };
    server::sealed_tables().unwrap().into_iter().flat_map(columns).collect()
}

/// Rotates, and gives how many values were sealed anew and how many are unreadable.
fn rotate(program: &Program, wait: &str) -> (i64, i64) {
    let rows = program.run(&["secrets", "rotate", "--wait", wait]);
    let sum = |name: &str| rows.as_array().unwrap().iter().map(|row| row[name].as_i64().unwrap()).sum();
    (sum("resealed"), sum("unreadable"))
}

/// Seals in every table: outcomes of three requests, a tool, two versions that have it, an endpoint's two secrets and
/// headers, a webhook's token and secrets, a channel's credentials.
const LEAST_SEALED: i64 = 10;

#[testkit::both]
async fn the_key_is_rotated_while_the_service_runs(kind: Kind) {
    let program = Program::new(kind, SVC).await.with("SVC_SECRET_KEY", ONE_KEY);
    let mut installation = Installation::of(program).await;
    assert_eq!(installation.sealed_columns().await, declared());
    let alone = installation.program.fails(&["secrets", "rotate"]);
    assert!(alone.contains("SVC_SECRET_KEY_PREVIOUS"), "{alone}");

    // All replicas get both keys. Until the rotation the old one seals, so that none is left behind.
    installation.program =
        installation.program.with("SVC_SECRET_KEY", ANOTHER_KEY).with("SVC_SECRET_KEY_PREVIOUS", ONE_KEY);
    let serving = installation.program.serve().await;
    installation.check().await;
    let (resealed, unreadable) = rotate(&installation.program, "5");
    assert!(resealed >= LEAST_SEALED && unreadable == 0, "{resealed} {unreadable}");
    installation.check().await;
    // What was sealed since then is sealed under the new key.
    let other = json!({ "name": "Other" });
    let (client, key) = (installation.program.client(), &installation.key);
    let sent = client.ask("POST", "/agents").key(key).header("idempotency-key", "other").json(&other).send();
    sent.await.expect(201);
    assert_eq!(rotate(&installation.program, "0"), (0, 0));
    serving.stop().await;

    installation.program = installation.program.with("SVC_SECRET_KEY_PREVIOUS", "");
    let serving = installation.program.serve().await;
    installation.check().await;
    installation.check_tool().await;
    serving.stop().await;
    let stderr = installation.program.fails_with("SVC_SECRET_KEY", ONE_KEY, &["serve"]);
    assert!(stderr.contains("SVC_SECRET_KEY"), "{stderr}");
    testkit::assert_absent(&stderr, &ONE_KEY[..12]);
}

#[testkit::both]
async fn a_rotation_that_was_killed_is_resumed(kind: Kind) {
    let program = Program::new(kind, SVC).await.with("SVC_SECRET_KEY", ONE_KEY);
    let mut installation = Installation::of(program).await;
    installation.program =
        installation.program.with("SVC_SECRET_KEY", ANOTHER_KEY).with("SVC_SECRET_KEY_PREVIOUS", ONE_KEY);
    kill_while_waiting(&installation.program, "encrypt under the new key");
    // The new key alone does not do: values are sealed under the old one.
    let stderr = installation.program.fails_with("SVC_SECRET_KEY_PREVIOUS", "", &["serve"]);
    assert!(stderr.contains("has not ended"), "{stderr}");
    let serving = installation.program.serve().await;
    installation.check().await;
    serving.stop().await;
    assert!(rotate(&installation.program, "0").0 >= LEAST_SEALED);
    installation.program = installation.program.with("SVC_SECRET_KEY_PREVIOUS", "");
    let _serving = installation.program.serve().await;
    installation.check().await;
    installation.check_tool().await;
}

/// Begins a rotation and kills it while it waits.
fn kill_while_waiting(program: &Program, until: &str) {
    let mut command = program.command();
    let mut rotating =
        command.args(["secrets", "rotate", "--wait", "600"]).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(rotating.stderr.take().unwrap()).lines();
    let waits = lines.map_while(Result::ok).any(|line| line.contains(until));
    rotating.kill().unwrap();
    rotating.wait().unwrap();
    assert!(waits, "{until}");
}

#[tokio::test]
async fn the_key_in_the_data_folder_is_replaced() {
    let program = Program::new(Kind::Sqlite, SVC).await.with("SVC_SECRET_KEY", "");
    let (file, previous) =
        (program.data_dir().join("secret.key"), program.data_dir().join("secret.key.previous"));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let installation = Installation::of(program).await;
    let serving = installation.program.serve().await;
    let first = read(&file);

    // Broken off once the files are replaced, and then with the service running.
    kill_while_waiting(&installation.program, "read the new key");
    let second = read(&file);
    assert_eq!(read(&previous), first);
    assert_ne!(first, second);
    for path in [&file, &previous] {
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    installation.check().await;
    assert!(rotate(&installation.program, "5").0 >= LEAST_SEALED);
    assert_eq!(read(&file), second);
    installation.check().await;
    serving.stop().await;

    std::fs::remove_file(&previous).unwrap();
    let serving = installation.program.serve().await;
    installation.check().await;
    installation.check_tool().await;
    serving.stop().await;
    // The next rotation generates another key.
    assert!(rotate(&installation.program, "0").0 >= LEAST_SEALED);
    assert_eq!(read(&previous), second);
    assert_ne!(read(&file), second);
    let _serving = installation.program.serve().await;
    installation.check().await;
}
