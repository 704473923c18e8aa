//! `kill -9` in the middle of a run, with the real program: what was paid for is neither lost nor paid twice.

use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{KeyId, Timestamp, WorkspaceId};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use store::schema::{energy_holds, idempotency_keys, jobs, runs};
use store::{Backend, Db};
use testkit::{Answer, Client, Key, OpenAiServer, TestDb, until};

/// The program, told where its database, its model and its port are.
pub fn program(data: &TestDb, folder: &Path, model: &OpenAiServer, listen: &str) -> Command {
    let database = match &data.backend {
        Backend::Sqlite(path) => format!("sqlite:{path}"),
        Backend::Postgres(url) => url.clone(),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc"));
    command.env("SVC_DATABASE_URL", database).env("SVC_DATA_DIR", folder).env("SVC_LISTEN", listen);
    for tier in ["FAST", "BALANCED", "ADVANCED"] {
        command.env(format!("SVC_MODEL_{tier}"), "openai:x");
    }
    command.env("SVC_OPENAI_BASE_URL", model.base_url()).env("SVC_LOG", "warn").stdin(Stdio::null());
    command
}

/// A command's JSON.
pub fn output(mut command: Command, arguments: &[&str]) -> Value {
    let output = command.args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A serving process, killed when dropped.
pub struct Serving(Child);

impl Serving {
    pub async fn start(mut command: Command, client: &Client) -> Self {
        let serving = Self(command.arg("serve").stdout(Stdio::null()).spawn().unwrap());
        until("the service listens", async || client.ask("GET", "/me").try_send().await.ok()).await;
        serving
    }

    /// `SIGTERM`: what goes on is finished.
    async fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let status = until("the service stops", async || self.0.try_wait().unwrap()).await;
        assert!(status.success(), "{status}");
    }

    /// `SIGKILL`: nothing is flushed, nobody is told.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The leases last 30 seconds of the machine's time: to the next process it looks as if they had passed.
async fn let_leases_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        let runs = diesel::update(runs::table).set(runs::lease_until.eq(past)).execute(tx.connection())?;
        let claims = diesel::update(idempotency_keys::table)
            .set(idempotency_keys::lease_until.eq(past))
            .execute(tx.connection())?;
        // The kill may have hit a job too, such as the one that looks for silent runs.
        diesel::update(jobs::table.filter(jobs::lease_until.is_not_null()))
            .set(jobs::lease_until.eq(past))
            .execute(tx.connection())?;
        Ok((runs, claims))
    });
    assert_eq!(ended.await.unwrap(), (1, 1), "one run and one claim");
}

/// A live key of a fresh workspace with Energy, made on the command line.
fn new_key(svc: impl Fn() -> Command) -> Key {
    let workspace = output(svc(), &["workspace", "create", "--name", "Killed"])["id"].to_string();
    output(svc(), &["plan", "set", "--workspace", &workspace, "--plan", "scale"]);
    output(svc(), &["energy", "grant", "--workspace", "killed", "--amount", "1000000"]);
    let scopes = "agents:write,agents:read,runs:execute,runs:read,billing:read";
    let made =
        output(svc(), &["key", "create", "--workspace", &workspace, "--env", "live", "--scopes", scopes]);
    Key {
        secret: made["secret"].as_str().unwrap().to_owned(),
        id: KeyId::parse(made["id"].as_str().unwrap()).unwrap(),
        workspace: WorkspaceId(workspace.parse().unwrap()),
    }
}

/// The states of all holds.
async fn holds(db: &Db) -> Vec<String> {
    let states =
        db.read(|read| Ok(energy_holds::table.select(energy_holds::state).load(read.connection())?));
    states.await.unwrap()
}

testkit::on_both! {
    async fn a_killed_run_is_resumed_and_paid_once(kind: Kind) {
        let data = TestDb::new(kind);
        let folder = tempfile::tempdir().unwrap();
        let model = OpenAiServer::start().await;
        // Free at this moment; whoever takes it before us makes the test fail, not pass.
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let svc = || program(&data, folder.path(), &model, &listen);
        let client = Client::new(&format!("http://{listen}"));

        let key = new_key(svc);
        let get = async |path: &str| -> Answer { client.ask("GET", path).key(&key).send().await };
        let run = || {
            let body = json!({ "input": "Hello" });
            client.ask("POST", "/runs").key(&key).header("idempotency-key", "once").json(&body).try_send()
        };

        let first = Serving::start(svc(), &client).await;
        let agent = json!({ "name": "Assistant", "status": "active" });
        client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
        model.then_silence();
        let kill = async {
            until("the model is asked", async || (model.requests() == 1).then_some(())).await;
            assert_eq!(holds(&data.db).await, ["open"]);
            first.kill();
        };
        let (unanswered, ()) = tokio::join!(run(), kill);
        assert!(unanswered.is_err(), "a killed service does not answer");
        let_leases_end(&data.db).await;

        let second = Serving::start(svc(), &client).await;
        let answered = until("the resend is answered", async || match run().await {
            Ok(answer) if answer.body["error"]["code"] == "idempotency_in_progress" => None,
            other => Some(other.unwrap()),
        })
        .await;
        let done = answered.expect(200);
        assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!("ok")));
        let replayed = run().await.unwrap();
        assert_eq!((replayed.status, &replayed.body["data"]), (200, &done));
        assert_eq!(replayed.headers["idempotent-replayed"], "true");

        assert_eq!(model.requests(), 2, "asked again once, because the first answer never came");
        let runs = get("/runs").await.expect(200);
        assert_eq!(runs.as_array().unwrap().len(), 1);
        assert_eq!(runs[0]["id"], done["id"]);
        let ledger = get("/billing/energy/ledger").await.expect(200);
        let debits: Vec<&Value> = ledger.as_array().unwrap().iter().filter(|row| row["type"] == "debit").collect();
        assert_eq!(debits.len(), 1, "{ledger}");
        assert_eq!(debits[0]["run_id"], done["id"]);
        let cost = done["energy"]["amount"].as_i64().unwrap();
        assert!(cost > 0);
        assert_eq!(debits[0]["amount"], -cost);
        let energy = get("/billing/energy").await.expect(200);
        assert_eq!((&energy["available"], &energy["reserved"]), (&json!(1_000_000 - cost), &json!(0)));
        assert_eq!(holds(&data.db).await, ["settled"]);
        drop(second);
    }

    async fn a_stopping_service_finishes_its_runs(kind: Kind) {
        let data = TestDb::new(kind);
        let folder = tempfile::tempdir().unwrap();
        let model = OpenAiServer::start().await;
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let svc = || program(&data, folder.path(), &model, &listen);
        let client = Client::new(&format!("http://{listen}"));
        let key = new_key(svc);
        let serving = Serving::start(svc(), &client).await;
        let agent = json!({ "name": "Assistant", "status": "active" });
        client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
        // The model's server is busy for a second, so the run outlives the HTTP server that took it.
        model.then(503, Some(1), Value::Null);
        let run = json!({ "input": "Hello", "background": true });
        client.ask("POST", "/runs").key(&key).json(&run).send().await.expect(200);
        until("the model is asked", async || (model.requests() == 1).then_some(())).await;
        serving.stop().await;
        assert_eq!(model.requests(), 2);
        let ended = data.db.read(|read| Ok(runs::table.select(runs::status).load::<String>(read.connection())?));
        assert_eq!(ended.await.unwrap(), ["completed"]);
        assert_eq!(holds(&data.db).await, ["settled"]);
    }
}
