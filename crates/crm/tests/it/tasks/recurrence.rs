//! Recurring tasks.

use super::Tasks;
use futures::future::join_all;
use serde_json::{Value, json};

testkit::on_both! {
    async fn completing_a_recurring_task_makes_its_next(kind: Kind) {
        let tasks = Tasks::open(kind).await;
        let now = tasks.app.db().now();
        let tomorrow = now.plus_seconds(86_400).day();
        let task = tasks.create(json!({
            "title": "Water the plants", "due": { "date": tomorrow, "time_zone": "Europe/Madrid" },
            "start_at": now, "labels": ["home"], "priority": "low", "external_key": "k",
            "checklist": [{ "text": "Fill the can", "done": true }], "recurrence": { "rule": "FREQ=DAILY;COUNT=3" },
        })).await;
        assert_eq!(task["recurrence"], json!({
            "rule": "FREQ=DAILY;COUNT=3", "time_zone": "Europe/Madrid", "from": "due", "occurrence": 1, "series_id": null, "next_id": null,
        }));
        let done = tasks.complete(&task).await;
        let next = tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await;
        assert_eq!(next["due"]["date"], json!(tomorrow.succ_opt().unwrap()));
        assert_eq!((&next["title"], &next["labels"], &next["priority"]), (&task["title"], &task["labels"], &task["priority"]));
        assert_eq!((&next["status"], &next["external_key"]), (&json!("todo"), &Value::Null));
        assert_eq!(next["checklist"], json!([{ "id": 1, "text": "Fill the can", "done": false }]));
        assert_eq!(next["start_at"], json!(now.plus_seconds(86_400)));
        assert_eq!((&next["recurrence"]["occurrence"], &next["recurrence"]["series_id"]), (&json!(2), &task["id"]));
        // Reopened, it takes the next one back, if nothing was done with that.
        let open = tasks.post(&task, "/reopen", json!({})).await.expect(200);
        assert_eq!(open["recurrence"], task["recurrence"]);
        assert_eq!(tasks.titles("").await.len(), 1);
        let done = tasks.complete(&task).await;
        let next = json!({ "id": done["recurrence"]["next_id"] });
        tasks.post(&next, "/comments", json!({ "body": "Begun." })).await.expect(201);
        tasks.post(&task, "/reopen", json!({})).await.expect(200);
        assert_eq!(tasks.titles("").await.len(), 2);
        // The third is the last.
        let second = tasks.complete(&next).await;
        let third = tasks.complete(&json!({ "id": second["recurrence"]["next_id"] })).await;
        assert_eq!((&third["recurrence"]["occurrence"], &third["recurrence"]["next_id"]), (&json!(3), &Value::Null));
        assert_eq!(tasks.titles("status=done").await.len(), 2);
    }

    async fn a_series_counts_from_completion_or_without_a_due_date(kind: Kind) {
        let tasks = Tasks::open(kind).await;
        let today = tasks.app.db().now().day();
        let long_ago = "2020-01-15";
        let late = tasks.create(json!({
            "title": "Late", "due": { "date": long_ago, "time_zone": "UTC" }, "recurrence": { "rule": "FREQ=WEEKLY", "from": "completion" },
        })).await;
        let bare = tasks.create(json!({ "title": "Bare", "recurrence": { "rule": "FREQ=DAILY", "time_zone": "UTC" } })).await;
        for (task, days) in [(&late, 7), (&bare, 1)] {
            let done = tasks.complete(task).await;
            let next = tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await;
            assert_eq!(next["due"]["date"], json!(today + chrono::TimeDelta::days(days)), "{task}");
        }
        // One by its due date skips what was missed.
        let daily = tasks.create(json!({
            "title": "Daily", "due": { "date": long_ago, "time_zone": "UTC" }, "recurrence": { "rule": "FREQ=DAILY" },
        })).await;
        let done = tasks.complete(&daily).await;
        assert_eq!(tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await["due"]["date"], json!(today));
    }

    async fn a_next_task_is_made_without_a_contact_that_is_gone(kind: Kind) {
        let tasks = Tasks::open(kind).await;
        let contact = tasks.app.post("/contacts", &tasks.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
        let task = json!({ "title": "Call", "contact_id": contact["id"], "recurrence": { "rule": "FREQ=DAILY" } });
        let task = tasks.create(task).await;
        tasks.app.delete(&format!("/contacts/{}", contact["id"]), &tasks.key).await.expect(200);
        let done = tasks.complete(&task).await;
        assert_eq!(tasks.get(&json!({ "id": done["recurrence"]["next_id"] })).await["contact_id"], Value::Null);
    }

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
}
