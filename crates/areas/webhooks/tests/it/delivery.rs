//! Deliveries: what is sent, tried again, given up, held back.

use crate::{contact, deliveries, is_signed, key};
use ::webhooks::schema::webhook_queues as queues;
use chrono::Duration;
use diesel::prelude::*;
use model::Env;
use serde_json::{Value, json};
use testkit::{Answering, Kind, Receiver, TestApp, until};

#[testkit::both]
async fn an_event_arrives_signed_and_is_written_down(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let more = json!({ "headers": { "X-Tenant": "seven" } });
    let endpoint = app.subscribe(&key, &receiver.url("/hook?a=b"), more).await;
    let id = app.emit(key.workspace, contact(7, "é")).await;
    assert_eq!(app.deliver().await, 1);
    let sent = receiver.delivered().remove(0);
    assert_eq!((sent.path.as_str(), sent.headers["x-tenant"].as_str()), ("/hook?a=b", "seven"));
    assert!(is_signed(&sent, endpoint["secret"].as_str().unwrap()));
    let log = app.get("/events", &key).await.expect(200);
    let body = sent.json();
    assert_eq!(body["id"], id.as_str());
    for field in ["id", "object", "type", "created_at", "livemode", "workspace_id", "sequence", "data"] {
        assert_eq!(body[field], log[0][field], "{field}");
    }
    for (header, value) in [
        ("content-type", "application/json"),
        ("user-agent", "svc-webhooks/1"),
        ("webhook-id", id.as_str()),
        ("x-svc-event-id", id.as_str()),
        ("x-svc-attempt", "1"),
    ] {
        assert_eq!(sent.headers[header], value, "{header}");
    }
    let delivery = deliveries(&app, &key, &endpoint).await.remove(0);
    assert_eq!(sent.headers["x-svc-delivery-id"], delivery["id"].as_str().unwrap());
    assert_eq!((&delivery["status"], &delivery["attempt_count"]), (&json!("succeeded"), &json!(1)));
    let endpoint_id = endpoint["id"].as_str().unwrap();
    let detail = app
        .get(
            &format!("/webhook-endpoints/{endpoint_id}/deliveries/{}", delivery["id"].as_str().unwrap()),
            &key,
        )
        .await;
    let detail = detail.expect(200);
    assert_eq!(detail["request"]["body"].as_str().unwrap().as_bytes(), sent.body);
    assert_eq!(detail["request"]["headers"]["X-Tenant"], "…", "own headers may be secrets");
    assert_eq!(
        (&detail["response"]["status_code"], &detail["response"]["body"]),
        (&json!(200), &json!("ok"))
    );
    let of_event = app.get(&format!("/events/{id}/deliveries"), &key).await.expect(200);
    assert_eq!(of_event[0]["id"], delivery["id"]);
    let read = app.get(&format!("/webhook-endpoints/{endpoint_id}"), &key).await.expect(200);
    assert_eq!(read["success_rate_24h"], 1.0);
}

#[testkit::both]
async fn failures_are_tried_again_with_the_same_bytes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.emit(key.workspace, contact(7, "a")).await;
    receiver.answer_status(500);
    app.deliver().await;
    app.deliver().await;
    assert_eq!(receiver.count(), 1, "not before its time");
    let first = deliveries(&app, &key, &endpoint).await.remove(0);
    assert_eq!(
        (&first["status"], &first["attempts"][0]["error"]),
        (&json!("pending"), &json!("the endpoint answered 500"))
    );
    // Each step, with jitter, is over after this long; the breaker's probes keep to the same steps.
    let steps = [6, 350, 2100, 8400, 21_000, 42_000, 58_000, 83_000, 100_000];
    for seconds in steps {
        app.data.clock.advance(Duration::seconds(seconds));
        app.deliver().await;
    }
    assert_eq!(receiver.count(), 10);
    let sent = receiver.delivered();
    for (place, one) in sent.iter().enumerate() {
        assert_eq!(one.body, sent[0].body);
        assert_eq!(one.headers["webhook-id"], sent[0].headers["webhook-id"]);
        assert_eq!(one.headers["x-svc-attempt"], (place + 1).to_string());
        assert!(is_signed(one, endpoint["secret"].as_str().unwrap()));
    }
    assert_ne!(sent[0].headers["webhook-timestamp"], sent[9].headers["webhook-timestamp"]);
    let last = deliveries(&app, &key, &endpoint).await.remove(0);
    assert_eq!((&last["status"], &last["attempt_count"]), (&json!("failed"), &json!(10)));
    assert_eq!(last["next_attempt_at"], Value::Null);
    app.data.clock.advance(Duration::days(5));
    assert_eq!(app.deliver().await, 0);
}

