//! Reminders: their dates, firing exactly once, snoozing, and what they start.

use crate::full;
use chrono::Duration;
use crm::reminders;
use crm::team::{self, NewMember};
use model::{Env, Timestamp};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// A service with a key of a workspace that has an active agent.
struct Desk {
    app: TestApp,
    key: Key,
}

impl Desk {
    async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = app.full_key().await;
        Self { app, key }
    }

    fn now(&self) -> Timestamp {
        self.app.db().now()
    }

    /// The moment in so many minutes.
    fn after(&self, minutes: i64) -> String {
        self.now().plus_seconds(minutes * 60).rfc3339()
    }

    async fn create(&self, body: Value) -> Value {
        self.app.post("/reminders", &self.key, body).await.expect(201)
    }

    async fn change(&self, reminder: &Value, patch: Value) -> Value {
        self.app.patch(&path(reminder), &self.key, patch).await.expect(200)
    }

    /// A reminder as it is now.
    async fn get(&self, reminder: &Value) -> Value {
        let all = self.app.get("/reminders", &self.key).await.expect(200);
        all.as_array().unwrap().iter().find(|other| other["id"] == reminder["id"]).unwrap().clone()
    }

    /// Lets time pass, and does what is due then.
    async fn wait(&self, minutes: i64) {
        self.app.data.clock.advance(Duration::minutes(minutes));
        self.run().await;
    }

    async fn run(&self) {
        self.app.service.jobs.run_due().await.unwrap();
    }

    /// For which dates reminders fired, oldest first.
    async fn fired(&self) -> Vec<Value> {
        let events = self.events().await;
        events.iter().map(|event| event["data"]["scheduled_for"].clone()).collect()
    }

    async fn events(&self) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.app.get("/events?type=reminder.fired&limit=100", &self.key).await.expect(200);
        events.as_array().unwrap().iter().rev().cloned().collect()
    }

    async fn runs(&self) -> Vec<Value> {
        self.app.service.engine.idle().await;
        let runs = self.app.get("/runs", &self.key).await.expect(200);
        runs.as_array().unwrap().clone()
    }
}

fn path(reminder: &Value) -> String {
    format!("/reminders/{}", reminder["id"])
}

