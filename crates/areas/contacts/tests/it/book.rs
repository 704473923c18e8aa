//! Contacts through the port [`People`], as other groups use them.

use crate::Crm;
use futures::future::join_all;
use model::{ActorType, Cause, Code, ContactId, Result, Timestamp, WorkspaceId};
use ports::{
    Audience, ChatIdentity, ConsentStatement, ConsentTies, ContactCard, ContactRef, HandOver, HandoffReason,
    People,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::Tx;
use testkit::Kind;

/// Builds an identity of a chat network from a user id, a number, a user name and a name, leaving out those that are
/// empty.
fn person(user_id: &str, phone: &str, username: &str, name: &str) -> ChatIdentity {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ChatIdentity { user_id: some(user_id), phone: some(phone), username: some(username), name: some(name) }
}

impl Crm {
    async fn people<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx, WorkspaceId, &People) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let people = self.app.service.pipeline.services.get::<People>().unwrap();
        let workspace = self.key.workspace;
        self.app.db().write(move |tx| work(tx, workspace, &people)).await
    }

    async fn receive(&self, from: ChatIdentity) -> ContactCard {
        self.people(move |tx, workspace, people| people.receive(tx, workspace, &from)).await.unwrap()
    }

    async fn relink(&self, old: ChatIdentity, new: ChatIdentity) -> Option<ContactId> {
        self.people(move |tx, workspace, people| people.relink(tx, workspace, &old, &new)).await.unwrap()
    }

    /// Records that a contact stated over the network, this many seconds ago, whether it wants messages. Returns
    /// whether the statement was stored.
    async fn says(
        &self,
        contact: ContactId,
        wants: bool,
        seconds_ago: i64,
        ties: ConsentTies,
    ) -> Result<bool> {
        let at = Some(self.app.db().now().plus_seconds(-seconds_ago));
        let said = ConsentStatement { wants_messages: wants, at, ties, proof: "STOP".to_owned() };
        self.people(move |tx, workspace, people| people.record_consent(tx, workspace, contact, &said)).await
    }

    /// Reads the ids of an audience in pages of two.
    async fn audience(&self, audience: Audience) -> Vec<i64> {
        let read = move |tx: &mut Tx, workspace: WorkspaceId, people: &People| {
            people.check_audience(tx, workspace, &audience, "audience")?;
            let mut all: Vec<i64> = Vec::new();
            loop {
                let after = all.last().copied().map(ContactId);
                let some = people.audience(tx, workspace, &audience, after, 2)?;
                all.extend(some.iter().map(|card| card.id.0));
                if some.len() < 2 {
                    return Ok(all);
                }
            }
        };
        self.people(read).await.unwrap()
    }
}

fn id(contact: &Value) -> i64 {
    contact["id"].as_i64().unwrap()
}

