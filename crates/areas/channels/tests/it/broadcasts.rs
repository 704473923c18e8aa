//! Broadcasts, from the draft to the last status.

use crate::support::Desk;
use channels::broadcasts::{contacts_replied, messages_changed};
use channels::messages::MessageRow;
use channels::schema::messages;
use diesel::prelude::*;
use futures::future::join_all;
use model::{ContactId, MessageId};
use serde_json::{Value, json};
use testkit::Kind;

/// A desk with a template that has two variables in its body.
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

    /// Drafts a broadcast of the template `sale` with this audience and whatever else `more` has.
    pub async fn draft(&self, audience: Value, more: Value) -> i64 {
        let mut body =
            json!({ "name": "Sale", "channel_id": self.channel, "template": sale(), "audience": audience });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/broadcasts", body).await.expect(201)["id"].as_i64().unwrap()
    }

    pub async fn act(&self, id: i64, what: &str) -> Value {
        self.app.post(&format!("/broadcasts/{id}/{what}"), &self.key, json!({})).await.expect(200)
    }

    pub async fn run(&self) {
        self.app.service.jobs.run_due().await.unwrap();
    }

    /// Lets time pass, second by second, and runs what is due.
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

    /// Messages that were written: contact, text and key, in their order.
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

    /// What the network says of the message to a recipient.
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
            messages_changed(tx, &[&row])
        });
        written.await.unwrap();
    }

    /// Creates contacts with numbers in the order of their names, and gives their ids.
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

/// Everyone.
pub fn all() -> Value {
    json!({ "filter_tree": { "not": { "field": "$name", "op": "eq", "value": "" } } })
}

#[testkit::both]
async fn a_broadcast_reaches_its_audience(kind: Kind) {
    let desk = open(kind).await;
    let ids = [desk.contact("Ana", "+5511987650001").await, desk.contact("Ben", "+5511987650002").await];
    let id = desk.draft(all(), json!({})).await;
    let draft = desk.broadcast(id).await;
    assert_eq!(
        (&draft["status"], &draft["counts"]["total"], &draft["template"]),
        (
            &json!("draft"),
            &json!(0),
            &json!({
                "name": "sale", "language": "en", "namespace": null,
                "params": { "1": { "value": "{{contact.$name}}", "fallback": "there" }, "2": { "value": "10 %", "fallback": null } },
            })
        )
    );
    assert_eq!(desk.act(id, "send").await["status"], "preparing");
    desk.run().await;
    let sending = desk.broadcast(id).await;
    assert_eq!((&sending["status"], &sending["counts"]["sending"]), (&json!("sending"), &json!(2)));
    assert!(sending["eta_at"].is_string());
    let expected = [
        (ids[0], "Hi Ana, 10 % off!".to_owned(), Some(format!("bcast:{id}:{}:1", ids[0]))),
        (ids[1], "Hi Ben, 10 % off!".to_owned(), Some(format!("bcast:{id}:{}:1", ids[1]))),
    ];
    assert_eq!(desk.messages().await, expected);
    // A start that is asked for again changes nothing.
    assert_eq!(desk.act(id, "send").await["version"], sending["version"]);
    let rows = desk.recipients(id, "").await;
    assert_eq!(
        (&rows[0]["params"], &rows[0]["address"]),
        (&json!({ "1": "Ana", "2": "10 %" }), &json!("+5511987650001"))
    );
    desk.report(&rows[0], "sent", None).await;
    desk.report(&rows[0], "read", None).await;
    desk.report(&rows[1], "failed", Some("undeliverable")).await;
    desk.seconds(3).await;
    let (workspace, ana, at) = (desk.workspace, ContactId(ids[0]), desk.app.data.clock.clone());
    desk.app
        .db()
        .write(move |tx| contacts_replied(tx, workspace, &[ana], model::Clock::now(&*at)))
        .await
        .unwrap();
    let done = desk.broadcast(id).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(
        done["counts"],
        json!({
            "total": 2, "pending": 0, "sending": 0, "sent": 0, "delivered": 0, "read": 1, "replied": 1, "failed": 1,
            "skipped": 0, "unknown": 0, "cancelled": 0, "unmatched": 0, "contradictory": 0,
        })
    );
    let failed = desk.recipients(id, "state=failed").await;
    assert_eq!((failed.len(), &failed[0]["error"]["code"]), (1, &json!("undeliverable")));
    let read = desk.recipients(id, "state=read").await;
    assert!(
        ["sent_at", "delivered_at", "read_at", "replied_at"].iter().all(|key| read[0][key].is_string()),
        "{read:?}"
    );
    assert_eq!(desk.broadcast_events().await, ["broadcast.started", "broadcast.completed"]);
    // Late statuses count all the same.
    desk.report(&failed[0], "delivered", None).await;
    assert_eq!(desk.broadcast(id).await["counts"]["delivered"], 1);
    let pages = desk.get("/broadcasts?paginate=true&limit=1").await;
    assert_eq!(pages.body["data"][0]["id"], id);
    assert_eq!(desk.get("/broadcasts?status=draft").await.expect(200), json!([]));
}