#[testkit::both]
async fn events_of_test_keys_are_tried_three_times_in_an_hour(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    app.subscribe(&key, &receiver.url("/"), json!({})).await;
    receiver.answer(|_| Answering::HangUp);
    app.emit_in(key.workspace, false, contact(1, "a")).await;
    for seconds in [0, 6, 3594, 86_400] {
        app.data.clock.advance(Duration::seconds(seconds));
        app.deliver().await;
    }
    assert_eq!(receiver.count(), 3);
}

#[testkit::both]
async fn retry_after_is_honoured(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    app.subscribe(&key, &receiver.url("/"), json!({})).await;
    receiver.answer(|_| Answering::with(429, "retry-after", "60"));
    app.emit(key.workspace, contact(7, "a")).await;
    app.deliver().await;
    app.data.clock.advance(Duration::seconds(59));
    app.deliver().await;
    assert_eq!(receiver.count(), 1);
    app.data.clock.advance(Duration::seconds(2));
    app.deliver().await;
    assert_eq!(receiver.count(), 2);
}

#[testkit::both]
async fn gone_switches_an_endpoint_off(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let (receiver, watcher) = (Receiver::start().await, Receiver::start().await);
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.subscribe(&key, &watcher.url("/"), json!({ "enabled_events": ["webhook_endpoint.*"] })).await;
    receiver.answer_status(410);
    app.emit(key.workspace, contact(7, "a")).await;
    app.deliver().await;
    let path = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    let read = app.get(&path, &key).await.expect(200);
    assert_eq!((&read["status"], &read["disabled_reason"]), (&json!("disabled"), &json!("gone")));
    assert_eq!(deliveries(&app, &key, &endpoint).await[0]["status"], "failed");
    app.deliver().await;
    assert_eq!(watcher.delivered()[0].json()["data"]["reason"], "gone", "the others are told");
}

#[testkit::both]
async fn redirects_are_failures_and_never_followed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let (receiver, elsewhere) = (Receiver::start().await, Receiver::start().await);
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let target = elsewhere.url("/");
    receiver.answer(move |_| Answering::with(302, "location", &target));
    app.emit(key.workspace, contact(7, "a")).await;
    app.deliver().await;
    assert_eq!(elsewhere.count(), 0);
    let delivery = deliveries(&app, &key, &endpoint).await.remove(0);
    assert_eq!(
        (&delivery["status"], &delivery["attempts"][0]["status_code"]),
        (&json!("pending"), &json!(302))
    );
}

#[testkit::both]
async fn the_breaker_lets_one_probe_through(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    receiver.answer_status(500);
    for number in 0..40 {
        app.emit(key.workspace, contact(number, "a")).await;
    }
    app.deliver().await;
    let tried = receiver.count();
    assert!(
        (5..=14).contains(&tried),
        "{tried}: ten abreast, and one more for each that came back before it opened"
    );
    app.deliver().await;
    assert_eq!(receiver.count(), tried);
    app.data.clock.advance(Duration::seconds(6));
    app.deliver().await;
    assert_eq!(receiver.count(), tried + 1, "one probe");
    let waiting = deliveries(&app, &key, &endpoint).await;
    assert!(waiting.iter().filter(|one| one["attempt_count"] == 0).count() >= 25, "no attempt is burnt");
    let read =
        app.get(&format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap()), &key).await.expect(200);
    assert_ne!(read["paused_until"], Value::Null);
    receiver.answer_status(200);
    app.data.clock.advance(Duration::minutes(6));
    app.deliver().await;
    let all = deliveries(&app, &key, &endpoint).await;
    assert!(all.iter().all(|one| one["status"] == "succeeded"), "a probe that succeeds lets all go");
}

#[testkit::both]
async fn patience_ends_after_five_days(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let (receiver, watcher) = (Receiver::start().await, Receiver::start().await);
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.subscribe(&key, &watcher.url("/"), json!({ "enabled_events": ["webhook_endpoint.*"] })).await;
    receiver.answer_status(503);
    for _ in 0..12 {
        app.emit(key.workspace, contact(1, "a")).await;
        app.deliver().await;
        app.data.clock.advance(Duration::hours(12));
    }
    app.deliver().await;
    let kinds: Vec<Value> = watcher.delivered().iter().map(|one| one.json()["type"].clone()).collect();
    assert_eq!(kinds, ["webhook_endpoint.failing", "webhook_endpoint.disabled"]);
    let path = format!("/webhook-endpoints/{}", endpoint["id"].as_str().unwrap());
    assert_eq!(app.get(&path, &key).await.expect(200)["disabled_reason"], "failing");
    // Switched on again it gets what happens from now on, and nothing of what waited.
    receiver.answer_status(200);
    receiver.forget();
    app.service.jobs.run_due().await.unwrap();
    app.post(&format!("{path}/enable"), &key, json!({})).await.expect(200);
    app.data.clock.advance(Duration::days(2));
    app.deliver().await;
    assert_eq!(receiver.count(), 0);
    app.emit(key.workspace, contact(1, "new")).await;
    app.deliver().await;
    assert_eq!(receiver.count(), 1);
    app.service.jobs.run_due().await.unwrap();
    let open = deliveries(&app, &key, &endpoint).await;
    assert!(open.iter().all(|one| one["ended_at"] != Value::Null), "{open:?}");
}

