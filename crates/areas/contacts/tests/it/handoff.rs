//! Autopilot, assignment and consent.

use crate::Crm;
use business::team::{self, NewMember};
use contacts::schema::contacts_without_assignee;
use diesel::prelude::*;
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;

async fn handoffs(crm: &Crm) -> Vec<Value> {
    crm.app.deliver().await;
    let events = crm.app.get("/events?type=conversation.handoff", &crm.key).await.expect(200);
    events.as_array().unwrap().iter().rev().map(|event| event["data"].clone()).collect()
}

async fn member(crm: &Crm) -> i64 {
    let workspace = crm.key.workspace;
    let new =
        NewMember { name: "Marta".to_owned(), email: "marta@example.com".to_owned(), ..NewMember::default() };
    crm.app.db().write(move |tx| team::add(tx, workspace, new.clone())).await.unwrap().id.0
}

#[testkit::both]
async fn autopilot_is_handed_over_once_per_switch(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    assert_eq!(contact["autopilot"], json!({ "enabled": true, "paused_until": null }));
    let path = format!("/contacts/{}/autopilot", contact["id"]);
    let off = json!({ "enabled": false, "summary": "Wants a refund." });
    let answers = join_all((0..8).map(|_| crm.app.put(&path, &crm.key, off.clone()))).await;
    answers.iter().for_each(|answer| assert_eq!(answer.expect(200)["autopilot"]["enabled"], false));
    let switched = handoffs(&crm).await;
    assert_eq!(switched.len(), 1);
    let expected =
        json!({ "from": "agent", "to": "human", "reason": "api", "epoch": 1, "summary": "Wants a refund." });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&switched[0][key], value, "{key}");
    }
    let detail = crm.get(&contact["id"]).await;
    assert_eq!(detail["autopilot_config"]["epoch"], 1);
    assert!(detail["data"].get("$autopilot_config").is_none());
    crm.app.put(&path, &crm.key, json!({ "enabled": true })).await.expect(200);
    assert_eq!(handoffs(&crm).await.len(), 2);
    for (body, param) in [
        (json!({}), "enabled"),
        (json!({ "enabled": true, "paused_until": "2026-01-16T12:00:00Z" }), "paused_until"),
        (json!({ "enabled": false, "paused_until": "2026-01-15T11:00:00Z" }), "paused_until"),
        (json!({ "enabled": false, "summary": " " }), "summary"),
    ] {
        let answer = crm.app.put(&path, &crm.key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
}

#[testkit::both]
async fn who_waits_for_a_person_is_known(kind: Kind) {
    let crm = Crm::open(kind).await;
    let waiting = async || {
        let read = crm.app.db().read(|read| {
            let ids = contacts_without_assignee::table.select(contacts_without_assignee::contact_id);
            Ok(ids.order(contacts_without_assignee::contact_id).load::<i64>(read.connection())?)
        });
        read.await.unwrap().into_iter().map(Value::from).collect::<Vec<_>>()
    };
    let (ana, ben) = (
        crm.create(json!({ "$name": "Ana" })).await["id"].clone(),
        crm.create(json!({ "$name": "Ben" })).await["id"].clone(),
    );
    let path = |contact: &Value, below: &str| format!("/contacts/{contact}/{below}");
    let switch = async |contact: &Value, enabled: bool| {
        crm.app.put(&path(contact, "autopilot"), &crm.key, json!({ "enabled": enabled })).await.expect(200);
    };
    switch(&ana, false).await;
    switch(&ben, false).await;
    assert_eq!(waiting().await, [ana.clone(), ben.clone()]);
    let member = member(&crm).await;
    crm.app.put(&path(&ana, "assignment"), &crm.key, json!({ "assignee_id": member })).await.expect(200);
    switch(&ben, true).await;
    assert_eq!(waiting().await, Vec::<Value>::new());
    switch(&ben, false).await;
    crm.app.delete(&path(&ana, "assignment"), &crm.key).await.expect(200);
    assert_eq!(waiting().await, [ana.clone(), ben.clone()]);
    crm.app.post(&path(&ana, "merge"), &crm.key, json!({ "source_id": ben })).await.expect(200);
    assert_eq!(waiting().await, std::slice::from_ref(&ana));
    crm.app.delete(&format!("/contacts/{ana}?erase=true"), &crm.key).await.expect(200);
    assert_eq!(waiting().await, Vec::<Value>::new());
}

#[testkit::both]
async fn a_pause_ends_by_itself_unless_it_was_changed(kind: Kind) {
    let crm = Crm::open(kind).await;
    let (ana, ben) =
        (crm.create(json!({ "$name": "Ana" })).await, crm.create(json!({ "$name": "Ben" })).await);
    let pause = json!({ "enabled": false, "paused_until": "2026-01-15T13:00:00Z" });
    for contact in [&ana, &ben] {
        let path = format!("/contacts/{}/autopilot", contact["id"]);
        let paused = crm.app.put(&path, &crm.key, pause.clone()).await.expect(200);
        assert_eq!(paused["autopilot"]["paused_until"], "2026-01-15T13:00:00.000Z");
    }
    // Ben is switched off without an end meanwhile, so he stays with a person.
    let path = format!("/contacts/{}/autopilot", ben["id"]);
    crm.app.put(&path, &crm.key, json!({ "enabled": false })).await.expect(200);
    crm.app.service.jobs.run_due().await.unwrap();
    assert_eq!(crm.get(&ana["id"]).await["autopilot"]["enabled"], false);
    crm.app.data.clock.advance(chrono::Duration::seconds(3_601));
    crm.app.service.jobs.run_due().await.unwrap();
    assert_eq!(crm.get(&ana["id"]).await["autopilot"], json!({ "enabled": true, "paused_until": null }));
    assert_eq!(crm.get(&ben["id"]).await["autopilot"]["enabled"], false);
    let last = handoffs(&crm).await.pop().unwrap();
    assert_eq!(
        (&last["reason"], &last["contact_id"], &last["to"]),
        (&json!("pause_ended"), &ana["id"], &json!("agent"))
    );
}

#[testkit::both]
async fn a_conversation_is_assigned_to_a_member(kind: Kind) {
    let crm = Crm::open(kind).await;
    let marta = member(&crm).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    crm.create(json!({ "$name": "Ben" })).await;
    let path = format!("/contacts/{}/assignment", contact["id"]);
    let assigned =
        crm.app.put(&path, &crm.key, json!({ "assignee_id": marta, "autopilot": false })).await.expect(200);
    assert_eq!(assigned["assignee"], json!({ "type": "user", "id": marta }));
    assert_eq!(handoffs(&crm).await[0]["assignee"]["id"], marta);
    assert_eq!(crm.app.get("/team", &crm.key).await.expect(200)[0]["open_conversations"], 1);
    let counts = crm.app.get(&format!("/contacts/counts?member_id={marta}"), &crm.key).await.expect(200);
    let expected = json!({
        "object": "contact_counts", "total": 2, "unassigned": 1, "assigned": 1, "mine": 1, "autopilot_on": 1,
        "autopilot_off": 1, "blocked": 0, "opted_out": 0,
    });
    assert_eq!(counts, expected);
    let filtered = r#"/contacts/counts?filters=[{"field":"$name","value":"Ben"}]"#.replace('"', "%22");
    let counts = crm.app.get(&filtered, &crm.key).await.expect(200);
    assert_eq!(
        (&counts["total"], &counts["assigned"], &counts["mine"]),
        (&json!(1), &json!(0), &Value::Null)
    );
    let answer = crm.app.put(&path, &crm.key, json!({ "assignee_id": 999_999 })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("assignee_id"));
    let free = crm.app.delete(&path, &crm.key).await.expect(200);
    assert_eq!((&free["assignee"], &free["autopilot"]["enabled"]), (&Value::Null, &json!(false)));
    assert_eq!(handoffs(&crm).await.len(), 1);
}

#[testkit::both]
async fn consent_is_kept_with_its_proof(kind: Kind) {
    let crm = Crm::open(kind).await;
    let contact = crm.create(json!({ "$name": "Ana" })).await;
    let path = |what: &str| format!("/contacts/{}/{what}", contact["id"]);
    let stop = json!({ "source": "message", "proof": "STOP" });
    for _ in 0..2 {
        let out = crm.app.post(&path("opt-out"), &crm.key, stop.clone()).await.expect(200);
        assert_eq!(out["opted_out"], true);
    }
    let back = crm.app.post(&path("opt-in"), &crm.key, json!({})).await.expect(200);
    assert_eq!(back["opted_out"], false);
    let consents = crm.get(&contact["id"]).await["consents"].clone();
    let states: Vec<&Value> = consents.as_array().unwrap().iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["opted_in", "opted_out", "opted_out"]);
    crm.app.deliver().await;
    for (name, count) in [("contact.opted_out", 1), ("contact.opted_in", 1)] {
        let events = crm.app.get(&format!("/events?type={name}"), &crm.key).await.expect(200);
        assert_eq!(events.as_array().unwrap().len(), count, "{name}");
    }
    let answer = crm.app.post(&path("opt-out"), &crm.key, json!({ "source": "guess" })).await;
    assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("source"));
    crm.app.delete(&format!("/contacts/{}?erase=true", contact["id"]), &crm.key).await.expect(200);
    crm.app.get(&path("activity"), &crm.key).await.expect_error(404, "not_found");
}
