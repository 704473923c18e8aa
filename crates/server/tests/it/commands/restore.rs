//! A restore drill, with the commands of docs/operating.md: a service that is backed up while it works is lost, restored
//! elsewhere, and continues.

use crate::pages::fence;
use ::runs::schema::runs;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{SystemClock, SystemRandom, Timestamp};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use store::schema::jobs;
use store::{Backend, Db, Options};
use testkit::{Delivered, Key, Kind, OpenAiServer, Program, Receiver, tool_call, until};
use webhooks::signing::Signer;

const SCOPES: &str = "agents:read,agents:write,runs:execute,runs:read,collections:read,collections:write,items:read,\
    items:write,webhooks:manage,events:read,billing:read";

/// An installation as the page describes it: on SQLite, everything is in the data folder.
async fn installation(kind: Kind) -> Program {
    let program =
        Program::new(kind, env!("CARGO_BIN_EXE_svc")).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8");
    match kind {
        Kind::Sqlite => program.with("SVC_DATABASE_URL", "").with("SVC_SECRET_KEY", ""),
        Kind::Postgres => program,
    }
}

/// Runs a block of the page on an installation.
async fn follow(program: &Program, step: &str, kind: Kind, backup: &Path) {
    let database = match kind {
        Kind::Sqlite => "SQLite",
        Kind::Postgres => "PostgreSQL",
    };
    let commands = fence::step("docs/operating.md", &format!("{step} {database}"));
    let mut shell = program.shell();
    shell.args(["-euxo", "pipefail", "-c", &commands]).env("BACKUP", backup);
    if let Ok(admin) = std::env::var("SVC_TEST_POSTGRES_URL") {
        shell.env("ADMIN_URL", admin);
    }
    let output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{commands}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The database of an installation, opened beside it.
fn open(program: &Program, kind: Kind) -> Db {
    let backend = match kind {
        Kind::Sqlite => Backend::Sqlite(program.data_dir().join("svc.db").display().to_string()),
        Kind::Postgres => program.data.backend.clone(),
    };
    let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandom::default()));
    Db::open(Options { backend, connections: 1, clock, random }).unwrap()
}

/// Makes room for a database of the name in this installation's settings.
async fn drop_database(program: &Program, kind: Kind) {
    if kind == Kind::Postgres {
        let mut shell = program.shell();
        let drop =
            r#"psql -q "$SVC_TEST_POSTGRES_URL" -c "DROP DATABASE ${SVC_DATABASE_URL##*/} WITH (FORCE)""#;
        shell.args(["-c", drop]);
        assert!(tokio::task::spawn_blocking(move || shell.status().unwrap()).await.unwrap().success());
    }
}

/// The leases of workers last 30 seconds of the machine's time: to the next process it looks as if they had passed.
async fn let_leases_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        diesel::update(jobs::table.filter(jobs::lease_until.is_not_null()))
            .set(jobs::lease_until.eq(past))
            .execute(tx.connection())?;
        let running = runs::table.filter(runs::status.eq("in_progress"));
        Ok(diesel::update(running).set(runs::lease_until.eq(past)).execute(tx.connection())?)
    });
    assert_eq!(ended.await.unwrap(), 1, "one run was executing when the backup was made");
}

/// What was in the service when it was backed up.
struct Contents {
    key: Key,
    item: Value,
    import: Value,
    endpoint: Value,
    run: String,
    events: Vec<Value>,
}

/// Speaks to an installation.
struct Caller<'a>(&'a Program, &'a Key);

impl Caller<'_> {
    async fn get(&self, path: &str) -> Value {
        self.0.client().ask("GET", path).key(self.1).send().await.expect(200)
    }

    async fn send(&self, method: &str, path: &str, body: Value, status: u16) -> Value {
        self.0.client().ask(method, path).key(self.1).json(&body).send().await.expect(status)
    }

    /// Imports a file and waits for the end.
    async fn import(&self, body: Value) -> Value {
        let import = self.send("POST", "/collections/1/items/import", body, 201).await;
        let path = format!("/collections/1/imports/{}", import["id"].as_str().unwrap());
        let import = until("the import ends", async || {
            Some(self.get(&path).await).filter(|import| import["status"] == "completed")
        });
        import.await
    }

    /// The latest events, newest first.
    async fn events(&self) -> Vec<Value> {
        self.get("/events?limit=100").await.as_array().unwrap().clone()
    }
}