#[testkit::both]
async fn what_is_wrong_is_named(kind: Kind) {
    let desk = open(kind).await;
    desk.contact("Ana", "+5511987650001").await;
    let template = |params: Value| json!({ "name": "sale", "language": "en", "params": params });
    for (body, code, param) in [
        (json!({ "channel_id": 999_999 }), "not_found", "channel_id"),
        (
            json!({ "template": template(json!({ "1": { "value": "{{contact.$name}}" } })) }),
            "validation_error",
            "template.params.1.fallback",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "{{vars.x}}", "fallback": "x" } })) }),
            "unknown_variable",
            "template.params.1.value",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "a\nb" } })) }),
            "validation_error",
            "template.params.1.value",
        ),
        (json!({ "audience": { "segment_id": 999_999 } }), "validation_error", "audience.segment_id"),
        (json!({ "audience": { "contact_ids": [999_999] } }), "validation_error", "audience.contact_ids[0]"),
        (
            json!({ "audience": { "exclude": { "broadcast_id": 999_999 } } }),
            "validation_error",
            "audience.exclude.broadcast_id",
        ),
        (
            json!({ "audience": { "filters": [{ "field": "$name", "value": "Ana" }, { "field": "nope", "value": "x" }] } }),
            "validation_error",
            "audience.filters[1]",
        ),
        (
            json!({ "audience": { "exclude": { "filters": [7] } } }),
            "validation_error",
            "audience.exclude.filters[0]",
        ),
        (
            json!({ "audience": { "exclude": { "filter_tree": { "field": "nope", "op": "eq", "value": 1 } } } }),
            "validation_error",
            "audience.exclude.filter_tree.field",
        ),
        (json!({ "schedule": { "time_zone": "Mars" } }), "validation_error", "schedule.time_zone"),
        (json!({ "schedule": { "contact_local_time": true } }), "validation_error", "schedule.time_zone"),
        (
            json!({ "schedule": { "time_zone": "UTC", "quiet_hours": { "from": "21:00", "to": "21:00" } } }),
            "validation_error",
            "schedule.quiet_hours.to",
        ),
        (json!({ "throttle": { "rate_per_minute": 0 } }), "validation_error", "throttle.rate_per_minute"),
        (json!({ "name": " " }), "validation_error", "name"),
    ] {
        let mut with = json!({ "name": "Sale" });
        with.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let status = if code == "not_found" { 404 } else { 400 };
        assert_eq!(
            desk.post("/broadcasts", with).await.expect_error(status, code).as_deref(),
            Some(param),
            "{body}"
        );
    }
    let audience = all();
    for (patch, status, code, param) in [
        (json!({ "template": null }), 400, "validation_error", "template"),
        (json!({ "audience": null }), 400, "validation_error", "audience"),
        (json!({ "audience": { "exclude": { "contact_ids": [] } } }), 400, "validation_error", "audience"),
        (json!({ "audience": { "contact_ids": [] } }), 400, "empty_audience", "audience"),
        (
            json!({ "schedule": { "send_at": "2026-01-15T11:00:00Z" } }),
            400,
            "validation_error",
            "schedule.send_at",
        ),
        (
            json!({ "template": template(json!({ "1": { "value": "x" } })) }),
            400,
            "template_params_mismatch",
            "template.params.2",
        ),
        (
            json!({ "template": { "name": "sale", "language": "de", "params": {} } }),
            404,
            "template_not_found",
            "template.name",
        ),
    ] {
        let id = desk.draft(audience.clone(), json!({})).await;
        desk.app.patch(&format!("/broadcasts/{id}"), &desk.key, patch.clone()).await.expect(200);
        let answer = desk.post(&format!("/broadcasts/{id}/send"), json!({})).await;
        assert_eq!(answer.expect_error(status, code).as_deref(), Some(param), "{patch}");
        assert_eq!(desk.broadcast(id).await["status"], "draft");
    }
    let id = desk.draft(audience, json!({})).await;
    let send = format!("/broadcasts/{id}/send");
    for (table, broken, fixed, code) in [
        ("message_templates", "paused", "approved", "template_not_approved"),
        ("channels", "disconnected", "connected", "channel_disconnected"),
    ] {
        desk.app.sql(format!("UPDATE {table} SET status = '{broken}'")).await;
        desk.post(&send, json!({})).await.expect_error(409, code);
        desk.app.sql(format!("UPDATE {table} SET status = '{fixed}'")).await;
    }
    desk.post(&send, json!({ "retry": "failed" })).await.expect_error(409, "invalid_state");
    desk.post(&format!("/broadcasts/{id}/pause"), json!({})).await.expect_error(409, "invalid_state");
    desk.get("/broadcasts/999999").await.expect_error(404, "not_found");
    desk.post("/broadcasts/999999/send", json!({})).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_schedule_is_kept_and_can_be_changed(kind: Kind) {
    let desk = open(kind).await;
    desk.contact("Ana", "+5511987650001").await;
    let later = json!({ "schedule": { "send_at": "2026-01-15T12:00:10Z" } });
    let id = desk.draft(all(), later.clone()).await;
    for _ in 0..2 {
        assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    }
    let path = format!("/broadcasts/{id}");
    let draft = desk.app.patch(&path, &desk.key, json!({ "name": "Other" })).await.expect(200);
    assert_eq!((&draft["status"], &draft["name"]), (&json!("draft"), &json!("Other")));
    desk.seconds(11).await;
    assert_eq!(desk.broadcast(id).await["status"], "draft");
    let soon = json!({ "schedule": { "send_at": "2026-01-15T12:00:15Z" } });
    desk.app.patch(&path, &desk.key, soon).await.expect(200);
    assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    desk.seconds(3).await;
    assert_eq!(
        (desk.broadcast(id).await["status"].clone(), desk.messages().await.len()),
        (json!("scheduled"), 0)
    );
    desk.seconds(1).await;
    assert_eq!(
        (desk.broadcast(id).await["status"].clone(), desk.messages().await.len()),
        (json!("sending"), 1)
    );
    let change = desk.app.patch(&path, &desk.key, json!({ "name": "Late" })).await;
    assert_eq!(change.expect_error(409, "invalid_state"), None);
    assert_eq!(change.body["error"]["details"]["state"], "sending");
    // Another one is not waited for.
    let now = desk.draft(all(), json!({ "schedule": { "send_at": "2026-01-16T12:00:00Z" } })).await;
    desk.act(now, "send").await;
    assert_eq!(
        desk.post(&format!("/broadcasts/{now}/send"), json!({ "now": true })).await.expect(200)["status"],
        "preparing"
    );
    let cancelled = desk.draft(all(), json!({ "schedule": { "send_at": "2026-01-16T12:00:00Z" } })).await;
    desk.act(cancelled, "send").await;
    for _ in 0..2 {
        assert_eq!(desk.act(cancelled, "cancel").await["status"], "cancelled");
    }
    desk.post(&format!("/broadcasts/{cancelled}/send"), json!({})).await.expect_error(409, "invalid_state");
    let events = desk.broadcast_events().await;
    assert_eq!(events.iter().filter(|kind| *kind == "broadcast.scheduled").count(), 4);
    assert_eq!(events.last().map(String::as_str), Some("broadcast.cancelled"));
}