#[testkit::both]
async fn a_reminder_fires_once_at_its_date(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    let contact = app.post("/contacts", key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let workspace = key.workspace;
    let member = NewMember { name: "Marta".into(), email: "m@example.com".into(), ..NewMember::default() };
    let member = app.db().write(move |tx| team::add(tx, workspace, member.clone())).await.unwrap();
    let due = desk.after(10);
    let made = desk
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
            json!({ "type": "notify", "config": { "agent_id": null, "input": null, "text": null, "template": null, "channel_id": null } }),
        ),
        ("assignee", json!({ "type": "user", "id": member.id })),
        ("fire_count", json!(0)),
        ("livemode", json!(true)),
        ("version", json!(1)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    desk.wait(9).await;
    assert_eq!(desk.fired().await, Vec::<Value>::new());
    desk.wait(1).await;
    desk.run().await;
    let events = desk.events().await;
    assert_eq!(events.len(), 1);
    let data = &events[0]["data"];
    assert_eq!(
        (&data["scheduled_for"], &data["missed"], &data["contact_id"]),
        (&json!(due), &json!(0), &contact["id"])
    );
    assert_eq!(data["reminder"], desk.get(&made).await);
    assert_eq!(
        (&data["reminder"]["status"], &data["reminder"]["fire_count"], &data["reminder"]["next_fire_at"]),
        (&json!("fired"), &json!(1), &Value::Null)
    );
    assert_eq!(data["reminder"]["last_fired_at"], json!(desk.now().rfc3339()));
    // About the contact, for those who ask for it.
    let about =
        app.get(&format!("/events?contact_id={}&type=reminder.fired", contact["id"]), key).await.expect(200);
    assert_eq!(about.as_array().unwrap().len(), 1);
    // A contact that is erased takes its reminders along, and a member that leaves is forgotten.
    let other = desk.create(json!({ "title": "x", "due_at": desk.after(10), "assignee": { "type": "user", "id": member.id } })).await;
    app.db().write(move |tx| team::remove(tx, workspace, member.id)).await.unwrap();
    assert_eq!(desk.get(&other).await["assignee"], Value::Null);
    app.delete(&format!("/contacts/{}?erase=true", contact["id"]), key).await.expect(200);
    app.delete(&path(&made), key).await.expect_error(404, "not_found");
    assert_eq!(app.delete(&path(&other), key).await.expect(200)["deleted"], true);
    desk.wait(20).await;
    assert_eq!(desk.fired().await.len(), 1);
}

#[testkit::both]
async fn what_cannot_be_is_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    let later = desk.after(10);
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
        (with(json!({ "due_at": desk.after(-2) })), "due_at"),
        (with(json!({ "timezone": "Mars/Olympus" })), "timezone"),
        (with(rule("FREQ=OFTEN")), "recurrence.rule"),
        (with(rule("FREQ=MINUTELY")), "recurrence.rule"),
        (with(rule("FREQ=DAILY;COUNT=2")), "recurrence.rule"),
        (with(cron("* * * * *")), "recurrence.rule"),
        (with(cron("0 0 31 2 *")), "recurrence.rule"),
        (
            with(json!({ "recurrence": { "type": "cron", "rule": "0 9 * * *", "until": desk.after(1) } })),
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
        (with(json!({ "action": { "type": "start_flow" } })), "action.type"),
        (with(json!({ "action": { "type": "notify", "config": { "input": "x" } } })), "action.config.input"),
    ] {
        let refused = app.post("/reminders", key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(refused.as_deref(), Some(param), "{body}");
    }
    let message = app.post("/reminders", key, with(json!({ "action": { "type": "start_flow" } }))).await;
    assert!(
        message.body["error"]["message"].as_str().unwrap().contains("not available yet"),
        "{}",
        message.body
    );
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
    let made = desk.create(with(json!({}))).await;
    app.patch(&path(&made), &stranger, json!({ "title": "y" })).await.expect_error(404, "not_found");
    app.delete(&path(&made), &stranger).await.expect_error(404, "not_found");
    assert_eq!(app.get("/reminders", &stranger).await.expect(200), json!([]));
}

#[testkit::both]
async fn lists_are_paged_and_filtered(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    let contact = app.post("/contacts", key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let mut ids = Vec::new();
    for place in 0..3 {
        let about = if place == 1 { contact["id"].clone() } else { Value::Null };
        ids.push(
            desk.create(json!({ "title": "x", "due_at": desk.after(10), "contact_id": about })).await["id"]
                .clone(),
        );
    }
    desk.change(&json!({ "id": ids[0] }), json!({ "status": "completed" })).await;
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
async fn a_recurrence_keeps_its_local_time_and_ends(kind: Kind) {
    let desk = Desk::open(kind).await;
    // Madrid puts its clocks forward on the night of the second date.
    let start = Timestamp::parse("2027-03-27T08:00:00Z").unwrap();
    let minutes = (start.seconds() - desk.now().seconds()) / 60;
    desk.app.data.clock.advance(Duration::minutes(minutes - 10));
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "count": 3 });
    let made = desk.create(json!({ "title": "x", "recurrence": daily, "timezone": "Europe/Madrid" })).await;
    assert_eq!(made["next_fire_at"], "2027-03-27T08:00:00.000Z");
    desk.wait(11).await;
    for _ in 0..4 {
        desk.wait(24 * 60).await;
    }
    assert_eq!(
        desk.fired().await,
        ["2027-03-27T08:00:00.000Z", "2027-03-28T07:00:00.000Z", "2027-03-29T07:00:00.000Z"]
    );
    let over = desk.get(&made).await;
    assert_eq!(
        (&over["status"], &over["fire_count"], &over["next_fire_at"]),
        (&json!("fired"), &json!(3), &Value::Null)
    );
    // By date, and as a cron expression.
    let hourly = json!({ "type": "cron", "rule": "0 * * * *", "until": desk.after(150) });
    let made = desk.create(json!({ "title": "x", "recurrence": hourly })).await;
    for _ in 0..5 {
        desk.wait(60).await;
    }
    assert_eq!(desk.get(&made).await["fire_count"], 2);
    assert_eq!(desk.get(&made).await["status"], "fired");
}

#[testkit::both]
async fn rules_that_rfc_5545_does_not_allow_are_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    for (rule, words) in [
        ("FREQ=WEEKLY;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=DAILY"),
        ("FREQ=MINUTELY;INTERVAL=30;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=MINUTELY"),
        ("FREQ=MONTHLY;BYDAY=6MO", "numbers in BYDAY from 1 to 5, or from -5 to -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY from 1 to 31, or from -31 to -1"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "cannot have BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=WEEKLY"),
        ("FREQ=HOURLY;BYWEEKNO=20", "cannot have BYWEEKNO with FREQ=HOURLY"),
        ("FREQ=DAILY;BYSETPOS=1", "another part with BY, such as BYDAY, with BYSETPOS"),
        ("FREQ=DAILY;BYHOUR=9;BYSETPOS=0", "BYSETPOS from 1 to 366"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR from 0 to 23"),
        ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE from 0 to 59"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL from 1 to 65,535"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20310101", "either COUNT or UNTIL"),
        ("FREQ=DAILY;UNTIL=20310101", "must not have `COUNT` or `UNTIL`"),
        ("FREQ=DAILY;FREQ=WEEKLY", "FREQ only once"),
        ("FREQ=DAILY;BYEASTER=1", "cannot have `BYEASTER`"),
        ("FREQ=DAILY;BYHOUR=9;BYMINUTE=0,4", "at least 5 minutes between two dates"),
        ("FREQ=MINUTELY;INTERVAL=60;BYDAY=MO;BYMINUTE=61", "BYMINUTE from 0 to 59"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "has no date after `due_at`"),
        ("FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=31", "has no date after `due_at`"),
    ] {
        let body = json!({ "title": "x", "due_at": "2030-01-05T04:30:00Z", "recurrence": { "type": "rrule", "rule": rule } });
        let answer = desk.app.post("/reminders", &desk.key, body).await;
        let message = answer.body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            answer.expect_error(400, "validation_error").as_deref(),
            Some("recurrence.rule"),
            "{rule}"
        );
        assert!(message.contains(words), "{rule}: {message}");
    }
}

