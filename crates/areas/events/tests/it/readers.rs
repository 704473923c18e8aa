//! Durable readers of the log: every event exactly once and in its order, whatever fails between.

use chrono::Duration;
use diesel::prelude::*;
use diesel::sql_types::Text;
use events::{Catalogue, EVENT_LOG, EventConsumer, EventReader, Feed, LoggedEvent, Readers, Turn};
use model::{Error, EventId, Random, Result, SeededRandom, WorkspaceId};
use serde_json::json;
use std::sync::{Arc, Mutex};
use store::logs::{Logs, Retention, Retentions};
use store::{Db, Tx, each};
use testkit::{ConversionSent, Kind, MessageSent, TestApp};
use tokio_util::sync::CancellationToken;

/// What goes wrong while a batch is taken.
#[derive(Debug, Clone, Copy)]
enum Fault {
    BeforeWriting,
    Between,
    AfterWriting,
    Panic,
}

/// Copies the ids of messages that were sent.
struct Copying {
    wanted: &'static [&'static str],
    faults: Mutex<Vec<Fault>>,
}

impl Copying {
    fn of(wanted: &'static [&'static str]) -> Arc<Self> {
        Arc::new(Self { wanted, faults: Mutex::default() })
    }

    fn messages() -> Arc<Self> {
        Self::of(&["contact.message.sent"])
    }

    fn fails(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }
}

