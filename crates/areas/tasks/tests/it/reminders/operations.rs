//! Creating, listing, changing and snoozing reminders.

use super::{Fixture, path};
use crate::full;
use model::{Env, Timestamp};
use serde_json::{Value, json};
use tasks::reminders;
use testkit::Kind;

#[testkit::both]
async fn what_cannot_be_is_refused(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let (app, key) = (&fixture.app, &fixture.key);
    let later = fixture.after(10);
    let with = |extra: Value| {
        let mut body = json!({ "title": "x", "due_at": later });
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let rule = |rule: &str| json!({ "recurrence": { "type": "rrule", "rule": rule } });
    let cron = |rule: &str| json!({ "recurrence": { "type": "cron", "rule": rule } });
    for (body, param) in [
        (json!({ "title": "x" }), "due_at"),
        (json!({ "due_at": later }), "title"),
        (with(json!({ "title": " " })), "title"),
        (with(json!({ "due_at": fixture.after(-2) })), "due_at"),
        (with(json!({ "timezone": "Mars/Olympus" })), "timezone"),
        (with(rule("FREQ=OFTEN")), "recurrence.rule"),
        (with(rule("FREQ=MINUTELY")), "recurrence.rule"),
        (with(rule("FREQ=DAILY;COUNT=2")), "recurrence.rule"),
        (with(cron("* * * * *")), "recurrence.rule"),
        (with(cron("0 0 31 2 *")), "recurrence.rule"),
        (
            with(json!({ "recurrence": { "type": "cron", "rule": "0 9 * * *", "until": fixture.after(1) } })),
            "recurrence.rule",
        ),
        (with(json!({ "action": { "type": "send_message" } })), "action.config.text"),
        (
            with(json!({ "action": { "type": "send_message", "config": { "text": "x", "input": "x" } } })),
            "action.config.input",
        ),
        (
            with(
                json!({ "action": { "type": "send_message", "config": { "text": "x", "template": { "name": "x", "language": "en" } } } }),
            ),
            "action.config.template",
        ),
        (with(json!({ "action": { "type": "send_message", "config": { "text": "x" } } })), "contact_id"),
        (
            with(json!({ "action": { "type": "run_agent", "config": { "channel_id": 1 } } })),
            "action.config.channel_id",
        ),
        (with(json!({ "action": { "type": "start_flow" } })), "action.config.flow_id"),
        (with(json!({ "action": { "type": "notify", "config": { "input": "x" } } })), "action.config.input"),
    ] {
        let refused = app.post("/reminders", key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(refused.as_deref(), Some(param), "{body}");
    }
    let stranger = full(app).await;
    let foreign =
        app.post("/contacts", &stranger, json!({ "data": { "$name": "Foreign" } })).await.expect(201);
    for (body, param) in [
        (json!({ "contact_id": foreign["id"] }), "contact_id"),
        (json!({ "assignee": { "id": 99 } }), "assignee.id"),
        (
            json!({ "action": { "type": "run_agent", "config": { "agent_id": 99 } } }),
            "action.config.agent_id",
        ),
    ] {
        let refused = app.post("/reminders", key, with(body.clone())).await.expect_error(404, "not_found");
        assert_eq!(refused.as_deref(), Some(param), "{body}");
    }
    let no_agent =
        app.post("/reminders", &stranger, with(json!({ "action": { "type": "run_agent" } }))).await;
    no_agent.expect_error(409, "agent_not_configured");
    let modest = app.key(key.workspace, Env::Live, &["reminders:write"]).await;
    let refused = app.post("/reminders", &modest, with(json!({ "action": { "type": "run_agent" } }))).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("runs:execute"));
    let made = fixture.create(with(json!({}))).await;
    app.patch(&path(&made), &stranger, json!({ "title": "y" })).await.expect_error(404, "not_found");
    app.delete(&path(&made), &stranger).await.expect_error(404, "not_found");
    assert_eq!(app.get("/reminders", &stranger).await.expect(200), json!([]));
}

#[testkit::both]
async fn lists_are_paged_and_filtered(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let (app, key) = (&fixture.app, &fixture.key);
    let contact = app.post("/contacts", key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let mut ids = Vec::new();
    for place in 0..3 {
        let about = if place == 1 { contact["id"].clone() } else { Value::Null };
        ids.push(
            fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "contact_id": about })).await["id"]
                .clone(),
        );
    }
    fixture.change(&json!({ "id": ids[0] }), json!({ "status": "completed" })).await;
    let listed = async |query: &str| {
        let rows = app.get(&format!("/reminders?{query}"), key).await.expect(200);
        rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, [ids[2].clone(), ids[1].clone(), ids[0].clone()]);
    assert_eq!(listed("status=completed").await, [ids[0].clone()]);
    assert_eq!(listed(&format!("contact_id={}", contact["id"])).await, [ids[1].clone()]);
    let page = app.get("/reminders?paginate=true&limit=2", key).await;
    assert_eq!(page.body["has_more"], true);
    let after = page.body["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&format!("paginate=true&limit=2&starting_after={after}")).await, [ids[0].clone()]);
}

