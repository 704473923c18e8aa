//! Firing exactly once for each date.

use super::{Fixture, path};
use business::team::{self, NewMember};
use chrono::Duration;
use serde_json::{Value, json};
use tasks::reminders;
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_reminder_fires_once_at_its_date(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let (app, key) = (&fixture.app, &fixture.key);
    let contact = app.post("/contacts", key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let workspace = key.workspace;
    let member = NewMember { name: "Marta".into(), email: "m@example.com".into(), ..NewMember::default() };
    let member = app.db().write(move |tx| team::add(tx, workspace, member.clone())).await.unwrap();
    let due = fixture.after(10);
    let made = fixture
        .create(json!({
            "title": "  Call Ana ", "note": "About the order", "due_at": due, "contact_id": contact["id"],
            "assignee": { "id": member.id }, "cancel_on_reply": true, "metadata": { "order": "A-1" },
        }))
        .await;
    for (field, value) in [
        ("title", json!("Call Ana")),
        ("status", json!("scheduled")),
        ("timezone", json!("UTC")),
        ("next_fire_at", json!(due)),
        ("recurrence", Value::Null),
        (
            "action",
            json!({ "type": "notify", "config": { "agent_id": null, "input": null, "flow_id": null, "text": null, "template": null, "channel_id": null } }),
        ),
        ("assignee", json!({ "type": "user", "id": member.id })),
        ("fire_count", json!(0)),
        ("livemode", json!(true)),
        ("version", json!(1)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    fixture.wait(9).await;
    assert_eq!(fixture.fired().await, Vec::<Value>::new());
    fixture.wait(1).await;
    fixture.run().await;
    let events = fixture.events().await;
    assert_eq!(events.len(), 1);
    let data = &events[0]["data"];
    assert_eq!(
        (&data["scheduled_for"], &data["missed"], &data["contact_id"]),
        (&json!(due), &json!(0), &contact["id"])
    );
    assert_eq!(data["reminder"], fixture.get(&made).await);
    assert_eq!(
        (&data["reminder"]["status"], &data["reminder"]["fire_count"], &data["reminder"]["next_fire_at"]),
        (&json!("fired"), &json!(1), &Value::Null)
    );
    assert_eq!(data["reminder"]["last_fired_at"], json!(fixture.now().rfc3339()));
    // The event can be found by the contact.
    let about =
        app.get(&format!("/events?contact_id={}&type=reminder.fired", contact["id"]), key).await.expect(200);
    assert_eq!(about.as_array().unwrap().len(), 1);
    // Erasing a contact deletes its reminders, and removing a member clears the assignee.
    let other = fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "assignee": { "type": "user", "id": member.id } })).await;
    app.db()
        .write(move |tx| team::remove(tx, workspace, member.id, &team::Editor::command_line("test")))
        .await
        .unwrap();
    assert_eq!(fixture.get(&other).await["assignee"], Value::Null);
    app.delete(&format!("/contacts/{}?erase=true", contact["id"]), key).await.expect(200);
    app.delete(&path(&made), key).await.expect_error(404, "not_found");
    assert_eq!(app.delete(&path(&other), key).await.expect(200)["deleted"], true);
    fixture.wait(20).await;
    assert_eq!(fixture.fired().await.len(), 1);
}

#[testkit::both]
async fn missed_dates_fire_once_for_the_last(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let due = fixture.after(60);
    let made = fixture
        .create(
            json!({ "title": "x", "due_at": due, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } }),
        )
        .await;
    let single = fixture.create(json!({ "title": "y", "due_at": due })).await;
    let (last, next) = (fixture.after(5 * 60), fixture.after(6 * 60));
    fixture.wait(5 * 60 + 20).await;
    let events = fixture.events().await;
    assert_eq!(events.len(), 2);
    let of = |reminder: &Value| {
        events.iter().find(|event| event["data"]["reminder"]["id"] == reminder["id"]).unwrap()["data"].clone()
    };
    assert_eq!((&of(&made)["scheduled_for"], &of(&made)["missed"]), (&json!(last), &json!(4)));
    assert_eq!((&of(&single)["scheduled_for"], &of(&single)["missed"]), (&json!(due), &json!(0)));
    assert_eq!(fixture.get(&made).await["next_fire_at"], next);
    fixture.wait(40).await;
    assert_eq!(fixture.fired().await.len(), 3);
}

#[testkit::both]
async fn two_replicas_fire_a_date_once(kind: Kind) {
    let fixture = Fixture::open(kind).await;
    let due = fixture.after(10);
    for place in 0..20 {
        fixture.create(json!({ "title": format!("{place}"), "due_at": due, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } })).await;
    }
    let replica = fixture.app.replica(auth::RateWindows::local()).await;
    fixture.app.data.clock.advance(Duration::minutes(10));
    let fire = |app: &TestApp| {
        let db = app.db().clone();
        async move {
            let mut fired = 0;
            for _ in 0..10 {
                fired += db.write(|tx| reminders::fire_due(tx, 3)).await.unwrap();
            }
            fired
        }
    };
    let fired = futures::join!(fire(&fixture.app), fire(&replica), fire(&fixture.app), fire(&replica));
    let rest = fixture.app.db().write(|tx| reminders::fire_due(tx, 100)).await.unwrap();
    assert_eq!(fired.0 + fired.1 + fired.2 + fired.3 + rest, 20);
    assert_eq!(fixture.fired().await, vec![json!(due); 20]);
    // A transaction that fails has fired nothing.
    fixture.app.data.clock.advance(Duration::hours(1));
    let failed = fixture.app.db().write(|tx| {
        reminders::fire_due(tx, 100)?;
        Err::<(), _>(model::Error::internal("the server dies here"))
    });
    failed.await.unwrap_err();
    assert_eq!(fixture.fired().await.len(), 20);
    fixture.run().await;
    fixture.run().await;
    assert_eq!(fixture.fired().await.len(), 40);
}
