//! A service with a channel to a simulated network.

use crate::{Answer, Key, Kind, OpenAiServer, TestApp};
use channels::{ChannelProvider, ChannelSettings, ConnectChannel, connect};
use model::{ChannelId, WorkspaceId};
use serde_json::{Value, json};
use simulator::{NewUser, Settings, Simulator, User};

/// A service whose channel is connected to a simulated network, with an agent that answers.
pub struct ChannelApp {
    /// The service.
    pub app: TestApp,
    /// The workspace of the channel.
    pub workspace: WorkspaceId,
    /// A key of the workspace with all scopes.
    pub key: Key,
    /// The channel.
    pub channel: ChannelId,
    /// The network.
    pub network: Simulator,
}

impl ChannelApp {
    /// Starts a service with a channel that has default settings.
    pub async fn open(kind: Kind) -> Self {
        Self::with_settings(kind, |_| {}).await
    }

    /// Starts a service with a channel, whose settings `change` modifies.
    pub async fn with_settings(kind: Kind, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self::around(TestApp::new(kind).await, change).await
    }

    /// Adds a channel to a service.
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

    /// Adds a customer with a telephone number.
    pub fn customer(&self, name: &str, phone: &str) -> User {
        let new =
            NewUser { phone: Some(phone.to_owned()), name: Some(name.to_owned()), ..NewUser::default() };
        self.network.add_user(new).unwrap()
    }

    /// Runs the network and the service until nothing is due in either.
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

    /// Sends a text of a customer and waits until everything that follows is done.
    pub async fn hear(&self, customer: &User, text: &str) {
        self.network.write(&customer.user_id, text).unwrap();
        self.settle().await;
    }

    /// Returns the messages sent to a customer: the text, or the type of messages without text.
    pub fn sent(&self, customer: &User) -> Vec<String> {
        let all = self.network.transcript().into_iter().filter(|sent| sent.user_id == customer.user_id);
        all.map(|sent| sent.content["body"].as_str().unwrap_or(sent.kind.as_str()).to_owned()).collect()
    }

    /// Creates a contact with a telephone number and returns its id.
    pub async fn contact(&self, name: &str, phone: &str) -> i64 {
        let body = json!({ "data": { "$name": name, "$phone": phone } });
        self.post("/contacts", body).await.expect(201)["id"].as_i64().unwrap()
    }

    /// Sends a signed callback to the service.
    pub async fn post_callback(&self, path: &str, body: &str) {
        let signature = chatnet::sign(&self.network.connection().app_secret, body.as_bytes());
        let ask = self.app.ask_beside("POST", path).bytes("application/json", body.as_bytes());
        assert_eq!(ask.header("X-Hub-Signature-256", &signature).send().await.status, 200);
    }

    /// Returns the only contact.
    pub async fn only_contact(&self) -> Value {
        let contacts = self.get("/contacts").await.expect(200);
        assert_eq!(contacts.as_array().unwrap().len(), 1, "{contacts}");
        contacts[0].clone()
    }

