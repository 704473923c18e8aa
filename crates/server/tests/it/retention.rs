//! Logs have a size: under load they stay below it, fairly, and nothing that is still to be delivered goes.

use crate::callback_retention::Line;
use accounts::Actor;
use accounts::audit::{self, Entry};
use chrono::Duration;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use model::{AccountId, Env, RequestId};
use operation::LogRow;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use store::logs::{LogSize, Owner, Retention, Retentions};
use testkit::{Key, Kind, MessageSent, Receiver, TestApp, TestDb, until};

const KIB: i64 = 1 << 10;

/// Logs of this size.
pub fn of_size(bytes: i64) -> Retentions {
    let kinds = server::log_kinds().unwrap();
    kinds.iter().fold(Retentions::default(), |retentions, kind| {
        retentions.with(kind.name, Retention { days: kind.days, bytes })
    })
}

/// Runs what is due 10 seconds later, as the service does.
pub async fn ten_seconds(app: &TestApp) {
    app.data.clock.advance(Duration::seconds(10));
    app.service.jobs.run_due().await.unwrap();
}

async fn sizes(app: &TestApp) -> Vec<LogSize> {
    let logs = app.service.logs.clone();
    app.db().read(move |read| logs.sizes(read)).await.unwrap()
}

pub async fn size(app: &TestApp, log: &str) -> LogSize {
    sizes(app).await.into_iter().find(|size| size.log == log).unwrap()
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

pub async fn number(app: &TestApp, sql: impl Into<String>) -> i64 {
    let sql = sql.into();
    let read =
        app.db().read(move |read| Ok(diesel::sql_query(sql).get_result::<Number>(read.connection())?.n));
    read.await.unwrap()
}

/// A tenant with a collection.
pub struct Tenant {
    pub key: Key,
    items: String,
}

impl Tenant {
    pub async fn new(app: &TestApp) -> Self {
        let workspace = app.bare_workspace("scale", 0).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        let fields = json!([{ "field_key": "note", "type": "text" }]);
        let collection = json!({ "name": "Notes", "fields": fields });
        let collection = app.post("/collections", &key, collection).await.expect(201);
        Self { key, items: format!("/collections/{}/items", collection["id"]) }
    }

    /// Makes items, each with an event and an entry of activity.
    async fn write(&self, app: &TestApp, count: usize) {
        let row = |number| json!({ "data": { "note": format!("note {number}") } });
        let rows: Vec<Value> = (0..count).map(row).collect();
        app.post(&format!("{}/bulk-create", self.items), &self.key, json!({ "rows": rows }))
            .await
            .expect(200);
        app.deliver().await;
    }

    /// The path of an inbound webhook.
    async fn inbound(&self, app: &TestApp) -> String {
        let inbound = json!({ "name": "Shop", "rate_limit": { "per_minute": 100_000 } });
        let inbound = app.post("/inbound-webhooks", &self.key, inbound).await.expect(201);
        inbound["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap().to_owned()
    }

    /// How many rows it has in a table.
    async fn rows(&self, app: &TestApp, table: &str) -> i64 {
        let workspace = self.key.workspace;
        number(app, format!("SELECT count(*) AS n FROM {table} WHERE workspace_id = {workspace}")).await
    }

    /// Calls a function.
    async fn call(&self, app: &TestApp, count: usize) {
        let code = "export default (ctx) => ctx.input";
        let function = json!({ "name": "echo", "code": code, "effect": "read", "publish": true });
        let function = app.post("/functions", &self.key, function).await.expect(201)["id"].clone();
        for _ in 0..count {
            let call = json!({ "input": "x".repeat(270) });
            app.post(&format!("/functions/{function}/invoke"), &self.key, call).await.expect(200);
        }
    }

    /// Makes firings that start nothing.
    async fn fire(&self, app: &TestApp, count: usize) {
        let code = "export default (ctx) => ctx.input";
        let function = json!({ "name": "fired", "code": code, "effect": "read", "publish": true });
        let function = app.post("/functions", &self.key, function).await.expect(201)["id"].clone();
        let automation = json!({
            "name": "idle", "trigger": { "type": "manual" }, "conditions": "1 = 2", "enable": true,
            "target": { "type": "function", "id": function },
        });
        let automation = app.post("/automations", &self.key, automation).await.expect(201)["id"].clone();
        for _ in 0..count {
            let fire = json!({ "data": { "text": "x".repeat(270) } });
            app.post(&format!("/automations/{automation}/trigger"), &self.key, fire).await.expect(200);
        }
    }

    /// Writes rows of the audit log.
    async fn audit(&self, app: &TestApp, count: usize) {
        let (workspace, now) = (self.key.workspace, app.db().now());
        let account = AccountId::new(now, &*app.db().random());
        app.db()
            .write(move |tx| {
                for number in 0..count {
                    let by = Actor::Account(account.clone(), Some(Ipv4Addr::LOCALHOST.into()));
                    let details = json!({ "before": "admin", "after": "viewer", "ended_apps": 2 });
                    let entry = Entry::new(by, "member.role_set", number.to_string());
                    audit::record(tx, entry.workspace(workspace).details(details))?;
                }
                Ok(())
            })
            .await
            .unwrap();
    }

    /// Writes rows of the request log.
    async fn request(&self, app: &TestApp, count: i64) {
        let workspace = self.key.workspace;
        let mut last = String::new();
        for _ in 0..count {
            last = RequestId::new(app.db().now(), &*app.db().random()).to_string();
            app.service.pipeline.log.push(LogRow {
                id: last.clone(),
                created_at: app.db().now(),
                workspace_id: Some(workspace),
                key_id: Some(self.key.id.clone()),
                operation: Some("getMe"),
                method: "GET".to_owned(),
                path: "/me".to_owned(),
                status: 200,
                code: None,
                gate: None,
                livemode: Some(true),
                latency_us: 1_000,
                energy: 0,
                replayed: false,
                client_request_id: None,
                interface: None,
                trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
                message: None,
                param: None,
            });
        }
        // Rows are written in their order, so those of earlier requests are there too.
        let last = format!("SELECT count(*) AS n FROM request_logs WHERE id = '{last}'");
        let written = async || (number(app, &last).await == 1).then_some(());
        until("the request log is written", written).await;
    }
}

#[testkit::both]
async fn logs_stay_below_their_size_under_load(kind: Kind) {
    let retention = of_size(256 * KIB)
        .with("item_activity", Retention { bytes: 96 * KIB, ..Retention::of_days(3_650) })
        .with("events", Retention { bytes: 512 * KIB, ..Retention::of_days(30) });
    let app = TestApp::with_retention(kind, retention).await;
    let loud = Tenant::new(&app).await;
    let inbound = loud.inbound(&app).await;
    ten_seconds(&app).await;
    for round in 1..=25 {
        for number in 0..20 {
            let order = json!({ "order": number, "text": "x".repeat(300) });
            assert_eq!(app.ask_beside("POST", &inbound).json(&order).send().await.status, 202);
        }
        loud.write(&app, 20).await;
        loud.request(&app, 60).await;
        let before = sizes(&app).await;
        ten_seconds(&app).await;
        for size in before.into_iter().chain(sizes(&app).await) {
            assert!(size.size.bytes < size.most_bytes, "{size:?} in round {round}");
        }
    }
    let logs =
        [("events", 1_000), ("item_activity", 500), ("request_logs", 1_500), ("inbound_requests", 500)];
    for (log, written) in logs {
        let (size, rows) = (size(&app, log).await, loud.rows(&app, log).await);
        assert!(size.size.bytes > size.most_bytes / 2 && rows < written, "{size:?}, {rows} rows");
    }
    // Activity is counted by the next run.
    ten_seconds(&app).await;
    ten_seconds(&app).await;
    for log in ["events", "item_activity", "request_logs"] {
        let (size, rows) =
            (size(&app, log).await, number(&app, format!("SELECT count(*) AS n FROM {log}")).await);
        assert_eq!(size.size.rows, rows, "{log}");
    }
}

#[testkit::both]
async fn a_flood_pushes_out_its_own_rows(kind: Kind) {
    let app = TestApp::with_retention(kind, of_size(256 * KIB)).await;
    let (quiet, loud) = (Tenant::new(&app).await, Tenant::new(&app).await);
    quiet.write(&app, 50).await;
    quiet.request(&app, 50).await;
    let logs = ["events", "item_activity", "request_logs"];
    let mut before = Vec::new();
    for log in logs {
        before.push(quiet.rows(&app, log).await);
    }
    let place = app.get("/events", &quiet.key).await.expect(200)[0]["sequence"].clone();
    ten_seconds(&app).await;
    for _ in 0..12 {
        loud.write(&app, 150).await;
        loud.request(&app, 150).await;
        ten_seconds(&app).await;
    }
    for (log, before) in logs.into_iter().zip(before) {
        assert!(quiet.rows(&app, log).await >= before, "{log}");
        assert!(loud.rows(&app, log).await < 1_500, "{log}");
    }
    let live = format!("/events/live?after={place}&wait_seconds=0");
    assert_eq!(app.get(&live, &quiet.key).await.expect(200), json!([]), "nothing of its own is gone");
    app.get(&live, &loud.key).await.expect_error(410, "cursor_expired");
    let first = number(
        &app,
        format!("SELECT min(position) AS n FROM events WHERE workspace_id = {}", loud.key.workspace),
    )
    .await;
    let next =
        app.get(&format!("/events/live?after={}&wait_seconds=0", first - 1), &loud.key).await.expect(200);
    assert_eq!(next[0]["sequence"], first);
}

#[testkit::both]
async fn what_is_still_to_be_delivered_stays(kind: Kind) {
    let most = 512 * KIB;
    let app = TestApp::with_retention(kind, of_size(most)).await;
    let key = app.key(app.bare_workspace("scale", 0).await, Env::Live, &["*"]).await;
    let (up, down) = (Receiver::start().await, Receiver::start().await);
    down.answer_status(500);
    for receiver in [&up, &down] {
        let endpoint = json!({ "url": receiver.url("/"), "enabled_events": ["contact.*"] });
        app.post("/webhook-endpoints", &key, endpoint).await.expect(201);
    }
    ten_seconds(&app).await;
    for round in 0..15 {
        for id in 0..10 {
            app.emit(key.workspace, MessageSent::new(round * 10 + id, "x".repeat(2_000))).await;
        }
        app.deliver().await;
        ten_seconds(&app).await;
    }
    let size = size(&app, "webhook_deliveries").await;
    assert!(size.size.bytes < most, "{size:?}");
    let waiting = "SELECT count(*) AS n FROM webhook_deliveries WHERE ended_at IS NULL";
    let ended = "SELECT count(*) AS n FROM webhook_deliveries WHERE ended_at IS NOT NULL";
    assert_eq!(number(&app, waiting).await, 150);
    assert!(number(&app, ended).await < 150);
    assert_eq!(up.delivered().len(), 150);

    down.forget();
    down.answer_status(200);
    for _ in 0..48 {
        app.data.clock.advance(Duration::minutes(30));
        app.deliver().await;
    }
    assert_eq!(number(&app, waiting).await, 0);
    let ids: BTreeSet<String> = down.delivered().iter().map(|sent| sent.json()["id"].to_string()).collect();
    assert_eq!(ids.len(), 150);

    // What is left is counted to the last byte.
    let log = app.service.logs.find("webhook_deliveries").unwrap();
    while app.db().write(move |tx| log.evict(tx, key.workspace, most)).await.unwrap().rows > 0 {}
    for table in ["webhook_deliveries", "webhook_attempts", "webhook_bodies"] {
        assert_eq!(number(&app, format!("SELECT count(*) AS n FROM {table}")).await, 0, "{table}");
    }
    assert_eq!(number(&app, "SELECT bytes AS n FROM log_sizes WHERE log = 'webhook_deliveries'").await, 0);
}

#[derive(QueryableByName)]
struct Step {
    #[diesel(sql_type = Text)]
    detail: String,
}

#[tokio::test]
async fn sqlite_finds_the_oldest_rows_of_each_log_by_an_index() {
    let data = TestDb::new(Kind::Sqlite);
    for log in server::log_kinds().unwrap() {
        let (Owner::Workspace(owner) | Owner::Through { column: owner, .. }) = log.owner;
        let plans = data.db.read(move |read| {
            let selects =
                [log.select_oldest(read, 0, 100), log.select_oldest_of(read, &format!("{owner} = 1"))];
            let mut plan = |select: &String| {
                let steps = diesel::sql_query(format!("EXPLAIN QUERY PLAN {select}"));
                let steps: Vec<Step> = steps.load(read.connection()).unwrap();
                steps.into_iter().map(|step| step.detail).collect::<Vec<_>>()
            };
            Ok(selects.map(|select| (plan(&select), select)))
        });
        let plans = plans.await.unwrap();
        for (plan, select) in &plans {
            assert!(plan.iter().all(|step| !step.contains("FOR ORDER BY")), "{select}: {plan:?}");
        }
        assert!(
            plans[1].0[0].contains("USING INDEX") && plans[1].0[0].contains(&format!("({owner}=?")),
            "{plans:?}"
        );
    }
}

#[testkit::both]
async fn old_rows_are_deleted_from_each_log(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (up, tenant) = (Receiver::start().await, Tenant::new(&app).await);
    let inbound = tenant.inbound(&app).await;
    let endpoint = json!({ "url": up.url("/"), "enabled_events": ["item.*"] });
    app.post("/webhook-endpoints", &tenant.key, endpoint).await.expect(201);
    let line = Line::connect(&app, tenant.key.workspace).await;
    line.receive(&app, 3).await;
    app.service.channels.run_due().await.unwrap();
    tenant.write(&app, 700).await;
    tenant.call(&app, 1).await;
    tenant.fire(&app, 1).await;
    tenant.audit(&app, 1).await;
    app.ask_beside("POST", &inbound).json(&json!({ "order": 1 })).send().await;
    tenant.request(&app, 700).await;
    ten_seconds(&app).await;
    ten_seconds(&app).await;
    for size in sizes(&app).await {
        assert!(size.size.rows > 0, "{size:?}");
    }
    app.data.clock.advance(Duration::days(3_651));
    ten_seconds(&app).await;
    for size in sizes(&app).await {
        // The newest event stays, because the next position follows from it.
        let (left, placed) = match size.log {
            "events" => (1, "position IS NOT NULL"),
            _ => (0, "TRUE"),
        };
        let rows = number(&app, format!("SELECT count(*) AS n FROM {} WHERE {placed}", size.log)).await;
        assert_eq!((size.size.rows, rows), (left, left), "{size:?}");
    }
}

#[testkit::both]
async fn rows_are_deleted_in_pieces(kind: Kind) {
    let app = TestApp::new(kind).await;
    let loud = Tenant::new(&app).await;
    for _ in 0..2 {
        loud.write(&app, 1_000).await;
        ten_seconds(&app).await;
    }
    loud.request(&app, 1_200).await;
    ten_seconds(&app).await;
    for name in ["events", "item_activity", "request_logs"] {
        let (log, workspace) = (app.service.logs.find(name).unwrap(), loud.key.workspace);
        let before = loud.rows(&app, name).await;
        let gone = app.db().write(move |tx| log.evict(tx, workspace, i64::MAX)).await.unwrap();
        assert_eq!(loud.rows(&app, name).await, before - gone.rows, "{name}");
        assert!((1..=500).contains(&gone.rows), "{name}: {gone:?}");
    }
}

#[testkit::both]
async fn rows_that_several_delete_are_counted_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (up, loud) = (Receiver::start().await, Tenant::new(&app).await);
    let inbound = loud.inbound(&app).await;
    let endpoint = json!({ "url": up.url("/"), "enabled_events": ["item.*"] });
    app.post("/webhook-endpoints", &loud.key, endpoint).await.expect(201);
    loud.write(&app, 300).await;
    loud.request(&app, 1_200).await;
    for number in 0..300 {
        app.ask_beside("POST", &inbound).json(&json!({ "order": number })).send().await;
    }
    // Events are counted when they are placed in the log.
    app.deliver().await;
    for _ in 0..3 {
        ten_seconds(&app).await;
    }
    for name in ["events", "webhook_deliveries", "item_activity", "request_logs", "inbound_requests"] {
        let workspace = loud.key.workspace;
        let evict = async || {
            let log = app.service.logs.find(name).unwrap();
            app.db().write(move |tx| log.evict(tx, workspace, 20_000)).await.unwrap()
        };
        let gone = tokio::join!(evict(), evict(), evict());
        assert!([gone.0, gone.1, gone.2].iter().all(|gone| gone.rows > 0), "{name}: {gone:?}");
        let (left, counted) = (loud.rows(&app, name).await, size(&app, name).await.size.rows);
        let others = number(&app, format!("SELECT count(*) AS n FROM {name}")).await - left;
        assert_eq!(counted, left + others, "{name}");
    }
}

/// What tables and their indexes take of the database's pages. On PostgreSQL, without what autovacuum would reclaim.
async fn on_disk(app: &TestApp, tables: &[&str]) -> i64 {
    let names: Vec<String> = tables.iter().map(|table| format!("'{table}'")).collect();
    let names = names.join(", ");
    if !app.db().backend().is_postgres() {
        let parts = format!("SELECT name FROM sqlite_schema WHERE tbl_name IN ({names})");
        return number(
            app,
            format!("SELECT CAST(sum(pgsize) AS BIGINT) AS n FROM dbstat WHERE name IN ({parts})"),
        )
        .await;
    }
    let vacuum = format!("VACUUM FULL {}", tables.join(", "));
    app.db().read(move |read| Ok(diesel::sql_query(vacuum).execute(read.connection())?)).await.unwrap();
    let sizes = "SELECT CAST(sum(pg_total_relation_size(oid)) AS BIGINT) AS n FROM pg_class";
    number(app, format!("{sizes} WHERE relname IN ({names})")).await
}

#[testkit::both]
async fn sizes_are_those_on_disk_within_a_tenth(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (up, tenant) = (Receiver::start().await, Tenant::new(&app).await);
    let inbound = tenant.inbound(&app).await;
    for _ in 0..3 {
        tenant.write(&app, 1_000).await;
        tenant.request(&app, 1_000).await;
    }
    let endpoint = json!({ "url": up.url("/"), "enabled_events": ["item.*"] });
    app.post("/webhook-endpoints", &tenant.key, endpoint).await.expect(201);
    for number in 0..5 {
        tenant.write(&app, 200).await;
        for part in 0..100 {
            let order = json!({ "order": number * 100 + part, "text": "x".repeat(270) });
            app.ask_beside("POST", &inbound).json(&order).send().await;
        }
    }
    tenant.call(&app, 500).await;
    tenant.fire(&app, 500).await;
    tenant.audit(&app, 2_000).await;
    let line = Line::connect(&app, tenant.key.workspace).await;
    line.receive(&app, 500).await;
    app.service.channels.run_due().await.unwrap();
    ten_seconds(&app).await;
    ten_seconds(&app).await;
    for size in sizes(&app).await {
        let tables: &[&str] = match size.log {
            "webhook_deliveries" => &["webhook_deliveries", "webhook_attempts", "webhook_bodies"],
            log => &[log],
        };
        let (rows, bytes) = (size.size.rows, size.size.bytes);
        let counted = format!("{} takes {bytes} bytes for {rows} rows, as counted", size.log);
        // PostgreSQL keeps rows that were replaced for as long as a transaction is open that may see them, such as one
        // of its own `ANALYZE`.
        until(&counted, async || {
            let disk = on_disk(&app, tables).await;
            ((disk - bytes).abs() * 10 <= disk).then_some(())
        })
        .await;
    }
}
