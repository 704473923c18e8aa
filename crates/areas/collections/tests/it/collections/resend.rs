//! Changes with follow-up work, sent with an `Idempotency-Key`. If the request fails after the change, a resend does
//! the remaining work and repeats nothing.

use super::{field, items, make, values};
use crate::{event_types, full, number};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A collection whose items cannot be read, so that the follow-up work of a change fails.
struct Broken {
    app: TestApp,
    key: Key,
    path: String,
    rows: Vec<String>,
}

impl Broken {
    async fn open(kind: testkit::Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let choices = json!({ "choices": [{ "label": "Low" }, { "label": "High" }] });
        let body = json!({ "name": "C", "fields": [
            { "label": "Name", "type": "text" },
            { "label": "Level", "type": "select", "options": choices },
        ] });
        let path = make(&app, &key, body).await;
        let rows =
            items(&app, &key, &path, &[json!({ "name": "a", "level": "low" }), json!({ "level": "high" })])
                .await;
        Self { app, key, path, rows }
    }

    async fn ask(&self, method: &str, address: &str, body: &Value) -> Answer {
        let asking = self.app.ask(method, address).key(&self.key).header("idempotency-key", "once");
        asking.json(body).send().await
    }

    /// Sends a request while items cannot be read, and again when they can. Returns the second response, which must
    /// be the first success and must be repeated for a third request.
    async fn twice(&self, method: &str, address: &str, body: Value, event: &str) -> Answer {
        let emitted = async || event_types(&self.app).await.iter().filter(|kind| *kind == event).count();
        let before = emitted().await;
        self.app.sql("UPDATE items SET data = '!' || data").await;
        self.ask(method, address, &body).await.expect_error(500, "internal_error");
        assert_eq!(emitted().await, before + 1, "the change was made");
        self.app.sql("UPDATE items SET data = substr(data, 2)").await;
        let done = self.ask(method, address, &body).await;
        assert!(!done.headers.contains_key("idempotent-replayed"));
        assert_eq!(emitted().await, before + 1, "and not made again");
        assert_eq!(
            number(&self.app, "SELECT COUNT(*) AS n FROM collection_rewrites").await,
            0,
            "nothing is left to do"
        );
        let replayed = self.ask(method, address, &body).await;
        assert_eq!((replayed.status, &replayed.text), (done.status, &done.text));
        assert!(replayed.headers.contains_key("idempotent-replayed"));
        done
    }

    async fn address(&self, name: &str) -> String {
        format!("{}/fields/{}", self.path, field(&self.app, &self.key, &self.path, name).await["id"])
    }
}

#[testkit::both]
async fn a_new_field(kind: Kind) {
    let broken = Broken::open(kind).await;
    let new = json!({ "label": "Stars", "type": "rating", "required": true, "default": 3 });
    let made =
        broken.twice("POST", &format!("{}/fields", broken.path), new, "field.created").await.expect(201);
    assert_eq!((&made["field_key"], &made["converting"]), (&json!("stars"), &json!(null)));
    let now = values(&broken.app, &broken.key, &broken.rows).await;
    assert_eq!(now.iter().map(|data| data["stars"].clone()).collect::<Vec<_>>(), [3, 3]);
}

#[testkit::both]
async fn a_changed_field(kind: Kind) {
    let broken = Broken::open(kind).await;
    let choices = json!([{ "key": "low", "label": "Little" }, { "key": "high", "label": "High" }]);
    let patch = json!({ "options": { "choices": choices }, "version": 1 });
    let changed =
        broken.twice("PATCH", &broken.address("level").await, patch, "field.updated").await.expect(200);
    assert_eq!(
        (&changed["version"], &changed["options"]["choices"][0]["label"]),
        (&json!(2), &json!("Little"))
    );
}

#[testkit::both]
async fn a_changed_choice(kind: Kind) {
    let broken = Broken::open(kind).await;
    let options = format!("{}/options", broken.address("level").await);
    let changed =
        broken.twice("PATCH", &format!("{options}/1"), json!({ "label": "Little" }), "field.updated").await;
    assert_eq!(changed.expect(200)["label"], "Little");
}

#[testkit::both]
async fn a_deleted_field(kind: Kind) {
    let broken = Broken::open(kind).await;
    let address = broken.address("level").await;
    broken.twice("DELETE", &address, json!({}), "field.deleted").await.expect(200);
    assert_eq!(values(&broken.app, &broken.key, &broken.rows).await, [json!({ "name": "a" }), json!({})]);
}

#[testkit::both]
async fn a_changed_collection(kind: Kind) {
    let broken = Broken::open(kind).await;
    let patch = json!({ "primary_field": "level", "version": 1 });
    let changed = broken.twice("PATCH", &broken.path, patch, "collection.updated").await.expect(200);
    assert_eq!((&changed["primary_field"], &changed["version"]), (&json!("level"), &json!(2)));
    assert_eq!(broken.app.get(&broken.rows[0], &broken.key).await.expect(200)["title"], "Low");
}

#[testkit::both]
async fn a_copied_collection(kind: Kind) {
    let broken = Broken::open(kind).await;
    let copy = json!({ "include_items": true });
    let made = broken
        .twice("POST", &format!("{}/duplicate", broken.path), copy, "collection.created")
        .await
        .expect(201);
    assert_eq!((&made["name"], &made["item_count"]), (&json!("C (copy)"), &json!(2)));
    assert_eq!(number(&broken.app, "SELECT COUNT(*) AS n FROM collections").await, 2);
}

#[testkit::both]
async fn a_new_choice_is_there_once(kind: Kind) {
    let broken = Broken::open(kind).await;
    let options = format!("{}/options", broken.address("level").await);
    let new = json!({ "label": "Middle", "position": 1 });
    let first = broken.ask("POST", &options, &new).await;
    assert_eq!(first.expect(201)["position"], 1);
    // The state that a server leaves behind if it dies before storing the response.
    broken.app.sql("UPDATE idempotency_keys SET state = 'claimed', status = NULL, body = NULL, lease_until = '2026-01-15 11:00:00'").await;
    let again = broken.ask("POST", &options, &new).await;
    assert_eq!(again.expect(201), first.expect(201));
    let level = field(&broken.app, &broken.key, &broken.path, "level").await;
    assert_eq!((&level["version"], level["options"]["choices"].as_array().unwrap().len()), (&json!(2), 3));
}
