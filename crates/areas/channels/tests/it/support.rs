//! A service with a channel to a simulated network.

use channels::channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use model::{ChannelId, WorkspaceId};
use serde_json::{Value, json};
use simulator::{NewUser, Settings, Simulator, User};
use testkit::{Answer, Key, Kind, OpenAiServer, TestApp};

/// A service whose channel is connected to a simulated network, with an agent that answers.
pub struct Desk {
    pub app: TestApp,
    pub workspace: WorkspaceId,
    pub key: Key,
    pub channel: ChannelId,
    pub network: Simulator,
}

impl Desk {
    pub async fn open(kind: Kind) -> Self {
        Self::with_settings(kind, |_| {}).await
    }

    /// A channel with settings of its own.
    pub async fn with_settings(kind: Kind, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self::around(TestApp::new(kind).await, change).await
    }

    /// The same around a service.
    pub async fn around(app: TestApp, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        let key = app.full_key().await;
        let clock = app.data.clock.clone();
        let network = Simulator::start(Settings { clock, rates: false, ..Settings::default() }).unwrap();
        let mut settings = ChannelSettings { reply_debounce_ms: 0, ..ChannelSettings::default() };
        change(&mut settings);
        let new = number(&key, &network, &network.connection().number_id, settings);
        let channel = connect_number(&app, new).await;
        let callbacks = format!("{}/callbacks/{channel}", app.origin);
        let connection = network.connection();
        let token = &connection.verify_token;
        network.register_callback(&connection.number_id, &callbacks, token).await.unwrap();
        Self { workspace: key.workspace, app, key, channel, network }
    }

    /// A customer with a telephone number.
    pub fn customer(&self, name: &str, phone: &str) -> User {
        let new =
            NewUser { phone: Some(phone.to_owned()), name: Some(name.to_owned()), ..NewUser::default() };
        self.network.add_user(new).unwrap()
    }

    /// Lets the network and the service do all that is due, until neither has anything left.
    pub async fn settle(&self) {
        let mut before = None;
        loop {
            assert!(self.network.wait_until(Simulator::is_quiet).await, "the network is never quiet");
            self.app.service.channels.run_due().await.unwrap();
            let now = (self.network.callbacks(), self.network.accepted());
            if self.network.is_quiet() && before.replace(now) == Some(now) {
                return;
            }
        }
    }

    /// A customer writes, and all that follows happens.
    pub async fn hear(&self, customer: &User, text: &str) {
        self.network.write(&customer.user_id, text).unwrap();
        self.settle().await;
    }

    /// What the network was given for a customer: the type, and the text where there is one.
    pub fn sent(&self, customer: &User) -> Vec<String> {
        let all = self.network.transcript().into_iter().filter(|sent| sent.user_id == customer.user_id);
        all.map(|sent| sent.content["body"].as_str().unwrap_or(sent.kind.as_str()).to_owned()).collect()
    }

    /// Creates a contact with a telephone number, and gives its id.
    pub async fn contact(&self, name: &str, phone: &str) -> i64 {
        let body = json!({ "data": { "$name": name, "$phone": phone } });
        self.post("/contacts", body).await.expect(201)["id"].as_i64().unwrap()
    }

    /// Calls back as the network does.
    pub async fn post_callback(&self, path: &str, body: &str) {
        let signature = chatnet::sign(&self.network.connection().app_secret, body.as_bytes());
        let ask = self.app.ask_beside("POST", path).bytes("application/json", body.as_bytes());
        assert_eq!(ask.header("X-Hub-Signature-256", &signature).send().await.status, 200);
    }

    /// The only contact.
    pub async fn only_contact(&self) -> Value {
        let contacts = self.get("/contacts").await.expect(200);
        assert_eq!(contacts.as_array().unwrap().len(), 1, "{contacts}");
        contacts[0].clone()
    }

