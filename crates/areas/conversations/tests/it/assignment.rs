//! Conversations that the service assigns to members of the team.

use crate::support::Desk;
use business::team::{self, Availability, AvailabilityStatus, MemberPatch, MemberRole, NewMember};
use chrono::Duration;
use futures::future::join_all;
use model::{MemberId, Patch};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::Kind;

/// A service that assigns what is handed over.
async fn desk(kind: Kind) -> Desk {
    Desk::with_settings(kind, |settings| settings.auto_assign = true).await
}

impl Desk {
    async fn member(&self, name: &str, change: impl FnOnce(&mut NewMember)) -> MemberId {
        let mut new = NewMember {
            name: name.to_owned(),
            email: format!("{}@example.com", name.to_lowercase()),
            ..NewMember::default()
        };
        change(&mut new);
        let workspace = self.workspace;
        let made = self.app.db().write(move |tx| team::add(tx, workspace, new.clone())).await;
        made.unwrap().id
    }

    async fn set_member(&self, member: MemberId, patch: MemberPatch) {
        let workspace = self.workspace;
        let set = self
            .app
            .db()
            .write(move |tx| {
                team::set(tx, workspace, member, patch.clone(), &team::Editor::command_line("test"))
            })
            .await;
        set.unwrap();
    }

    /// A contact who wrote.
    async fn talking(&self, number: usize) -> i64 {
        let phone = format!("+551198765{number:04}");
        self.hear(&self.customer("Ana", &phone), "Hi").await;
        let found = self.get(&format!("/contacts/phone:{phone}")).await.expect(200);
        found["id"].as_i64().unwrap()
    }

    /// A contact who wrote writes again.
    async fn asks(&self, number: usize, text: &str) {
        let phone = format!("551198765{number:04}");
        let users = self.network.users();
        let user = users.iter().find(|user| user.phone.as_deref() == Some(phone.as_str())).unwrap();
        self.hear(user, text).await;
    }

    async fn switch(&self, contact: i64, enabled: bool) -> Value {
        let path = format!("/contacts/{contact}/autopilot");
        self.app.put(&path, &self.key, json!({ "enabled": enabled })).await.expect(200)
    }

    async fn assignee(&self, contact: i64) -> Option<MemberId> {
        let found = self.get(&format!("/contacts/{contact}")).await.expect(200);
        found["assignee"]["id"].as_i64().map(MemberId)
    }

    /// Lets the service look for conversations that wait.
    async fn look(&self) {
        self.app.data.clock.advance(Duration::seconds(6));
        self.app.service.jobs.run_due().await.unwrap();
    }
}

fn away(desk: &Desk, minutes: i64) -> Availability {
    let until = Some(desk.app.db().now().plus_seconds(minutes * 60));
    Availability { status: AvailabilityStatus::Away, until }
}

#[testkit::both]
async fn what_is_handed_over_goes_to_whom_it_burdens_least(kind: Kind) {
    let desk = desk(kind).await;
    desk.member("Viewer", |new| new.role = MemberRole::Viewer).await;
    desk.member("Away", |new| new.availability = away(&desk, 60)).await;
    let (bruno, carla) = (desk.member("Bruno", |_| {}).await, desk.member("Carla", |_| {}).await);
    let mut given = Vec::new();
    for number in 0..4 {
        let contact = desk.talking(number).await;
        desk.app.data.clock.advance(Duration::seconds(1));
        desk.switch(contact, false).await;
        let found = desk.get(&format!("/contacts/{contact}")).await.expect(200);
        assert_eq!(found["routing_config"]["assigned_by"]["type"], "system");
        given.push(desk.assignee(contact).await.unwrap());
    }
    assert_eq!(given, [bruno, carla, bruno, carla]);
    let handoffs = desk.events("conversation.handoff").await;
    let named: Vec<&Value> = handoffs.iter().map(|event| &event["assignee"]["id"]).collect();
    assert_eq!(named, [bruno.0, carla.0, bruno.0, carla.0]);
    // Who has fewer is next, whoever was last; and whoever handed it over to a member keeps it there.
    let contact = desk.talking(4).await;
    desk.app
        .put(
            &format!("/contacts/{contact}/assignment"),
            &desk.key,
            json!({ "assignee_id": bruno, "autopilot": false }),
        )
        .await
        .expect(200);
    let contact = desk.talking(5).await;
    desk.switch(contact, false).await;
    assert_eq!(desk.assignee(contact).await, Some(carla));
    // An agent that answers again leaves the member as it is.
    desk.switch(contact, true).await;
    desk.switch(contact, false).await;
    assert_eq!(desk.assignee(contact).await, Some(carla));
}