#[testkit::both]
async fn who_is_left_out_is_told_why(kind: Kind) {
    let desk = open(kind).await;
    let mut ids = Vec::new();
    for (name, place) in ["Ana", "Ben", "Cem", "Dan", "Eve", "Fay", "Gil", "Hal"].iter().zip(1..) {
        ids.push(desk.contact(name, &format!("+551198765000{place}")).await);
    }
    let nameless =
        desk.post("/contacts", json!({ "data": { "$phone": "+5511987650009" } })).await.expect(201)["id"]
            .as_i64()
            .unwrap();
    let mailed = desk
        .post("/contacts", json!({ "data": { "$name": "Max", "$email": "max@example.com" } }))
        .await
        .expect(201)["id"]
        .as_i64()
        .unwrap();
    desk.post(&format!("/contacts/{}/opt-out", ids[0]), json!({})).await.expect(200);
    desk.app
        .patch(&format!("/contacts/{}", ids[1]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    // Cem was written to by another broadcast.
    let first = desk.draft(json!({ "contact_ids": [ids[2], ids[3]] }), json!({})).await;
    desk.act(first, "send").await;
    desk.run().await;
    for row in desk.recipients(first, "").await {
        desk.report(&row, "sent", None).await;
    }
    let exclude = json!({ "contact_ids": [ids[4]], "filters": [{ "field": "$name", "value": "Gil" }], "filter_tree": { "field": "$name", "op": "eq", "value": "Fay" } });
    let everyone = [ids.clone(), vec![nameless, mailed]].concat();
    let mut audience = json!({ "contact_ids": everyone });
    audience["filters"] = json!([{ "field": "$name", "op": "neq", "value": "Hal" }]);
    audience["exclude"] = exclude;
    let strict = json!({
        "name": "sale", "language": "en",
        "params": { "1": { "value": "{{contact.$name}}", "fallback": "" }, "2": { "value": "x" } },
    });
    let second = desk
        .draft(audience.clone(), json!({ "template": strict, "frequency_cap": { "messages": 1, "days": 7 } }))
        .await;
    desk.act(second, "send").await;
    desk.run().await;
    let expected = [
        (ids[0], "opted_out"),
        (ids[1], "blocked"),
        (ids[2], "frequency_cap"),
        (ids[3], "frequency_cap"),
        (nameless, "missing_param"),
        (mailed, "no_address"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, reason)| (*id, (*reason).to_owned())).collect();
    assert_eq!(desk.states(second).await, expected);
    let done = desk.broadcast(second).await;
    assert_eq!((&done["status"], &done["counts"]["skipped"]), (&json!("completed"), &json!(6)));
    assert_eq!(desk.recipients(second, "skip_reason=blocked").await.len(), 1);
    // What is no marketing reaches who opted out; who got the first broadcast is excluded.
    audience["exclude"] = json!({ "broadcast_id": first });
    let mut notice = sale();
    notice["name"] = json!("notice");
    let third = desk.draft(audience, json!({ "template": notice })).await;
    desk.act(third, "send").await;
    desk.run().await;
    let expected = [
        (ids[0], "claimed"),
        (ids[1], "blocked"),
        (ids[4], "claimed"),
        (ids[5], "claimed"),
        (ids[6], "claimed"),
        (nameless, "claimed"),
        (mailed, "no_address"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, reason)| (*id, (*reason).to_owned())).collect();
    assert_eq!(desk.states(third).await, expected);
}

#[testkit::both]
async fn consent_is_looked_at_again_before_sending(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(4).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 1);
    desk.post(&format!("/contacts/{}/opt-out", ids[1]), json!({})).await.expect(200);
    desk.app
        .patch(&format!("/contacts/{}", ids[2]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    // What was frozen stays as it was.
    desk.app
        .patch(&format!("/contacts/{}", ids[3]), &desk.key, json!({ "data": { "$name": "Other" } }))
        .await
        .expect(200);
    desk.seconds(4).await;
    let states: Vec<String> = desk.states(id).await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["claimed", "opted_out", "blocked", "claimed"]);
    assert_eq!(desk.messages().await[1].1, "Hi C3, 10 % off!");
}

#[testkit::both]
async fn a_pause_stops_it_and_nobody_is_written_to_twice(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(30).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 240 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 4);
    desk.seconds(1).await;
    let before = desk.messages().await.len();
    assert!((7..=9).contains(&before), "{before}");
    for _ in 0..2 {
        let paused = desk.act(id, "pause").await;
        assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!("requested")));
    }
    desk.seconds(3).await;
    assert_eq!(desk.messages().await.len(), before);
    assert_eq!(desk.act(id, "send").await["status"], "sending");
    // Several runners at once, of which each does the work of all.
    desk.app
        .sql(
            "INSERT INTO jobs (workspace_id, kind, payload, run_at, attempts, epoch, created_at) \
             SELECT workspace_id, kind, payload, run_at, 0, 0, created_at FROM jobs WHERE kind = 'broadcasts.run'",
        )
        .await;
    for _ in 0..12 {
        desk.app.data.clock.advance(chrono::Duration::seconds(1));
        join_all((0..4).map(|_| desk.run())).await;
        for row in desk.recipients(id, "state=claimed").await {
            desk.report(&row, "sent", None).await;
        }
    }
    let mut keys: Vec<_> = desk.messages().await.into_iter().map(|(contact, _, _)| contact).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), desk.messages().await.len()), (30, 30));
    assert_eq!(desk.broadcast(id).await["status"], "completed");
}