#[testkit::both]
async fn steps_leave_no_date_out(kind: Kind) {
    let desk = Desk::open(kind).await;
    let office = "BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16,17";
    for (rule, first) in [
        (format!("FREQ=MINUTELY;INTERVAL=30;{office}"), "2030-01-07T09:00"),
        ("FREQ=MINUTELY;INTERVAL=20;BYDAY=MO;BYHOUR=9".into(), "2030-01-07T09:10"),
        ("FREQ=MINUTELY;INTERVAL=7;BYHOUR=9".into(), "2030-01-05T09:03"),
        ("FREQ=MINUTELY;INTERVAL=45;BYDAY=MO;BYHOUR=9".into(), "2030-01-07T09:00"),
        ("FREQ=MINUTELY;INTERVAL=5;BYMONTH=2;BYMONTHDAY=29".into(), "2032-02-29T00:00"),
        ("FREQ=HOURLY;INTERVAL=5;BYDAY=MO".into(), "2030-01-07T01:30"),
        ("FREQ=HOURLY;BYYEARDAY=-1;BYHOUR=8".into(), "2030-12-31T08:30"),
        ("FREQ=MONTHLY;BYDAY=-5FR".into(), "2030-03-01T04:30"),
        ("FREQ=YEARLY;BYWEEKNO=20".into(), "2030-05-18T04:30"),
    ] {
        let body = json!({ "title": "x", "timezone": "UTC", "due_at": "2030-01-05T04:30:00Z", "recurrence": { "type": "rrule", "rule": rule } });
        assert_eq!(desk.create(body).await["next_fire_at"], format!("{first}:00.000Z"), "{rule}");
    }
    // Programs write fractions of seconds, for which the first date is not left out.
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY" });
    let body =
        json!({ "title": "x", "timezone": "UTC", "due_at": "2030-01-05T04:30:00.345Z", "recurrence": daily });
    assert_eq!(desk.create(body).await["next_fire_at"], "2030-01-05T04:30:00.000Z");
    // Fired on a Friday, it comes on Monday.
    let friday = Timestamp::parse("2030-01-11T10:00:00Z").unwrap();
    desk.app.data.clock.advance(Duration::seconds(friday.seconds() - desk.now().seconds()));
    let rule = json!({ "type": "rrule", "rule": "FREQ=MINUTELY;INTERVAL=60;BYDAY=FR,MO;BYHOUR=10" });
    let made =
        desk.create(json!({ "title": "y", "timezone": "UTC", "due_at": friday, "recurrence": rule })).await;
    assert_eq!(made["next_fire_at"], "2030-01-11T10:00:00.000Z");
    desk.wait(1).await;
    let fired = desk.get(&made).await;
    assert_eq!(
        (&fired["fire_count"], &fired["next_fire_at"]),
        (&json!(1), &json!("2030-01-14T10:00:00.000Z"))
    );
}