/// Fills a service, and has it work on a run.
async fn fill(program: &Program, tool: &OpenAiServer, receiver: &Receiver) -> Contents {
    let key = program.key(SCOPES);
    let caller = Caller(program, &key);
    let agent = json!({ "name": "Assistant", "status": "active" });
    let agent = caller.send("POST", "/agents", agent, 201).await["id"].to_string();
    let stock = json!({ "type": "http", "description": "Says what is in stock.", "http": {
        "method": "GET", "url": format!("http://{}/stock", tool.address), "headers": { "X-Api-Key": "sealed" } } });
    caller.send("PUT", &format!("/agents/{agent}/tools/stock"), stock, 200).await;
    let endpoint = json!({ "url": receiver.url("/hook"), "enabled_events": ["item.*"] });
    let endpoint = caller.send("POST", "/webhook-endpoints", endpoint, 201).await;
    let fields = json!([{ "field_key": "name", "type": "text", "unique": true }]);
    let products = json!({ "name": "Products", "fields": fields });
    assert_eq!(caller.send("POST", "/collections", products, 201).await["id"], 1);
    let item = json!({ "data": { "name": "Kite" } });
    let item = caller.send("POST", "/collections/1/items", item, 201).await;
    let import = json!({ "content": "name\nBall\nDrum\n", "match_on": ["name"], "emit_events": true });
    let import = caller.import(import).await;
    assert_eq!(import["counts"]["created"], 2, "{import}");
    until("the events are delivered", async || (receiver.count() == 3).then_some(())).await;

    program.model.then_silence();
    let run = json!({ "input": "What is in stock?", "background": true });
    let run = caller.send("POST", "/runs", run, 200).await["id"].as_str().unwrap().to_owned();
    until("the model is asked", async || (program.model.requests() == 1).then_some(())).await;
    let events = caller.events().await;
    Contents { key, item, import, endpoint, run, events }
}

/// Everything that was there is there and works.
async fn check(program: &Program, contents: &Contents, tool: &OpenAiServer, receiver: &Receiver) {
    let Contents { key, item, import, endpoint, run, events } = contents;
    let caller = Caller(program, key);
    assert_eq!(caller.get(&format!("/collections/1/items/{}", item["id"])).await, *item);

    // The run that was executing is resumed. It calls the tool, whose header was encrypted.
    let path = format!("/runs/{run}");
    let ended = until("the run ends", async || {
        Some(caller.get(&path).await).filter(|run| run["status"] != "in_progress")
    });
    let ended = ended.await;
    assert_eq!((&ended["status"], &ended["output"]), (&json!("completed"), &json!("ok")), "{ended}");
    assert!(tool.heads()[0].contains("x-api-key: sealed"), "{:?}", tool.heads());
    assert_eq!(caller.get("/billing/energy").await["reserved"], 0);

    // The file of the import can be read.
    let again = json!({ "file_id": import["file_id"], "match_on": ["name"] });
    assert_eq!(caller.import(again).await["counts"]["unchanged"], 2);

    // A new event follows the old ones, and its delivery is signed with the endpoint's secret.
    caller.send("POST", "/collections/1/items", json!({ "data": { "name": "Yo-yo" } }), 201).await;
    // A delivery whose answer the backup does not have is repeated.
    let is_new = |delivered: &Delivered| delivered.json()["data"]["item"]["data"]["name"] == "Yo-yo";
    let delivered =
        until("the event is delivered", async || receiver.delivered().into_iter().find(is_new)).await;
    let header = |name: &str| delivered.headers[name].clone();
    let signer = Signer::read(endpoint["secret"].as_str().unwrap()).unwrap();
    let body = String::from_utf8(delivered.body.clone()).unwrap();
    let signed = signer.sign(&header("webhook-id"), header("webhook-timestamp").parse().unwrap(), &body);
    assert_eq!(header("webhook-signature"), signed);
    let last =
        |events: &[Value]| events.iter().map(|event| event["sequence"].as_i64().unwrap()).max().unwrap();
    assert!(delivered.json()["sequence"].as_i64().unwrap() > last(events));
    let now = caller.events().await;
    assert!(events.iter().all(|event| now.contains(event)), "{events:?} {now:?}");
}

#[testkit::both]
async fn a_restored_service_continues(kind: Kind) {
    let (tool, receiver) = (OpenAiServer::start().await, Receiver::start().await);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let contents = {
        let program = installation(kind).await;
        let serving = program.serve().await;
        let contents = fill(&program, &tool, &receiver).await;
        follow(&program, "back up", kind, &backup).await;
        serving.kill();
        contents
    };
    let program = installation(kind).await;
    drop_database(&program, kind).await;
    follow(&program, "restore", kind, &backup).await;
    let_leases_end(&open(&program, kind)).await;
    program.model.then(200, None, tool_call("stock", &json!({})));
    let serving = program.serve().await;
    check(&program, &contents, &tool, &receiver).await;
    serving.stop().await;
}