#[testkit::both]
async fn a_cancelled_broadcast_keeps_what_was_sent(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(6).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 120 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    let rows = desk.recipients(id, "state=claimed").await;
    desk.report(&rows[0], "sent", None).await;
    assert_eq!(desk.act(id, "cancel").await["status"], "cancelling");
    desk.run().await;
    assert_eq!(desk.act(id, "cancel").await["status"], "cancelled");
    desk.seconds(3).await;
    let counts = desk.broadcast(id).await["counts"].clone();
    assert_eq!(
        (&counts["sent"], &counts["cancelled"], desk.messages().await.len()),
        (&json!(1), &json!(5), 2)
    );
    for what in ["send", "pause"] {
        desk.post(&format!("/broadcasts/{id}/{what}"), json!({})).await.expect_error(409, "invalid_state");
    }
    assert_eq!(desk.broadcast_events().await, ["broadcast.started", "broadcast.cancelled"]);
}

#[testkit::both]
async fn what_failed_can_be_sent_again(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(3).await;
    let id = desk.draft(all(), json!({})).await;
    desk.act(id, "send").await;
    desk.run().await;
    let rows = desk.recipients(id, "").await;
    for (row, status) in rows.iter().zip(["failed", "unknown", "sent"]) {
        desk.report(row, status, None).await;
    }
    desk.seconds(3).await;
    assert_eq!(desk.broadcast(id).await["status"], "completed");
    desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect_error(409, "invalid_state");
    let send = format!("/broadcasts/{id}/send");
    for (retry, place) in [("failed", 0), ("unknown", 1)] {
        assert_eq!(desk.post(&send, json!({ "retry": retry })).await.expect(200)["status"], "sending");
        desk.run().await;
        let row = desk.recipients(id, "state=claimed").await.remove(0);
        assert_eq!((&row["id"], &row["attempt"]), (&rows[place]["id"], &json!(2)));
        // What is said of the first attempt no longer counts.
        desk.report(&rows[place], "delivered", None).await;
        assert_eq!(desk.recipients(id, "state=claimed").await.len(), 1);
        desk.report(&row, "sent", None).await;
        desk.seconds(3).await;
        assert_eq!(desk.broadcast(id).await["status"], "completed");
        let nothing = desk.post(&send, json!({ "retry": retry })).await;
        assert_eq!(nothing.expect_error(409, "invalid_state").as_deref(), Some("retry"));
    }
    assert_eq!(desk.messages().await.len(), 5);
}

