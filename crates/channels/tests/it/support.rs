//! A service with a channel.

use channels::channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use model::{ChannelId, Env, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A service with a channel of a workspace that has no contacts yet.
pub struct Desk {
    pub app: TestApp,
    pub workspace: WorkspaceId,
    pub key: Key,
    pub channel: ChannelId,
}

impl Desk {
    pub async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", 0).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        let channel = connect_channel(&app, workspace, "number-1").await;
        Self { app, workspace, key, channel }
    }

    /// Creates a contact with a telephone number, and gives its id.
    pub async fn contact(&self, name: &str, phone: &str) -> i64 {
        let body = json!({ "data": { "$name": name, "$phone": phone } });
        self.post("/contacts", body).await.expect(201)["id"].as_i64().unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(path, &self.key, body).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.app.get(path, &self.key).await
    }
}

/// Connects a number of the network.
pub async fn connect_channel(app: &TestApp, workspace: WorkspaceId, number: &str) -> ChannelId {
    let new = ConnectChannel {
        workspace,
        provider: ChannelProvider::Simulator,
        name: "Support".to_owned(),
        address: Some("+551130000000".to_owned()),
        base_url: "http://127.0.0.1:9".to_owned(),
        number_id: number.to_owned(),
        business_id: "business-1".to_owned(),
        access_token: "network-token".to_owned(),
        app_secret: "network-secret".to_owned(),
        verify_token: "verify-me".to_owned(),
        agent: None,
        key: None,
        settings: ChannelSettings { reply_debounce_ms: 0, ..ChannelSettings::default() },
        messages_per_second: 80,
    };
    let seal = app.service.pipeline.seal.clone();
    let row = app.data.db.write(move |tx| connect(tx, &seal, &new)).await.unwrap();
    row.id()
}