#[testkit::both]
async fn a_stored_rule_that_is_refused_by_now_means_its_weekdays(kind: Kind) {
    let desk = Desk::open(kind).await;
    let monday = Timestamp::parse("2030-01-07T09:00:00Z").unwrap();
    desk.app.data.clock.advance(Duration::seconds(monday.seconds() - desk.now().seconds()));
    let weekly = json!({ "type": "rrule", "rule": "FREQ=WEEKLY;BYDAY=MO" });
    let made =
        desk.create(json!({ "title": "x", "timezone": "UTC", "due_at": monday, "recurrence": weekly })).await;
    desk.app
        .sql(format!(
            "UPDATE reminders SET recurrence = REPLACE(recurrence, 'BYDAY=MO', 'BYDAY=1MO') WHERE id = {}",
            made["id"]
        ))
        .await;
    desk.wait(1).await;
    let fired = desk.get(&made).await;
    assert_eq!(
        (&fired["status"], &fired["next_fire_at"]),
        (&json!("scheduled"), &json!("2030-01-14T09:00:00.000Z"))
    );
}

#[testkit::both]
async fn missed_dates_fire_once_for_the_last(kind: Kind) {
    let desk = Desk::open(kind).await;
    let due = desk.after(60);
    let made = desk
        .create(
            json!({ "title": "x", "due_at": due, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } }),
        )
        .await;
    let single = desk.create(json!({ "title": "y", "due_at": due })).await;
    let (last, next) = (desk.after(5 * 60), desk.after(6 * 60));
    desk.wait(5 * 60 + 20).await;
    let events = desk.events().await;
    assert_eq!(events.len(), 2);
    let of = |reminder: &Value| {
        events.iter().find(|event| event["data"]["reminder"]["id"] == reminder["id"]).unwrap()["data"].clone()
    };
    assert_eq!((&of(&made)["scheduled_for"], &of(&made)["missed"]), (&json!(last), &json!(4)));
    assert_eq!((&of(&single)["scheduled_for"], &of(&single)["missed"]), (&json!(due), &json!(0)));
    assert_eq!(desk.get(&made).await["next_fire_at"], next);
    desk.wait(40).await;
    assert_eq!(desk.fired().await.len(), 3);
}

