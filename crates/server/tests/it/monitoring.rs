//! What operators watch: health, readiness and metrics.

use crate::callback_retention::Line;
use model::Env;
use prometheus_parse::{Sample, Scrape, Value as Measured};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Client, Key, Kind, MessageSent, Program, Receiver, Script, TestApp, until};

const BINARY: &str = env!("CARGO_BIN_EXE_svc");

/// A scrape over HTTP.
pub(crate) struct Scraped {
    text: String,
    samples: Vec<Sample>,
}

impl Scraped {
    pub(crate) async fn of(app: &TestApp) -> Self {
        let answer = app.admin().ask_beside("GET", "/metrics").send().await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(answer.headers["content-type"].starts_with("text/plain; version=0.0.4"));
        let lines = answer.text.lines().map(|line| Ok(line.to_owned()));
        let samples = Scrape::parse(lines).unwrap().samples;
        Self { text: answer.text, samples }
    }

    /// The value of the only series with this name and these labels. Of a histogram, the number of observations.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |sample: &&Sample| {
            sample.metric == name
                && labels.iter().all(|(label, value)| sample.labels.get(label) == Some(value))
        };
        let found: Vec<&Sample> = self.samples.iter().filter(fits).collect();
        assert!(found.len() <= 1, "{name} {labels:?}: {found:?}");
        found.first().map(|sample| match &sample.value {
            Measured::Counter(value) | Measured::Gauge(value) | Measured::Untyped(value) => *value,
            Measured::Histogram(buckets) => buckets.last().unwrap().count,
            Measured::Summary(_) => panic!("{name} is a summary"),
        })
    }

    #[track_caller]
    fn expect(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        assert_eq!(self.value(name, labels), Some(expected), "{name} {labels:?} in\n{}", self.text);
    }
}

/// Requests that succeed and that gates reject, runs, a model's failure, deliveries.
async fn traffic(app: &TestApp) -> Key {
    let key = app.full_key().await;
    app.get("/me", &key).await.expect(200);
    app.get("/me?x=%22%7D%0A\\", &key).await.expect_error(400, "validation_error");
    app.get("/somewhere/else", &key).await.expect_error(404, "route_not_found");
    app.ask("GET", "/me")
        .header("authorization", "Bearer nothing")
        .send()
        .await
        .expect_error(401, "invalid_api_key");
    let poor = app.key(key.workspace, Env::Live, &["agents:read"]).await;
    app.get("/runs", &poor).await.expect_error(403, "missing_scope");
    app.model.usage(100, 7);
    app.post("/runs", &key, json!({ "input": "Hello" })).await.expect(200);

    let receiver = Receiver::start().await;
    let endpoint = json!({ "url": receiver.url("/"), "enabled_events": ["contact.*"] });
    app.post("/webhook-endpoints", &key, endpoint).await.expect(201);
    app.emit(key.workspace, MessageSent::new(1, "a")).await;
    assert_eq!(app.deliver().await, 1);
    receiver.answer_status(500);
    app.emit(key.workspace, MessageSent::new(2, "b")).await;
    assert_eq!(app.deliver().await, 1);

    app.model.then(Script::Wait("later".to_owned()));
    app.post("/runs", &key, json!({ "input": "Hello", "background": true })).await.expect(200);
    until("the model is asked", async || (app.model.prompts().len() == 2).then_some(())).await;
    key
}

