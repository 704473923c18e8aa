//! The program with a channel to a simulated network, which runs in the test's process.

use broadcasts::schema::broadcast_recipients;
use channels::schema::{channel_callbacks, channels as channel_rows};
use conversations::schema::message_outbox;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::Timestamp;
use serde_json::{Value, json};
use simulator::{Settings, Simulator};
use std::collections::BTreeMap;
use store::schema::jobs;
use testkit::{Client, Key, Kind, Program, until};

pub struct Shop {
    pub program: Program,
    pub network: Simulator,
    pub key: Key,
    pub channel: i64,
}

const SCOPES: &str = "agents:write,runs:execute,contacts:read,contacts:write,channels:read,channels:manage,channels:send,\
    conversations:read,conversations:write";

/// A number that the environment says.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A recipient's number.
fn phone(place: usize) -> String {
    format!("+55119{:08}", 80_000_000 + place)
}

impl Shop {
    /// A channel that sends so many messages per second; 0 for no limit. Nothing serves yet. Processes have few connections to
    /// the database, so that the answers which are made at a time wait for them.
    /// The network calls back over so many connections: with one, in order.
    pub async fn open(kind: Kind, messages_per_second: usize, callback_connections: usize) -> Self {
        let program =
            Program::new(kind, env!("CARGO_BIN_EXE_svc")).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8");
        let program = program.with("SVC_DATABASE_CONNECTIONS", "3");
        let key = program.key(SCOPES);
        let seed = setting("SVC_TEST_SEED", 1) as u64;
        let network = Settings {
            seed,
            callback_connections,
            rates: false,
            approve_after: Some(std::time::Duration::ZERO),
            ..Settings::default()
        };
        let network = Simulator::start(network).unwrap();
        let connection = network.connection();
        // The network is on this thread, which waits for the command, so it cannot be asked.
        let connected = program.run(&[
            "channel",
            "connect",
            "--no-check",
            "--workspace",
            &key.workspace.to_string(),
            "--name",
            "Shop",
            "--provider",
            "simulator",
            "--messages-per-second",
            &messages_per_second.to_string(),
            "--reply-debounce-ms",
            "2000",
            "--network-url",
            &connection.base_url,
            "--number-id",
            &connection.number_id,
            "--business-id",
            &connection.business_id,
            "--access-token",
            &connection.access_token,
            "--app-secret",
            &connection.app_secret,
            "--verify-token",
            &connection.verify_token,
            "--key",
            &key.id.to_string(),
        ]);
        let shop = Self { program, network, key, channel: connected["id"].as_i64().unwrap() };
        shop.call_back_at(&shop.program.listen);
        shop
    }

    /// Whom the network calls back.
    pub fn call_back_at(&self, listen: &str) {
        let url = format!("http://{listen}/callbacks/{}", self.channel);
        self.network.set_callback(&self.network.connection().number_id, Some(&url)).unwrap();
    }

    pub async fn post(&self, client: &Client, path: &str, body: Value) -> Value {
        let answer = client.ask("POST", path).key(&self.key).json(&body).send().await;
        assert!((200..=201).contains(&answer.status), "{path}: {}", answer.text);
        answer.body["data"].clone()
    }

    /// Contacts, a template, and a broadcast of it to all of them, which begins.
    pub async fn broadcast(&self, client: &Client, recipients: usize) -> i64 {
        for start in (0..recipients).step_by(500) {
            let row = |place| json!({ "data": { "$name": format!("C{place}"), "$phone": phone(place) } });
            let rows: Vec<Value> = (start..recipients.min(start + 500)).map(row).collect();
            self.post(client, "/contacts/bulk-upsert", json!({ "rows": rows })).await;
        }
        let components = json!({ "body": { "text": "We are open again." } });
        let template =
            json!({ "name": "notice", "language": "en", "category": "utility", "components": components });
        let templates = format!("/channels/{}/chatnet/templates", self.channel);
        self.post(client, &templates, template).await;
        until("the template is approved", async || {
            let all = client.ask("GET", &templates).key(&self.key).send().await.expect(200);
            (all[0]["status"] == "approved").then_some(())
        })
        .await;
        let new = json!({
            "name": "Notice", "channel_id": self.channel, "template": { "name": "notice", "language": "en" },
            "audience": { "filter_tree": { "field": "$name", "op": "like", "value": "C%" } },
        });
        let id = self.post(client, "/broadcasts", new).await["id"].as_i64().unwrap();
        self.post(client, &format!("/broadcasts/{id}/send"), json!({})).await;
        id
    }