#[testkit::both]
async fn two_replicas_fire_a_date_once(kind: Kind) {
    let desk = Desk::open(kind).await;
    let due = desk.after(10);
    for place in 0..20 {
        desk.create(json!({ "title": format!("{place}"), "due_at": due, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } })).await;
    }
    let replica = desk.app.replica(auth::RateWindows::local()).await;
    desk.app.data.clock.advance(Duration::minutes(10));
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
    let fired = futures::join!(fire(&desk.app), fire(&replica), fire(&desk.app), fire(&replica));
    let rest = desk.app.db().write(|tx| reminders::fire_due(tx, 100)).await.unwrap();
    assert_eq!(fired.0 + fired.1 + fired.2 + fired.3 + rest, 20);
    assert_eq!(desk.fired().await, vec![json!(due); 20]);
    // A transaction that fails has fired nothing.
    desk.app.data.clock.advance(Duration::hours(1));
    let failed = desk.app.db().write(|tx| {
        reminders::fire_due(tx, 100)?;
        Err::<(), _>(model::Error::internal("the server dies here"))
    });
    failed.await.unwrap_err();
    assert_eq!(desk.fired().await.len(), 20);
    desk.run().await;
    desk.run().await;
    assert_eq!(desk.fired().await.len(), 40);
}

#[testkit::both]
async fn snoozing_keeps_the_series(kind: Kind) {
    let desk = Desk::open(kind).await;
    let due = desk.after(60);
    let daily = json!({ "type": "rrule", "rule": "FREQ=DAILY" });
    let made = desk.create(json!({ "title": "x", "due_at": due, "recurrence": daily })).await;
    desk.wait(60).await;
    let next = desk.after(24 * 60);
    let until = desk.after(90);
    let snoozed = desk.change(&made, json!({ "snoozed_until": until })).await;
    for (field, value) in [
        ("next_fire_at", &json!(until)),
        ("snoozed_until", &json!(until)),
        ("due_at", &json!(due)),
        ("recurrence", &made["recurrence"]),
    ] {
        assert_eq!(snoozed[field], *value, "{field}");
    }
    desk.wait(90).await;
    let after = desk.get(&made).await;
    assert_eq!(
        (&after["next_fire_at"], &after["snoozed_until"], &after["status"]),
        (&json!(next), &Value::Null, &json!("scheduled"))
    );
    assert_eq!(desk.fired().await, [json!(due), json!(until)]);
    // Over a date: silent until then, and the date is over.
    let far = desk.after(30 * 60);
    desk.change(&made, json!({ "snoozed_until": far })).await;
    desk.wait(25 * 60).await;
    assert_eq!(desk.fired().await.len(), 2);
    desk.wait(5 * 60).await;
    assert_eq!(desk.fired().await[2..], [json!(far)]);
    let later = Timestamp::parse(&next).unwrap().plus_seconds(24 * 3600).rfc3339();
    assert_eq!(desk.get(&made).await["next_fire_at"], later);
    // Taken back, the series goes on at once.
    desk.change(&made, json!({ "snoozed_until": desk.after(9999) })).await;
    assert_eq!(desk.change(&made, json!({ "snoozed_until": null })).await["next_fire_at"], later);
    // One that has fired for good comes again once.
    let single = desk.create(json!({ "title": "y", "due_at": desk.after(5) })).await;
    desk.wait(5).await;
    assert_eq!(desk.get(&single).await["status"], "fired");
    assert_eq!(desk.change(&single, json!({ "snoozed_until": desk.after(15) })).await["status"], "scheduled");
    desk.wait(15).await;
    let fired = desk.get(&single).await;
    assert_eq!((&fired["status"], &fired["fire_count"]), (&json!("fired"), &json!(2)));
    let refused = desk.app.patch(&path(&single), &desk.key, json!({ "snoozed_until": desk.after(0) })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("snoozed_until"));
}

