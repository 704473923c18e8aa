//! Reminders of tasks.

use crate::Tasks;
use chrono::Duration;
use serde_json::{Value, json};
use testkit::Kind;

impl Tasks {
    /// Returns the moments of the scheduled reminders, earliest first.
    async fn waiting(&self) -> Vec<Value> {
        let all = self.app.get("/reminders?status=scheduled", &self.key).await.expect(200);
        let mut moments: Vec<Value> =
            all.as_array().unwrap().iter().map(|one| one["next_fire_at"].clone()).collect();
        moments.sort_by_key(ToString::to_string);
        moments
    }

    /// Returns the moment in this many minutes.
    fn after(&self, minutes: i64) -> String {
        self.app.db().now().plus_seconds(minutes * 60).rfc3339()
    }

    async fn wait(&self, minutes: i64) {
        self.app.data.clock.advance(Duration::minutes(minutes));
        self.app.service.jobs.run_due().await.unwrap();
    }

    /// Returns the titles of the reminders that fired, oldest first.
    async fn fired(&self) -> Vec<Value> {
        self.app.deliver().await;
        let events = self.app.get("/events?type=reminder.fired&limit=100", &self.key).await.expect(200);
        events
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .map(|event| event["data"]["reminder"]["title"].clone())
            .collect()
    }
}

#[testkit::both]
async fn a_task_reminds_of_itself_as_long_as_it_is_open(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let (at, due) = (tasks.after(30), tasks.after(120));
    let task = tasks.create(json!({
        "title": "Call Ana", "due": { "datetime": due },
        "reminders": [{ "at": at }, { "offset_minutes": 60 }, { "offset_minutes": 60 }, { "at": tasks.after(-5) }],
    })).await;
    let shown = json!([
        { "at": at, "offset_minutes": null }, { "at": null, "offset_minutes": 60 }, { "at": tasks.after(-5), "offset_minutes": null },
    ]);
    assert_eq!(task["reminders"], shown);
    assert_eq!(tasks.waiting().await, [json!(at), json!(tasks.after(60))]);
    let all = tasks.app.get("/reminders", &tasks.key).await.expect(200);
    assert!(
        all.as_array().unwrap().iter().all(|one| one["task_id"] == task["id"] && one["title"] == "Call Ana")
    );

    // The reminder moves with the due date, and takes its title from the task.
    tasks
        .patch(&task, json!({ "due": { "datetime": tasks.after(300) }, "title": "Call Ana Souza" }))
        .await
        .expect(200);
    let later = [json!(at), json!(tasks.after(240))];
    assert_eq!(tasks.waiting().await, later);
    tasks.wait(31).await;
    assert_eq!(tasks.fired().await, ["Call Ana Souza"]);
    // A reminder that fired does not fire again, whatever changes.
    tasks.patch(&task, json!({ "title": "Call her", "priority": "high" })).await.expect(200);
    assert_eq!(tasks.waiting().await, later[1..]);

    tasks.complete(&task).await;
    assert_eq!(tasks.waiting().await, [Value::Null; 0]);
    tasks.post(&task, "/reopen", json!({})).await.expect(200);
    assert_eq!(tasks.waiting().await, later[1..]);
    // A completed reminder stays completed.
    let waiting = tasks.app.get("/reminders?status=scheduled", &tasks.key).await.expect(200);
    let path = format!("/reminders/{}", waiting[0]["id"]);
    tasks.app.patch(&path, &tasks.key, json!({ "status": "completed" })).await.expect(200);
    tasks.patch(&task, json!({ "title": "Call", "reminders": [{ "at": at }, { "offset_minutes": 60 }, { "offset_minutes": 0 }] })).await.expect(200);
    let due = tasks.get(&task).await["due_at"].clone();
    assert_eq!(tasks.waiting().await, [due]);
    tasks.app.delete(&tasks.path(&task, ""), &tasks.key).await.expect(200);
    assert_eq!(tasks.waiting().await, [Value::Null; 0]);
    tasks.wait(600).await;
    assert_eq!(tasks.fired().await.len(), 1);
}

#[testkit::both]
async fn the_next_task_of_a_series_reminds_before_its_own_date(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({
        "title": "Water", "due": { "datetime": tasks.after(120) }, "recurrence": { "rule": "FREQ=DAILY", "time_zone": "UTC" },
        "reminders": [{ "offset_minutes": 30 }, { "at": tasks.after(10) }],
    })).await;
    let done = tasks.complete(&task).await;
    let next = tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await;
    assert_eq!(next["reminders"], json!([{ "at": null, "offset_minutes": 30 }]));
    assert_eq!(tasks.waiting().await, [json!(tasks.after(24 * 60 + 90))]);
    // The next task is trashed together with its reminder, and the reminders of the first task are back.
    tasks.post(&task, "/reopen", json!({})).await.expect(200);
    assert_eq!(tasks.waiting().await, [json!(tasks.after(10)), json!(tasks.after(90))]);
}

#[testkit::both]
async fn what_a_reminder_of_a_task_cannot_be_is_refused(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for (reminders, param) in [
        (json!([{}]), "reminders[0]"),
        (json!([{ "offset_minutes": 5 }, { "at": tasks.after(5), "offset_minutes": 5 }]), "reminders[1]"),
        (json!([{ "offset_minutes": -1 }]), "reminders[0].offset_minutes"),
        (json!(vec![json!({ "offset_minutes": 1 }); 11]), "reminders"),
    ] {
        let refused =
            tasks.app.post(&tasks.at, &tasks.key, json!({ "title": "x", "reminders": reminders })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{reminders}");
    }
    // Without a due date, the reminder is not scheduled.
    let task = tasks.create(json!({ "title": "x", "reminders": [{ "offset_minutes": 5 }] })).await;
    assert_eq!(tasks.waiting().await, [Value::Null; 0]);
    tasks.patch(&task, json!({ "due": { "datetime": tasks.after(15) } })).await.expect(200);
    assert_eq!(tasks.waiting().await, [json!(tasks.after(10))]);
    tasks.patch(&task, json!({ "reminders": [] })).await.expect(200);
    assert_eq!(tasks.waiting().await, [Value::Null; 0]);
}
