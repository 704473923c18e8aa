//! What many deliveries of one batch come to, and what becomes of them when their worker or the database fails.

use crate::{contact, deliveries, key};
use ::webhooks::schema::webhook_queues as queues;
use chrono::Duration as Span;
use diesel::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Answering, Key, Kind, Receiver, TestApp, until};

/// How many deliveries of an endpoint have each status and number of attempts, such as `succeeded 1`.
async fn states(app: &TestApp, key: &Key, endpoint: &Value) -> std::collections::BTreeMap<String, usize> {
    let mut states = std::collections::BTreeMap::new();
    for one in deliveries(app, key, endpoint).await {
        let state = format!("{} {}", one["status"].as_str().unwrap(), one["attempt_count"]);
        *states.entry(state).or_default() += 1;
    }
    states
}

fn counts<const N: usize>(states: [(&str, usize); N]) -> std::collections::BTreeMap<String, usize> {
    states.into_iter().map(|(state, count)| (state.to_owned(), count)).collect()
}

/// Changes the leases of all queues, as another worker would.
async fn take_leases(app: &TestApp, seconds: i64) {
    let taken = app.db().write(move |tx| {
        let change =
            (queues::epoch.eq(queues::epoch + 1), queues::lease_until.eq(tx.now().plus_seconds(seconds)));
        Ok(diesel::update(queues::table).set(change).execute(tx.connection())?)
    });
    assert!(taken.await.unwrap() > 0);
}

/// Waits until every delivery of an endpoint has succeeded.
async fn until_delivered(app: &TestApp, key: &Key, endpoint: &Value, count: usize) {
    until("everything is delivered and written down", async || {
        let all = deliveries(app, key, endpoint).await;
        (all.len() == count && all.iter().all(|one| one["status"] == "succeeded")).then_some(())
    })
    .await;
}

#[testkit::both]
async fn outcomes_of_all_kinds_come_back_together(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let ordered = json!({ "ordering": "per_entity" });
    let first = app.subscribe(&key, &receiver.url("/first"), ordered).await;
    let second = app.subscribe(&key, &receiver.url("/second"), json!({})).await;
    // To the first endpoint, every other contact fails.
    receiver.answer(|one| {
        let fails = one.path == "/first" && one.json()["data"]["contact_id"].as_i64().unwrap() % 2 == 1;
        Answering::status(if fails { 500 } else { 200 })
    });
    // Events that are not real are given up after the third attempt.
    app.emit_in(key.workspace, false, contact(1, "last")).await;
    for seconds in [0, 10] {
        app.data.clock.advance(Span::seconds(seconds));
        app.deliver().await;
    }
    assert_eq!(states(&app, &key, &first).await, counts([("pending 2", 1)]));
    app.data.clock.advance(Span::hours(1));
    for id in 2..=5 {
        for text in ["a", "b"] {
            app.emit(key.workspace, contact(id, text)).await;
        }
    }
    app.deliver().await;
    // The heads of the failing contacts are tried again, and what is behind them waits; the others went on.
    let expected = counts([("failed 3", 1), ("succeeded 1", 4), ("pending 1", 2), ("pending 0", 2)]);
    assert_eq!(states(&app, &key, &first).await, expected);
    assert_eq!(states(&app, &key, &second).await, counts([("succeeded 1", 9)]));
    let path = format!("/webhook-endpoints/{}", first["id"].as_str().unwrap());
    let rate = app.get(&path, &key).await.expect(200)["success_rate_24h"].as_f64().unwrap();
    assert!((rate - 4.0 / 9.0).abs() < 1e-9, "{rate}");
    receiver.answer_status(200);
    app.data.clock.advance(Span::seconds(10));
    app.deliver().await;
    assert_eq!(
        states(&app, &key, &first).await,
        counts([("failed 3", 1), ("succeeded 1", 6), ("succeeded 2", 2)])
    );
}