#[testkit::both]
async fn reminders_are_changed_completed_and_cancelled(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (app, key) = (&desk.app, &desk.key);
    let made = desk.create(json!({ "title": "x", "note": "n", "due_at": desk.after(10) })).await;
    assert_eq!(desk.change(&made, json!({ "title": "x", "note": "n" })).await["version"], 1);
    let changed = desk.change(&made, json!({ "title": "y", "note": null, "version": 1 })).await;
    assert_eq!(
        (&changed["title"], &changed["note"], &changed["version"], &changed["due_at"]),
        (&json!("y"), &Value::Null, &json!(2), &made["due_at"])
    );
    app.patch(&path(&made), key, json!({ "title": "z", "version": 1 }))
        .await
        .expect_error(409, "version_conflict");
    let completed = desk.change(&made, json!({ "status": "completed" })).await;
    assert_eq!((&completed["status"], &completed["next_fire_at"]), (&json!("completed"), &Value::Null));
    let series =
        desk.create(json!({ "title": "s", "recurrence": { "type": "cron", "rule": "*/5 * * * *" } })).await;
    desk.change(&series, json!({ "status": "cancelled" })).await;
    desk.wait(60).await;
    assert_eq!(desk.fired().await, Vec::<Value>::new());
    app.patch(&path(&made), key, json!({ "snoozed_until": desk.after(5) }))
        .await
        .expect_error(409, "invalid_state");
    let refused = app.patch(&path(&made), key, json!({ "recurrence": null })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("due_at"));
    // Scheduled anew.
    let again = desk.change(&made, json!({ "due_at": desk.after(5) })).await;
    assert_eq!((&again["status"], &again["next_fire_at"]), (&json!("scheduled"), &json!(desk.after(5))));
    let daily = desk
        .change(
            &made,
            json!({ "recurrence": { "type": "cron", "rule": "30 9 * * *" }, "timezone": "Europe/Madrid" }),
        )
        .await;
    let moved = desk.change(&made, json!({ "timezone": "America/Sao_Paulo" })).await;
    assert_ne!(daily["next_fire_at"], moved["next_fire_at"]);
    assert_eq!(
        desk.change(&made, json!({ "recurrence": null, "due_at": desk.after(5) })).await["recurrence"],
        Value::Null
    );
    // Merging contacts moves what is about them.
    let contacts = [
        app.post("/contacts", key, json!({ "data": { "$name": "A" } })).await.expect(201),
        app.post("/contacts", key, json!({ "data": { "$name": "B" } })).await.expect(201),
    ];
    desk.change(&made, json!({ "contact_id": contacts[0]["id"] })).await;
    let ids = contacts.map(|contact| model::ContactId(contact["id"].as_i64().unwrap()));
    let workspace = key.workspace;
    app.db().write(move |tx| reminders::move_to_contact(tx, workspace, ids[0], ids[1])).await.unwrap();
    assert_eq!(desk.get(&made).await["contact_id"], ids[1].0);
    assert_eq!(desk.change(&made, json!({ "contact_id": null })).await["contact_id"], Value::Null);
}

#[testkit::both]
async fn a_firing_starts_one_run(kind: Kind) {
    let desk = Desk::open(kind).await;
    let action = json!({ "type": "run_agent", "config": { "input": "Summarize the quotes." } });
    let made = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=HOURLY" } })).await;
    let noted = desk.create(json!({ "title": "Title", "note": "Note", "due_at": desk.after(10), "action": { "type": "run_agent" } })).await;
    desk.wait(10).await;
    desk.run().await;
    let runs = desk.runs().await;
    assert_eq!(runs.len(), 2);
    let of = |reminder: &Value| {
        runs.iter()
            .find(|run| run["trigger"] == json!({ "type": "reminder", "id": reminder["id"].to_string() }))
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of(&made)["input"], &of(&made)["livemode"]),
        (&json!("Summarize the quotes."), &json!(true))
    );
    assert_eq!(of(&noted)["input"], "Title\n\nNote");
    desk.wait(60).await;
    assert_eq!(desk.runs().await.len(), 3);
    assert_eq!(desk.get(&made).await["last_error"], Value::Null);
}

