//! Callbacks in a storm: doubled, shuffled and batched, with statuses before the messages that they are about.
//!
//! `SVC_TEST_CALLBACKS` says how many callbacks, 600 if not set; `SVC_TEST_SEED` shuffles them otherwise.

use crate::support::Desk;
use diesel::prelude::*;
use futures::StreamExt;
use futures::stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::Backend;
use testkit::{Kind, until};

const CUSTOMERS: usize = 40;
/// 2026-01-15 11:00:00 UTC, an hour before the clock of tests.
const BEGIN: i64 = 1_768_474_800;

/// A repeatable generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for place in (1..all.len()).rev() {
            all.swap(place, self.below(place + 1));
        }
    }
}

/// A part of a callback.
#[derive(Clone)]
enum Part {
    Message(Value),
    Echo(Value),
    Status(Value),
}

fn phone(customer: usize) -> String {
    format!("55119876{customer:05}")
}

fn text(customer: usize, id: &str, at: i64) -> Value {
    let body = json!({ "body": format!("Text of {id}") });
    json!({ "from": phone(customer), "id": id, "timestamp": at.to_string(), "type": "text", "text": body })
}

fn echo(customer: usize, id: &str, at: i64) -> Value {
    let body = json!({ "body": "From the phone" });
    json!({ "from": "551130000000", "to": phone(customer), "id": id, "timestamp": at.to_string(), "type": "text", "text": body })
}

fn body(parts: &[Part]) -> String {
    let about = || {
        json!({
            "messaging_product": "whatsapp",
            "metadata": { "display_phone_number": "551130000000", "phone_number_id": "foreseen" },
        })
    };
    let (mut value, mut changes) = (about(), Vec::new());
    let of = |wanted: fn(&Part) -> Option<&Value>| -> Vec<Value> {
        parts.iter().filter_map(wanted).cloned().collect()
    };
    let messages = of(|part| if let Part::Message(message) = part { Some(message) } else { None });
    let statuses = of(|part| if let Part::Status(status) = part { Some(status) } else { None });
    let echoes = of(|part| if let Part::Echo(echo) = part { Some(echo) } else { None });
    let contacts: Vec<Value> = messages
        .iter()
        .map(|message| json!({ "profile": { "name": "Ana" }, "wa_id": message["from"] }))
        .collect();
    for (key, rows) in [("contacts", contacts), ("messages", messages), ("statuses", statuses)] {
        if !rows.is_empty() {
            value[key] = json!(rows);
        }
    }
    changes.push(json!({ "field": "messages", "value": value }));
    if !echoes.is_empty() {
        let mut value = about();
        value["message_echoes"] = json!(echoes);
        changes.push(json!({ "field": "smb_message_echoes", "value": value }));
    }
    json!({ "object": "whatsapp_business_account", "entry": [{ "id": "1", "changes": changes }] }).to_string()
}

/// What the network says of a message: which statuses, and when.
struct Life {
    customer: usize,
    statuses: Vec<(&'static str, i64)>,
}

impl Life {
    fn new(dice: &mut Dice, number: usize) -> Self {
        const LIVES: [&[&str]; 7] = [
            &["sent", "delivered", "read"],
            &["sent", "delivered", "read"],
            &["sent", "delivered"],
            &["sent", "read"],
            &["sent", "failed"],
            &["sent", "failed", "delivered"],
            &["sent"],
        ];
        let mut at = BEGIN + i64::try_from(number).unwrap();
        let timed = LIVES[dice.below(LIVES.len())].iter().map(|status| {
            at += 1 + i64::try_from(dice.below(20)).unwrap();
            (*status, at)
        });
        Self { customer: number % CUSTOMERS, statuses: timed.collect() }
    }

    fn parts(&self, id: &str, reference: Option<i64>) -> Vec<Part> {
        let part = |(status, at): &(&str, i64)| {
            let mut part = json!({ "id": id, "status": status, "timestamp": at.to_string(), "recipient_id": phone(self.customer) });
            if let Some(reference) = reference {
                part["biz_opaque_callback_data"] = json!(reference.to_string());
            }
            if *status == "failed" {
                part["errors"] = json!([{ "code": 131_026, "title": "Message undeliverable" }]);
            }
            Part::Status(part)
        };
        self.statuses.iter().map(part).collect()
    }

    /// The status that the message ends with, in whatever order they come.
    fn end(&self) -> &'static str {
        let has = |wanted: &str| self.statuses.iter().any(|(status, _)| *status == wanted);
        ["read", "delivered", "failed"].into_iter().find(|status| has(status)).unwrap_or("sent")
    }
}

#[derive(diesel::QueryableByName)]
struct Stored {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    id: i64,
    #[diesel(sql_type = diesel::sql_types::Text)]
    provider_id: String,
    #[diesel(sql_type = diesel::sql_types::Text)]
    direction: String,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Text>)]
    status: Option<String>,
}

#[derive(diesel::QueryableByName)]
struct Noted {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    message_id: i64,
    #[diesel(sql_type = diesel::sql_types::Text)]
    status: String,
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    second: i64,
}

impl Desk {
    async fn stored(&self) -> Vec<Stored> {
        let read = self.app.db().read(|read| {
            let query =
                "SELECT id, provider_message_id AS provider_id, direction, status FROM messages ORDER BY id";
            Ok(diesel::sql_query(query).load(read.connection())?)
        });
        read.await.unwrap()
    }