#[testkit::both]
async fn contacts_that_are_merged_get_one_message(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(5).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    let outsider = desk.contact("Zoe", "+34612345678").await;
    // Both are recipients, one of two is, and one that was written to already.
    for (survivor, merged) in [(ids[1], ids[2]), (outsider, ids[3]), (ids[4], ids[0])] {
        desk.post(&format!("/contacts/{survivor}/merge"), json!({ "source_id": merged })).await.expect(200);
    }
    desk.seconds(6).await;
    let expected = [
        (ids[0], "claimed"),
        (ids[1], "claimed"),
        (ids[2], "merged"),
        (outsider, "claimed"),
        (ids[4], "merged"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, state)| (*id, (*state).to_owned())).collect();
    assert_eq!(desk.states(id).await, expected);
    assert_eq!(desk.messages().await.len(), 3);
}

#[testkit::both]
async fn trouble_pauses_it_by_itself(kind: Kind) {
    let desk = open(kind).await;
    desk.crowd(60).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    for (table, column, broken, fixed, reason) in [
        ("message_templates", "status", "paused", "approved", "template_not_approved"),
        ("channels", "status", "disconnected", "connected", "channel_disconnected"),
        ("channels", "quality", "low", "high", "quality_low"),
    ] {
        desk.app.sql(format!("UPDATE {table} SET {column} = '{broken}'")).await;
        desk.seconds(1).await;
        let paused = desk.broadcast(id).await;
        assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!(reason)));
        if column == "status" {
            desk.post(&format!("/broadcasts/{id}/send"), json!({})).await.expect_error(409, reason);
        }
        desk.app.sql(format!("UPDATE {table} SET {column} = '{fixed}'")).await;
        let resumed = desk.act(id, "send").await;
        assert_eq!((&resumed["status"], &resumed["pause_reason"]), (&json!("sending"), &Value::Null));
    }
    let fail = async |count: usize, code: &'static str| {
        while desk.recipients(id, "state=claimed").await.len() < count {
            desk.seconds(1).await;
        }
        for row in desk.recipients(id, "state=claimed").await.iter().take(count) {
            desk.report(row, "failed", Some(code)).await;
        }
        desk.seconds(1).await;
        desk.broadcast(id).await["pause_reason"].clone()
    };
    assert_eq!(fail(1, "messaging_limit").await, "messaging_limit");
    desk.app.data.clock.advance(chrono::Duration::seconds(1));
    desk.act(id, "send").await;
    assert_eq!(fail(10, "undeliverable").await, Value::Null);
    assert_eq!(fail(11, "undeliverable").await, "failure_rate");
    desk.app.data.clock.advance(chrono::Duration::seconds(1));
    desk.act(id, "send").await;
    let workspace = desk.workspace;
    desk.app.db().write(move |tx| auth::workspaces::block(tx, workspace, "unpaid")).await.unwrap();
    desk.seconds(1).await;
    desk.app.db().write(move |tx| auth::workspaces::unblock(tx, workspace)).await.unwrap();
    desk.app.service.pipeline.directory.forget();
    assert_eq!(desk.broadcast(id).await["pause_reason"], "workspace_blocked");
    assert_eq!(desk.broadcast_events().await.iter().filter(|kind| *kind == "broadcast.paused").count(), 6);
}