#[testkit::both]
async fn who_writes_first_becomes_a_contact(kind: Kind) {
    let crm = Crm::open(kind).await;
    let card = crm.receive(person("u1", "+55 11 98765-4321", "ana", " Ana Souza ")).await;
    let ana = crm.get(&json!(card.id)).await;
    assert_eq!(
        ana["data"],
        json!({
            "$name": "Ana Souza", "$phone": "+5511987654321", "$username": "ana", "$chat_user_id": "u1",
            "$country": "BR", "$created_via": "message",
        })
    );
    assert_eq!(ana["created_by"], json!({ "type": "contact", "id": "u1" }));
    assert_eq!((card.text("$name"), card.text("$email")), (Some("Ana Souza"), None));
    assert_eq!((card.autopilot, card.epoch, card.is_blocked, card.is_opted_out), (true, 0, false, false));
    assert_eq!(json!(card.app_url), ana["app_url"]);
    assert!(card.data.keys().all(|key| key != "$match_keys"));
    for from in [
        person("u1", "", "", ""),
        person("", "+551187654321", "", "Other"),
        person("", "", "ana", ""),
        person("u9", "+5511987654321", "", ""),
    ] {
        assert_eq!(crm.receive(from).await.id, card.id);
    }
    assert_eq!(crm.get(&json!(card.id)).await["version"], ana["version"]);
    crm.app.deliver().await;
    let events = crm.app.get("/events?type=contact.created", &crm.key).await.expect(200);
    assert_eq!(events.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn what_is_missing_is_added_and_nothing_is_overwritten(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.create(json!({ "$phone": "+5511987654321", "$name": "Ana" })).await;
    let card = crm.receive(person("u1", "+551187654321", "ana", "Somebody")).await;
    assert_eq!(card.id.0, id(&ana));
    let after = crm.get(&ana["id"]).await;
    assert_eq!(
        after["data"],
        json!({
            "$name": "Ana", "$phone": "+5511987654321", "$username": "ana", "$chat_user_id": "u1", "$country": "BR",
            "$created_via": "api",
        })
    );
    // Values that belong to another contact are left out.
    let ben = crm.create(json!({ "$chat_user_id": "u2" })).await;
    let card = crm.receive(person("u2", "+5511987654321", "ana", "Ben")).await;
    assert_eq!(card.id.0, id(&ben));
    assert_eq!((card.text("$name"), card.text("$phone"), card.text("$username")), (Some("Ben"), None, None));
    // A user name that passed to another person does not identify the old contact.
    let cem = crm.receive(person("u3", "", "ana", "Cem")).await;
    assert!(cem.id != card.id && cem.id.0 != id(&ana));
    assert_eq!((cem.text("$chat_user_id"), cem.text("$username")), (Some("u3"), None));
    // A text that is not a number still identifies the contact, and long names are cut.
    let odd = crm.receive(person("", "12", "", &"x".repeat(300))).await;
    assert_eq!(crm.receive(person("", "12", "", "")).await.id, odd.id);
    assert_eq!(odd.text("$name").unwrap().len(), 200);
    crm.app.delete(&format!("/contacts/{}", cem.id), &crm.key).await.expect(200);
    assert_ne!(crm.receive(person("u3", "", "", "Cem")).await.id, cem.id);
}

#[testkit::both]
async fn many_receivers_make_one_contact(kind: Kind) {
    let crm = Crm::open(kind).await;
    let cards = join_all((0..12).map(|place| {
        let user = if place % 2 == 0 { "u1" } else { "" };
        crm.receive(person(user, "+5511987654321", "", "Ana"))
    }))
    .await;
    assert!(cards.iter().all(|card| card.id == cards[0].id));
    assert_eq!(crm.names("q=ana").await.len(), 1);
    let ana = crm.get(&json!(cards[0].id)).await;
    assert_eq!(ana["data"]["$chat_user_id"], "u1");
}

#[testkit::both]
async fn a_change_of_number_follows(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.receive(person("u1", "+5511987654321", "", "Ana")).await.id;
    let ben = crm.receive(person("u2", "+34612345678", "", "Ben")).await.id;
    let old = person("", "+551187654321", "", "");
    assert_eq!(crm.relink(old.clone(), person("", "+5511900000000", "", "")).await, Some(ana));
    assert_eq!(crm.get(&json!(ana)).await["data"]["$phone"], "+5511900000000");
    assert_eq!(crm.relink(old, person("", "+5511911111111", "", "")).await, None);
    assert_eq!(crm.relink(person("u1", "", "", ""), person("u7", "", "", "")).await, Some(ana));
    assert_eq!(crm.receive(person("u7", "", "", "")).await.id, ana);
    // Values that belong to another contact are not taken over.
    assert_eq!(crm.relink(person("u7", "", "", ""), person("u8", "+34612345678", "", "")).await, Some(ana));
    let data = crm.get(&json!(ana)).await["data"].clone();
    assert_eq!((&data["$chat_user_id"], &data["$phone"]), (&json!("u8"), &json!("+5511900000000")));
    assert_eq!(crm.get(&json!(ben)).await["data"]["$phone"], "+34612345678");
}

#[testkit::both]
async fn consent_and_handover_come_from_messages(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.receive(person("u1", "", "", "Ana")).await.id;
    for wants in [false, true, false] {
        assert!(crm.says(ana, wants, 0, ConsentTies::ToLater).await.unwrap());
    }
    let until = Timestamp::parse("2026-01-15T13:00:00Z");
    let switch = HandOver {
        enabled: false,
        until,
        reason: HandoffReason::Device,
        summary: Some("Took over.".to_owned()),
    };
    for _ in 0..2 {
        let switch = switch.clone();
        crm.people(move |tx, workspace, people| {
            let card = people.lock(tx, workspace, &BTreeSet::from([ana]))?.pop().unwrap();
            people.hand_over(tx, workspace, &Cause::actor(ActorType::User, &7), card.id, &switch)
        })
        .await
        .unwrap();
    }
    let after = crm.get(&json!(ana)).await;
    assert_eq!(after["opted_out"], true);
    assert_eq!(after["consents"][0]["proof"], "STOP");
    assert_eq!(after["consents"][0]["actor"], json!({ "type": "contact", "id": ana.to_string() }));
    assert_eq!(after["autopilot"], json!({ "enabled": false, "paused_until": "2026-01-15T13:00:00.000Z" }));
    crm.app.deliver().await;
    let events = crm.app.get("/events?type=conversation.handoff", &crm.key).await.expect(200);
    assert_eq!(events.as_array().unwrap().len(), 1);
    assert_eq!(
        (&events[0]["data"]["reason"], &events[0]["data"]["actor"]["type"]),
        (&json!("device"), &json!("user"))
    );
    let card = crm
        .people(move |tx, workspace, people| people.lock(tx, workspace, &BTreeSet::from([ana])))
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!((card.autopilot, card.epoch, card.is_opted_out), (false, 1, true));
    for unknown in [ContactId(999_999), ContactId(-1)] {
        let gone = crm
            .people(move |tx, workspace, people| people.lock(tx, workspace, &BTreeSet::from([unknown])))
            .await
            .unwrap();
        assert_eq!(gone, []);
        let error = crm.says(unknown, true, 0, ConsentTies::ToLater).await.unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
    }
}

#[testkit::both]
async fn the_latest_statement_counts(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.receive(person("u1", "", "", "Ana")).await.id;
    let (later, out) = (ConsentTies::ToLater, ConsentTies::ToOptOut);
    for (wants, ago, ties, counts, opted_out) in [
        (true, 3_600, out, true, false),
        (false, 60, out, true, true),
        // Repeated and late statements.
        (true, 3_600, out, false, true),
        (false, 60, out, false, true),
        (true, 120, later, false, true),
        (false, 120, later, false, true),
        // Statements of the same second.
        (true, 60, out, false, true),
        (true, 60, later, true, false),
        (false, 60, later, true, true),
        (true, 30, out, true, false),
        (false, 30, out, true, true),
        // Statements with a time in the future of the service's clock.
        (true, -3_600, out, true, false),
        (false, 0, out, true, true),
        (true, -3_600, out, false, true),
    ] {
        assert_eq!(crm.says(ana, wants, ago, ties).await.unwrap(), counts, "{wants} {ago} {ties:?}");
        assert_eq!(crm.get(&json!(ana)).await["opted_out"], opted_out, "{wants} {ago} {ties:?}");
    }
    let consents = crm.get(&json!(ana)).await["consents"].as_array().unwrap().len();
    assert_eq!(consents, 8);
    // A statement by the team counts from its own time.
    crm.app.post(&format!("/contacts/{ana}/opt-in"), &crm.key, json!({})).await.expect(200);
    assert!(!crm.says(ana, false, 1, out).await.unwrap());
    let after = crm.get(&json!(ana)).await;
    assert_eq!((&after["opted_out"], &after["consents"][0]["source"]), (&json!(false), &json!("api")));
    assert!(after["consents"][6]["stated_at"].as_str() < after["consents"][6]["created_at"].as_str());
}

#[testkit::both]
async fn those_of_whom_all_is_known_are_received_together(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = crm.receive(person("u1", "+5511987654321", "", "Ana")).await.id;
    let ben = crm.receive(person("", "+5511987654322", "", "Ben")).await.id;
    let eva = crm.receive(person("u5", "", "eva", "Eva")).await.id;
    let from = vec![
        person("u5", "", "eva", "Eva"),
        person("", "+55 11 98765-4322", "", "Benjamin"),
        // Known by the number; the user id is new.
        person("u9", "+5511987654321", "", "Ana"),
        person("u1", "+5511987654321", "", "Ana"),
        // Known by the user name alone, and unknown.
        person("", "", "eva", "Eva"),
        person("u7", "", "", "New"),
        person("", "", "", "Nobody"),
        person("", "+5511987654322", "", ""),
    ];
    let cards =
        crm.people(move |tx, workspace, people| people.receive_known(tx, workspace, &from)).await.unwrap();
    let ids: Vec<Option<ContactId>> = cards.iter().map(|card| card.as_ref().map(|card| card.id)).collect();
    assert_eq!(ids, [Some(eva), Some(ben), Some(ana), Some(ana), None, None, None, Some(ben)]);
    // A missing name is added first; later messages of the same contact follow that message.
    let id = id(&crm.create(json!({ "$phone": "+5511987654323" })).await);
    let from = vec![
        person("", "+5511987654323", "", "Cem"),
        person("", "+5511987654323", "", ""),
        person("u1", "", "", ""),
    ];
    let cards =
        crm.people(move |tx, workspace, people| people.receive_known(tx, workspace, &from)).await.unwrap();
    let ids: Vec<Option<ContactId>> = cards.iter().map(|card| card.as_ref().map(|card| card.id)).collect();
    assert_eq!(ids, [None, None, Some(ana)]);
    assert_eq!(crm.receive(person("", "+5511987654323", "", "Cem")).await.id.0, id);
    assert_eq!(crm.get(&json!(id)).await["data"]["$name"], "Cem");
}

#[testkit::both]
async fn contacts_are_found_as_paths_name_them(kind: Kind) {
    let crm = Crm::open(kind).await;
    let ana = id(&crm.create(json!({ "$name": "Ana", "$phone": "+5511987654321" })).await);
    let ben = id(&crm.create(json!({ "$name": "Ben" })).await);
    let find = async |name: String| {
        let contact: ContactRef = name.parse().unwrap();
        crm.people(move |tx, workspace, people| people.find(tx, workspace, &contact)).await
    };
    for name in [ana.to_string(), "phone:+551187654321".to_owned()] {
        assert_eq!(find(name).await.unwrap().id.0, ana);
    }
    crm.app.post(&format!("/contacts/{ana}/merge"), &crm.key, json!({ "source_id": ben })).await.expect(200);
    assert_eq!(find(ben.to_string()).await.unwrap().id.0, ana);
    assert_eq!(find("999999".to_owned()).await.unwrap_err().code(), Code::NotFound);
    let ids = vec![ContactId(ana), ContactId(ben), ContactId(999_999)];
    let cards = crm.people(move |tx, workspace, people| people.cards(tx, workspace, &ids)).await.unwrap();
    assert_eq!(cards.iter().map(|card| card.id.0).collect::<Vec<_>>(), [ana]);
}

#[testkit::both]
async fn an_audience_has_whom_all_conditions_fit(kind: Kind) {
    let crm = Crm::open(kind).await;
    let mut ids = Vec::new();
    for place in 0..9 {
        let stage = if place % 3 == 0 { "won" } else { "new" };
        ids.push(id(&crm.create(json!({ "$name": format!("C{place}"), "$stage": stage })).await));
    }
    let won = json!({ "field": "$stage", "op": "eq", "value": "won" });
    let segment = async |body: Value| {
        model::SegmentId(id(&crm.app.post("/contacts/segments", &crm.key, body).await.expect(201)))
    };
    let picked =
        segment(json!({ "name": "Picked", "contact_ids": [ids[0], ids[1], ids[2], ids[3], ids[6]] })).await;
    let winners = segment(json!({ "name": "Winners", "filter_tree": won })).await;
    crm.app.delete(&format!("/contacts/{}", ids[6]), &crm.key).await.expect(200);
    let of = |places: &[usize]| places.iter().map(|place| ids[*place]).collect::<Vec<_>>();
    let some =
        |places: &[usize]| Some(places.iter().rev().map(|place| ContactId(ids[*place])).collect::<Vec<_>>());
    assert_eq!(crm.audience(Audience::default()).await, of(&[0, 1, 2, 3, 4, 5, 7, 8]));
    for (segment, filter, named, expected) in [
        (Some(picked), None, None, of(&[0, 1, 2, 3])),
        (Some(winners), None, None, of(&[0, 3])),
        (None, Some(won.clone()), None, of(&[0, 3])),
        (None, None, some(&[0, 2, 4, 5, 7]), of(&[0, 2, 4, 5, 7])),
        (Some(picked), Some(json!({ "not": won })), None, of(&[1, 2])),
        (Some(picked), Some(won.clone()), some(&[0, 1, 5]), of(&[0])),
        (None, None, some(&[]), vec![]),
    ] {
        let audience = Audience { segment, exact: None, filter, ids: named };
        assert_eq!(crm.audience(audience.clone()).await, expected, "{audience:?}");
    }
    let exact = Some(vec![
        json!({ "field": "$stage", "value": "new" }),
        json!({ "field": "$name", "op": "neq", "value": "C2" }),
    ]);
    assert_eq!(
        crm.audience(Audience { segment: Some(picked), exact, ..Audience::default() }).await,
        of(&[1])
    );
    for (audience, param) in [
        (Audience { segment: Some(model::SegmentId(999_999)), ..Audience::default() }, "audience.segment_id"),
        (
            Audience {
                filter: Some(json!({ "field": "$shoe", "op": "eq", "value": 1 })),
                ..Audience::default()
            },
            "audience.filter_tree.field",
        ),
        (
            Audience { exact: Some(vec![json!({ "field": "$shoe", "value": "1" })]), ..Audience::default() },
            "audience.filters[0]",
        ),
        (Audience { ids: some(&[6, 0]), ..Audience::default() }, "audience.contact_ids[1]"),
    ] {
        let error = crm
            .people(move |tx, workspace, people| people.check_audience(tx, workspace, &audience, "audience"))
            .await
            .unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some(param)), "{error:?}");
    }
}
