//! A person takes over while the agent thinks: the agent says nothing afterwards.

use super::agent_tools;
use crate::support::Desk;
use business::team::{self, NewMember};
use model::{Clock as _, Env, MemberRole, WorkspaceId};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Kind, Script, until};

impl Desk {
    /// Adds somebody to the team of a workspace, and gives the id.
    async fn colleague_in(&self, workspace: WorkspaceId) -> i64 {
        let new = NewMember {
            name: "Bruno".to_owned(),
            email: "bruno@example.com".to_owned(),
            ..NewMember::default()
        };
        let made = self.app.db().write(move |tx| team::add(tx, workspace, new.clone())).await;
        made.unwrap().id.0
    }

    /// Waits until the model has been asked so often.
    async fn asked(&self, times: usize) {
        until("the model is asked", async || (self.app.model.prompts().len() >= times).then_some(())).await;
    }

    /// Waits until no answer is being made.
    async fn no_answer_is_made(&self) {
        self.app.service.engine.idle().await;
        let open = "SELECT count(*) AS n FROM conversations WHERE reply_run_id IS NOT NULL";
        until("the answers end", async || (self.count(open).await == 0).then_some(())).await;
    }
}

#[testkit::both]
async fn nothing_of_the_agent_follows_a_person_who_took_over(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    desk.app.model.then(Script::Wait("Too late".to_owned()));
    let working = desk.app.service.channels.start();
    desk.network.write(&ana.user_id, "A question").unwrap();
    desk.asked(2).await;
    desk.app
        .put(&format!("/contacts/{contact}/autopilot"), &desk.key, json!({ "enabled": false }))
        .await
        .expect(200);
    let message = json!({ "text": "This is Bruno." });
    desk.post(&format!("/contacts/{contact}/operator-messages"), message).await.expect(200);
    assert!(desk.network.wait_until(|_| desk.sent(&ana).len() == 2).await);
    desk.app.model.release();
    desk.no_answer_is_made().await;
    // What the customer writes now is the person's to answer.
    desk.network.write(&ana.user_id, "Thanks, Bruno").unwrap();
    let heard = "SELECT count(*) AS n FROM messages WHERE direction = 'inbound'";
    until("the message is there", async || (desk.count(heard).await == 3).then_some(())).await;
    working.stop(Duration::from_secs(5)).await;
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "This is Bruno."]);
    assert_eq!(desk.count("SELECT count(*) AS n FROM messages WHERE sender_type = 'agent'").await, 1);
    assert_eq!(desk.app.model.prompts().len(), 2);
}

#[testkit::both]
async fn a_person_of_the_team_writes(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let path = format!("/contacts/{}/operator-messages", desk.only_contact().await["id"]);
    let other = desk.app.bare_workspace("scale", 0).await;
    let (member, stranger) = (desk.colleague_in(desk.workspace).await, desk.colleague_in(other).await);
    for id in [stranger, 999_999] {
        let answer = desk.post(&path, json!({ "text": "Hello", "member_id": id })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("member_id"));
    }
    desk.post(&path, json!({ "text": "Hello", "member_id": member })).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "Hello"]);
}

#[testkit::both]
async fn nor_does_what_its_tools_send(kind: Kind) {
    for handed_back in [false, true] {
        let desk = agent_tools::desk(kind).await;
        desk.template("notice", "utility", "We are open again.", &[]).await;
        let (ana, bruno) = (desk.customer("Ana", "+5511987654321"), desk.customer("Bruno", "+5511987654322"));
        desk.hear(&ana, "Hi").await;
        desk.hear(&bruno, "Hi").await;
        let namespace = desk.network.connection().business_id;
        let template = |phone: &str| {
            json!({
                "contact_id": format!("phone:{phone}"), "name": "notice", "language": "en", "namespace": namespace,
            })
        };
        desk.app.model.then(Script::WaitAndCall(vec![
            ("messages_send".to_owned(), json!({ "contact_id": "phone:+5511987654321", "text": "Too late" })),
            ("messages_template".to_owned(), template("+5511987654321")),
            ("messages_template".to_owned(), template("+5511987654322")),
            ("messages_handoff".to_owned(), json!({ "contact_id": "phone:+5511987654321", "summary": "x" })),
        ]));
        let working = desk.app.service.channels.start();
        desk.network.write(&ana.user_id, "A question").unwrap();
        desk.asked(3).await;
        let path = "/contacts/phone:+5511987654321/autopilot";
        desk.app.put(path, &desk.key, json!({ "enabled": false })).await.expect(200);
        if handed_back {
            desk.app.put(path, &desk.key, json!({ "enabled": true })).await.expect(200);
        }
        desk.app.model.release();
        desk.no_answer_is_made().await;
        working.stop(Duration::from_secs(5)).await;
        desk.settle().await;
        assert_eq!(
            (desk.sent(&ana), desk.sent(&bruno)),
            (vec!["ok".to_owned()], vec!["ok".to_owned(), "template".to_owned()])
        );
        let runs = desk.get("/runs").await.expect(200);
        let results = agent_tools::results(&desk, &desk.key, &runs[0]).await;
        for refused in &results[..2] {
            assert_eq!(
                (&refused["code"], &refused["details"]["reason"]),
                (&json!("invalid_state"), &json!("handed_over"))
            );
            assert!(refused["message"].as_str().unwrap().contains("handed over"), "{refused}");
        }
        assert_eq!(results[2]["data"]["status"], "queued", "others are still written to: {results:?}");
        // Nor does it hand over what it was given back.
        assert_eq!(results[3]["details"]["reason"], "handed_over");
        let found = desk.get("/contacts/phone:+5511987654321").await.expect(200);
        assert_eq!(found["autopilot"]["enabled"], handed_back);
    }
}