#[testkit::both]
async fn clocks_decide_when_messages_are_sent(kind: Kind) {
    let desk = open(kind).await;
    let at = async |name: &str, phone: &str, zone: Value| {
        let data = json!({ "$name": name, "$phone": phone, "$timezone": zone });
        desk.post("/contacts", json!({ "data": data })).await.expect(201)["id"].as_i64().unwrap()
    };
    let madrid = at("Ana", "+34612345678", Value::Null).await;
    let tokyo = at("Ben", "+34612345679", json!("Asia/Tokyo")).await;
    // It is noon by UTC, and one o'clock in Madrid.
    let quiet = json!({ "time_zone": "Europe/Madrid", "quiet_hours": { "from": "12:30", "to": "13:10" } });
    let id = desk.draft(all(), json!({ "schedule": quiet })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 0);
    desk.app.data.clock.advance(chrono::Duration::minutes(9));
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 0);
    desk.app.data.clock.advance(chrono::Duration::minutes(1));
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 2);
    // At nine by everybody's clock: midnight by UTC in Tokyo.
    let local = json!({
        "send_at": "2026-01-16T08:00:00Z", "time_zone": "Europe/Madrid", "contact_local_time": true,
        "quiet_hours": { "from": "09:00", "to": "09:30" },
    });
    let id = desk.draft(all(), json!({ "schedule": local })).await;
    assert_eq!(desk.act(id, "send").await["status"], "scheduled");
    let hours = async |hours: i64| {
        desk.app.data.clock.advance(chrono::Duration::minutes(60 * hours));
        desk.run().await;
        desk.messages().await.split_off(2).into_iter().map(|(contact, ..)| contact).collect::<Vec<_>>()
    };
    assert_eq!(hours(11).await, [0; 0]);
    let rows = desk.recipients(id, "").await;
    assert_eq!(rows[0]["not_before"], "2026-01-16T08:00:00.000Z");
    assert_eq!(rows[1]["not_before"], "2026-01-16T00:00:00.000Z");
    // Ten past midnight by UTC is a quiet time in Tokyo.
    assert_eq!(hours(1).await, [0; 0]);
    assert_eq!(desk.recipients(id, "").await[1]["not_before"], "2026-01-16T00:30:00.000Z");
    assert_eq!(hours(1).await, [tokyo]);
    assert_eq!(hours(6).await, [tokyo]);
    assert_eq!(hours(2).await, [tokyo, madrid]);
}

#[testkit::both]
async fn preparing_goes_on_where_it_was_interrupted(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(2_100).await;
    // The same address by the user id on the network.
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 1 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.broadcast(id).await["counts"]["total"], 2_100);
    assert_eq!(desk.messages().await.len(), 1);
    // A server that dies after the first piece leaves this behind.
    desk.app.sql(format!("DELETE FROM broadcast_recipients WHERE contact_id > {}", ids[999])).await;
    desk.app
        .sql(format!(
            "UPDATE broadcasts SET status = 'preparing', prepared_at = NULL, prepared_to = {}",
            ids[999]
        ))
        .await;
    desk.app.sql("DELETE FROM jobs WHERE kind = 'broadcasts.run'").await;
    assert_eq!(desk.act(id, "pause").await["status"], "paused");
    assert_eq!(desk.act(id, "send").await["status"], "preparing");
    desk.run().await;
    let broadcast = desk.broadcast(id).await;
    assert_eq!((&broadcast["status"], &broadcast["counts"]["total"]), (&json!("sending"), &json!(2_100)));
    assert_eq!(desk.messages().await.len(), 1);
}
