//! A service with a channel to a simulated network, and broadcasts over it.

use broadcasts::Recipients;
use channels::ChannelSettings;
use conversations::messages::{BroadcastRecipients as _, MessageRow};
use conversations::schema::messages;
use diesel::prelude::*;
use model::{ContactId, MessageId, Timestamp};
use serde_json::{Value, json};
use std::ops::Deref;
use testkit::{ChannelApp, Kind};

/// A service whose channel is connected to a simulated network, with the steps that these tests share.
pub struct Desk(ChannelApp);

impl Deref for Desk {
    type Target = ChannelApp;

    fn deref(&self) -> &ChannelApp {
        &self.0
    }
}

impl Desk {
    pub async fn open(kind: Kind) -> Self {
        Self(ChannelApp::open(kind).await)
    }

    /// Opens a service with the template `prices`, which has a file in its header.
    pub async fn with_prices(kind: Kind) -> Self {
        Self(ChannelApp::with_prices(kind).await)
    }

    /// Opens a service with other settings of its channel.
    pub async fn with_settings(kind: Kind, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self(ChannelApp::with_settings(kind, change).await)
    }
}

/// Opens a service with a template that has two variables in its body.
pub async fn open(kind: Kind) -> Desk {
    let desk = Desk::open(kind).await;
    desk.app.sql("UPDATE channels SET messages_per_second = 80").await;
    desk.put_template("sale", "marketing").await;
    desk.put_template("notice", "utility").await;
    desk
}

pub fn sale() -> Value {
    json!({
        "name": "sale", "language": "en",
        "params": { "1": { "value": "{{contact.$name}}", "fallback": "there" }, "2": { "value": "10 %" } },
    })
}

impl Desk {
    pub async fn put_template(&self, name: &str, category: &str) {
        let components =
            json!([{ "type": "BODY", "text": "Hi {{1}}, {{2}} off!" }, { "type": "FOOTER", "text": "Shop" }]);
        let statement = format!(
            "INSERT INTO message_templates (workspace_id, channel_id, namespace, name, language, category, status, quality, \
             components, version, created_at, updated_at) VALUES ({}, {}, 'ns', '{name}', 'en', '{category}', 'approved', \
             'unknown', '{components}', 1, '2026-01-15 12:00:00', '2026-01-15 12:00:00')",
            self.workspace, self.channel
        );
        self.app.sql(statement).await;
    }

    /// Drafts a broadcast with the template `sale`, this audience, and the members of `more`.
    pub async fn draft(&self, audience: Value, more: Value) -> i64 {
        let mut body =
            json!({ "name": "Sale", "channel_id": self.channel, "template": sale(), "audience": audience });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/broadcasts", body).await.expect(201)["id"].as_i64().unwrap()
    }

    pub async fn act(&self, id: i64, what: &str) -> Value {
        self.app.post(&format!("/broadcasts/{id}/{what}"), &self.key, json!({})).await.expect(200)
    }

    /// Advances the clock second by second, and runs due jobs.
    pub async fn seconds(&self, seconds: i64) {
        for _ in 0..seconds {
            self.app.data.clock.advance(chrono::Duration::seconds(1));
            self.run().await;
        }
    }

    pub async fn broadcast(&self, id: i64) -> Value {
        self.get(&format!("/broadcasts/{id}")).await.expect(200)
    }

    pub async fn recipients(&self, id: i64, query: &str) -> Vec<Value> {
        let rows = self.get(&format!("/broadcasts/{id}/recipients?{query}")).await.expect(200);
        rows.as_array().unwrap().clone()
    }

    pub async fn states(&self, id: i64) -> Vec<(i64, String)> {
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let state = |row: &Value| match row["state"].as_str() {
            Some("skipped") => text(row, "skip_reason"),
            _ => text(row, "state"),
        };
        let rows = self.recipients(id, "").await;
        rows.iter().map(|row| (row["contact_id"].as_i64().unwrap(), state(row))).collect()
    }

    /// Returns the written messages in order: contact, text and key.
    pub async fn messages(&self) -> Vec<(i64, String, Option<String>)> {
        let rows: Vec<(ContactId, String, Option<String>)> = self
            .app
            .db()
            .read(|read| {
                let columns = (messages::contact_id, messages::content, messages::client_key);
                Ok(messages::table.order(messages::id).select(columns).load(read.connection())?)
            })
            .await
            .unwrap();
        rows.into_iter().map(|(contact, text, key)| (contact.0, text, key)).collect()
    }

    /// Reports a status of a recipient's message as the network does.
    pub async fn report(&self, recipient: &Value, status: &str, code: Option<&str>) {
        let id = MessageId(recipient["message_id"].as_i64().unwrap());
        let error = code
            .map(|code| json!({ "code": code, "message": "No.", "provider_code": null, "retryable": false }));
        let error = error.map_or("NULL".to_owned(), |error| format!("'{error}'"));
        self.app
            .sql(format!("UPDATE messages SET status = '{status}', error = {error} WHERE id = {id}"))
            .await;
        let written = self.app.db().write(move |tx| {
            let row = messages::table.find(id).select(MessageRow::as_select()).get_result(tx.connection())?;
            Recipients.messages_changed(tx, &[&row])
        });
        written.await.unwrap();
    }

    /// Lets a contact write at a time, which may count as a reply to a broadcast.
    pub async fn reply(&self, contact: ContactId, at: Timestamp) {
        let workspace = self.workspace;
        let replied =
            self.app.db().write(move |tx| Recipients.contacts_replied(tx, workspace, &[contact], at));
        replied.await.unwrap();
    }

    /// Creates contacts whose numbers are in the order of their names, and returns their ids.
    pub async fn crowd(&self, count: usize) -> Vec<i64> {
        let mut ids = Vec::new();
        for start in (0..count).step_by(500) {
            let row = |place: usize| json!({ "data": { "$name": format!("C{place}"), "$phone": format!("+55119{:08}", 80_000_000 + place) } });
            let rows: Vec<Value> = (start..count.min(start + 500)).map(row).collect();
            let report = self.post("/contacts/bulk-upsert", json!({ "rows": rows })).await.expect(200);
            let results = report["results"].as_array().unwrap();
            ids.extend(results.iter().map(|result| result["id"].as_i64().unwrap()));
        }
        ids
    }

    pub async fn broadcast_events(&self) -> Vec<String> {
        self.app.deliver().await;
        let events = self.get("/events?limit=100").await.expect(200);
        let kinds =
            events.as_array().unwrap().iter().rev().map(|event| event["type"].as_str().unwrap().to_owned());
        kinds.filter(|kind| kind.starts_with("broadcast.")).collect()
    }
}

/// Returns an audience of all contacts.
pub fn all() -> Value {
    json!({ "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } })
}
