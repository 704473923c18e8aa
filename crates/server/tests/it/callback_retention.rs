//! Callbacks of chat networks are a log with a size, from which nothing goes that is still to be processed.

use crate::retention::{Tenant, number, of_size, size, ten_seconds};
use channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use chrono::Duration;
use model::{ChannelId, WorkspaceId};
use testkit::{Kind, TestApp};

const SECRET: &str = "the-network's";
const MOST: i64 = 256 << 10;

/// A number that the test calls back for.
pub struct Line(ChannelId);

impl Line {
    /// A number of a workspace.
    pub async fn connect(app: &TestApp, workspace: WorkspaceId) -> Self {
        let new = ConnectChannel {
            workspace,
            provider: ChannelProvider::Simulator,
            name: "Support".to_owned(),
            address: None,
            base_url: "http://127.0.0.1:1".to_owned(),
            number_id: workspace.to_string(),
            business_id: "business".to_owned(),
            access_token: "token".to_owned(),
            app_secret: SECRET.to_owned(),
            verify_token: "verify".to_owned(),
            agent: None,
            key: None,
            settings: ChannelSettings::default(),
            messages_per_second: 0,
        };
        let seal = app.service.pipeline.seal.clone();
        Self(app.db().write(move |tx| connect(tx, &seal, &new)).await.unwrap().id())
    }

    /// The network calls back so many times, with about 900 bytes.
    pub async fn receive(&self, app: &TestApp, count: usize) {
        let body = format!(r#"{{"entry":[],"note":"{}"}}"#, "x".repeat(900));
        let signature = chatnet::sign(SECRET, body.as_bytes());
        for _ in 0..count {
            let ask = app.ask_beside("POST", &format!("/callbacks/{}", self.0));
            let ask =
                ask.bytes("application/json", body.as_bytes()).header("X-Hub-Signature-256", &signature);
            assert_eq!(ask.send().await.status, 200);
        }
    }

    async fn rows(&self, app: &TestApp) -> i64 {
        let Self(channel) = self;
        let sql = format!("SELECT count(*) AS n FROM channel_callbacks WHERE channel_id = {channel}");
        number(app, sql).await
    }
}

async fn bytes(app: &TestApp) -> i64 {
    let sum = "SELECT CAST(sum(octet_length(body)) AS BIGINT) AS n FROM channel_callbacks";
    number(app, sum).await
}

#[testkit::both]
async fn callbacks_stay_below_their_size_under_load(kind: Kind) {
    let app = TestApp::with_retention(kind, of_size(MOST)).await;
    let (quiet, loud) = (Tenant::new(&app).await, Tenant::new(&app).await);
    let (quiet, loud) =
        (Line::connect(&app, quiet.key.workspace).await, Line::connect(&app, loud.key.workspace).await);
    quiet.receive(&app, 20).await;
    for round in 1..=40 {
        loud.receive(&app, 10).await;
        app.service.channels.run_due().await.unwrap();
        ten_seconds(&app).await;
        let size = size(&app, "channel_callbacks").await;
        assert!(size.size.bytes < MOST && bytes(&app).await < MOST, "{size:?} in round {round}");
    }
    let (size, left) = (size(&app, "channel_callbacks").await, loud.rows(&app).await);
    assert!(size.size.bytes > MOST / 2 && left < 400, "{size:?}, {left} rows");
    assert_eq!(quiet.rows(&app).await, 20, "a flood pushes out its own callbacks");
}

#[testkit::both]
async fn callbacks_that_wait_stay(kind: Kind) {
    let app = TestApp::with_retention(kind, of_size(MOST)).await;
    let tenant = Tenant::new(&app).await;
    let line = Line::connect(&app, tenant.key.workspace).await;
    line.receive(&app, 400).await;
    for _ in 0..3 {
        ten_seconds(&app).await;
    }
    app.data.clock.advance(Duration::days(15));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!(line.rows(&app).await, 400);
    let log = size(&app, "channel_callbacks").await;
    assert!(log.size.rows == 400 && log.size.bytes > MOST, "{log:?}");

    app.service.channels.run_due().await.unwrap();
    ten_seconds(&app).await;
    let log = size(&app, "channel_callbacks").await;
    assert!(log.size.bytes < MOST, "{log:?}");
    assert_eq!(log.size.rows, line.rows(&app).await);
    app.data.clock.advance(Duration::hours(1));
    app.service.jobs.run_due().await.unwrap();
    assert_eq!((line.rows(&app).await, size(&app, "channel_callbacks").await.size.bytes), (0, 0));
}