#[testkit::both]
async fn snoozing_keeps_the_series(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let due = fixture.after(60);
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY" });
    let made = fixture.create(json!({ "title": "x", "due_at": due, "recurrence": daily })).await;
    fixture.wait(60).await;
    let next = fixture.after(24 * 60);
    let until = fixture.after(90);
    let snoozed = fixture.change(&made, json!({ "snoozed_until": until })).await;
    for (field, value) in [
        ("next_fire_at", &json!(until)),
        ("snoozed_until", &json!(until)),
        ("due_at", &json!(due)),
        ("recurrence", &made["recurrence"]),
    ] {
        assert_eq!(snoozed[field], *value, "{field}");
    }
    fixture.wait(90).await;
    let after = fixture.get(&made).await;
    assert_eq!(
        (&after["next_fire_at"], &after["snoozed_until"], &after["status"]),
        (&json!(next), &Value::Null, &json!("scheduled"))
    );
    assert_eq!(fixture.fired().await, [json!(due), json!(until)]);
    // A snooze across a date: nothing fires until the snooze ends, and the date has passed.
    let far = fixture.after(30 * 60);
    fixture.change(&made, json!({ "snoozed_until": far })).await;
    fixture.wait(25 * 60).await;
    assert_eq!(fixture.fired().await.len(), 2);
    fixture.wait(5 * 60).await;
    assert_eq!(fixture.fired().await[2..], [json!(far)]);
    let later = Timestamp::parse(&next).unwrap().plus_seconds(24 * 3600).rfc3339();
    assert_eq!(fixture.get(&made).await["next_fire_at"], later);
    // When the snooze is cancelled, the series continues at once.
    fixture.change(&made, json!({ "snoozed_until": fixture.after(9999) })).await;
    assert_eq!(fixture.change(&made, json!({ "snoozed_until": null })).await["next_fire_at"], later);
    // A reminder that has fired for good can be snoozed and fires once more.
    let single = fixture.create(json!({ "title": "y", "due_at": fixture.after(5) })).await;
    fixture.wait(5).await;
    assert_eq!(fixture.get(&single).await["status"], "fired");
    assert_eq!(
        fixture.change(&single, json!({ "snoozed_until": fixture.after(15) })).await["status"],
        "scheduled"
    );
    fixture.wait(15).await;
    let fired = fixture.get(&single).await;
    assert_eq!((&fired["status"], &fired["fire_count"]), (&json!("fired"), &json!(2)));
    let refused =
        fixture.app.patch(&path(&single), &fixture.key, json!({ "snoozed_until": fixture.after(0) })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("snoozed_until"));
}

#[testkit::both]
async fn reminders_are_changed_completed_and_cancelled(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let (app, key) = (&fixture.app, &fixture.key);
    let made = fixture.create(json!({ "title": "x", "note": "n", "due_at": fixture.after(10) })).await;
    assert_eq!(fixture.change(&made, json!({ "title": "x", "note": "n" })).await["version"], 1);
    let changed = fixture.change(&made, json!({ "title": "y", "note": null, "version": 1 })).await;
    assert_eq!(
        (&changed["title"], &changed["note"], &changed["version"], &changed["due_at"]),
        (&json!("y"), &Value::Null, &json!(2), &made["due_at"])
    );
    app.patch(&path(&made), key, json!({ "title": "z", "version": 1 }))
        .await
        .expect_error(409, "version_conflict");
    let completed = fixture.change(&made, json!({ "status": "completed" })).await;
    assert_eq!((&completed["status"], &completed["next_fire_at"]), (&json!("completed"), &Value::Null));
    let series = fixture
        .create(json!({ "title": "s", "recurrence": { "type": "cron", "rule": "*/5 * * * *" } }))
        .await;
    fixture.change(&series, json!({ "status": "cancelled" })).await;
    fixture.wait(60).await;
    assert_eq!(fixture.fired().await, Vec::<Value>::new());
    app.patch(&path(&made), key, json!({ "snoozed_until": fixture.after(5) }))
        .await
        .expect_error(409, "invalid_state");
    let refused = app.patch(&path(&made), key, json!({ "recurrence": null })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("due_at"));
    // Rescheduling it.
    let again = fixture.change(&made, json!({ "due_at": fixture.after(5) })).await;
    assert_eq!((&again["status"], &again["next_fire_at"]), (&json!("scheduled"), &json!(fixture.after(5))));
    let daily = fixture
        .change(
            &made,
            json!({ "recurrence": { "type": "cron", "rule": "30 9 * * *" }, "timezone": "Europe/Madrid" }),
        )
        .await;
    let moved = fixture.change(&made, json!({ "timezone": "America/Sao_Paulo" })).await;
    assert_ne!(daily["next_fire_at"], moved["next_fire_at"]);
    assert_eq!(
        fixture.change(&made, json!({ "recurrence": null, "due_at": fixture.after(5) })).await["recurrence"],
        Value::Null
    );
    // A merge of contacts moves their reminders.
    let contacts = [
        app.post("/contacts", key, json!({ "data": { "$name": "A" } })).await.expect(201),
        app.post("/contacts", key, json!({ "data": { "$name": "B" } })).await.expect(201),
    ];
    fixture.change(&made, json!({ "contact_id": contacts[0]["id"] })).await;
    let ids = contacts.map(|contact| model::ContactId(contact["id"].as_i64().unwrap()));
    let workspace = key.workspace;
    app.db().write(move |tx| reminders::move_to_contact(tx, workspace, ids[0], ids[1])).await.unwrap();
    assert_eq!(fixture.get(&made).await["contact_id"], ids[1].0);
    assert_eq!(fixture.change(&made, json!({ "contact_id": null })).await["contact_id"], Value::Null);
}