#[testkit::both]
async fn metrics_say_what_happened(kind: Kind) {
    let app = TestApp::new(kind).await;
    traffic(&app).await;
    let scraped = Scraped::of(&app).await;
    well_formed(&scraped);
    let requests = |operation, status, gate| [("operation", operation), ("status", status), ("gate", gate)];
    for (labels, count) in [
        (requests("getMe", "200", "none"), 1.0),
        (requests("getMe", "400", "body"), 1.0),
        (requests("none", "404", "route"), 1.0),
        (requests("none", "401", "credential"), 1.0),
        (requests("listRuns", "403", "scope"), 1.0),
        (requests("createRun", "200", "none"), 2.0),
    ] {
        scraped.expect("svc_requests_total", &labels, count);
    }
    scraped.expect("svc_request_duration_seconds", &[("operation", "getMe")], 2.0);
    scraped.expect("svc_runs_total", &[("status", "completed")], 1.0);
    scraped.expect("svc_runs_open", &[("status", "in_progress")], 1.0);
    scraped.expect("svc_runs_open", &[("status", "queued")], 0.0);
    assert!(scraped.value("svc_energy_held", &[]).unwrap() > 0.0, "{}", scraped.text);
    let model = ("model", "scripted-1");
    scraped.expect("svc_model_calls_total", &[model, ("outcome", "ok")], 1.0);
    scraped.expect("svc_model_tokens_total", &[model, ("direction", "input")], 100.0);
    scraped.expect("svc_model_tokens_total", &[model, ("direction", "output")], 7.0);
    scraped.expect("svc_webhook_attempts_total", &[("outcome", "succeeded")], 1.0);
    scraped.expect("svc_webhook_attempts_total", &[("outcome", "retried")], 1.0);
    scraped.expect("svc_webhook_deliveries_open", &[("status", "due")], 1.0);
    scraped.expect("svc_outbound_requests_total", &[("outcome", "2xx")], 1.0);
    scraped.expect("svc_outbound_requests_total", &[("outcome", "5xx")], 1.0);
    scraped.expect("svc_jobs_due", &[], 0.0);
    scraped.expect("svc_log_rows", &[("log", "webhook_deliveries")], 2.0);
    for log in ["events", "webhook_deliveries"] {
        assert!(scraped.value("svc_log_size_bytes", &[("log", log)]).unwrap() > 0.0, "{}", scraped.text);
    }
    scraped.expect("svc_table_metrics_success", &[], 1.0);
    scraped.expect("svc_build_info", &[("version", server::VERSION)], 1.0);
    assert!(scraped.value("svc_database_wait_seconds", &[]).unwrap() > 0.0);
    let groups = scraped.value("svc_sqlite_group_size", &[]);
    assert_eq!(groups.is_some_and(|groups| groups > 0.0), kind == Kind::Sqlite, "{groups:?}");
}

