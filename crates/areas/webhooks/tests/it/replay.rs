//! Delivering again: by hand, by ids, by time.

use crate::{contact, deliveries, key};
use chrono::Duration;
use serde_json::{Value, json};
use testkit::{Answering, ConversionSent, Key, Kind, Receiver, TestApp};

/// Waits out the spacing of a replay.
async fn wait_out(app: &TestApp) {
    app.service.jobs.run_due().await.unwrap();
    for _ in 0..5 {
        app.data.clock.advance(Duration::seconds(1));
        app.deliver().await;
    }
}

async fn replay(app: &TestApp, key: &Key, endpoint: &Value, body: Value) -> testkit::Answer {
    app.post(&format!("/webhook-endpoints/{}/replay", endpoint["id"].as_str().unwrap()), key, body).await
}

#[testkit::both]
async fn a_delivery_is_repeated_by_hand(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.emit(key.workspace, contact(1, "a")).await;
    receiver.answer_status(500);
    app.deliver().await;
    let base = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    let first = deliveries(&app, &key, &endpoint).await.remove(0);
    let retry = format!("{base}/deliveries/{}/retry", first["id"].as_str().unwrap());
    app.post(&retry, &key, json!({})).await.expect_error(409, "invalid_state");
    receiver.answer_status(200);
    app.data.clock.advance(Duration::seconds(6));
    app.deliver().await;
    let repeated = app.post(&retry, &key, json!({})).await.expect(201);
    assert_eq!((&repeated["trigger"], &repeated["event_id"]), (&json!("manual"), &first["event_id"]));
    assert_ne!(repeated["id"], first["id"]);
    app.deliver().await;
    let sent = receiver.delivered();
    assert_eq!(sent.len(), 3);
    assert_eq!(
        (&sent[2].body, &sent[2].headers["webhook-id"]),
        (&sent[0].body, &sent[0].headers["webhook-id"])
    );
    app.post(&format!("{base}/disable"), &key, json!({})).await.expect(200);
    app.post(&retry, &key, json!({})).await.expect_error(409, "invalid_state");
    replay(&app, &key, &endpoint, json!({ "since": app.db().now().rfc3339() }))
        .await
        .expect_error(409, "invalid_state");
}

#[testkit::both]
async fn what_failed_is_replayed_at_ten_in_a_second(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let since = app.db().now().rfc3339();
    for number in 0..15 {
        app.emit(key.workspace, contact(number, "a")).await;
    }
    app.deliver().await;
    app.emit(key.workspace, contact(99, "good")).await;
    app.deliver().await;
    // As if the first fifteen had been given up.
    app.sql("UPDATE webhook_deliveries SET status = 'failed' WHERE number <= 15").await;
    receiver.forget();
    let dry = replay(&app, &key, &endpoint, json!({ "since": since, "dry_run": true })).await.expect(200);
    assert_eq!((&dry["count"], &dry["dry_run"]), (&json!(15), &json!(true)));
    wait_out(&app).await;
    assert_eq!(receiver.count(), 0, "a dry run sends nothing");
    let asked = app.db().now();
    let real = replay(&app, &key, &endpoint, json!({ "since": since })).await.expect(200);
    assert_eq!(
        (&real["count"], &real["ends_at"]),
        (&json!(15), &json!(asked.plus(Duration::milliseconds(1400)).rfc3339()))
    );
    app.service.jobs.run_due().await.unwrap();
    app.data.clock.advance(Duration::milliseconds(450));
    app.deliver().await;
    assert_eq!(receiver.count(), 5);
    wait_out(&app).await;
    assert_eq!(receiver.count(), 15);
    let nothing = replay(&app, &key, &endpoint, json!({ "since": since, "dry_run": true })).await.expect(200);
    assert_eq!(nothing["count"], 0, "what got through is not replayed again");
}

#[testkit::both]
async fn what_an_endpoint_missed_is_found(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let since = app.db().now().rfc3339();
    let before = app.emit(key.workspace, contact(1, "before")).await;
    app.emit(key.workspace, ConversionSent::new("c")).await;
    app.deliver().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.emit(key.workspace, contact(2, "after")).await;
    app.deliver().await;
    let dry =
        replay(&app, &key, &endpoint, json!({ "since": since, "status": "missing", "dry_run": true })).await;
    app.data.clock.advance(Duration::seconds(1));
    assert_eq!(dry.expect(200)["count"], 1);
    replay(&app, &key, &endpoint, json!({ "since": since, "status": "missing" })).await.expect(200);
    wait_out(&app).await;
    assert_eq!(receiver.delivered()[1].headers["webhook-id"], before.as_str());
    let any = json!({ "since": since, "status": "any", "types": ["contact.message.sent"] });
    assert_eq!(replay(&app, &key, &endpoint, any).await.expect(200)["count"], 2);
    wait_out(&app).await;
    assert_eq!(receiver.count(), 4);
    let chosen = json!({ "event_ids": [before.as_str()] });
    assert_eq!(replay(&app, &key, &endpoint, chosen).await.expect(200)["count"], 1);
    wait_out(&app).await;
    let chosen = json!({ "delivery_ids": [deliveries(&app, &key, &endpoint).await[0]["id"]] });
    assert_eq!(replay(&app, &key, &endpoint, chosen).await.expect(200)["count"], 1);
    wait_out(&app).await;
    assert_eq!(receiver.count(), 6);
}

#[testkit::both]
async fn nonsense_is_not_replayed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let endpoint = app.subscribe(&key, "https://example.com/", json!({})).await;
    let now = app.db().now();
    for (body, param) in [
        (json!({}), "since"),
        (json!({ "since": now.plus_seconds(-8 * 86_400).rfc3339() }), "since"),
        (json!({ "since": now.rfc3339(), "until": now.plus_seconds(-1).rfc3339() }), "until"),
        (json!({ "since": now.plus_seconds(-9).rfc3339(), "types": ["a.b"] }), "types[0]"),
        (json!({ "delivery_ids": ["whd_1"] }), "delivery_ids[0]"),
        (json!({ "event_ids": ["evt_1"] }), "event_ids[0]"),
        (json!({ "event_ids": ["evt_1"], "delivery_ids": ["whd_1"] }), "event_ids"),
        (json!({ "event_ids": ["evt_1"], "since": now.rfc3339() }), "since"),
    ] {
        let answer = replay(&app, &key, &endpoint, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
}

#[testkit::both]
async fn a_worker_that_vanished_loses_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.emit(key.workspace, contact(1, "a")).await;
    receiver.answer(|_| Answering::Silent);
    let delivering = app.service.deliveries.start();
    testkit::until("the delivery is on its way", async || (receiver.count() == 1).then_some(())).await;
    assert_eq!(deliveries(&app, &key, &endpoint).await[0]["status"], "delivering");
    drop(delivering);
    receiver.answer_status(200);
    let other = app.replica(auth::RateWindows::local()).await;
    other.deliver().await;
    assert_eq!(receiver.count(), 1, "the lease holds");
    app.data.clock.advance(Duration::seconds(31));
    other.deliver().await;
    let delivery = deliveries(&app, &key, &endpoint).await.remove(0);
    assert_eq!((&delivery["status"], &delivery["attempt_count"]), (&json!("succeeded"), &json!(1)));
}
