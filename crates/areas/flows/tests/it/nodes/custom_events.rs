//! Events that flows publish.

use super::{Flow, act, contact, failure, node, output};
use model::Env;
use serde_json::{Value, json};
use testkit::{Kind, Receiver, TestApp};

#[testkit::both]
async fn an_event_reaches_the_log_and_those_who_subscribed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let (all, one, other) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    app.subscribe(&key, &all.url("/"), json!({ "enabled_events": ["custom.*"] })).await;
    app.subscribe(&key, &one.url("/"), json!({ "enabled_events": ["custom.order.checked"] })).await;
    app.subscribe(&key, &other.url("/"), json!({ "enabled_events": ["custom.order.shipped"] })).await;
    let config =
        json!({ "name": "custom.order.checked", "data": { "order": "{{ $input.order }}", "name": "Ana" } });
    let flow = Flow::publish(&app, &key, vec![node("act", "emit_event", config)]).await;
    let run = flow.run(json!({ "contact_id": ana, "input": { "order": 4711 } })).await;
    let event = output(&flow.step(&run, "act").await)["event_id"].clone();
    app.deliver().await;
    assert_eq!((all.count(), one.count(), other.count()), (1, 1, 0));
    let sent = one.delivered()[0].json();
    assert_eq!(
        (&sent["type"], &sent["data"]),
        (&json!("custom.order.checked"), &json!({ "order": 4711, "name": "Ana" }))
    );
    for query in [
        "type=custom.order.checked",
        "type=custom.*",
        "type=custom.order.*,run.completed",
        &format!("type=*&contact_id={ana}"),
    ] {
        let found = app.get(&format!("/events?{query}"), &key).await.expect(200);
        let ids: Vec<&Value> = found.as_array().unwrap().iter().map(|event| &event["id"]).collect();
        assert!(ids.contains(&&event), "{query}: {found}");
    }
    let logged = app.get("/events?type=custom.*", &key).await.expect(200)[0].clone();
    assert_eq!((&logged["caused_by"]["actor"]["type"], &logged["livemode"]), (&json!("flow"), &json!(true)));
    assert_eq!(app.get("/events?type=custom.order.shipped", &key).await.expect(200), json!([]));
    app.get("/events?type=customs", &key).await.expect_error(400, "validation_error");
    // A test event has the name that the endpoint asks for.
    let endpoints = app.get("/webhook-endpoints", &key).await.expect(200);
    for endpoint in endpoints.as_array().unwrap() {
        let path = format!("/webhook-endpoints/{}/test", endpoint["id"].as_str().unwrap());
        app.post(&path, &key, json!({})).await.expect(201);
    }
    assert_eq!(other.delivered()[0].json()["type"], "custom.order.shipped");
    assert_eq!(all.delivered()[1].json()["type"], "custom.example");
}

#[testkit::both]
async fn names_and_sizes_are_limited(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for config in [
        json!({ "name": "{{ $input.name }}", "data": {} }),
        json!({ "name": "custom.large", "data": { "text": "{{ $input.text }}" } }),
    ] {
        let input = json!({ "input": { "name": "contact.created", "text": "a".repeat(65_536) } });
        assert_eq!(failure(&act(&app, &key, "emit_event", config, input).await), "validation_error");
    }
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    let flow =
        Flow::publish(&app, &key, vec![node("act", "emit_event", json!({ "name": "custom.tried" }))]).await;
    let run = flow.run_by(&test, json!({})).await;
    assert_eq!(run["status"], "completed");
    app.deliver().await;
    assert_eq!(app.get("/events?type=custom.tried", &key).await.expect(200)[0]["livemode"], false);
}