#[testkit::both]
async fn jobs_that_wait_are_counted(kind: Kind) {
    let app = TestApp::new(kind).await;
    app.db()
        .write(|tx| {
            let now = tx.now();
            for (key, seconds) in [("a", -61), ("b", -59), ("c", 60)] {
                tx.enqueue(None, "data.import", Some(key), &(), now.plus_seconds(seconds))?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let scraped = Scraped::of(&app).await;
    scraped.expect("svc_jobs_due", &[], 2.0);
    scraped.expect("svc_jobs_late", &[], 1.0);
}

#[testkit::both]
async fn callbacks_that_wait_are_counted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let line = Line::connect(&app, app.workspace().await).await;
    line.receive(&app, 5).await;
    let open = [("pending", 3.0), ("failed", 2.0)];
    app.sql("UPDATE channel_callbacks SET status = 'failed' WHERE id <= (SELECT min(id) + 1 FROM channel_callbacks)").await;
    let scraped = Scraped::of(&app).await;
    for (status, count) in open {
        scraped.expect("svc_channel_callbacks_open", &[("status", status)], count);
    }
}

#[testkit::both]
async fn metrics_of_tables_that_cannot_be_read_are_left_out(kind: Kind) {
    let app = TestApp::new(kind).await;
    app.sql("ALTER TABLE jobs RENAME TO lost").await;
    let scraped = Scraped::of(&app).await;
    scraped.expect("svc_table_metrics_success", &[], 0.0);
    assert_eq!(scraped.value("svc_energy_held", &[]), None);
    assert!(scraped.value("svc_database_reads_total", &[]).is_some());
}

#[testkit::both]
async fn readiness_says_why_not(kind: Kind) {
    let ask = async |app: &TestApp| {
        let answer = app.ask_beside("GET", "/ready").send().await;
        let admin = app.admin().ask_beside("GET", "/ready").send().await;
        assert_eq!((answer.status, &answer.body), (admin.status, &admin.body));
        (answer.status, answer.body)
    };
    let not_ready = |reason: &str| (503, json!({ "status": "not_ready", "reason": reason }));
    let app = TestApp::new(kind).await;
    assert_eq!(ask(&app).await, (200, json!({ "status": "ready" })));
    app.service.readiness.stop();
    assert_eq!(ask(&app).await, not_ready("stopping"));

    let app = TestApp::new(kind).await;
    app.sql("DELETE FROM __diesel_schema_migrations WHERE version = '0014'").await;
    assert_eq!(ask(&app).await, not_ready("migrations_pending"));

    let app = TestApp::new(kind).await;
    app.sql("ALTER TABLE __diesel_schema_migrations RENAME COLUMN version TO lost").await;
    assert_eq!(ask(&app).await, not_ready("database_unavailable"));
    let health = app.admin().ask_beside("GET", "/health").send().await;
    assert_eq!((health.status, health.body), (200, json!({ "status": "ok" })));
}

#[tokio::test]
async fn metrics_have_an_address_of_their_own_until_the_end() {
    let admin = Program::address();
    let program = Program::new(Kind::Sqlite, BINARY).await.with("SVC_ADMIN_LISTEN", &admin);
    let key = program.key("agents:write,runs:execute");
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    let serving = program.serve().await;
    let (client, admin) = (program.client(), Client::new(&format!("http://{admin}")));
    client.ask_beside("GET", "/metrics").send().await.expect_error(404, "route_not_found");
    assert_eq!(admin.ask("GET", "/me").key(&key).send().await.status, 404);
    let agent = json!({ "name": "Assistant", "status": "active" });
    client.ask("POST", "/agents").key(&key).json(&agent).send().await.expect(201);
    client.ask("POST", "/runs").key(&key).json(&json!({ "input": "Hello" })).send().await.expect(200);
    // The models' server counts with the rest.
    let text = admin.ask_beside("GET", "/metrics").send().await.text;
    assert!(text.contains("\nsvc_outbound_requests_total{outcome=\"2xx\"} 1\n"), "{text}");

    program.model.then_silence();
    let run = json!({ "input": "Hello", "background": true });
    client.ask("POST", "/runs").key(&key).json(&run).send().await.expect(200);
    let watching = async {
        let body: Value = until("the service says that it stops", async || {
            let answer = admin.ask_beside("GET", "/ready").send().await;
            (answer.status == 503).then_some(answer.body)
        })
        .await;
        assert_eq!(body["reason"], "stopping");
        program.model.hang_up();
    };
    tokio::join!(serving.stop(), watching);
}

/// Holds a scrape against what Prometheus asks of names, types, order and histograms.
fn well_formed(scraped: &Scraped) {
    let mut families: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut current = "";
    for line in scraped.text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(text.ends_with('.'), "{line}");
            current = name;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, current, "the type follows the help");
            assert!(families.insert(name, kind).is_none(), "{name} stands twice");
            assert!(name.starts_with("svc_") || name.starts_with("process_"), "{name}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
            assert!(seen.insert(series), "{series} stands twice");
            let name = series.split('{').next().unwrap();
            let suffix =
                name.strip_prefix(current).unwrap_or_else(|| panic!("{line} stands below {current}"));
            let suffixes: &[&str] =
                if families[current] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
        }
    }
    for sample in &scraped.samples {
        if let Measured::Histogram(buckets) = &sample.value {
            assert!(
                buckets.is_sorted_by(|one, next| one.less_than < next.less_than && one.count <= next.count)
            );
            assert_eq!(buckets.last().unwrap().less_than, f64::INFINITY, "{}", sample.metric);
        }
    }
    let bounded = ["operation", "status", "gate", "outcome", "model", "direction", "version", "log", "le"];
    for label in scraped.samples.iter().flat_map(|sample| sample.labels.keys()) {
        assert!(bounded.contains(&label.as_str()), "{label}: are its values bounded?");
    }
}