#[testkit::both]
async fn a_start_that_is_tried_again_makes_no_second_run(kind: Kind) {
    use ports::{AgentRuns, StartRun, StartedBy};
    let desk = Desk::open(kind).await;
    let run = StartRun {
        workspace: desk.key.workspace,
        key: desk.key.id.clone(),
        agent: None,
        input: "x".into(),
        trigger: StartedBy::Reminder(model::ReminderId(7)),
        answering: None,
        question: None,
        conversation: None,
        supersedes: false,
        once: "reminder:7:1".into(),
    };
    let replica = desk.app.replica(auth::RateWindows::local()).await;
    let (engine, other) = (&desk.app.service.engine, &replica.service.engine);
    let started =
        futures::join!(engine.start(run.clone()), other.start(run.clone()), engine.start(run.clone()));
    let all = [started.0, started.1, started.2];
    assert!(all.iter().any(Result::is_ok));
    assert!(
        all.iter()
            .filter_map(|started| started.as_ref().err())
            .all(|error| error.code() == model::Code::IdempotencyInProgress)
    );
    replica.service.engine.idle().await;
    engine.start(run.clone()).await.unwrap();
    other.start(run.clone()).await.unwrap();
    replica.service.engine.idle().await;
    assert_eq!(desk.runs().await.len(), 1);
    engine.start(StartRun { once: "reminder:7:2".into(), ..run }).await.unwrap();
    assert_eq!(desk.runs().await.len(), 2);
}

#[testkit::both]
async fn what_a_run_lacks_is_told(kind: Kind) {
    let desk = Desk::open(kind).await;
    let action = json!({ "type": "run_agent" });
    let single = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action })).await;
    let series = desk.create(json!({ "title": "x", "due_at": desk.after(10), "action": action, "recurrence": { "type": "rrule", "rule": "FREQ=DAILY" } })).await;
    let agent = desk.app.get("/agents", &desk.key).await.expect(200)[0]["id"].clone();
    desk.app.post(&format!("/agents/{agent}/deactivate"), &desk.key, json!({})).await.expect(200);
    desk.wait(10).await;
    for (reminder, status) in [(&single, "failed"), (&series, "scheduled")] {
        let now = desk.get(reminder).await;
        assert_eq!((&now["status"], &now["last_error"]["code"]), (&json!(status), &json!("agent_inactive")));
    }
    assert_eq!(desk.runs().await.len(), 0);
    assert_eq!(desk.fired().await.len(), 2, "the event is published all the same");
    // Of a key that was revoked nothing is run.
    let key = desk.app.key(desk.key.workspace, Env::Live, &["*"]).await;
    desk.app.post(&format!("/agents/{agent}/activate"), &desk.key, json!({})).await.expect(200);
    let due = desk.after(10);
    let revoked = desk
        .app
        .post("/reminders", &key, json!({ "title": "x", "due_at": due, "action": action }))
        .await
        .expect(201);
    desk.app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", key.id)).await;
    desk.wait(10).await;
    assert_eq!(desk.get(&revoked).await["last_error"]["code"], "missing_scope");
    assert_eq!(desk.runs().await.len(), 0);
}

#[testkit::both]
async fn what_test_keys_set_runs_as_a_test(kind: Kind) {
    let desk = Desk::open(kind).await;
    let test = desk.app.key(desk.key.workspace, Env::Test, &["*"]).await;
    let body = json!({ "title": "x", "due_at": desk.after(10), "action": { "type": "run_agent" } });
    let made = desk.app.post("/reminders", &test, body).await.expect(201);
    assert_eq!(made["livemode"], false);
    let live = desk.create(json!({ "title": "y", "due_at": desk.after(10) })).await;
    desk.wait(10).await;
    let runs = desk.runs().await;
    assert_eq!((runs.len(), &runs[0]["livemode"]), (1, &json!(false)));
    for event in desk.events().await {
        assert_eq!(event["livemode"], json!(event["data"]["reminder"]["id"] == live["id"]));
    }
}
