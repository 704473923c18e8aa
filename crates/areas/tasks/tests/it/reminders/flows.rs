//! Runs of flows that reminders start, with scripted flows.

use super::Fixture;
use model::{Code, Env, Error, FlowId, ReminderId};
use ports::{FlowStarter, Unstartable};
use serde_json::{Value, json};
use testkit::{FlowEnd, Kind, ScriptedFlows, TestApp};

async fn open(kind: Kind) -> (ScriptedFlows, Fixture) {
    let flows = ScriptedFlows::default();
    let fixture = Fixture::of(TestApp::with_services(kind, flows.services()).await).await;
    let schema = json!({
        "type": "object", "properties": { "discount": { "type": "integer" } }, "additionalProperties": false,
    });
    flows.publish(fixture.key.workspace, 7, schema);
    (flows, fixture)
}

fn action(config: Value) -> Value {
    json!({ "type": "start_flow", "config": config })
}

#[testkit::both]
async fn a_firing_starts_one_run(kind: Kind) {
    let (flows, fixture) = open(kind).await;
    let contact =
        fixture.app.post("/contacts", &fixture.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let hourly = json!({ "type": "rrule", "rule": "FREQ=HOURLY" });
    let made = fixture
        .create(json!({
            "title": "Follow up", "due_at": fixture.after(10), "recurrence": hourly, "contact_id": contact["id"],
            "action": action(json!({ "flow_id": 7, "input": { "discount": 10 } })),
        }))
        .await;
    assert_eq!(made["action"]["config"]["input"], json!({ "discount": 10 }));
    let single = fixture
        .create(
            json!({ "title": "x", "due_at": fixture.after(20), "action": action(json!({ "flow_id": 7 })) }),
        )
        .await;
    fixture.wait(10).await;
    fixture.run().await;
    let started = flows.started();
    assert_eq!(started.len(), 1);
    let start = &started[0].start;
    assert_eq!((start.workspace, start.flow, start.livemode), (fixture.key.workspace, FlowId(7), true));
    assert_eq!(start.input, json!({ "discount": 10 }));
    assert_eq!(start.contact.map(|id| id.0), contact["id"].as_i64());
    assert_eq!(start.by, FlowStarter::Reminder(ReminderId(made["id"].as_i64().unwrap())));
    // What happened is what the event says, and the run is one step after it.
    let event = fixture.events().await.remove(0);
    assert_eq!(start.payload, event["data"]);
    let chain = start.chain.as_ref().unwrap();
    assert_eq!(
        (json!(chain.depth), json!(chain.root)),
        (
            json!(event["caused_by"]["depth"].as_i64().unwrap() + 1),
            event["caused_by"]["root_event_id"].clone()
        )
    );
    fixture.wait(60).await;
    let started = flows.started();
    assert_eq!(started.len(), 3, "the next date and the other reminder");
    let other = started.iter().find(|one| one.start.contact.is_none()).unwrap();
    assert_eq!(other.start.input, json!({}));
    assert_eq!(fixture.get(&single).await["last_error"], Value::Null);
    // Each date has a name of its own.
    let mut names: Vec<&str> = started.iter().map(|one| one.start.once.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[testkit::both]
async fn what_cannot_be_started_is_refused(kind: Kind) {
    let (flows, fixture) = open(kind).await;
    let (app, key, workspace) = (&fixture.app, &fixture.key, fixture.key.workspace);
    let stranger = app.full_key().await;
    flows.publish(stranger.workspace, 8, json!({}));
    flows.withdraw(workspace, 9, Unstartable::NotPublished);
    flows.withdraw(workspace, 10, Unstartable::Inactive);
    let due = fixture.after(10);
    let new = |config: Value| json!({ "title": "x", "due_at": due, "action": action(config) });
    for (config, param) in [
        (json!({}), "action.config.flow_id"),
        (json!({ "flow_id": 7, "text": "x" }), "action.config.text"),
        (json!({ "flow_id": 7, "agent_id": 1 }), "action.config.agent_id"),
        (json!({ "flow_id": 7, "input": "x" }), "action.config.input"),
        (json!({ "flow_id": 7, "input": ["x"] }), "action.config.input"),
        (json!({ "flow_id": 7, "input": { "discount": "much" } }), "action.config.input"),
        (json!({ "flow_id": 7, "input": { "other": 1 } }), "action.config.input"),
    ] {
        let refused = app.post("/reminders", key, new(config.clone())).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{config}");
    }
    flows.publish(workspace, 7, json!({}));
    let long = json!({ "flow_id": 7, "input": { "text": "x".repeat(10_000) } });
    let refused = app.post("/reminders", key, new(long)).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("action.config.input"));
    let text = json!({ "type": "run_agent", "config": { "input": { "a": 1 } } });
    let refused = app.post("/reminders", key, json!({ "title": "x", "due_at": due, "action": text })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("action.config.input"));
    let misplaced = json!({ "type": "notify", "config": { "flow_id": 7 } });
    let refused =
        app.post("/reminders", key, json!({ "title": "x", "due_at": due, "action": misplaced })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("action.config.flow_id"));
    for flow in [8, 99] {
        let refused = app.post("/reminders", key, new(json!({ "flow_id": flow }))).await;
        assert_eq!(refused.expect_error(404, "not_found").as_deref(), Some("action.config.flow_id"));
    }
    for (flow, reason) in [(9, "not_published"), (10, "inactive")] {
        let refused = app.post("/reminders", key, new(json!({ "flow_id": flow }))).await;
        assert_eq!(refused.expect_error(409, "invalid_state").as_deref(), Some("action.config.flow_id"));
        assert_eq!(refused.body["error"]["details"]["reason"], reason);
    }
    let modest = app.key(workspace, Env::Live, &["reminders:write"]).await;
    let refused = app.post("/reminders", &modest, new(json!({ "flow_id": 7 }))).await;
    assert_eq!(refused.expect_error(403, "missing_scope").as_deref(), Some("automations:execute"));
}

#[testkit::both]
async fn what_a_run_lacks_is_in_the_reminder(kind: Kind) {
    let (flows, fixture) = open(kind).await;
    let (app, workspace) = (&fixture.app, fixture.key.workspace);
    let due = |minutes: i64| json!({ "title": "x", "due_at": fixture.after(minutes), "action": action(json!({ "flow_id": 7 })) });
    let mut weekly = due(10);
    weekly["recurrence"] = json!({ "type": "rrule", "rule": "FREQ=WEEKLY" });
    let (single, series) = (fixture.create(due(10)).await, fixture.create(weekly).await);
    flows.withdraw(workspace, 7, Unstartable::Inactive);
    fixture.wait(10).await;
    for (reminder, status) in [(&single, "failed"), (&series, "scheduled")] {
        let now = fixture.get(reminder).await;
        assert_eq!((&now["status"], &now["last_error"]["code"]), (&json!(status), &json!("invalid_state")));
    }
    assert_eq!(fixture.fired().await.len(), 2, "the event is published all the same");
    flows.publish(workspace, 7, json!({}));
    // A contact that is in a run of the flow already gets no second one.
    let busy = fixture.create(due(10)).await;
    flows.then(FlowEnd::Active);
    fixture.wait(10).await;
    assert_eq!(fixture.get(&busy).await["last_error"]["code"], "invalid_state");
    // A failure that passes is tried again.
    let retried = fixture.create(due(10)).await;
    flows.then(FlowEnd::Refused(|| Error::new(Code::ServiceUnavailable, "Not now.")));
    fixture.wait(10).await;
    fixture.wait(10).await;
    assert_eq!(fixture.get(&retried).await["last_error"], Value::Null);
    assert_eq!(flows.started().len(), 2);
    // A revoked key starts nothing.
    let key = app.key(workspace, Env::Live, &["*"]).await;
    let revoked = app.post("/reminders", &key, due(10)).await.expect(201);
    app.sql(format!("UPDATE api_keys SET revoked_at = created_at WHERE id = '{}'", key.id)).await;
    fixture.wait(10).await;
    assert_eq!(fixture.get(&revoked).await["last_error"]["code"], "missing_scope");
    assert_eq!(flows.started().len(), 2);
}

#[testkit::both]
async fn what_test_keys_set_starts_test_runs(kind: Kind) {
    let (flows, fixture) = open(kind).await;
    let test = fixture.app.key(fixture.key.workspace, Env::Test, &["*"]).await;
    let body =
        json!({ "title": "x", "due_at": fixture.after(10), "action": action(json!({ "flow_id": 7 })) });
    fixture.app.post("/reminders", &test, body).await.expect(201);
    fixture.wait(10).await;
    let started = flows.started();
    assert_eq!((started.len(), started[0].start.livemode), (1, false));
}

#[testkit::both]
async fn reminders_use_the_flow_until_they_have_fired(kind: Kind) {
    let (_, fixture) = open(kind).await;
    let uses = fixture.app.service.pipeline.services.get::<ports::ObjectUses>().unwrap();
    let workspace = fixture.key.workspace;
    let used = async |flow: i64| {
        let uses = uses.clone();
        let look =
            move |read: &mut store::Read| uses.of(read, workspace, ports::UsedObject::Flow(FlowId(flow)));
        let uses = fixture.app.db().read(look).await.unwrap();
        uses.into_iter().map(|used| (used.r#type, used.id)).collect::<Vec<_>>()
    };
    let config = action(json!({ "flow_id": 7 }));
    let made = fixture.create(json!({ "title": "x", "due_at": fixture.after(10), "action": config })).await;
    assert_eq!(used(7).await, [("reminder", made["id"].to_string())]);
    assert_eq!(used(77).await, []);
    fixture.wait(10).await;
    assert_eq!(used(7).await, []);
}