#[testkit::both]
async fn what_waits_goes_to_who_becomes_free_the_oldest_first(kind: Kind) {
    let desk = desk(kind).await;
    let bruno = desk.member("Bruno", |new| new.capacity = Some(1)).await;
    let mut contacts = Vec::new();
    for number in 0..4 {
        contacts.push(desk.talking(number).await);
    }
    for contact in &contacts {
        desk.switch(*contact, false).await;
        desk.app.data.clock.advance(Duration::seconds(1));
    }
    let given = async || {
        let mut all = Vec::new();
        for contact in &contacts {
            all.push(desk.assignee(*contact).await);
        }
        all
    };
    desk.look().await;
    assert_eq!(given().await, [Some(bruno), None, None, None]);
    let handoffs = desk.events("conversation.handoff").await;
    assert_eq!((&handoffs[0]["assignee"]["id"], &handoffs[1]["assignee"]), (&json!(bruno), &Value::Null));
    // One that is taken off goes to the end.
    desk.app.delete(&format!("/contacts/{}/assignment", contacts[0]), &desk.key).await.expect(200);
    desk.look().await;
    assert_eq!(given().await, [None, Some(bruno), None, None]);
    desk.set_member(bruno, MemberPatch { capacity: Patch::Set(2), ..MemberPatch::default() }).await;
    desk.look().await;
    assert_eq!(given().await, [None, Some(bruno), Some(bruno), None]);
    // What an agent answers again does not wait, and a blocked contact is nobody's work.
    desk.switch(contacts[3], true).await;
    desk.app
        .patch(&format!("/contacts/{}", contacts[0]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    let carla = desk.member("Carla", |new| new.availability = away(&desk, 10)).await;
    desk.look().await;
    assert_eq!(given().await, [None, Some(bruno), Some(bruno), None]);
    desk.app.data.clock.advance(Duration::minutes(10));
    desk.look().await;
    assert_eq!(given().await, [None, Some(bruno), Some(bruno), None]);
    desk.app
        .patch(&format!("/contacts/{}", contacts[0]), &desk.key, json!({ "status": "active" }))
        .await
        .expect(200);
    desk.look().await;
    assert_eq!(given().await, [Some(carla), Some(bruno), Some(bruno), None]);
    let updated = desk.events("contact.updated").await;
    assert_eq!(updated.last().unwrap()["contact_id"], contacts[0]);
}

#[testkit::both]
async fn handoffs_at_one_time_are_shared_evenly(kind: Kind) {
    let desk = desk(kind).await;
    for name in ["Bruno", "Carla", "Dora", "Emil"] {
        desk.member(name, |_| {}).await;
    }
    let mut contacts = Vec::new();
    for number in 0..12 {
        contacts.push(desk.talking(number).await);
    }
    join_all(contacts.iter().map(|contact| desk.switch(*contact, false))).await;
    let mut shares: BTreeMap<MemberId, i64> = BTreeMap::new();
    for contact in contacts {
        *shares.entry(desk.assignee(contact).await.unwrap()).or_default() += 1;
    }
    assert_eq!(shares.values().copied().collect::<Vec<_>>(), [3, 3, 3, 3]);
}

#[testkit::both]
async fn what_others_decide_is_left_alone(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| {
        settings.auto_assign = true;
        settings.takeover_pause_minutes = 30;
    })
    .await;
    desk.member("Bruno", |_| {}).await;
    // A person who writes has taken over, and is not known as a member.
    let contact = desk.talking(0).await;
    desk.post(&format!("/contacts/{contact}/operator-messages"), json!({ "text": "This is Carla." }))
        .await
        .expect(200);
    desk.look().await;
    assert_eq!(desk.assignee(contact).await, None);
    // A contact with whom there is no conversation, and one over a channel that assigns nothing.
    let silent = desk.contact("Bruno", "+5511987651111").await;
    desk.switch(silent, false).await;
    desk.look().await;
    assert_eq!(desk.assignee(silent).await, None);
    let plain = Desk::open(kind).await;
    plain.member("Bruno", |_| {}).await;
    let contact = plain.talking(0).await;
    plain.switch(contact, false).await;
    plain.look().await;
    assert_eq!(plain.assignee(contact).await, None);
}

#[testkit::both]
async fn who_is_absent_loses_those_who_wait(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| {
        settings.auto_assign = true;
        settings.reassign_after_minutes = 10;
    })
    .await;
    let bruno = desk.member("Bruno", |_| {}).await;
    let answered = desk.talking(0).await;
    let (waiting, with_agent) = (desk.talking(1).await, desk.talking(2).await);
    for contact in [answered, waiting, with_agent] {
        desk.switch(contact, false).await;
    }
    desk.switch(with_agent, true).await;
    desk.asks(0, "Is anybody there?").await;
    desk.asks(1, "Is anybody there?").await;
    desk.post(&format!("/contacts/{answered}/operator-messages"), json!({ "text": "Yes." }))
        .await
        .expect(200);
    let assignees = async || {
        [desk.assignee(answered).await, desk.assignee(waiting).await, desk.assignee(with_agent).await]
    };
    let minutes = async |minutes| {
        desk.app.data.clock.advance(Duration::minutes(minutes));
        desk.app.service.jobs.run_due().await.unwrap();
        desk.look().await;
    };
    let is = |status| MemberPatch {
        availability: Some(Availability { status, until: None }),
        ..MemberPatch::default()
    };
    let carla = desk
        .member("Carla", |new| new.availability = is(AvailabilityStatus::Offline).availability.unwrap())
        .await;
    // The time of an absence begins anew with each, and goes on when anything else about the member changes.
    desk.set_member(bruno, is(AvailabilityStatus::Away)).await;
    minutes(9).await;
    desk.set_member(bruno, is(AvailabilityStatus::Online)).await;
    desk.set_member(bruno, is(AvailabilityStatus::Away)).await;
    minutes(9).await;
    desk.set_member(bruno, MemberPatch { capacity: Patch::Set(20), ..is(AvailabilityStatus::Offline) }).await;
    assert_eq!(assignees().await, [Some(bruno); 3]);
    minutes(2).await;
    assert_eq!(assignees().await, [Some(bruno), None, Some(bruno)], "nobody is free");
    desk.set_member(carla, is(AvailabilityStatus::Online)).await;
    desk.look().await;
    assert_eq!(assignees().await, [Some(bruno), Some(carla), Some(bruno)]);
    let log = desk.get(&format!("/contacts/{waiting}/activity")).await.expect(200);
    assert!(log.to_string().contains("assignment"), "{log}");
    // Who has left the team does not come back.
    let workspace = desk.workspace;
    desk.app
        .db()
        .write(move |tx| team::remove(tx, workspace, bruno, &team::Editor::command_line("test")))
        .await
        .unwrap();
    desk.asks(0, "Thanks. And on Sunday?").await;
    minutes(2).await;
    assert_eq!(assignees().await, [Some(carla), Some(carla), Some(bruno)]);
}

#[testkit::both]
async fn a_contact_that_waits_still_does_after_a_merge(kind: Kind) {
    let desk = desk(kind).await;
    let (into, from) = (desk.talking(0).await, desk.talking(1).await);
    desk.switch(from, false).await;
    desk.post(&format!("/contacts/{into}/merge"), json!({ "source_id": from })).await.expect(200);
    let bruno = desk.member("Bruno", |_| {}).await;
    desk.look().await;
    assert_eq!(desk.assignee(into).await, Some(bruno));
}
