//! Recurring tasks.

use crate::Tasks;
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;

impl Tasks {
    /// Completes a recurring task and returns the next one.
    async fn following(&self, task: &Value) -> Value {
        let done = self.complete(task).await;
        self.get(&json!({ "id": done["recurrence"]["next_id"] })).await
    }

    /// Returns the moments at which the reminders of a task fire.
    async fn reminds_at(&self, task: &Value) -> Vec<Value> {
        let all = self.app.get("/reminders?status=scheduled", &self.key).await.expect(200);
        let all = all.as_array().unwrap().iter().filter(|one| one["task_id"] == task["id"]);
        all.map(|one| one["next_fire_at"].clone()).collect()
    }
}

#[testkit::both]
async fn completing_a_recurring_task_makes_its_next(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let now = tasks.app.db().now();
    let tomorrow = now.plus_seconds(86_400).day();
    let task = tasks.create(json!({
        "title": "Water the plants", "due": { "date": tomorrow, "time_zone": "Europe/Madrid" },
        "start_at": now, "labels": ["home"], "priority": "low", "external_key": "k",
        "checklist": [{ "text": "Fill the can", "done": true }], "recurrence": { "rule": "FREQ=DAILY;COUNT=3" },
    })).await;
    assert_eq!(
        task["recurrence"],
        json!({
            "rule": "FREQ=DAILY;COUNT=3", "time_zone": "Europe/Madrid", "from": "due", "occurrence": 1, "series_id": null, "next_id": null,
        })
    );
    let done = tasks.complete(&task).await;
    let next = tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await;
    assert_eq!(next["due"]["date"], json!(tomorrow.succ_opt().unwrap()));
    assert_eq!(
        (&next["title"], &next["labels"], &next["priority"]),
        (&task["title"], &task["labels"], &task["priority"])
    );
    assert_eq!((&next["status"], &next["external_key"]), (&json!("todo"), &Value::Null));
    assert_eq!(next["checklist"], json!([{ "id": 1, "text": "Fill the can", "done": false }]));
    assert_eq!(next["start_at"], json!(now.plus_seconds(86_400)));
    assert_eq!(
        (&next["recurrence"]["occurrence"], &next["recurrence"]["series_id"]),
        (&json!(2), &task["id"])
    );
    // Reopening the task removes the next one, unless that was used.
    let open = tasks.post(&task, "/reopen", json!({})).await.expect(200);
    assert_eq!(open["recurrence"], task["recurrence"]);
    assert_eq!(tasks.titles("").await.len(), 1);
    let done = tasks.complete(&task).await;
    let next = json!({ "id": done["recurrence"]["next_id"] });
    tasks.post(&next, "/comments", json!({ "body": "Begun." })).await.expect(201);
    tasks.post(&task, "/reopen", json!({})).await.expect(200);
    assert_eq!(tasks.titles("").await.len(), 2);
    // The third task is the last.
    let second = tasks.complete(&next).await;
    let third = tasks.complete(&json!({ "id": second["recurrence"]["next_id"] })).await;
    assert_eq!(
        (&third["recurrence"]["occurrence"], &third["recurrence"]["next_id"]),
        (&json!(3), &Value::Null)
    );
    assert_eq!(tasks.titles("status=done").await.len(), 2);
}

#[testkit::both]
async fn a_series_counts_from_completion_or_without_a_due_date(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let today = tasks.app.db().now().day();
    let long_ago = "2020-01-15";
    let late = tasks.create(json!({
        "title": "Late", "due": { "date": long_ago, "time_zone": "UTC" }, "recurrence": { "rule": "FREQ=WEEKLY", "from": "completion" },
    })).await;
    let bare = tasks
        .create(json!({ "title": "Bare", "recurrence": { "rule": "FREQ=DAILY", "time_zone": "UTC" } }))
        .await;
    for (task, days) in [(&late, 7), (&bare, 1)] {
        let done = tasks.complete(task).await;
        let next = tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await;
        assert_eq!(next["due"]["date"], json!(today + chrono::TimeDelta::days(days)), "{task}");
    }
    // A rule that counts from the due date skips missed dates.
    let daily = tasks.create(json!({
        "title": "Daily", "due": { "date": long_ago, "time_zone": "UTC" }, "recurrence": { "rule": "FREQ=DAILY" },
    })).await;
    let done = tasks.complete(&daily).await;
    assert_eq!(tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await["due"]["date"], json!(today));
}

