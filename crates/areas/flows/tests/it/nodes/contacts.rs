//! Nodes that change the contact, and those that write tasks and reminders.

use super::{Flow, act, contact, failure, node, output};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn fields_of_the_contact_are_changed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let config = json!({ "fields": { "$company": "{{ $input.company }}" } });
    let run = json!({ "contact_id": ana, "input": { "company": "Acme" } });
    let changed = output(&act(&app, &key, "update_contact", config.clone(), run).await);
    assert_eq!((&changed["id"], &changed["data"]["$company"]), (&ana, &json!("Acme")));
    let run = json!({ "input": { "company": "Acme" } });
    assert_eq!(failure(&act(&app, &key, "update_contact", config, run).await), "no_contact");
    let wrong = json!({ "fields": { "nothing": 1 } });
    assert_eq!(
        failure(&act(&app, &key, "update_contact", wrong, json!({ "contact_id": ana })).await),
        "validation_error"
    );
}

#[testkit::both]
async fn a_run_without_a_contact_gets_one(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let fields = json!({ "$name": "{{ $input.name }}", "$phone": "{{ $input.phone }}" });
    let nodes = vec![
        node("contact", "update_contact", json!({ "fields": fields, "create_if_missing": true })),
        node("note", "note", json!({ "text": "{{ $contact.$name }} asked for a call." })),
    ];
    let flow = Flow::publish(&app, &key, nodes).await;
    let run = flow.run(json!({ "input": { "name": "Bruno", "phone": "+5511987654321" } })).await;
    assert_eq!(run["status"], "completed", "{run}");
    let notes = app.get(&format!("/contacts/{}/notes", run["contact_id"]), &key).await.expect(200);
    assert_eq!(notes[0]["body"], "Bruno asked for a call.");
    assert_eq!(notes[0]["author"]["type"], "flow");
    // The same number is the same contact.
    let again = flow.run(json!({ "input": { "name": "Bruno Lima", "phone": "+55 11 98765-4321" } })).await;
    assert_eq!(again["contact_id"], run["contact_id"]);
    let shown = app.get(&format!("/contacts/{}", run["contact_id"]), &key).await.expect(200);
    assert_eq!(shown["data"]["$name"], "Bruno Lima");
}

#[testkit::both]
async fn tags_are_added_and_removed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let run = json!({ "contact_id": ana });
    let tag = |add: Value, remove: Value| json!({ "add": add, "remove": remove });
    for (config, tags) in [
        (tag(json!(["New", "vip"]), json!([])), json!(["new", "vip"])),
        (tag(json!(["asked"]), json!(["new", "absent"])), json!(["vip", "asked"])),
        (tag(json!([]), json!(["absent"])), json!(["vip", "asked"])),
        (tag(json!([]), json!([])), json!(["vip", "asked"])),
    ] {
        assert_eq!(
            output(&act(&app, &key, "contact_tag", config.clone(), run.clone()).await)["tags"],
            tags,
            "{config}"
        );
    }
    let empty = tag(json!([""]), json!([]));
    assert_eq!(failure(&act(&app, &key, "contact_tag", empty, run.clone()).await), "validation_error");
}

#[testkit::both]
async fn a_conversation_is_handed_over_and_back(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let run = json!({ "contact_id": ana });
    let over = json!({ "autopilot": false, "note": "Wants to return an order." });
    output(&act(&app, &key, "handoff", over, run.clone()).await);
    let shown = app.get(&format!("/contacts/{ana}"), &key).await.expect(200);
    assert_eq!(shown["autopilot"]["enabled"], false, "{shown}");
    output(&act(&app, &key, "handoff", json!({ "autopilot": true }), run.clone()).await);
    let shown = app.get(&format!("/contacts/{ana}"), &key).await.expect(200);
    assert_eq!(shown["autopilot"]["enabled"], true, "{shown}");
    app.deliver().await;
    let events = app.get("/events?type=conversation.handoff", &key).await.expect(200);
    let events = events.as_array().unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&events[1]["data"]["reason"], &events[1]["data"]["summary"]),
        (&json!("flow"), &json!("Wants to return an order."))
    );
    let unknown = json!({ "contact_id": ana, "input": { "member": 999_999 } });
    let wrong = json!({ "assignee_id": "{{ $input.member }}" });
    assert_eq!(failure(&act(&app, &key, "handoff", wrong, unknown).await), "validation_error");
}

#[testkit::both]
async fn tasks_and_reminders_are_about_the_contact(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let ana = contact(&app, &key, "Ana").await;
    let run = json!({ "contact_id": ana });
    let new = json!({ "fields": { "title": "Call {{ $contact.$name }}", "priority": "high" } });
    let task = output(&act(&app, &key, "task", new, run.clone()).await);
    assert_eq!(
        (&task["title"], &task["contact_id"], &task["created_by"]["type"]),
        (&json!("Call Ana"), &ana, &json!("flow"))
    );
    let change = json!({ "task_id": "{{ $input.task }}", "fields": { "status": "done" } });
    let changing = json!({ "contact_id": ana, "input": { "task": task["id"] } });
    assert_eq!(output(&act(&app, &key, "task", change.clone(), changing).await)["status"], "done");
    let missing = json!({ "input": { "task": 999_999 } });
    assert_eq!(failure(&act(&app, &key, "task", change, missing).await), "not_found");
    let elsewhere = json!({ "fields": { "title": "Count", "contact_id": null } });
    assert_eq!(output(&act(&app, &key, "task", elsewhere, run.clone()).await)["contact_id"], Value::Null);
    assert_eq!(
        failure(&act(&app, &key, "task", json!({ "fields": {} }), run.clone()).await),
        "validation_error"
    );
    let reminder = json!({ "fields": { "title": "Renewal", "due_at": "{{ $input.due }}" } });
    let due = json!({ "contact_id": ana, "input": { "due": "2099-01-01T09:00:00Z" } });
    let made = output(&act(&app, &key, "reminder", reminder.clone(), due).await);
    assert_eq!((&made["title"], &made["contact_id"]), (&json!("Renewal"), &ana));
    let past = json!({ "input": { "due": "2001-01-01T09:00:00Z" } });
    assert_eq!(failure(&act(&app, &key, "reminder", reminder, past).await), "validation_error");
}
