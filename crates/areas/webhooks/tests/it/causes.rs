//! What events say of where they come from: the request, who did it, and the chain.

use crate::{contact, key};
use model::{Cause, Chain, EventId};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// The newest event of a type.
async fn newest(app: &TestApp, key: &Key, kind: &str) -> Value {
    app.deliver().await;
    app.get(&format!("/events?type={kind}"), key).await.expect(200)[0].clone()
}

/// What an event says that begins a chain.
fn begins(event: &Value, actor: (&str, &str)) -> Value {
    json!({ "root_event_id": event["id"], "depth": 0, "actor": { "type": actor.0, "id": actor.1 } })
}

#[testkit::both]
async fn an_event_has_the_key_and_the_idempotency_key_of_its_request(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let fields = json!([{ "field_key": "name", "label": "Name", "type": "text" }]);
    let made = app.post("/collections", &key, json!({ "name": "Things", "fields": fields })).await;
    let items = format!("/collections/{}/items", made.expect(201)["id"]);
    let create = async || {
        let asking = app.ask("POST", &items).key(&key).header("idempotency-key", "order-17");
        asking.json(&json!({ "data": { "name": "é" } })).send().await
    };
    let item = create().await;
    create().await.expect(201);
    let event = newest(&app, &key, "item.created").await;
    assert_eq!(event["data"]["item"]["id"], item.expect(201)["id"]);
    assert_eq!(
        event["request"],
        json!({
            "id": item.headers["x-request-id"], "key_id": key.id.as_str(), "idempotency_key": "order-17",
        })
    );
    assert_eq!(event["caused_by"], begins(&event, ("api_key", key.id.as_str())));
    let path = format!("/events/{}", event["id"].as_str().unwrap());
    assert_eq!(app.get(&path, &key).await.expect(200), event);

    let event = newest(&app, &key, "collection.created").await;
    let request =
        json!({ "id": made.headers["x-request-id"], "key_id": key.id.as_str(), "idempotency_key": null });
    assert_eq!(event["request"], request);
}

#[testkit::both]
async fn the_end_of_a_run_names_the_request_that_began_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.workspace().await;
    let key = app.key(workspace, model::Env::Test, &["*"]).await;
    let asking = app.ask("POST", "/runs").key(&key).header("idempotency-key", "run-1");
    let run = asking.json(&json!({ "input": "Hello" })).send().await;
    run.expect(200);
    let event = newest(&app, &key, "run.completed").await;
    assert_eq!(
        event["request"],
        json!({
            "id": run.headers["x-request-id"], "key_id": key.id.as_str(), "idempotency_key": "run-1",
        })
    );
    assert_eq!(event["caused_by"], begins(&event, ("api_key", key.id.as_str())));
}

#[testkit::both]
async fn what_follows_names_the_first_event_of_its_chain(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let first = app.emit(key.workspace, contact(1, "a")).await;
    let event = newest(&app, &key, "contact.message.sent").await;
    assert_eq!((&event["request"], &event["caused_by"]), (&json!(null), &begins(&event, ("system", "test"))));
    let (workspace, root) = (key.workspace, first.clone());
    let follow = app.db().write(move |tx| -> model::Result<EventId> {
        let chain = Some(Chain::starting(root.clone()).next().next());
        tx.emit(workspace, &Cause { chain, ..Cause::system("test") }, true, &contact(2, "b"))
    });
    let second = follow.await.unwrap();
    let event = newest(&app, &key, "contact.message.sent").await;
    assert_eq!(event["id"], second.as_str());
    let chain = (&event["caused_by"]["root_event_id"], &event["caused_by"]["depth"]);
    assert_eq!(chain, (&json!(first.as_str()), &json!(2)));
}

#[testkit::both]
async fn events_of_older_versions_still_show(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = key(&app).await;
    let id = app.emit(key.workspace, contact(1, "a")).await;
    app.sql("UPDATE events SET request_id = 'req_old', actor = NULL").await;
    let event = newest(&app, &key, "contact.message.sent").await;
    assert_eq!(event["request"], json!({ "id": "req_old", "key_id": null, "idempotency_key": null }));
    assert_eq!(event["caused_by"], json!({ "root_event_id": id.as_str(), "depth": 0, "actor": null }));
}