    pub async fn shown(&self, client: &Client, broadcast: i64) -> Value {
        client.ask("GET", &format!("/broadcasts/{broadcast}")).key(&self.key).send().await.expect(200)
    }

    /// Waits until the network has accepted so many messages, as long as that goes on.
    pub async fn accepted(&self, messages: usize) {
        let enough = |network: &Simulator| network.accepted() >= messages as u64;
        let mut before = self.network.accepted();
        while !self.network.wait_until(enough).await {
            let now = self.network.accepted();
            assert!(now > before, "{now} of {messages} are accepted, and no more come");
            before = now;
        }
    }

    /// The leases last for a while of the machine's time: to the next process it looks as if that had passed.
    pub async fn let_leases_end(&self) {
        let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let ended = self.program.data.db.write(move |tx| {
            diesel::update(channel_rows::table.filter(channel_rows::lease_until.is_not_null()))
                .set(channel_rows::lease_until.eq(past))
                .execute(tx.connection())?;
            diesel::update(jobs::table.filter(jobs::lease_until.is_not_null()))
                .set(jobs::lease_until.eq(past))
                .execute(tx.connection())?;
            Ok(())
        });
        ended.await.unwrap();
    }

    /// Waits until the broadcast is completed and all that the network said is taken apart, as long as that goes on.
    pub async fn completed(&self, client: &Client, broadcast: i64) {
        let look = async || {
            let shown = self.shown(client, broadcast).await;
            let is_over = shown["status"] == "completed" && self.left().await == 0 && self.network.is_quiet();
            (is_over, self.left().await, self.network.callbacks(), shown["counts"].clone())
        };
        let mut now = look().await;
        while !now.0 {
            now =
                until("the broadcast goes on", async || Some(look().await).filter(|next| *next != now)).await;
        }
    }

    /// How many callbacks and messages wait.
    pub async fn left(&self) -> i64 {
        let left = self.program.data.db.read(|read| {
            let pending = channel_callbacks::table.filter(channel_callbacks::status.ne("done"));
            let pending: i64 = pending.count().get_result(read.connection())?;
            let unsent: i64 = message_outbox::table.count().get_result(read.connection())?;
            Ok(pending + unsent)
        });
        left.await.unwrap()
    }

    /// Compares what the service says of each recipient with what the network accepted, and the counts with both. Gives how
    /// many are `unknown`: of those the network has nothing, because it says so of all that it has.
    pub async fn expect_exactly_one_each(&self, client: &Client, broadcast: i64, recipients: usize) -> usize {
        let rows = self.program.data.db.read(move |read| {
            let rows = broadcast_recipients::table
                .filter(broadcast_recipients::broadcast_id.eq(model::BroadcastId(broadcast)));
            let rows = rows.select((broadcast_recipients::address, broadcast_recipients::state));
            Ok(rows.load::<(Option<String>, String)>(read.connection())?)
        });
        let rows = rows.await.unwrap();
        assert_eq!(rows.len(), recipients);
        let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
        for sent in self.network.transcript().iter().filter(|sent| sent.kind == "template") {
            *accepted.entry(sent.to.trim_start_matches('+').to_owned()).or_default() += 1;
        }
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for (address, state) in rows {
            let address = address.unwrap();
            let times = accepted.remove(address.trim_start_matches('+')).unwrap_or(0);
            let expected = match state.as_str() {
                "sent" | "delivered" | "read" => 1,
                "unknown" => 0,
                other => panic!("{address} is {other} at the end"),
            };
            assert_eq!(times, expected, "{address} is {state}");
            *counts.entry(state).or_default() += 1;
        }
        assert!(accepted.is_empty(), "others got it: {accepted:?}");
        let shown = self.shown(client, broadcast).await["counts"].clone();
        for (state, count) in shown.as_object().unwrap() {
            let expected = match state.as_str() {
                "total" => i64::try_from(recipients).unwrap(),
                state => counts.get(state).copied().unwrap_or(0),
            };
            assert_eq!(count, expected, "{state}: {shown}");
        }
        usize::try_from(counts.get("unknown").copied().unwrap_or(0)).unwrap()
    }
}