#[testkit::both]
async fn a_reply_cancels_the_reminders_that_say_so(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, bruno) = (desk.customer("Ana", "+5511987654321"), desk.customer("Bruno", "+5511987654322"));
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let remind = async |cancels: bool, recurrence: Option<Value>| {
        let new = json!({
            "title": "Ask again", "due_at": "2030-01-01T09:00:00Z", "contact_id": contact,
            "cancel_on_reply": cancels, "recurrence": recurrence,
        });
        desk.post("/reminders", new).await.expect(201)["id"].clone()
    };
    let once = remind(true, None).await;
    let weekly = remind(true, Some(json!({ "type": "rrule", "rule": "FREQ=WEEKLY" }))).await;
    let kept = remind(false, None).await;
    let states = async || {
        let listed = desk.app.get("/reminders?limit=10", &desk.key).await.expect(200);
        let state = |id: &Value| {
            let found = listed.as_array().unwrap().iter().find(|reminder| reminder["id"] == *id).unwrap();
            found["status"].clone()
        };
        [state(&once), state(&weekly), state(&kept)]
    };
    desk.hear(&bruno, "I am another contact").await;
    assert_eq!(states().await, ["scheduled", "scheduled", "scheduled"]);
    desk.hear(&ana, "I have not decided yet").await;
    assert_eq!(states().await, ["cancelled", "cancelled", "scheduled"]);
}

#[testkit::both]
async fn a_message_during_a_pause_is_a_person_s_to_answer(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let path = format!("/contacts/{contact}/autopilot");
    let until = desk.app.data.clock.now().plus_seconds(1_800);
    desk.app.put(&path, &desk.key, json!({ "enabled": false, "paused_until": until })).await.expect(200);
    desk.hear(&ana, "Is anybody there?").await;
    desk.app.data.clock.advance(chrono::Duration::minutes(31));
    desk.app.service.jobs.run_due().await.unwrap();
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    desk.hear(&ana, "Hello?").await;
    assert_eq!(desk.sent(&ana), ["ok", "ok"]);
}

#[testkit::both]
async fn what_the_device_writes_takes_over_where_the_channel_says_so(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| settings.takeover_pause_minutes = 30).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    desk.app.model.then(Script::Wait("Too late".to_owned()));
    let working = desk.app.service.channels.start();
    desk.network.write(&ana.user_id, "A question").unwrap();
    desk.asked(2).await;
    let number = desk.network.connection().number_id;
    desk.network.echo(&number, &ana.user_id, "I am on it.").unwrap();
    let written = "SELECT count(*) AS n FROM messages WHERE sender_type = 'device'";
    until("what the device wrote is there", async || (desk.count(written).await == 1).then_some(())).await;
    desk.app.model.release();
    desk.no_answer_is_made().await;
    working.stop(Duration::from_secs(5)).await;
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    // The pause ends by itself, and what was written before it stays the person's.
    desk.app.data.clock.advance(chrono::Duration::minutes(31));
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    desk.app.service.jobs.run_due().await.unwrap();
    desk.hear(&ana, "Are you there?").await;
    assert_eq!(desk.sent(&ana), ["ok", "ok"]);
}

#[testkit::both]
async fn a_member_who_has_signed_in_writes_in_the_own_name(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let path = format!("/contacts/{}/operator-messages", desk.only_contact().await["id"]);
    let bruno = desk.colleague_in(desk.workspace).await;
    let carla = desk.app.member(desk.workspace, MemberRole::Agent).await;
    let token = desk.app.token(&carla, Env::Live);
    for other in [bruno, 999_999] {
        let answer = desk.app.post(&path, &token, json!({ "text": "Hello", "member_id": other })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("member_id"));
    }
    let own = json!({ "text": "It is me", "member_id": carla.session.member });
    for body in [json!({ "text": "Hello" }), own] {
        desk.app.post(&path, &token, body).await.expect(200);
    }
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "Hello", "It is me"]);
    let by_carla = format!(
        "SELECT count(*) AS n FROM messages WHERE sender_type = 'user' AND sender_id = '{}'",
        carla.id()
    );
    assert_eq!(desk.count(&by_carla).await, 2);
}