#[testkit::both]
async fn filters_payloads_and_pace(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let (filtered, thin, slow) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    app.subscribe(&key, &filtered.url("/"), json!({ "filter": { "data.contact_id": { "$in": [2, 3] } } }))
        .await;
    app.subscribe(&key, &thin.url("/"), json!({ "payload": "thin" })).await;
    app.subscribe(&key, &slow.url("/"), json!({ "rate_limit_per_second": 1 })).await;
    for number in 1..=4 {
        app.emit(key.workspace, contact(number, "a")).await;
    }
    app.deliver().await;
    let seen: Vec<Value> =
        filtered.delivered().iter().map(|one| one.json()["data"]["contact_id"].clone()).collect();
    assert_eq!(seen.len(), 2);
    assert!(seen.contains(&json!(2)) && seen.contains(&json!(3)));
    let data = thin.delivered()[0].json()["data"].clone();
    assert_eq!(data.get("content"), None);
    assert_eq!(data["app_url"], "https://svc.example/c");
    assert_eq!(slow.count(), 1);
    for expected in 2..=4 {
        app.data.clock.advance(Duration::milliseconds(1000));
        app.deliver().await;
        assert_eq!(slow.count(), expected);
    }
}

#[testkit::both]
async fn what_was_sent_before_an_endpoint_was_lost_counts_for_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let receiver = Receiver::start().await;
    receiver.answer(|one| {
        let last = one.json()["data"]["content"] == "last";
        Answering::Slow(std::time::Duration::from_millis(if last { 1500 } else { 500 }))
    });
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    let delivering = app.service.deliveries.start();
    app.emit(key.workspace, contact(1, "first")).await;
    until("the first is on its way", async || (receiver.count() == 1).then_some(())).await;
    // As if another worker had taken the endpoint up and died. The first goes out again, and comes back twice while
    // the last one is on its way.
    let lost = app.db().write(|tx| {
        let past = tx.now().plus_seconds(-1);
        let change = (queues::epoch.eq(queues::epoch + 1), queues::lease_until.eq(past));
        Ok(diesel::update(queues::table).set(change).execute(tx.connection())?)
    });
    assert_eq!(lost.await.unwrap(), 1);
    app.emit(key.workspace, contact(2, "last")).await;
    until("both are written down", async || {
        let all = deliveries(&app, &key, &endpoint).await;
        (all.len() == 2 && all.iter().all(|one| one["status"] == "succeeded")).then_some(())
    })
    .await;
    delivering.stop(std::time::Duration::from_secs(5)).await;
}

#[testkit::both]
async fn other_workspaces_see_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, stranger) = (key(&app).await, crate::key(&app).await);
    let (receiver, other) = (Receiver::start().await, Receiver::start().await);
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    app.subscribe(&stranger, &other.url("/"), json!({})).await;
    let event = app.emit(key.workspace, contact(7, "a")).await;
    app.deliver().await;
    assert_eq!((receiver.count(), other.count()), (1, 0));
    let delivery = deliveries(&app, &key, &endpoint).await[0]["id"].as_str().unwrap().to_owned();
    let id = endpoint["id"].as_str().unwrap();
    for path in [
        format!("/webhook-endpoints/{id}"),
        format!("/webhook-endpoints/{id}/deliveries"),
        format!("/webhook-endpoints/{id}/deliveries/{delivery}"),
        format!("/events/{event}"),
        format!("/events/{event}/deliveries"),
    ] {
        app.get(&path, &stranger).await.expect_error(404, "not_found");
    }
    assert_eq!(app.get("/events", &stranger).await.expect(200), json!([]));
}

#[testkit::both]
async fn runs_of_test_keys_emit_events_that_are_not_real(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let live = app.key(workspace, Env::Live, &["*"]).await;
    let test = app.key(workspace, Env::Test, &["*"]).await;
    let receiver = Receiver::start().await;
    app.subscribe(&live, &receiver.url("/"), json!({ "enabled_events": ["run.*"] })).await;
    app.post("/runs", &test, json!({ "input": "Hello" })).await.expect(200);
    app.deliver().await;
    assert_eq!(receiver.delivered()[0].json()["livemode"], false);
}