    /// How often each status of each message was noted, by message, status and second.
    async fn history(&self) -> BTreeMap<(i64, String, i64), usize> {
        let second = match self.app.data.backend {
            Backend::Sqlite(_) => "CAST(strftime('%s', reported_at) AS INTEGER)",
            Backend::Postgres(_) => "CAST(extract(epoch FROM reported_at) AS BIGINT)",
        };
        let query = format!("SELECT message_id, status, {second} AS second FROM message_statuses");
        let read =
            self.app.db().read(move |read| Ok(diesel::sql_query(&query).load::<Noted>(read.connection())?));
        let mut counts = BTreeMap::new();
        for noted in read.await.unwrap() {
            *counts.entry((noted.message_id, noted.status, noted.second)).or_default() += 1;
        }
        counts
    }
}

/// How many there are of a setting.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[testkit::both]
async fn every_message_is_there_once_and_no_status_falls_back(kind: Kind) {
    let callbacks = usize::try_from(setting("SVC_TEST_CALLBACKS", 600)).unwrap();
    let mut dice = Dice(setting("SVC_TEST_SEED", 1));
    let desk = Desk::open(kind).await;
    let (channel, _network) = desk.foreseen_channel().await;
    let path = format!("/callbacks/{channel}");

    // Each customer writes once, so that it can be written to; then messages wait in the outbox.
    for customer in 0..CUSTOMERS {
        desk.post_callback(
            &path,
            &body(&[Part::Message(text(customer, &format!("first.{customer}"), BEGIN))]),
        )
        .await;
    }
    desk.app.service.channels.run_due().await.unwrap();
    let contacts = desk.get("/contacts?limit=100").await.expect(200);
    let id_of = |customer: usize| {
        let phone = format!("+{}", phone(customer));
        contacts
            .as_array()
            .unwrap()
            .iter()
            .find(|contact| contact["data"]["$phone"] == phone.as_str())
            .unwrap()["id"]
            .clone()
    };
    let ids: Vec<Value> = (0..CUSTOMERS).map(id_of).collect();
    let (messages, lives) = (callbacks * 2, callbacks / 4);
    let mut expected: BTreeMap<String, Life> = BTreeMap::new();
    let mut parts: Vec<Part> = Vec::new();
    for number in 0..lives {
        let life = Life::new(&mut dice, number);
        if number % 4 == 0 {
            // Written on the business's own phone.
            let id = format!("wamid.phone.{number}");
            parts.push(Part::Echo(echo(life.customer, &id, BEGIN + 1)));
            parts.extend(life.parts(&id, None));
            expected.insert(id, life);
            continue;
        }
        let send = format!("/contacts/{}/send-message", ids[life.customer]);
        let sent = desk
            .post(&send, json!({ "text": format!("Number {number}"), "channel_id": channel }))
            .await
            .expect(200);
        let message = sent["message_id"].as_i64().unwrap();
        let id = format!("wamid.sent.{message}");
        // Not all networks repeat the reference: without it a status that comes first waits.
        parts.extend(life.parts(&id, (number % 4 == 1).then_some(message)));
        expected.insert(id, life);
    }
    let heard = |number: usize| text(number % CUSTOMERS, &format!("wamid.heard.{number}"), BEGIN + 1);
    parts.extend((0..messages).map(|number| Part::Message(heard(number))));
    let again: Vec<Part> = (0..parts.len() / 2).map(|_| parts[dice.below(parts.len())].clone()).collect();
    parts.extend(again);
    dice.shuffle(&mut parts);
    // As many callbacks as were asked for; some of them come again as a whole.
    let size = parts.len().div_ceil(callbacks * 9 / 10);
    let mut bodies: Vec<String> = parts.chunks(size).map(body).collect();
    while bodies.len() < callbacks {
        bodies.push(bodies[dice.below(bodies.len())].clone());
    }
    dice.shuffle(&mut bodies);

    // The workers take them apart and send, while they come in over eight connections.
    let working = desk.app.service.channels.start();
    stream::iter(&bodies).for_each_concurrent(8, |body| desk.post_callback(&path, body)).await;
    let left = || {
        desk.count("SELECT (SELECT count(*) FROM channel_callbacks WHERE status <> 'done') + (SELECT count(*) FROM message_outbox) AS n")
    };
    let mut before = -1;
    loop {
        let now = left().await;
        if now == 0 {
            break;
        }
        assert_ne!(now, before, "nothing moves");
        before = now;
        until("some are taken apart", async || (left().await != now).then_some(())).await;
    }
    working.stop(std::time::Duration::from_secs(5)).await;

    assert_eq!(
        desk.count("SELECT count(*) AS n FROM early_statuses").await,
        0,
        "no status waits for a message that is there"
    );
    let errors = "SELECT count(*) AS n FROM channel_errors WHERE code <> 'agent_not_configured'";
    assert_eq!(desk.count(errors).await, 0);
    assert_eq!(desk.get("/contacts?limit=100").await.expect(200).as_array().unwrap().len(), CUSTOMERS);
    let stored = desk.stored().await;
    let heard: BTreeSet<&str> =
        stored.iter().filter(|row| row.direction == "inbound").map(|row| row.provider_id.as_str()).collect();
    assert_eq!((heard.len(), stored.len()), (messages + CUSTOMERS, messages + CUSTOMERS + expected.len()));
    let history = desk.history().await;
    for row in stored.iter().filter(|row| row.direction == "outbound") {
        let life = &expected[&row.provider_id];
        assert_eq!(row.status.as_deref(), Some(life.end()), "{}: {:?}", row.provider_id, life.statuses);
        for (status, at) in &life.statuses {
            assert_eq!(
                history.get(&(row.id, (*status).to_owned(), *at)),
                Some(&1),
                "{}: {status}",
                row.provider_id
            );
        }
    }
    let received = "SELECT count(*) AS n FROM events WHERE kind = 'contact.message.received'";
    assert_eq!(desk.count(received).await, i64::try_from(messages + CUSTOMERS).unwrap());
}
