//! Writes to contacts while they are merged. The id leads to the survivor in any order of the two transactions.

use crate::Crm;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::{Mutex, mpsc};
use store::Tx;
use testkit::{Kind, until};
use tokio::sync::mpsc::unbounded_channel;

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

impl Crm {
    async fn write(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = match method {
            "PATCH" => self.app.patch(path, &self.key, body).await,
            "PUT" => self.app.put(path, &self.key, body).await,
            "DELETE" => self.app.delete(path, &self.key).await,
            _ => self.app.post(path, &self.key, body).await,
        };
        assert!(answer.status < 300, "{method} {path}: {}", answer.body);
        answer.body["data"].clone()
    }

    /// Waits until a transaction waits for a lock. SQLite has a single writer, so there is nothing to observe.
    async fn is_waited_for(&self, kind: Kind) {
        if kind == Kind::Sqlite {
            return;
        }
        until("a transaction waits for a lock", async || {
            let read = self.app.db().read(|read| {
                let sql = "SELECT count(*) AS n FROM pg_stat_activity \
                     WHERE datname = current_database() AND wait_event_type = 'Lock'";
                Ok(diesel::sql_query(sql).get_result::<Count>(read.connection())?.n)
            });
            (read.await.unwrap() > 0).then_some(())
        })
        .await;
    }

    /// Sends a write while a transaction holds the lock on the contact `from`, and merges it into `into` before that
    /// transaction ends.
    async fn write_while_merged(
        &self,
        kind: Kind,
        (from, into): (i64, i64),
        (method, path, body): (&str, String, Value),
    ) -> Value {
        let (held, mut is_held) = unbounded_channel();
        let (go, may_go) = mpsc::channel::<()>();
        let may_go = Mutex::new(may_go);
        let db = self.app.db().clone();
        let merging = move |tx: &mut Tx| {
            let is_postgres = tx.is_postgres();
            let mut run = |sql: String| diesel::sql_query(sql).execute(tx.connection());
            let lock = if is_postgres { " FOR UPDATE" } else { "" };
            run(format!("SELECT id FROM items WHERE id = {from}{lock}"))?;
            held.send(()).unwrap();
            may_go.lock().unwrap().recv().ok();
            run(format!("UPDATE items SET trashed_at = updated_at WHERE id = {from}"))?;
            run(format!(
                "INSERT INTO contact_merges (merged_id, workspace_id, survivor_id, actor, created_at) \
                 SELECT id, workspace_id, {into}, updated_by, updated_at FROM items WHERE id = {from}"
            ))?;
            run(format!("UPDATE item_unique SET item_id = {into} WHERE item_id = {from}"))?;
            Ok(())
        };
        let merge = tokio::spawn(async move { db.write(merging).await });
        is_held.recv().await.unwrap();
        let end = async {
            self.is_waited_for(kind).await;
            go.send(()).unwrap();
            merge.await.unwrap().unwrap();
        };
        let (written, ()) = tokio::join!(self.write(method, &path, body), end);
        written
    }
}

#[testkit::both]
async fn a_write_that_waited_for_a_merge_is_of_the_contact_that_remains(kind: Kind) {
    let crm = Crm::open(kind).await;
    let into = crm.create(json!({ "$name": "Ana" })).await["id"].as_i64().unwrap();
    let writes: [(&str, &str, Value); 9] = [
        ("PATCH", "", json!({ "data": { "$company": "Acme" } })),
        ("PUT", "/tags/vip", json!({})),
        ("POST", "/notes", json!({ "body": "Likes tea." })),
        ("POST", "/opt-out", json!({ "source": "message", "proof": "STOP" })),
        ("PUT", "/autopilot", json!({ "enabled": false })),
        ("DELETE", "/assignment", json!({})),
        ("POST", "/merge", Value::Null),
        ("POST", "/segment", Value::Null),
        ("POST", "/reminder", Value::Null),
    ];
    let segment = json!({ "name": "Static", "contact_ids": [into] });
    let segment = crm.app.post("/contacts/segments", &crm.key, segment).await.expect(201);
    for (place, (method, below, body)) in writes.into_iter().enumerate() {
        let phone = format!("+3461234560{place}");
        let from = crm.create(json!({ "$phone": phone })).await["id"].as_i64().unwrap();
        let write = match below {
            "/merge" => {
                let third = crm.create(json!({ "$name": "Third" })).await["id"].clone();
                (method, format!("/contacts/{from}/merge"), json!({ "source_id": third }))
            }
            "/segment" => {
                let path = format!("/contacts/segments/{}", segment["id"]);
                ("PATCH", path, json!({ "add_contact_ids": [from] }))
            }
            "/reminder" => {
                let body = json!({ "title": "Call", "due_at": "2099-01-01T09:00:00Z", "contact_id": from });
                (method, "/reminders".to_owned(), body)
            }
            _ => (method, format!("/contacts/{from}{below}"), body),
        };
        let written = crm.write_while_merged(kind, (from, into), write).await;
        if ["", "/tags/vip", "/opt-out", "/autopilot", "/merge"].contains(&below) {
            assert_eq!(written["id"], into, "{below}: {written}");
        }
    }
    let ana = crm.get(&into.into()).await;
    assert_eq!(
        (&ana["data"]["$company"], &ana["tags"], &ana["opted_out"]),
        (&json!("Acme"), &json!(["vip"]), &json!(true))
    );
    // Names the contact by an identity.
    let from = crm.create(json!({ "$phone": "+34612345699" })).await["id"].as_i64().unwrap();
    let write =
        ("PATCH", "/contacts/phone:+34612345699".to_owned(), json!({ "data": { "$company": "Casa" } }));
    let written = crm.write_while_merged(kind, (from, into), write).await;
    assert_eq!(written["id"], into);
}

#[testkit::both]
async fn no_write_is_lost_while_contacts_are_merged(kind: Kind) {
    let crm = Crm::open(kind).await;
    let mut ids = Vec::new();
    for place in 0..6 {
        let data = json!({ "$name": format!("Ana {place}"), "$phone": format!("+3461234560{place}") });
        ids.push(crm.create(data).await["id"].as_i64().unwrap());
    }
    let into = ids[0];
    let merges = ids[1..].iter().map(|from| {
        let crm = &crm;
        async move {
            let path = format!("/contacts/{into}/merge");
            crm.app.post(&path, &crm.key, json!({ "source_id": from })).await.expect(200);
        }
    });
    let writes = (0..30_usize).map(|place| {
        let (crm, id) = (&crm, ids[place % 6]);
        async move {
            let path = match place % 4 {
                0 => format!("/contacts/phone:+3461234560{}/notes", place % 6),
                _ => format!("/contacts/{id}/notes"),
            };
            crm.write("POST", &path, json!({ "body": format!("note {place}") })).await;
        }
    });
    tokio::join!(join_all(merges), join_all(writes));
    let notes = crm.app.get(&format!("/contacts/{into}/notes"), &crm.key).await.expect(200);
    assert_eq!(notes.as_array().unwrap().len(), 30);
}