    /// The events of a type, oldest first.
    pub async fn events(&self, kind: &str) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.get(&format!("/events?type={kind}&limit=100")).await.expect(200);
        events.as_array().unwrap().iter().rev().map(|event| event["data"].clone()).collect()
    }

    /// How far a message came, and the word for why it failed.
    pub async fn status(&self, id: &Value) -> (String, Option<String>) {
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::Text)]
            status: String,
            #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
            error: Option<String>,
        }
        let query = format!("SELECT status, error FROM messages WHERE id = {id}");
        let read = self.app.db().read(move |read| {
            use diesel::RunQueryDsl;
            Ok(diesel::sql_query(&query).get_result::<Row>(read.connection())?)
        });
        let row = read.await.unwrap();
        let code = |error: String| {
            serde_json::from_str::<Value>(&error).unwrap()["code"].as_str().unwrap().to_owned()
        };
        (row.status, row.error.map(code))
    }

    /// A count.
    pub async fn count(&self, query: &str) -> i64 {
        #[derive(diesel::QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            n: i64,
        }
        let query = query.to_owned();
        let read = self.app.db().read(move |read| {
            use diesel::RunQueryDsl;
            Ok(diesel::sql_query(&query).get_result::<Row>(read.connection())?)
        });
        read.await.unwrap().n
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(path, &self.key, body).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.app.get(path, &self.key).await
    }

    /// Another number of the workspace.
    pub async fn second_channel(&self) -> ChannelId {
        let new = number(&self.key, &self.network, "number-2", ChannelSettings::default());
        connect_number(&self.app, new).await
    }

    /// A channel to a network that accepts every message and gives it the id `wamid.sent.` with the message's own id
    /// behind it, so that a test knows the id before the message is sent. It calls nothing back, and no agent answers.
    pub async fn foreseen_channel(&self) -> (ChannelId, OpenAiServer) {
        let network = OpenAiServer::start().await;
        network.answer(|body| {
            let reference = body["biz_opaque_callback_data"].as_str().unwrap_or("none");
            json!({ "messages": [{ "id": format!("wamid.sent.{reference}") }] })
        });
        let new = number(&self.key, &self.network, "foreseen", ChannelSettings::default());
        let new = ConnectChannel { base_url: network.base_url(), key: None, ..new };
        (connect_number(&self.app, new).await, network)
    }

    /// Begins a broadcast of the template `notice`, which has no values, to all contacts. `more` is added to it.
    pub async fn broadcast_to_all(&self, more: Value) -> i64 {
        let mut body = json!({
            "name": "Notice", "channel_id": self.channel, "template": { "name": "notice", "language": "en" },
            "audience": { "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } },
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let id = self.post("/broadcasts", body).await.expect(201)["id"].as_i64().unwrap();
        self.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect(200);
        id
    }

    /// The recipients of a broadcast: contact, and state or why it is skipped, in the order in which they were prepared.
    pub async fn recipients_of(&self, broadcast: i64) -> Vec<(i64, String)> {
        let rows = self.get(&format!("/broadcasts/{broadcast}/recipients?limit=100")).await.expect(200);
        let state = |row: &Value| match row["state"].as_str() {
            Some("skipped") => row["skip_reason"].as_str().unwrap().to_owned(),
            state => state.unwrap().to_owned(),
        };
        rows.as_array().unwrap().iter().map(|row| (row["contact_id"].as_i64().unwrap(), state(row))).collect()
    }

    /// Lets time pass, second by second, with all that it brings.
    pub async fn let_pass(&self, seconds: i64) {
        for _ in 0..seconds {
            self.app.data.clock.advance(chrono::Duration::seconds(1));
            self.app.service.jobs.run_due().await.unwrap();
            self.settle().await;
        }
    }

    /// A path below the channel.
    pub fn path(&self, below: &str) -> String {
        format!("/channels/{}{below}", self.channel)
    }

    /// Submits a template, which the network approves.
    pub async fn template(&self, name: &str, category: &str, body: &str, examples: &[&str]) -> Value {
        let new = json!({
            "name": name, "language": "en", "category": category,
            "components": { "body": { "text": body, "samples": examples } },
        });
        let made = self.post(&self.path("/chatnet/templates"), new).await.expect(201);
        self.network.review(name, "en", &simulator::Review::Approve).unwrap();
        self.settle().await;
        made
    }
}

/// A number of the network, to be connected.
fn number(key: &Key, network: &Simulator, id: &str, settings: ChannelSettings) -> ConnectChannel {
    let connection = network.connection();
    ConnectChannel {
        workspace: key.workspace,
        provider: ChannelProvider::Simulator,
        name: "Support".to_owned(),
        address: Some("+551130000000".to_owned()),
        base_url: connection.base_url,
        number_id: id.to_owned(),
        business_id: connection.business_id,
        access_token: connection.access_token,
        app_secret: connection.app_secret,
        verify_token: connection.verify_token,
        agent: None,
        key: Some(key.id.clone()),
        settings,
        messages_per_second: 0,
    }
}

async fn connect_number(app: &TestApp, new: ConnectChannel) -> ChannelId {
    let seal = app.service.pipeline.seal.clone();
    app.db().write(move |tx| connect(tx, &seal, &new)).await.unwrap().id()
}