    /// Returns the data of all events of a type, oldest first.
    pub async fn events(&self, kind: &str) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.get(&format!("/events?type={kind}&limit=100")).await.expect(200);
        events.as_array().unwrap().iter().rev().map(|event| event["data"].clone()).collect()
    }

    /// Returns the status of a message, with the error code if it failed.
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

    /// Executes a query that returns a count.
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

    /// Sends a `POST` request with the key.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(path, &self.key, body).await
    }

    /// Sends a `GET` request with the key.
    pub async fn get(&self, path: &str) -> Answer {
        self.app.get(path, &self.key).await
    }

    /// Connects another number of the workspace.
    pub async fn second_channel(&self) -> ChannelId {
        let new = number(&self.key, &self.network, "number-2", ChannelSettings::default());
        connect_number(&self.app, new).await
    }

    /// Connects a channel to a network that accepts every message and assigns it the id `wamid.sent.` followed by the
    /// message's own id. So a test knows the id before the message is sent. The network sends no callbacks, and no
    /// agent answers.
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

    /// Starts a broadcast of the template `notice`, which has no variables, to all contacts. `more` contains further
    /// settings.
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

    /// Returns the recipients of a broadcast in order of preparation: the contact, and the state or the reason why it
    /// was skipped.
    pub async fn recipients_of(&self, broadcast: i64) -> Vec<(i64, String)> {
        let rows = self.get(&format!("/broadcasts/{broadcast}/recipients?limit=100")).await.expect(200);
        let state = |row: &Value| match row["state"].as_str() {
            Some("skipped") => row["skip_reason"].as_str().unwrap().to_owned(),
            state => state.unwrap().to_owned(),
        };
        rows.as_array().unwrap().iter().map(|row| (row["contact_id"].as_i64().unwrap(), state(row))).collect()
    }

    /// Advances the clock second by second and runs everything that becomes due.
    pub async fn let_pass(&self, seconds: i64) {
        for _ in 0..seconds {
            self.app.data.clock.advance(chrono::Duration::seconds(1));
            self.app.service.jobs.run_due().await.unwrap();
            self.settle().await;
        }
    }

    /// Runs the due jobs.
    pub async fn run(&self) {
        self.app.service.jobs.run_due().await.unwrap();
    }

    /// Advances the clock by days and runs the due jobs.
    pub async fn days(&self, days: i64) {
        self.app.data.clock.advance(chrono::Duration::days(days));
        self.run().await;
    }

    /// Returns the messages of a contact from the API.
    pub async fn messages_of(&self, contact: &Value) -> Vec<Value> {
        let all = self.get(&format!("/contacts/{contact}/messages")).await.expect(200);
        all.as_array().unwrap().clone()
    }

    /// Sends a document of a customer. Returns the contact and the attachment of the message.
    pub async fn document(&self, customer: &User) -> (Value, Value) {
        let document =
            simulator::Action::Document { file_name: "order.txt".to_owned(), content: "A lamp".to_owned() };
        self.network.act(&customer.user_id, &document).unwrap();
        self.settle().await;
        let contact = self.only_contact().await["id"].clone();
        let attachment = self.attachment(&contact).await;
        assert_eq!(attachment["status"], "ready", "{attachment}");
        (contact, attachment)
    }

    /// Returns the attachment of the first message of type `document`.
    async fn attachment(&self, contact: &Value) -> Value {
        let messages = self.messages_of(contact).await;
        let mut with = messages.iter().filter(|message| message["type"] == "document");
        with.next().unwrap()["attachments"][0].clone()
    }

    /// Returns whether a file is in the trash.
    pub async fn is_trashed(&self, file: &Value) -> bool {
        self.get(&format!("/files/{file}")).await.expect(200)["trashed_at"] != Value::Null
    }

    /// Counts the rows that belong to deleted messages.
    pub async fn remains(&self) -> i64 {
        let tables = ["message_statuses", "message_terms", "message_attachments"];
        let orphans = |table: &str| {
            format!("(SELECT count(*) FROM {table} WHERE message_id NOT IN (SELECT id FROM messages))")
        };
        self.count(&format!("SELECT {} AS n", tables.map(orphans).join(" + "))).await
    }

    /// Counts the rows of conversations with a contact.
    pub async fn kept_of(&self, contact: &Value) -> i64 {
        let of = |table: &str| format!("(SELECT count(*) FROM {table} WHERE contact_id = {contact})");
        let tables = ["conversations", "messages", "message_attachments"];
        self.count(&format!("SELECT {} AS n", tables.map(of).join(" + "))).await
    }

    /// Deletes a contact permanently.
    pub async fn erase(&self, contact: &Value) {
        self.app.delete(&format!("/contacts/{contact}?erase=true"), &self.key).await.expect(200);
        self.run().await;
    }

    /// Uploads a file. Returns its id and its path.
    pub async fn upload_prices(&self) -> (Value, String) {
        let file = self.upload().await;
        let path = format!("/files/{file}");
        (file, path)
    }

    /// Uploads a file and returns its id.
    pub async fn upload(&self) -> Value {
        self.upload_as("prices.txt", b"Lamp: 10").await
    }

    /// Uploads a file with this name and content, and returns its id.
    pub async fn upload_as(&self, name: &str, content: &[u8]) -> Value {
        let ask = self.app.ask("POST", "/files").key(&self.key).form(&[], (name, content));
        ask.send().await.expect(201)["id"].clone()
    }

    /// Returns the network's ids of the files in sent messages.
    pub fn media(&self) -> Vec<String> {
        let sent = self.network.transcript();
        let id = |content: &Value| {
            let header = content.pointer("/components/0/parameters/0/document/id");
            header.or_else(|| content.get("id")).and_then(Value::as_str).unwrap().to_owned()
        };
        sent.iter()
            .filter(|sent| matches!(sent.kind.as_str(), "template" | "document"))
            .map(|sent| id(&sent.content))
            .collect()
    }

    /// Starts a service with the template `prices`, which has a document as its header.
    pub async fn with_prices(kind: Kind) -> Self {
        let app = Self::open(kind).await;
        let new = json!({
            "name": "prices", "language": "en", "category": "utility",
            "components": { "header": { "format": "document", "sample": "4::aW" }, "body": { "text": "Our prices are here." } },
        });
        app.post(&app.path("/chatnet/templates"), new).await.expect(201);
        app.network.review("prices", "en", &simulator::Review::Approve).unwrap();
        app.settle().await;
        app
    }

    /// Returns a path below the channel.
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

/// Returns the data to connect a number of the network.
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
