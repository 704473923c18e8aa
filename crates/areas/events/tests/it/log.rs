//! Reading the log: filters, counts, types, and the long poll.

use chrono::Duration;
use model::Env;
use serde_json::{Value, json};
use std::time::Instant;
use testkit::{ConversionSent, Kind, MessageSent, TestApp};

/// An event about a contact.
fn contact(id: i64, text: &str) -> MessageSent {
    MessageSent::new(id, text)
}

#[testkit::both]
async fn the_log_is_filtered_and_paged(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let begin = app.db().now();
    for number in 1..=5 {
        app.emit(key.workspace, contact(number, "a")).await;
    }
    app.emit_in(key.workspace, false, ConversionSent::new("c")).await;
    app.data.clock.advance(Duration::hours(2));
    let last = app.emit(key.workspace, contact(5, "b")).await;
    app.deliver().await;
    let page = app.get("/events?limit=2&offset=1", &key).await;
    let rows = page.expect(200);
    assert_eq!(rows[0]["type"], "conversion.sent");
    assert_eq!(page.body["pagination"], json!({ "page": 1, "limit": 2, "total": 7, "pages": 4 }));
    let sequences: Vec<i64> = app
        .get("/events", &key)
        .await
        .expect(200)
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["sequence"].as_i64().unwrap())
        .collect();
    assert!(sequences.is_sorted_by(|a, b| a > b));
    let later = begin.plus_seconds(3600).rfc3339();
    for (query, count) in [
        ("type=contact.message.sent".to_owned(), 6),
        ("type=contact.*,conversion.sent".to_owned(), 7),
        ("livemode=false".to_owned(), 1),
        ("contact_id=5".to_owned(), 2),
        (format!("since={later}"), 1),
        (format!("until={later}"), 6),
    ] {
        let rows = app.get(&format!("/events?{query}"), &key).await.expect(200);
        assert_eq!(rows.as_array().unwrap().len(), count, "{query}");
    }
    assert_eq!(
        app.get("/events?type=no.such", &key).await.expect_error(400, "validation_error").as_deref(),
        Some("type")
    );
    assert_eq!(app.get(&format!("/events/{last}"), &key).await.expect(200)["data"]["content"], "b");
    let stats = app.get("/events/stats", &key).await.expect(200);
    assert_eq!(stats["total"], 7);
    assert_eq!(stats["by_type"][0], json!({ "type": "contact.message.sent", "count": 6 }));
    assert_eq!(stats["by_hour"].as_array().unwrap().len(), 3);
}

#[testkit::both]
async fn types_have_schemas_and_scopes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let bare = app.key(key.workspace, Env::Live, &["billing:read"]).await;
    let types = app.get("/webhook-endpoints/event-types", &bare).await.expect(200);
    assert_eq!(types, app.get("/events/types", &key).await.expect(200));
    let run = types.as_array().unwrap().iter().find(|row| row["type"] == "run.completed").unwrap();
    assert_eq!((&run["scope"], &run["entity"]), (&json!("runs:read"), &json!("run")));
    for row in types.as_array().unwrap() {
        assert!(jsonschema::validator_for(&row["schema"]).is_ok(), "{}", row["type"]);
    }
}

#[testkit::both]
async fn the_data_of_runs_fits_its_schema(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, Env::Live, &["*"]).await;
    app.post("/runs", &key, json!({ "input": "Hello" })).await.expect(200);
    app.model.then(testkit::Script::Fail(providers::ProviderError::Timeout));
    app.post("/runs", &key, json!({ "input": "Hello" })).await.expect_error(504, "agent_timeout");
    app.deliver().await;
    let types = app.get("/events/types", &key).await.expect(200);
    let events = app.get("/events", &key).await.expect(200);
    assert_eq!(events.as_array().unwrap().len(), 2);
    for event in events.as_array().unwrap() {
        let kind = types.as_array().unwrap().iter().find(|row| row["type"] == event["type"]).unwrap();
        let validator = jsonschema::validator_for(&kind["schema"]).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&event["data"]).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{event}: {errors:?}");
    }
}

#[testkit::both]
async fn a_long_poll_wakes_and_misses_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let other = app.replica(auth::RateWindows::local()).await;
    let key = app.bare_key().await;
    let delivering = app.service.deliveries.start();
    let bootstrap = app.get("/events/live", &key).await;
    assert_eq!(bootstrap.expect(200), json!([]), "without a place it answers at once");
    let mut after = bootstrap.body["next_after"].as_i64().unwrap();
    let mut waits = Vec::new();
    // On PostgreSQL the poll is at a replica that learns of it through the database alone.
    let reader = if kind == Kind::Postgres { &other } else { &app };
    for number in 0..20 {
        let path = format!("/events/live?after={after}&types=contact.*");
        let (answer, reported) = tokio::join!(reader.get(&path, &key), async {
            tokio::time::sleep(std::time::Duration::from_millis(60)).await;
            app.emit(key.workspace, contact(number, "a")).await;
            Instant::now()
        });
        waits.push(reported.elapsed());
        let rows = answer.expect(200);
        assert_eq!(rows.as_array().unwrap().len(), 1);
        assert_eq!(rows[0]["data"]["contact_id"], number);
        after = answer.body["next_after"].as_i64().unwrap();
    }
    waits.sort_unstable();
    // A poll that nothing wakes is answered after a second. The machine may be busy with other tests, but not all the time.
    assert!(waits[4] < std::time::Duration::from_millis(500), "{waits:?}");
    let empty = app.get(&format!("/events/live?after={after}&wait_seconds=0"), &key).await;
    assert_eq!((empty.expect(200), &empty.body["next_after"]), (json!([]), &json!(after)));
    let unwanted = "/events/live?after=0&types=run.*&wait_seconds=0";
    assert_eq!(app.get(unwanted, &key).await.expect(200), json!([]));
    delivering.stop(std::time::Duration::from_secs(5)).await;
}

#[testkit::both]
async fn what_is_old_is_forgotten(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let receiver = testkit::Receiver::start().await;
    let endpoint = app.subscribe(&key, &receiver.url("/"), json!({})).await;
    for number in 0..3 {
        app.emit(key.workspace, contact(number, "old")).await;
    }
    app.deliver().await;
    app.data.clock.advance(Duration::days(31));
    app.emit(key.workspace, contact(9, "new")).await;
    app.deliver().await;
    app.service.jobs.run_due().await.unwrap();
    let left: Vec<Value> = app.get("/events", &key).await.expect(200).as_array().unwrap().clone();
    assert_eq!(left.len(), 1);
    let deliveries = format!("/webhook-endpoints/{}/deliveries", endpoint["id"].as_str().unwrap());
    assert_eq!(app.get(&deliveries, &key).await.expect(200).as_array().unwrap().len(), 1);
    let sequence = left[0]["sequence"].as_i64().unwrap();
    app.get("/events/live?after=1", &key).await.expect_error(410, "cursor_expired");
    assert_eq!(app.get("/events/live?after=0", &key).await.expect(200)[0]["sequence"], sequence);
    let next =
        app.get(&format!("/events/live?after={}&wait_seconds=0", sequence - 1), &key).await.expect(200);
    assert_eq!(next[0]["sequence"], sequence);
}