#[testkit::both]
async fn an_endpoint_that_is_disabled_meanwhile_gets_no_more(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let off = app.subscribe(&key, &receiver.url("/off"), json!({})).await;
    let on = app.subscribe(&key, &receiver.url("/on"), json!({})).await;
    receiver.answer(|_| Answering::Slow(Duration::from_millis(500)));
    for id in 0..30 {
        app.emit(key.workspace, contact(id, "a")).await;
    }
    let delivering = app.service.deliveries.start();
    let of = |path: &str| receiver.delivered().iter().filter(|one| one.path == path).count();
    until("both are under way", async || (of("/off") == 10 && of("/on") == 10).then_some(())).await;
    let path = format!("/webhook-endpoints/{}/disable", off["id"].as_str().unwrap());
    app.post(&path, &key, json!({})).await.expect(200);
    until_delivered(&app, &key, &on, 30).await;
    delivering.stop(Duration::from_secs(5)).await;
    app.service.jobs.run_due().await.unwrap();
    let sent = of("/off");
    assert!(sent < 30, "all were sent");
    assert_eq!(states(&app, &key, &off).await, counts([("skipped 0", 30 - sent), ("succeeded 1", sent)]));
}

#[testkit::both]
async fn nothing_of_a_batch_is_written_under_a_lost_lease(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    receiver
        .answer(|one| Answering::Slow(Duration::from_millis(if one.path == "/lost" { 500 } else { 1500 })));
    let lost = app.subscribe(&key, &receiver.url("/lost"), json!({})).await;
    for id in 0..15 {
        app.emit(key.workspace, contact(id, "a")).await;
    }
    let delivering = app.service.deliveries.start();
    until("a batch is under way", async || (receiver.count() == 10).then_some(())).await;
    take_leases(&app, 30).await;
    let kept =
        app.subscribe(&key, &receiver.url("/kept"), json!({ "enabled_events": ["conversion.*"] })).await;
    app.patch(
        &format!("/webhook-endpoints/{}", kept["id"].as_str().unwrap()),
        &key,
        json!({ "enabled_events": ["contact.*"] }),
    )
    .await
    .expect(200);
    app.emit(key.workspace, contact(99, "b")).await;
    // What came back from the lost endpoint came before this did.
    until_delivered(&app, &key, &kept, 1).await;
    let all = deliveries(&app, &key, &lost).await;
    assert!(all.iter().all(|one| one["attempt_count"] == 0), "{all:?}");
    // The other worker dies, too.
    take_leases(&app, -1).await;
    receiver.answer_status(200);
    until_delivered(&app, &key, &lost, 16).await;
    delivering.stop(Duration::from_secs(5)).await;
    assert_eq!(states(&app, &key, &lost).await, counts([("succeeded 1", 16)]));
}

#[testkit::both]
async fn what_a_vanished_process_sent_is_sent_again(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| Answering::Slow(Duration::from_secs(5)));
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    for id in 0..20 {
        app.emit(key.workspace, contact(id, "a")).await;
    }
    let delivering = app.service.deliveries.start();
    until("some are under way", async || (receiver.count() == 10).then_some(())).await;
    drop(delivering);
    receiver.answer_status(200);
    app.deliver().await;
    assert_eq!(receiver.count(), 10, "the lease holds");
    app.data.clock.advance(Span::seconds(31));
    app.deliver().await;
    assert_eq!(receiver.count(), 10 + 20);
    assert_eq!(states(&app, &key, &endpoint).await, counts([("succeeded 1", 20)]));
}

#[testkit::both]
async fn what_a_crash_of_the_database_undid_is_done_again(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    receiver.answer(|one| {
        let last = one.json()["data"]["content"] == "last";
        Answering::Slow(Duration::from_millis(if last { 1500 } else { 0 }))
    });
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let delivering = app.service.deliveries.start();
    app.emit(key.workspace, contact(1, "last")).await;
    app.emit(key.workspace, contact(2, "first")).await;
    until("one is written down and the other on its way", async || {
        let both = counts([("delivering 0", 1), ("succeeded 1", 1)]);
        (states(&app, &key, &endpoint).await == both).then_some(())
    })
    .await;
    // The database remembers that it was loaded, and not what came of it.
    app.sql("DELETE FROM webhook_attempts").await;
    app.sql(
        "UPDATE webhook_deliveries SET status = 'delivering', attempts = 0, ended_at = NULL WHERE status = 'succeeded'",
    )
    .await;
    until_delivered(&app, &key, &endpoint, 2).await;
    delivering.stop(Duration::from_secs(5)).await;
    assert_eq!(receiver.count(), 3);
}