#[testkit::both]
async fn a_next_task_is_made_without_a_contact_that_is_gone(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let contact =
        tasks.app.post("/contacts", &tasks.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let task =
        json!({ "title": "Call", "contact_id": contact["id"], "recurrence": { "rule": "FREQ=DAILY" } });
    let task = tasks.create(task).await;
    tasks.app.delete(&format!("/contacts/{}", contact["id"]), &tasks.key).await.expect(200);
    let done = tasks.complete(&task).await;
    assert_eq!(tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await["contact_id"], Value::Null);
}

#[testkit::both]
async fn completions_at_once_make_one_next(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let parent = tasks.create(json!({ "title": "Parent" })).await;
    let task = json!({ "title": "Again", "parent_id": parent["id"], "recurrence": { "rule": "FREQ=DAILY" } });
    let task = tasks.create(task).await;
    let answers = join_all((0..64).map(|_| tasks.complete(&task))).await;
    assert!(answers.iter().all(|answer| answer["recurrence"] == answers[0]["recurrence"]));
    assert_eq!(tasks.titles("q=again").await.len(), 2);
    assert_eq!(tasks.get(&parent).await["progress"], json!({ "done": 1, "total": 2 }));
    assert_eq!(tasks.get(&task).await["version"], 2);
}

#[testkit::both]
async fn a_time_that_clocks_skip_is_the_old_one_afterwards(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for (zone, rule, due, expected) in [
        (
            "Europe/Madrid",
            "FREQ=DAILY",
            "2030-03-30T01:30:00Z",
            ["2030-03-31T01:30", "2030-04-01T00:30", "2030-04-02T00:30"],
        ),
        (
            "America/New_York",
            "FREQ=WEEKLY;BYDAY=SU",
            "2030-03-03T07:30:00Z",
            ["2030-03-10T07:30", "2030-03-17T06:30", "2030-03-24T06:30"],
        ),
        (
            "Africa/Cairo",
            "FREQ=DAILY",
            "2030-04-24T22:00:00Z",
            ["2030-04-25T22:00", "2030-04-26T21:00", "2030-04-27T21:00"],
        ),
        (
            "America/Nuuk",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA",
            "2030-03-17T01:30:00Z",
            ["2030-03-31T01:30", "2030-04-14T00:30", "2030-04-28T00:30"],
        ),
        // Clocks go back: 02:30 occurs twice, and counts once.
        (
            "Europe/Madrid",
            "FREQ=DAILY",
            "2030-10-26T00:30:00Z",
            ["2030-10-27T00:30", "2030-10-28T01:30", "2030-10-29T01:30"],
        ),
    ] {
        let mut task = tasks.create(json!({
            "title": zone, "due": { "datetime": due, "time_zone": zone }, "recurrence": { "rule": rule, "time_zone": zone },
            "reminders": [{ "offset_minutes": 60 }],
        })).await;
        for expected in expected {
            task = tasks.following(&task).await;
            let due = task["due"]["datetime"].as_str().unwrap();
            assert_eq!(due, format!("{expected}:00.000Z"), "{zone}");
            assert_eq!(task["due_at"], task["due"]["datetime"]);
            // Its reminder is an hour before, and the response shows nothing but the rule.
            let remind_at = model::Timestamp::parse(due).unwrap().plus_seconds(-3_600).rfc3339();
            assert_eq!(tasks.reminds_at(&task).await, [json!(remind_at)], "{zone}");
            assert_eq!(task["recurrence"].as_object().unwrap().len(), 6, "{task}");
        }
        tasks.app.delete(&tasks.path(&task, ""), &tasks.key).await.expect(200);
    }
}

#[testkit::both]
async fn a_skipped_time_survives_changes_and_reopening(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let new = json!({
        "title": "x", "due": { "datetime": "2030-03-30T01:30:00Z", "time_zone": "Europe/Madrid" },
        "start_at": "2030-03-30T01:30:00Z", "recurrence": { "rule": "FREQ=DAILY", "time_zone": "Europe/Madrid" },
    });
    let first = tasks.create(new).await;
    let second = tasks.following(&first).await;
    assert_eq!(second["due"]["datetime"], "2030-03-31T01:30:00.000Z");
    // Other changes, the same due date and the same rule all keep 02:30.
    for change in [
        json!({ "title": "y", "status": "in_progress" }),
        json!({ "due": { "datetime": "2030-03-31T01:30:00Z", "time_zone": "Europe/Madrid" } }),
        json!({ "recurrence": { "rule": "FREQ=DAILY", "time_zone": "Europe/Madrid" } }),
    ] {
        tasks.patch(&second, change).await.expect(200);
    }
    let third = tasks.following(&second).await;
    assert_eq!(
        (&third["due"]["datetime"], &third["start_at"]),
        (&json!("2030-04-01T00:30:00.000Z"), &json!("2030-04-01T00:30:00.000Z"))
    );
    tasks.post(&second, "/reopen", json!({})).await.expect(200);
    assert_eq!(tasks.following(&second).await["due"]["datetime"], "2030-04-01T00:30:00.000Z");
    // A due date that is moved means the local time that it then has, even if it is moved back.
    tasks.post(&second, "/reopen", json!({})).await.expect(200);
    for due in ["2030-03-31T01:45:00Z", "2030-03-31T01:30:00Z"] {
        tasks
            .patch(&second, json!({ "due": { "datetime": due, "time_zone": "Europe/Madrid" } }))
            .await
            .expect(200);
    }
    let third = tasks.following(&second).await;
    assert_eq!(
        (&third["due"]["datetime"], &third["start_at"]),
        (&json!("2030-04-01T01:30:00.000Z"), &json!("2030-04-01T00:30:00.000Z"))
    );
}

#[testkit::both]
async fn a_start_keeps_its_local_time(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    // From Monday at nine to Sunday at six, across the clock changes on 2030-03-31 and 2030-10-27.
    for (due, start, expected) in [
        (
            "2030-03-24T17:00:00Z",
            "2030-03-18T08:00:00Z",
            ["2030-03-25T08:00", "2030-04-01T07:00", "2030-04-08T07:00"],
        ),
        (
            "2030-10-20T16:00:00Z",
            "2030-10-14T07:00:00Z",
            ["2030-10-21T07:00", "2030-10-28T08:00", "2030-11-04T08:00"],
        ),
    ] {
        let mut task = tasks
            .create(json!({
                "title": "x", "due": { "datetime": due, "time_zone": "Europe/Madrid" }, "start_at": start,
                "recurrence": { "rule": "FREQ=WEEKLY", "time_zone": "Europe/Madrid" },
            }))
            .await;
        for expected in expected {
            task = tasks.following(&task).await;
            assert_eq!(task["start_at"], format!("{expected}:00.000Z"));
        }
    }
    // The same for a task that is due on a day.
    let task = tasks.create(json!({
        "title": "x", "due": { "date": "2030-03-30", "time_zone": "Europe/Madrid" }, "start_at": "2030-03-30T08:00:00Z",
        "recurrence": { "rule": "FREQ=DAILY" },
    })).await;
    assert_eq!(tasks.following(&task).await["start_at"], "2030-03-31T07:00:00.000Z");
}

#[testkit::both]
async fn a_series_from_completion_keeps_its_time_too(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let mut task = tasks
        .create(json!({
            "title": "x", "due": { "datetime": "2030-03-20T01:30:00Z", "time_zone": "Europe/Madrid" },
            "start_at": "2030-03-19T08:00:00Z",
            "recurrence": { "rule": "FREQ=DAILY", "time_zone": "Europe/Madrid", "from": "completion" },
        }))
        .await;
    for (completed, due, start) in [
        ("2030-03-30T12:00:00Z", "2030-03-31T01:30", "2030-03-30T08:00"),
        ("2030-03-31T12:00:00Z", "2030-04-01T00:30", "2030-03-31T07:00"),
        ("2030-10-26T12:00:00Z", "2030-10-27T00:30", "2030-10-26T07:00"),
        ("2030-10-27T12:00:00Z", "2030-10-28T01:30", "2030-10-27T08:00"),
    ] {
        let completed = model::Timestamp::parse(completed).unwrap();
        let seconds = completed.seconds() - tasks.app.db().now().seconds();
        tasks.app.data.clock.advance(chrono::Duration::seconds(seconds));
        task = tasks.following(&task).await;
        assert_eq!(task["due"]["datetime"], format!("{due}:00.000Z"));
        assert_eq!(task["start_at"], format!("{start}:00.000Z"));
    }
}

#[testkit::both]
async fn rules_that_rfc_5545_does_not_allow_are_refused(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let due = json!({ "date": "2030-01-07", "time_zone": "UTC" });
    for (rule, words) in [
        ("FREQ=WEEKLY;BYDAY=1MO", "cannot have `1MO` in BYDAY with FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYDAY=MO,1WE", "cannot have `1WE` in BYDAY with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYDAY=-1MO", "cannot have `-1MO` in BYDAY with FREQ=DAILY"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "in BYDAY with BYWEEKNO"),
        ("FREQ=MONTHLY;BYDAY=6MO", "numbers in BYDAY from 1 to 5, or from -5 to -1"),
        ("FREQ=MONTHLY;BYDAY=0MO", "numbers in BYDAY from 1 to 5, or from -5 to -1"),
        ("FREQ=YEARLY;BYMONTH=2;BYDAY=-6MO", "numbers in BYDAY from 1 to 5, or from -5 to -1"),
        ("FREQ=YEARLY;BYDAY=54MO", "numbers in BYDAY from 1 to 53"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY from 1 to 31, or from -31 to -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY from 1 to 31, or from -31 to -1"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "cannot have BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYYEARDAY=1", "cannot have BYYEARDAY with FREQ=DAILY"),
        ("FREQ=MONTHLY;BYWEEKNO=20", "cannot have BYWEEKNO with FREQ=MONTHLY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "another part with BY, such as BYDAY, with BYSETPOS"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "BYSETPOS from 1 to 366"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL from 1 to 1,000"),
        ("FREQ=DAILY;INTERVAL=1001", "INTERVAL from 1 to 1,000"),
        ("FREQ=DAILY;COUNT=10001", "COUNT from 1 to 10,000"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20310101", "either COUNT or UNTIL"),
        ("FREQ=DAILY;BYDAY=MO;BYDAY=TU", "BYDAY only once"),
        ("FREQ=HOURLY", "DAILY, WEEKLY, MONTHLY and YEARLY"),
        ("FREQ=DAILY;BYHOUR=9", "cannot have `BYHOUR`"),
        ("FREQ=DAILY;BYEASTER=0", "cannot have `BYEASTER`"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "no day on which the task would recur"),
    ] {
        let new = json!({ "title": "x", "due": due, "recurrence": { "rule": rule } });
        let answer = tasks.app.post(&tasks.at, &tasks.key, new).await;
        let message = answer.body["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            answer.expect_error(400, "validation_error").as_deref(),
            Some("recurrence.rule"),
            "{rule}"
        );
        assert!(message.contains(words), "{rule}: {message}");
    }
    // A change is validated like a new task.
    let task = tasks.create(json!({ "title": "x", "due": due })).await;
    let refused = tasks.patch(&task, json!({ "recurrence": { "rule": "FREQ=WEEKLY;BYDAY=1MO" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("recurrence.rule"));
}

#[testkit::both]
async fn rules_give_the_days_of_rfc_5545(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for (rule, due, expected) in [
        ("FREQ=WEEKLY;BYDAY=MO", "2030-01-07", ["2030-01-14", "2030-01-21"]),
        ("FREQ=MONTHLY;BYDAY=5FR", "2030-03-29", ["2030-05-31", "2030-08-30"]),
        ("FREQ=MONTHLY;BYDAY=-5FR", "2030-03-01", ["2030-05-03", "2030-08-02"]),
        ("FREQ=MONTHLY;BYDAY=MO,1WE", "2030-01-07", ["2030-01-14", "2030-01-21"]),
        // Parts that are missing in the rule follow from the due date: its weekday, or its day of the month.
        ("FREQ=YEARLY;BYWEEKNO=20", "2030-05-16", ["2031-05-15", "2032-05-13"]),
        ("FREQ=YEARLY;BYMONTH=3,9", "2030-03-15", ["2030-09-15", "2031-03-15"]),
        ("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", "2030-01-09", ["2030-01-16", "2030-01-23"]),
    ] {
        let mut task = tasks.create(json!({ "title": rule, "due": { "date": due, "time_zone": "UTC" }, "recurrence": { "rule": rule } })).await;
        for expected in expected {
            task = tasks.following(&task).await;
            assert_eq!(task["due"]["date"], expected, "{rule}");
        }
    }
}

#[testkit::both]
async fn a_stored_rule_that_is_refused_by_now_means_its_weekdays(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let new = json!({ "title": "x", "due": { "date": "2030-01-07", "time_zone": "UTC" }, "recurrence": { "rule": "FREQ=WEEKLY;BYDAY=MO" } });
    let task = tasks.create(new).await;
    tasks
        .app
        .sql(format!(
            "UPDATE items SET data = REPLACE(data, 'BYDAY=MO', 'BYDAY=1MO') WHERE id = {}",
            task["id"]
        ))
        .await;
    let next = tasks.following(&task).await;
    assert_eq!(
        (&next["due"]["date"], &next["recurrence"]["rule"]),
        (&json!("2030-01-14"), &json!("FREQ=WEEKLY;BYDAY=1MO"))
    );
}