impl EventConsumer for Copying {
    fn name(&self) -> &'static str {
        "copying"
    }

    fn wants(&self, kind: &str) -> bool {
        self.wanted.contains(&kind)
    }

    fn take(&self, tx: &mut Tx, events: &[LoggedEvent]) -> Result<()> {
        let fault = self.faults.lock().unwrap().pop();
        let fail = |at: Fault| Err(Error::internal(format!("the consumer fails: {at:?}")));
        if let Some(at @ Fault::BeforeWriting) = fault {
            return fail(at);
        }
        for event in events {
            let insert =
                diesel::sql_query("INSERT INTO taken (event) VALUES ($1)").bind::<Text, _>(&event.id);
            each!(tx.connection(), |connection| insert.execute(connection))?;
            if let Some(at @ Fault::Between) = fault {
                return fail(at);
            }
        }
        match fault {
            Some(at @ Fault::AfterWriting) => fail(at),
            Some(Fault::Panic) => {
                assert!(events.is_empty(), "the consumer panics");
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A service with a table to which events are copied.
async fn open(kind: Kind) -> TestApp {
    let app = TestApp::new(kind).await;
    let id = if kind == Kind::Postgres { "BIGINT GENERATED ALWAYS AS IDENTITY" } else { "INTEGER" };
    app.sql(format!("CREATE TABLE taken (id {id} PRIMARY KEY, event TEXT NOT NULL)")).await;
    app
}

fn reader(app: &TestApp, db: &Db, consumer: &Arc<Copying>) -> EventReader {
    let catalogue = app.service.pipeline.services.get::<Catalogue>().unwrap();
    EventReader::new(db.clone(), catalogue, consumer.clone())
}

/// Emits events about sent messages, and places them in the log. Returns their ids.
async fn emitted(app: &TestApp, workspace: WorkspaceId, count: i64) -> Vec<EventId> {
    let mut sent = Vec::new();
    for number in 1..=count {
        sent.push(app.emit(workspace, MessageSent::new(number, "a")).await);
    }
    app.deliver().await;
    sent
}

/// The ids that were copied, in the order in which they were.
async fn taken(app: &TestApp) -> Vec<EventId> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        event: EventId,
    }
    let read = app.db().read(|read| {
        let rows: Vec<Row> =
            diesel::sql_query("SELECT event FROM taken ORDER BY id").load(read.connection())?;
        Ok(rows.into_iter().map(|row| row.event).collect())
    });
    read.await.unwrap()
}

/// Deletes all events that may be deleted. Returns how many those were.
async fn trim(app: &TestApp) -> i64 {
    app.data.clock.advance(Duration::seconds(1));
    let retentions = Retentions::default().with(EVENT_LOG.name, Retention::of_days(0));
    let logs = Logs::new(&[EVENT_LOG], &retentions).unwrap();
    let before = stored(app).await;
    assert!(logs.trim(app.db(), &CancellationToken::new()).await.unwrap());
    before - stored(app).await
}

async fn stored(app: &TestApp) -> i64 {
    let count =
        app.db().read(|read| Ok(store::schema::events::table.count().get_result(read.connection())?));
    count.await.unwrap()
}

/// Reports 5 and 6 (hatchet-dev/hatchet#552, gagan114662/openbot#33 and others): a worker that comes back does its work twice, or
/// nobody may go on with it.
#[testkit::both]
async fn every_event_is_taken_once_whatever_fails(kind: Kind) {
    const FAULTS: [Fault; 4] = [Fault::BeforeWriting, Fault::Between, Fault::AfterWriting, Fault::Panic];
    for seed in 1..=5 {
        let app = open(kind).await;
        let workspace = app.workspace().await;
        let (consumer, other) = (Copying::messages(), app.data.reopen());
        let mut readers = [reader(&app, app.db(), &consumer), reader(&app, &other, &consumer)];
        assert_eq!(readers[0].turn().await.unwrap(), Turn::Idle);
        let random = SeededRandom::new(seed);
        let (mut sent, mut draw) = (Vec::new(), [0_u8; 3]);
        for _ in 0..90 {
            random.fill(&mut draw);
            let (which, of) = (usize::from(draw[1] % 2), usize::from(draw[2]));
            match draw[0] % 10 {
                0..=2 => {
                    for number in 0..draw[2] % 3 + 1 {
                        sent.push(app.emit(workspace, MessageSent::new(number.into(), "a")).await);
                    }
                }
                3 => drop(app.emit(workspace, ConversionSent::new("a")).await),
                4 => drop(app.deliver().await),
                5 | 6 => drop(readers[which].turn().await),
                7 => consumer.fails(FAULTS[of % FAULTS.len()]),
                8 => {
                    app.data.clock.advance(Duration::seconds(i64::from(draw[2] % 40)));
                    if of % 3 == 0 {
                        trim(&app).await;
                    }
                }
                // It dies without a word, or gives its lease back.
                _ if of % 2 == 0 => {
                    let db = if which == 0 { app.db() } else { &other };
                    readers[which] = reader(&app, db, &consumer);
                }
                _ => readers[which].hand_back().await.unwrap(),
            }
        }
        consumer.faults.lock().unwrap().clear();
        app.deliver().await;
        app.data.clock.advance(Duration::seconds(31));
        reader(&app, app.db(), &consumer).run_due().await.unwrap();
        for mut late in readers {
            assert!(!matches!(late.turn().await.unwrap(), Turn::Taken(_)));
        }
        assert_eq!(taken(&app).await, sent, "{seed}");
    }
}

#[testkit::both]
async fn a_lease_passes_on_and_its_old_owner_takes_nothing(kind: Kind) {
    let app = open(kind).await;
    let workspace = app.workspace().await;
    let (consumer, db) = (Copying::messages(), app.data.reopen());
    let (mut one, mut other) = (reader(&app, app.db(), &consumer), reader(&app, &db, &consumer));
    assert_eq!(one.turn().await.unwrap(), Turn::Idle);
    let first = app.emit(workspace, MessageSent::new(1, "a")).await;
    app.deliver().await;
    assert_eq!(other.turn().await.unwrap(), Turn::Elsewhere);
    assert_eq!(one.turn().await.unwrap(), Turn::Taken(1));
    let second = app.emit(workspace, MessageSent::new(2, "b")).await;
    app.deliver().await;
    app.data.clock.advance(Duration::seconds(31));
    assert_eq!(other.turn().await.unwrap(), Turn::Taken(1));
    // It wakes up late, with events before it that it believes to be its own.
    assert_eq!(one.turn().await.unwrap(), Turn::Elsewhere);
    let third = app.emit(workspace, MessageSent::new(3, "c")).await;
    app.deliver().await;
    assert_eq!(one.turn().await.unwrap(), Turn::Elsewhere);
    other.hand_back().await.unwrap();
    assert_eq!(one.turn().await.unwrap(), Turn::Taken(1));
    assert_eq!(other.turn().await.unwrap(), Turn::Elsewhere);
    assert_eq!(taken(&app).await, [first, second, third]);
}

#[testkit::both]
async fn an_event_that_fails_holds_up_only_what_comes_after_it(kind: Kind) {
    let app = open(kind).await;
    let workspace = app.workspace().await;
    let consumer = Copying::messages();
    let mut reader = reader(&app, app.db(), &consumer);
    reader.turn().await.unwrap();
    let sent = emitted(&app, workspace, 3).await;
    // SQLite tries a transaction that fails again, apart from the others of its group.
    for _ in 0..3 {
        consumer.fails(Fault::AfterWriting);
    }
    assert!(reader.turn().await.is_err());
    consumer.faults.lock().unwrap().clear();
    assert_eq!(reader.turn().await.unwrap(), Turn::Taken(1));
    assert_eq!(taken(&app).await, sent[..1]);
    assert_eq!(reader.turn().await.unwrap(), Turn::Taken(2));
    assert_eq!(taken(&app).await, sent);
}

#[testkit::both]
async fn the_log_is_not_trimmed_past_a_reader(kind: Kind) {
    let app = open(kind).await;
    let workspace = app.workspace().await;
    let consumer = Copying::messages();
    let mut reader = reader(&app, app.db(), &consumer);
    reader.turn().await.unwrap();
    let sent = emitted(&app, workspace, 10).await;
    assert_eq!(trim(&app).await, 0);
    assert_eq!(reader.run_due().await.unwrap(), 10);
    assert_eq!(taken(&app).await, sent);
    // The newest event stays, because the next position follows from it.
    assert_eq!(trim(&app).await, 9);
}

#[testkit::both]
async fn a_consumer_that_wants_nothing_costs_nearly_nothing(kind: Kind) {
    let app = open(kind).await;
    let workspace = app.workspace().await;
    let consumer = Copying::of(&[]);
    let mut reader = reader(&app, app.db(), &consumer);
    reader.turn().await.unwrap();
    let mut writes = 0;
    for number in 1..=20 {
        app.emit(workspace, MessageSent::new(number, "a")).await;
        app.deliver().await;
        let before = app.db().stats().writes;
        assert_eq!(reader.turn().await.unwrap(), Turn::Idle);
        writes += app.db().stats().writes - before;
        app.data.clock.advance(Duration::seconds(1));
    }
    // One renewal of the lease, with the position.
    assert_eq!(writes, 1);
    reader.hand_back().await.unwrap();
    assert_eq!(trim(&app).await, 19);
    assert_eq!(taken(&app).await, []);
}

#[testkit::both]
async fn readers_work_until_they_are_stopped_and_their_lag_is_told(kind: Kind) {
    let app = open(kind).await;
    let workspace = app.workspace().await;
    let services = &app.service.pipeline.services;
    let (catalogue, feed) = (services.get::<Catalogue>().unwrap(), services.get::<Feed>().unwrap());
    let consumers: Vec<Arc<dyn EventConsumer>> = vec![Copying::messages()];
    let readers = Readers::new(app.db().clone(), catalogue, feed, consumers);
    assert_eq!(readers.run_due().await.unwrap(), 0);
    let reading = readers.start();
    let sent = app.emit(workspace, MessageSent::new(1, "a")).await;
    app.deliver().await;
    testkit::until("the event is taken", async || (taken(&app).await == [sent.clone()]).then_some(())).await;
    reading.stop(std::time::Duration::from_secs(10)).await;
    app.sql("UPDATE event_readers SET position = position - 100001").await;
    let ready = app.ask_beside("GET", "/ready").send().await;
    let behind = json!({ "status": "ready", "event_readers_behind": ["copying"] });
    assert_eq!((ready.status, ready.body), (200, behind));
}
