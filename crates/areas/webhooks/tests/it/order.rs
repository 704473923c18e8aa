//! Order: places in the log, and deliveries about one object.

use crate::{contact, deliveries, key};
use chrono::Duration;
use diesel::prelude::*;
use serde_json::{Value, json};
use std::sync::mpsc;
use testkit::{Answering, Delivered, Kind, Receiver, TestApp};

/// The contacts and texts, in the order of arrival.
fn seen(delivered: &[Delivered]) -> Vec<(i64, String)> {
    delivered
        .iter()
        .map(|one| {
            let data = one.json()["data"].clone();
            (data["contact_id"].as_i64().unwrap(), data["content"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[testkit::both]
async fn a_failing_delivery_blocks_its_entity_alone(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({ "ordering": "per_entity" })).await;
    receiver.answer(|one| {
        let fails = one.json()["data"]["contact_id"] == 1;
        Answering::status(if fails { 500 } else { 200 })
    });
    for text in ["a", "b", "c"] {
        app.emit(key.workspace, contact(1, text)).await;
        app.emit(key.workspace, contact(2, text)).await;
    }
    app.deliver().await;
    let all = seen(&receiver.delivered());
    let of = |id: i64| {
        all.iter().filter(|(contact, _)| *contact == id).map(|(_, text)| text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(1), ["a"], "the head fails, and the others wait");
    assert_eq!(of(2), ["a", "b", "c"]);
    receiver.answer_status(200);
    app.data.clock.advance(Duration::seconds(6));
    app.deliver().await;
    let all = seen(&receiver.delivered());
    let of_one: Vec<&str> =
        all.iter().filter(|(contact, _)| *contact == 1).map(|(_, text)| text.as_str()).collect();
    assert_eq!(of_one, ["a", "a", "b", "c"]);
    assert!(deliveries(&app, &key, &endpoint).await.iter().all(|one| one["status"] == "succeeded"));
}

#[testkit::both]
async fn a_head_steps_aside_after_an_hour(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({ "ordering": "per_entity" })).await;
    receiver.answer(|one| Answering::status(if one.json()["data"]["content"] == "a" { 500 } else { 200 }));
    app.emit(key.workspace, contact(1, "a")).await;
    app.emit(key.workspace, contact(1, "b")).await;
    for seconds in [0, 6, 350, 2100] {
        app.data.clock.advance(Duration::seconds(seconds));
        app.deliver().await;
    }
    let statuses: Vec<Value> =
        deliveries(&app, &key, &endpoint).await.iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["succeeded", "failed"], "the newer one went on, within the hour");
}

#[testkit::both]
async fn strict_is_one_after_another(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    app.subscribe(&key, &receiver.url("/"), json!({ "ordering": "strict" })).await;
    for number in 0..12 {
        app.emit(key.workspace, contact(number, "a")).await;
    }
    app.deliver().await;
    let order: Vec<i64> = seen(&receiver.delivered()).into_iter().map(|(contact, _)| contact).collect();
    assert_eq!(order, (0..12).collect::<Vec<_>>());
}

/// The first transaction writes its event first and commits last. A reader who has seen the second event must still
/// see the first. Events are written when their transaction is about to commit, so that moment is drawn out here by hand.
#[tokio::test]
async fn an_event_that_commits_late_is_not_passed() {
    let app = TestApp::new(Kind::Postgres).await;
    let key = key(&app).await;
    let before = app.emit(key.workspace, contact(1, "before")).await;
    app.deliver().await;
    let (wrote, has_written) = mpsc::channel();
    let (commit, may_commit) = mpsc::channel::<()>();
    let may_commit = std::sync::Mutex::new(may_commit);
    let db = app.db().clone();
    let late = tokio::spawn(async move {
        db.write(move |tx| {
            let copied = "INSERT INTO events (id, workspace_id, kind, livemode, data, created_at, depth) \
                SELECT 'evt_late', workspace_id, kind, livemode, data, created_at, depth FROM events WHERE id = $1";
            diesel::sql_query(copied)
                .bind::<diesel::sql_types::Text, _>(before.as_str())
                .execute(tx.connection())?;
            wrote.send(()).unwrap();
            may_commit.lock().unwrap().recv().unwrap();
            Ok(())
        })
        .await
        .unwrap();
    });
    tokio::task::spawn_blocking(move || has_written.recv().unwrap()).await.unwrap();
    let early = app.emit(key.workspace, contact(1, "early")).await;
    app.deliver().await;
    let first = app.get("/events/live?after=1", &key).await;
    assert_eq!(first.expect(200)[0]["id"], early.as_str());
    let after = first.body["next_after"].as_i64().unwrap();
    commit.send(()).unwrap();
    late.await.unwrap();
    app.deliver().await;
    let second = app.get(&format!("/events/live?after={after}"), &key).await.expect(200);
    assert_eq!(second.as_array().unwrap().len(), 1);
    assert_eq!(second[0]["id"], "evt_late", "it comes behind, though it was written before");
    let written: Vec<i64> = app
        .db()
        .read(|read| {
            use store::schema::events;
            Ok(events::table.order(events::position).select(events::sequence).load(read.connection())?)
        })
        .await
        .unwrap();
    let [_, early, late] = written.as_slice() else { panic!("three events: {written:?}") };
    assert!(early > late, "the database numbered them the other way round: {written:?}");
}
