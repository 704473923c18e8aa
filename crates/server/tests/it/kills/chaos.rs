//! Deliveries through storms, with the real program: receivers that fail in every way, workers killed with `kill -9`, a
//! database that drops every connection. Every event arrives at least once, in its entity's order, and no lease stays.
//!
//! `SVC_CHAOS_EVENTS` sets how many events there are: 800 by default, so that it fits into `make test`.

use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{Cause, Timestamp, WorkspaceId};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use testkit::{Answering, Delivered, Kind, MessageSent, Program, Receiver, TestDb};
use webhooks::schema::{webhook_deliveries, webhook_queues};

const ENTITIES: i64 = 200;

fn events() -> i64 {
    std::env::var("SVC_CHAOS_EVENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(800)
}

/// What the receiver does: most is accepted; of the first attempts some go wrong in one way or another.
fn weather(one: &Delivered) -> Answering {
    let event = one.json();
    // Hashed, because five neighbours that fail open the breaker, which then waits for minutes.
    let mut hasher = DefaultHasher::new();
    event["data"]["content"].as_str().unwrap().hash(&mut hasher);
    let lot = hasher.finish() % 1000;
    if one.headers["x-svc-attempt"] != "1" {
        return Answering::status(200);
    }
    match lot {
        0..20 => Answering::status(500),
        20..30 => Answering::HangUp,
        30..40 => Answering::with(302, "location", "http://127.0.0.1:1/"),
        40..50 => Answering::with(429, "retry-after", "1"),
        50..60 => Answering::Slow(Duration::from_millis(300)),
        60 => Answering::Silent,
        _ => Answering::status(200),
    }
}

/// Leases last 30 seconds of the machine's time: to the next worker it looks as if they had passed.
async fn let_leases_end(data: &TestDb) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = data.db.write(move |tx| {
        let held = webhook_queues::table.filter(webhook_queues::lease_until.is_not_null());
        Ok(diesel::update(held).set(webhook_queues::lease_until.eq(past)).execute(tx.connection())?)
    });
    ended.await.unwrap();
}

/// As if the database had been restarted.
async fn drop_connections(data: &TestDb) {
    let dropped = data.db.read(|read| {
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        Ok(diesel::sql_query(others).execute(read.connection())?)
    });
    dropped.await.unwrap();
    // Whether commits of these moments are kept is not known, so the first writes may fail.
    while data.db.write(|_| Ok(())).await.is_err() {}
}

async fn emit_events(data: &TestDb, workspace: WorkspaceId, from: i64, to: i64) {
    for start in (from..to).step_by(100) {
        let numbers = start..(start + 100).min(to);
        let emitted = data.db.write(move |tx| {
            for number in numbers.clone() {
                let event = MessageSent::new(number % ENTITIES, number.to_string());
                tx.emit(workspace, &Cause::system("test"), true, &event)?;
            }
            Ok(())
        });
        emitted.await.unwrap();
    }
}

/// The numbers of the events that were accepted, each where it was accepted first.
fn accepted(receiver: &Receiver, path: &str) -> Vec<(i64, i64)> {
    let mut seen = BTreeSet::new();
    let all = receiver.delivered();
    let here = all.iter().filter(|one| one.path == path && one.accepted);
    here.map(|one| one.json()["data"].clone())
        .map(|about| {
            (about["contact_id"].as_i64().unwrap(), about["content"].as_str().unwrap().parse().unwrap())
        })
        .filter(|(_, number)| seen.insert(*number))
        .collect()
}

#[testkit::both]
async fn every_event_arrives_through_the_storm(kind: Kind) {
    let program =
        Program::new(kind, env!("CARGO_BIN_EXE_svc")).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8");
    let (client, data) = (program.client(), &program.data);
    let receiver = Receiver::start().await;
    receiver.answer(weather);
    let key = program.key("webhooks:manage,conversations:read,events:read");
    let workspace = key.workspace;
    // SQLite has one process; on PostgreSQL two share the work.
    let mut workers = vec![program.serve().await];
    if kind == Kind::Postgres {
        workers.push(program.serve_at(&Program::address()).await);
    }
    for (path, ordering) in [("/none", "none"), ("/ordered", "per_entity")] {
        let body =
            json!({ "url": receiver.url(path), "enabled_events": ["contact.*"], "ordering": ordering });
        client.ask("POST", "/webhook-endpoints").key(&key).json(&body).send().await.expect(201);
    }
    let events = events();
    for round in 0..2 {
        emit_events(data, workspace, events * round / 2, events * (round + 1) / 2).await;
        let enough = usize::try_from(events * (round + 1) / 4).unwrap();
        patiently("deliveries are under way", async || receiver.count() > enough).await;
        workers.pop().unwrap().kill();
        if kind == Kind::Postgres && round == 0 {
            drop_connections(data).await;
        }
        let_leases_end(data).await;
        workers.push(program.serve_at(&Program::address()).await);
    }
    let open = async || {
        let left = data.db.read(|read| {
            Ok(webhook_deliveries::table
                .filter(webhook_deliveries::status.ne("succeeded"))
                .count()
                .get_result::<i64>(read.connection())?)
        });
        // Connections that the storm has cut come to light when they are used.
        left.await.unwrap_or(-1)
    };
    patiently("every delivery succeeds", async || open().await == 0).await;
    for path in ["/none", "/ordered"] {
        let numbers: BTreeSet<i64> =
            accepted(&receiver, path).into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (0..events).collect(), "{path}");
    }
    let mut last: BTreeMap<i64, i64> = BTreeMap::new();
    for (entity, number) in accepted(&receiver, "/ordered") {
        let before = last.insert(entity, number);
        assert!(before.is_none_or(|before| before < number), "{number} came after {before:?}");
    }
    let bodies: BTreeMap<String, BTreeSet<Vec<u8>>> =
        receiver.delivered().into_iter().fold(BTreeMap::new(), |mut bodies, one| {
            bodies.entry(one.headers["webhook-id"].clone()).or_default().insert(one.body);
            bodies
        });
    assert!(bodies.values().all(|bodies| bodies.len() == 1), "an event has one body, to all and always");
    patiently("no lease stays", async || {
        let held = data.db.read(|read| {
            let held = webhook_queues::table.filter(webhook_queues::lease_until.is_not_null());
            Ok(held.count().get_result::<i64>(read.connection())?)
        });
        held.await.unwrap_or(-1) == 0
    })
    .await;
}

/// Waits for up to four minutes, and longer for more events than by default.
async fn patiently(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let patience = Duration::from_secs(240) + Duration::from_millis(50) * u32::try_from(events()).unwrap();
    assert!(tokio::time::timeout(patience, waiting).await.is_ok(), "{what}: it did not happen");
}
