//! Lists of tasks, and their summary.

use crate::Tasks;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn tasks_are_filtered_and_ordered(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let member = tasks.member("Marta").await;
    let contact =
        tasks.app.post("/contacts", &tasks.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let now = tasks.app.db().now();
    let day = |days: i64| now.plus_seconds(days * 86_400).rfc3339();
    let a = tasks
        .create(json!({
            "title": "Ash", "priority": "urgent", "labels": ["x", "y"], "due": { "datetime": day(-1) },
            "assignee": { "type": "user", "id": member },
        }))
        .await;
    tasks.create(json!({ "title": "Beech", "priority": "low", "labels": ["x"], "due": { "datetime": day(3) }, "contact_id": contact["id"] })).await;
    tasks.create(json!({ "title": "Cedar", "status": "backlog", "parent_id": a["id"] })).await;
    tasks.create(json!({ "title": "Deodar", "start_at": day(2), "due": { "datetime": day(5) } })).await;
    tasks.create(json!({ "title": "Elm", "depends_on": [a["id"]], "description": "Like ash" })).await;
    let f = tasks.create(json!({ "title": "Fir", "due": { "datetime": day(-2) }, "priority": "high" })).await;
    tasks.complete(&f).await;
    let user = format!("assignee=user:{member}&sort=title");
    let contact = format!("contact_id={}", contact["id"]);
    let parent = format!("parent_id={}", a["id"]);
    let due_after = format!("due_after={}&sort=due_at", day(0));
    let due_before = format!("due_before={}&sort=due_at", day(4));
    for (query, titles) in [
        ("", &["Fir", "Elm", "Deodar", "Cedar", "Beech", "Ash"][..]),
        ("sort=title", &["Ash", "Beech", "Cedar", "Deodar", "Elm", "Fir"]),
        ("sort=-priority,title", &["Ash", "Fir", "Beech", "Cedar", "Deodar", "Elm"]),
        ("sort=due_at,title", &["Fir", "Ash", "Beech", "Deodar", "Cedar", "Elm"]),
        ("status=done", &["Fir"]),
        ("status=backlog,done&sort=title", &["Cedar", "Fir"]),
        ("priority=high,urgent&sort=title", &["Ash", "Fir"]),
        (&user, &["Ash"]),
        ("assignee=none&sort=title&status=todo", &["Beech", "Deodar", "Elm"]),
        ("assignee=agent:7", &[]),
        ("label=X&sort=title", &["Ash", "Beech"]),
        (&contact, &["Beech"]),
        (&parent, &["Cedar"]),
        (&due_after, &["Beech", "Deodar"]),
        (&due_before, &["Fir", "Ash", "Beech"]),
        ("overdue=true", &["Ash"]),
        ("overdue=false&sort=title", &["Beech", "Cedar", "Deodar", "Elm", "Fir"]),
        ("ready=true&sort=title", &["Ash", "Beech"]),
        ("ready=false&sort=title", &["Cedar", "Deodar", "Elm", "Fir"]),
        ("q=ash&sort=title", &["Ash", "Elm"]),
        ("filter[is_blocked]=true", &["Elm"]),
        (
            "filter_tree=%7B%22field%22%3A%22title%22%2C%22op%22%3A%22ilike%22%2C%22value%22%3A%22%25e%25%22%7D&sort=title",
            &["Beech", "Cedar", "Deodar", "Elm"],
        ),
    ] {
        assert_eq!(tasks.titles(query).await, titles, "{query}");
    }
    let array = tasks.app.get(&format!("{}?sort=title&limit=3", tasks.at), &tasks.key).await;
    assert_eq!(array.body["data"].as_array().unwrap().len(), 3);
    assert!(array.body.get("has_more").is_none());
    let subtasks = tasks.app.get(&tasks.path(&a, "/subtasks"), &tasks.key).await.expect(200);
    assert_eq!((subtasks.as_array().unwrap().len(), &subtasks[0]["title"]), (1, &json!("Cedar")));
    for (query, param) in [
        ("status=later", "status"),
        ("priority=1", "priority"),
        ("assignee=5", "assignee"),
        ("assignee=user:x", "assignee"),
        ("due_before=soon", "due_before"),
        ("overdue=maybe", "overdue"),
        ("sort=nothing", "sort"),
        ("label=a%2Cb", "label"),
        ("paginate=true&starting_after=abc", "starting_after"),
    ] {
        let answer = tasks.app.get(&format!("{}?{query}", tasks.at), &tasks.key).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{query}");
    }
    let page = tasks.app.get(&format!("{}?paginate=true&limit=1&sort=title", tasks.at), &tasks.key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let elsewhere = format!("{}?paginate=true&sort=-title&starting_after={cursor}", tasks.at);
    tasks.app.get(&elsewhere, &tasks.key).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn the_summary_counts_by_status_assignee_and_day(kind: Kind) {
    let tasks = Tasks::open(kind).await;
    let member = tasks.member("Marta").await;
    let workspace = tasks.key.workspace;
    let profile: business::BusinessPatch =
        serde_json::from_value(json!({ "time_zone": "Asia/Tokyo" })).unwrap();
    tasks.app.db().write(move |tx| business::set(tx, workspace, profile.clone())).await.unwrap();
    let empty = tasks.app.get(&format!("{}/summary", tasks.at), &tasks.key).await.expect(200);
    assert_eq!((&empty["total"], &empty["by_assignee"]), (&json!(0), &json!([])));
    let now = tasks.app.db().now();
    let today = chrono::DateTime::from_timestamp_millis(now.millis())
        .unwrap()
        .with_timezone(&chrono_tz::Asia::Tokyo)
        .date_naive();
    let day = |days: i64| json!({ "date": today + chrono::TimeDelta::days(days) });
    let assignee = json!({ "type": "user", "id": member });
    let late = tasks.create(json!({ "title": "late", "due": day(-1), "assignee": assignee })).await;
    tasks.create(json!({ "title": "today", "due": day(0), "assignee": assignee })).await;
    tasks.create(json!({ "title": "later", "due": day(8), "status": "in_progress" })).await;
    tasks.create(json!({ "title": "none", "status": "backlog" })).await;
    tasks.create(json!({ "title": "blocked", "depends_on": [late["id"]] })).await;
    let done = tasks.create(json!({ "title": "done", "due": day(-3) })).await;
    tasks.complete(&done).await;
    let cancelled = tasks.create(json!({ "title": "cancelled" })).await;
    tasks.patch(&cancelled, json!({ "status": "cancelled" })).await.expect(200);
    let gone = tasks.create(json!({ "title": "gone" })).await;
    tasks.app.delete(&tasks.path(&gone, ""), &tasks.key).await.expect(200);
    let summary = tasks.app.get(&format!("{}/summary", tasks.at), &tasks.key).await.expect(200);
    assert_eq!(
        summary,
        json!({
            "object": "task_summary", "time_zone": "Asia/Tokyo", "total": 7, "open": 5, "ready": 3, "blocked": 1,
            "by_status": { "backlog": 1, "todo": 3, "in_progress": 1, "done": 1, "cancelled": 1 },
            "by_assignee": [{ "assignee": null, "open": 3, "overdue": 0 }, { "assignee": assignee, "open": 2, "overdue": 1 }],
            "due": { "overdue": 1, "today": 1, "this_week": 0, "later": 1, "none": 2 },
        })
    );
    assert_eq!(tasks.titles("ready=true").await.len(), 3);
}
