//! Creating, changing, completing and deleting tasks.

use crate::Tasks;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_task_is_created_changed_and_deleted(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let contact = json!({ "data": { "$name": "Ana" } });
    let contact = tasks.app.post("/contacts", &tasks.key, contact).await.expect(201);
    let task = tasks.create(json!({
        "title": "Call Ana", "description": "About *her* order.", "priority": "high", "labels": ["Sales", "sales", "Phone"],
        "due": { "date": "2026-12-01", "time_zone": "Europe/Madrid" }, "start_at": "2026-11-30T08:00:00Z", "estimate_minutes": 15,
        "checklist": [{ "text": "Look up the order", "done": true }, { "text": "Call" }], "contact_id": contact["id"],
        "external_key": "erp-1", "status_label": "Waiting for stock",
    })).await;
    assert_eq!(task["object"], "task");
    assert_eq!((&task["status"], &task["priority"]), (&json!("todo"), &json!("high")));
    assert_eq!(task["labels"], json!(["sales", "phone"]));
    assert_eq!(task["due"], json!({ "date": "2026-12-01", "datetime": null, "time_zone": "Europe/Madrid" }));
    assert_eq!(task["due_at"], "2026-12-01T22:59:59.999Z");
    assert_eq!(
        task["checklist"],
        json!([
            { "id": 1, "text": "Look up the order", "done": true }, { "id": 2, "text": "Call", "done": false },
        ])
    );
    assert_eq!(task["progress"], json!({ "done": 1, "total": 2 }));
    assert_eq!((&task["contact_id"], &task["is_blocked"]), (&contact["id"], &json!(false)));
    assert_eq!(tasks.get(&task).await, task);
    let patch = json!({
        "title": "Call Ana again", "description": null, "due": { "datetime": "2026-12-02T10:00:00Z" }, "contact_id": null,
        "checklist": [{ "id": 2, "text": "Call", "done": true }, { "text": "Send the invoice" }], "version": 1,
    });
    let changed = tasks.patch(&task, patch.clone()).await.expect(200);
    assert_eq!((&changed["version"], &changed["description"]), (&json!(2), &Value::Null));
    assert_eq!(
        changed["due"],
        json!({ "date": null, "datetime": "2026-12-02T10:00:00.000Z", "time_zone": "UTC" })
    );
    assert_eq!(changed["checklist"][1], json!({ "id": 3, "text": "Send the invoice", "done": false }));
    assert_eq!((&changed["labels"], &changed["start_at"]), (&task["labels"], &task["start_at"]));
    tasks.patch(&task, patch).await.expect_error(409, "version_conflict");
    let same = tasks.patch(&task, json!({ "title": "Call Ana again" })).await.expect(200);
    assert_eq!(same["version"], 2);
    let twice = tasks.app.post(&tasks.at, &tasks.key, json!({ "title": "B", "external_key": "erp-1" })).await;
    twice.expect_error(409, "duplicate_value");
    assert_eq!(twice.body["error"]["details"]["existing_id"], task["id"]);
    tasks.app.delete(&tasks.path(&task, ""), &tasks.key).await.expect(200);
    tasks.app.get(&tasks.path(&task, ""), &tasks.key).await.expect_error(404, "not_found");
    tasks.create(json!({ "title": "C", "external_key": "erp-1" })).await;
    // Records of other kinds are not tasks.
    tasks.app.get(&tasks.path(&contact, ""), &tasks.key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_a_task_cannot_be_is_refused(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    for (body, param) in [
        (json!({}), "title"),
        (json!({ "title": " " }), "title"),
        (json!({ "title": "A", "status": "later" }), "status"),
        (json!({ "title": "A", "due": {} }), "due"),
        (json!({ "title": "A", "due": { "date": "2026-12-01", "datetime": "2026-12-01T10:00:00Z" } }), "due"),
        (json!({ "title": "A", "due": { "date": "2026-13-01" } }), "due.date"),
        (json!({ "title": "A", "due": { "date": "0000-01-01" } }), "due"),
        (json!({ "title": "A", "due": { "date": "2026-12-01", "time_zone": "Mars/Base" } }), "due.time_zone"),
        (json!({ "title": "A", "due": { "date": "2026-12-01" }, "start_at": "2026-12-02T00:00:00Z" }), "due"),
        (json!({ "title": "A", "assignee": { "type": "user", "id": 99 } }), "assignee.id"),
        (json!({ "title": "A", "assignee": { "type": "agent", "id": 99 } }), "assignee.id"),
        (json!({ "title": "A", "contact_id": 99 }), "contact_id"),
        (json!({ "title": "A", "parent_id": 99 }), "parent_id"),
        (json!({ "title": "A", "depends_on": [99] }), "depends_on[0]"),
        (json!({ "title": "A", "labels": ["a,b"] }), "labels"),
        (json!({ "title": "A", "checklist": [{ "id": 5, "text": "x" }] }), "checklist[0].id"),
        (json!({ "title": "A", "recurrence": { "rule": "FREQ=HOURLY" } }), "recurrence.rule"),
        (
            json!({ "title": "A", "recurrence": { "rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30" } }),
            "recurrence.rule",
        ),
        (
            json!({ "title": "A", "recurrence": { "rule": "FREQ=DAILY", "time_zone": "X" } }),
            "recurrence.time_zone",
        ),
        (json!({ "title": "A", "estimate_minutes": -1 }), "estimate_minutes"),
    ] {
        let answer = tasks.app.post(&tasks.at, &tasks.key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    assert!(tasks.titles("").await.is_empty());
}

#[testkit::both]
async fn a_task_is_completed_cancelled_and_reopened(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let task = tasks.create(json!({ "title": "A" })).await;
    let done = tasks.complete(&task).await;
    assert_eq!((&done["status"], &done["version"]), (&json!("done"), &json!(2)));
    assert!(done["completed_at"].is_string());
    // Completing a task again changes nothing.
    assert_eq!(tasks.complete(&task).await, done);
    tasks.patch(&task, json!({ "status": "cancelled" })).await.expect_error(409, "invalid_state");
    let open = tasks.post(&task, "/reopen", json!({})).await.expect(200);
    assert_eq!((&open["status"], &open["completed_at"]), (&json!("todo"), &Value::Null));
    assert_eq!(tasks.post(&task, "/reopen", json!({})).await.expect(200), open);
    tasks.post(&task, "/complete", json!({ "version": 1 })).await.expect_error(409, "version_conflict");
    let cancelled = tasks.patch(&task, json!({ "status": "cancelled" })).await.expect(200);
    assert!(cancelled["cancelled_at"].is_string());
    tasks.post(&task, "/complete", json!({})).await.expect_error(409, "invalid_state");
    let again = tasks.patch(&task, json!({ "status": "in_progress" })).await.expect(200);
    assert_eq!((&again["status"], &again["cancelled_at"]), (&json!("in_progress"), &Value::Null));
    tasks.app.delete(&tasks.path(&task, ""), &tasks.key).await.expect(200);
    let types: Vec<_> = tasks.events().await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(
        json!(types),
        json!([
            "task.created",
            "task.completed",
            "task.reopened",
            "task.cancelled",
            "task.reopened",
            "task.trashed",
        ])
    );
    let entries = tasks.app.get(&tasks.path(&task, "/activity"), &tasks.key).await;
    entries.expect_error(404, "not_found");
}

#[testkit::both]
async fn tasks_are_assigned_and_labelled(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let member = tasks.member("Marta").await;
    let agent = json!({ "name": "Helper", "instructions": "Help." });
    let agent = tasks.app.post("/agents", &tasks.key, agent).await.expect(201);
    let task = tasks.create(json!({ "title": "A", "assignee": { "type": "user", "id": member } })).await;
    assert_eq!(task["assignee"], json!({ "type": "user", "id": member }));
    let team = tasks.app.get("/team", &tasks.key).await.expect(200);
    assert_eq!(team[0]["open_tasks"], 1);
    let at = tasks.path(&task, "/assignee");
    let to_agent = json!({ "type": "agent", "id": agent["id"] });
    let assigned = tasks.app.put(&at, &tasks.key, to_agent.clone()).await.expect(200);
    assert_eq!(assigned["assignee"], to_agent);
    let answer = tasks.app.put(&at, &tasks.key, json!({ "type": "user", "id": 99 })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("id"));
    let none = tasks.app.delete(&at, &tasks.key).await.expect(200);
    assert_eq!(none["assignee"], Value::Null);
    assert_eq!(tasks.app.delete(&at, &tasks.key).await.expect(200), none);
    let label = |label: &str| tasks.path(&task, &format!("/labels/{label}"));
    tasks.app.put(&label("Big%20deal"), &tasks.key, json!({})).await.expect(200);
    let twice = tasks.app.put(&label("BIG%20DEAL"), &tasks.key, json!({})).await.expect(200);
    assert_eq!(twice["labels"], json!(["big deal"]));
    let answer = tasks.app.put(&label("a,b"), &tasks.key, json!({})).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("label"));
    tasks.app.delete(&label("small"), &tasks.key).await.expect_error(404, "not_found");
    let none = tasks.app.delete(&label("big%20deal"), &tasks.key).await.expect(200);
    assert_eq!(none["labels"], json!([]));
    let team = tasks.app.get("/team", &tasks.key).await.expect(200);
    assert_eq!(team[0]["open_tasks"], 0);
    let entries = tasks.app.get(&tasks.path(&task, "/activity"), &tasks.key).await.expect(200);
    let entries = entries.as_array().unwrap();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries[4]["action"], "created");
    assert_eq!(entries[0]["changed"]["labels"]["old"], json!(["big deal"]));
    assert_eq!((&entries[0]["task_id"], entries[0].get("collection_id")), (&task["id"], None));
    let page = tasks.app.get(&tasks.path(&task, "/activity?paginate=true&limit=2"), &tasks.key).await;
    assert_eq!(page.body["has_more"], true);
}

#[testkit::both]
async fn many_tasks_are_changed_at_once(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let mut rows = Vec::new();
    for number in 0..200 {
        let task = tasks.create(json!({ "title": format!("Task {number}") })).await;
        rows.push(json!({ "id": task["id"], "change": { "status": "done", "labels": ["batch"] } }));
    }
    let at = format!("{}/bulk-update", tasks.at);
    let report = tasks.app.post(&at, &tasks.key, json!({ "rows": rows })).await.expect(200);
    assert_eq!(report["summary"]["updated"], 200);
    let same = tasks.app.post(&at, &tasks.key, json!({ "rows": rows })).await.expect(200);
    assert_eq!(same["summary"]["unchanged"], 200);
    rows.push(rows[0].clone());
    let answer = tasks.app.post(&at, &tasks.key, json!({ "rows": rows })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("rows"));
    let mixed = json!([
        { "id": rows[0]["id"], "change": { "status": "cancelled" } },
        { "id": rows[1]["id"], "change": { "priority": "low", "version": 1 } },
        { "id": 999_999, "change": { "priority": "low" } },
        { "id": rows[2]["id"], "change": { "assignee": { "type": "user", "id": 99 } } },
        { "id": rows[3]["id"], "change": { "priority": "low" } },
        { "id": rows[4]["id"], "change": { "labels": ["a,b"] } },
    ]);
    let body = json!({ "mode": "partial", "rows": mixed });
    let report = tasks.app.post(&at, &tasks.key, body).await.expect(200);
    let codes: Vec<_> =
        report["results"].as_array().unwrap().iter().map(|row| row["error"]["code"].clone()).collect();
    assert_eq!(
        json!(codes),
        json!([
            "invalid_state",
            "version_conflict",
            "not_found",
            "validation_error",
            null,
            "validation_error"
        ])
    );
    let refused = &report["results"][3]["error"];
    assert_eq!(refused["param"], "rows[3].change.assignee.id");
    assert_eq!(refused["message"], "`rows[3].change.assignee.id` is not a member of the team");
    let answer = tasks.app.post(&at, &tasks.key, json!({ "rows": mixed })).await;
    answer.expect_error(400, "validation_error");
    let listed = |error: &Value| {
        let errors = error["errors"].as_array().unwrap().iter();
        json!(errors.map(|one| (&one["param"], &one["message"])).collect::<Vec<_>>())
    };
    let label = json!([
        "rows[5].change.labels",
        "has a tag that must not contain commas, semicolons or control characters"
    ]);
    let mistakes = listed(&answer.body["error"]);
    assert_eq!(mistakes[2], json!(["rows[2].id", "The task does not exist in this workspace."]));
    assert_eq!(mistakes[3], json!(["rows[3].change.assignee.id", "is not a member of the team"]));
    assert_eq!((&mistakes[4], listed(&report["results"][5]["error"])), (&label, json!([label])));
    let missing = json!({ "rows": [{ "id": 999_999, "change": {} }] });
    let answer = tasks.app.post(&at, &tasks.key, missing).await;
    assert_eq!(answer.body["error"]["message"], "`rows[0].id`: The task does not exist in this workspace.");
    assert_eq!(tasks.titles("priority=low").await.len(), 1);
}
