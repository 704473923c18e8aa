//! What the network calls back with twice, late, or in another order than it happened.

use crate::support::Desk;
use model::Clock;
use serde_json::{Value, json};
use testkit::{Kind, assert_absent};

impl Desk {
    /// Seconds since 1970.
    fn seconds_ago(&self, seconds: i64) -> i64 {
        Clock::now(&*self.app.data.clock).seconds() - seconds
    }

    /// Calls back with a change about the number, and lets all happen that follows.
    pub async fn call_back(&self, field: &str, value: Value) {
        self.post_change(field, value).await;
        self.settle().await;
    }

    /// Calls back with a change about the number.
    async fn post_change(&self, field: &str, mut value: Value) {
        let connection = self.network.connection();
        value["messaging_product"] = json!("whatsapp");
        value["metadata"] =
            json!({ "display_phone_number": "551130000000", "phone_number_id": connection.number_id });
        let entry = json!({ "id": connection.business_id, "changes": [{ "field": field, "value": value }] });
        let body = json!({ "object": "whatsapp_business_account", "entry": [entry] }).to_string();
        self.post_callback(&format!("/callbacks/{}", self.channel), &body).await;
    }

    /// Calls back with a change about the business, of a time.
    async fn call_back_at(&self, field: &str, seconds_ago: i64, value: Value) {
        let id = self.network.connection().business_id;
        let change = json!({ "field": field, "value": value });
        let entry = json!({ "id": id, "time": self.seconds_ago(seconds_ago), "changes": [change] });
        let body = json!({ "object": "whatsapp_business_account", "entry": [entry] }).to_string();
        self.post_callback(&format!("/callbacks/{}", self.channel), &body).await;
        self.settle().await;
    }

    /// A person with this number writes a message, which has more members than its own.
    pub async fn person_writes(
        &self,
        phone: &str,
        id: &str,
        seconds_ago: i64,
        kind: &str,
        part: Value,
        more: Value,
    ) {
        let mut message = json!({
            "from": phone, "id": id, "timestamp": self.seconds_ago(seconds_ago).to_string(), "type": kind, kind: part,
        });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let contacts = json!([{ "profile": { "name": "Ana" }, "wa_id": phone }]);
        self.call_back("messages", json!({ "contacts": contacts, "messages": [message] })).await;
    }

    async fn text(&self, phone: &str, id: &str, seconds_ago: i64, text: &str) {
        self.person_writes(phone, id, seconds_ago, "text", json!({ "body": text }), json!({})).await;
    }

    async fn edit(&self, phone: &str, id: &str, seconds_ago: i64, of: &str, text: &str) {
        let message = json!({ "type": "text", "text": { "body": text } });
        let part = json!({ "original_message_id": of, "message": message });
        self.person_writes(phone, id, seconds_ago, "edit", part, json!({})).await;
    }

    async fn revoke(&self, phone: &str, id: &str, of: &str) {
        self.person_writes(phone, id, 5, "revoke", json!({ "original_message_id": of }), json!({})).await;
    }

    /// The business writes on its own device.
    async fn device(&self, id: &str, kind: &str, part: Value) {
        let seconds = self.seconds_ago(3).to_string();
        let echo = json!({
            "from": "551130000000", "to": "5511987654321", "id": id, "timestamp": seconds, "type": kind, kind: part,
        });
        self.call_back("smb_message_echoes", json!({ "message_echoes": [echo] })).await;
    }

    async fn prefers(&self, phone: &str, value: &str, seconds_ago: i64) {
        let preference = json!({
            "wa_id": phone, "detail": "x", "category": "marketing_messages", "value": value,
            "timestamp": self.seconds_ago(seconds_ago),
        });
        let contacts = json!([{ "profile": { "name": "Ana" }, "wa_id": phone }]);
        self.call_back("user_preferences", json!({ "contacts": contacts, "user_preferences": [preference] }))
            .await;
    }

    async fn changes_number(&self, id: &str, seconds_ago: i64, from: &str, to: &str) {
        let system = json!({ "body": "changed", "wa_id": to, "type": "user_changed_number" });
        self.person_writes(from, id, seconds_ago, "system", system, json!({})).await;
    }

    /// A message by the network's id.
    pub async fn message(&self, provider_id: &str) -> Value {
        let contacts = self.get("/contacts").await.expect(200);
        for contact in contacts.as_array().unwrap() {
            let all = self.get(&format!("/contacts/{}/messages?limit=100", contact["id"])).await.expect(200);
            if let Some(found) =
                all.as_array().unwrap().iter().find(|one| one["provider_message_id"] == provider_id)
            {
                return found.clone();
            }
        }
        unreachable!("no message {provider_id}");
    }

    async fn consents(&self) -> usize {
        let contact = self.only_contact().await;
        let shown = self.get(&format!("/contacts/{}", contact["id"])).await.expect(200);
        shown["consents"].as_array().unwrap().len()
    }

    async fn opted_out(&self) -> Value {
        self.only_contact().await["opted_out"].clone()
    }
}

const ANA: &str = "5511987654321";
const BEN: &str = "5511912345678";
const SECRET: &str = "my card is 4111 1111 1111";

#[testkit::both]
async fn consent_follows_the_time_of_the_statement(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| {
        settings.opt_out_confirmation = Some("You will hear no more.".to_owned());
    })
    .await;
    desk.text(ANA, "wamid.1", 7_200, "hi").await;
    desk.prefers(ANA, "resume", 3_600).await;
    desk.prefers(ANA, "stop", 60).await;
    assert_eq!(desk.opted_out().await, true);
    desk.prefers(ANA, "resume", 3_600).await;
    assert_eq!(desk.opted_out().await, true);
    desk.text(ANA, "wamid.2", 1_800, "START").await;
    assert_eq!(desk.opted_out().await, true);
    assert_eq!(desk.consents().await, 2);
    desk.text(ANA, "wamid.3", 30, "START").await;
    assert_eq!(desk.opted_out().await, false);
    let before = desk.network.accepted();
    desk.text(ANA, "wamid.4", 40, "STOP").await;
    assert_eq!(desk.opted_out().await, false);
    assert_eq!(desk.network.accepted(), before, "what counts no more is not confirmed");
    assert_eq!(desk.consents().await, 3);
    desk.edit(ANA, "wamid.5", 10, "wamid.1", "stop").await;
    assert_eq!(desk.opted_out().await, true);
}

#[testkit::both]
async fn buttons_rows_and_captions_opt_out_as_words_do(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.text(ANA, "wamid.1", 7_200, "hi").await;
    let button = |title: &str, payload: &str| ("button", json!({ "text": title, "payload": payload }));
    let reply = |kind: &str, id: &str, title: &str| {
        ("interactive", json!({ "type": kind, kind: { "id": id, "title": title } }))
    };
    let image =
        |caption: &str| ("image", json!({ "id": "none", "mime_type": "image/png", "caption": caption }));
    for (place, ((kind, part), opts_out)) in [
        (button("Unsubscribe", "Unsubscribe"), true),
        (button("STOP", "x"), true),
        (button("Stop promotions", "Stop promotions"), true),
        (button("Detener promociones", "Detener promociones"), true),
        (button("Hizmeti durdur", "STOP"), true),
        (reply("button_reply", "b", "STOP"), true),
        (reply("list_reply", "r", "Unsubscribe"), true),
        (image("Stop."), true),
        (reply("button_reply", "stop-service", "My service"), false),
        (reply("button_reply", "stop", "My service"), false),
        (reply("button_reply", "cancel-button", "Cancel"), false),
        (image("Please stop here"), false),
    ]
    .into_iter()
    .enumerate()
    {
        let ago = 3_600 - i64::try_from(place).unwrap() * 10;
        desk.text(ANA, &format!("wamid.start.{place}"), ago, "START").await;
        assert_eq!(desk.opted_out().await, false);
        desk.person_writes(ANA, &format!("wamid.part.{place}"), ago - 5, kind, part.clone(), json!({})).await;
        assert_eq!(desk.opted_out().await, opts_out, "{part}");
    }
}

#[testkit::both]
async fn a_change_of_number_is_not_undone(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.text(ANA, "wamid.1", 7_200, "hi").await;
    let phone = async || desk.only_contact().await["data"]["$phone"].as_str().unwrap().to_owned();
    desk.changes_number("wamid.c1", 600, ANA, BEN).await;
    assert_eq!(phone().await, format!("+{BEN}"));
    desk.changes_number("wamid.c2", 300, BEN, ANA).await;
    assert_eq!(phone().await, format!("+{ANA}"));
    // Repeated, and one that was never heard of.
    desk.changes_number("wamid.c1", 600, ANA, BEN).await;
    assert_eq!(phone().await, format!("+{ANA}"));
    desk.changes_number("wamid.c0", 900, ANA, "5511955555555").await;
    assert_eq!(phone().await, format!("+{ANA}"));
    // The second of two changes comes first.
    desk.changes_number("wamid.c4", 100, "5511966666666", "5511977777777").await;
    desk.changes_number("wamid.c3", 200, ANA, "5511966666666").await;
    assert_eq!(phone().await, "+5511977777777");
    desk.app.data.clock.advance(chrono::Duration::days(15));
    desk.app.service.jobs.run_due().await.unwrap();
    assert_eq!(desk.count("SELECT count(*) AS n FROM identity_changes").await, 0);
}

#[testkit::both]
async fn what_was_taken_back_before_it_came_is_never_read(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.text(ANA, "wamid.1", 60, "hi").await;
    let asked = desk.app.model.prompts().len();
    desk.revoke(ANA, "wamid.r", "wamid.2").await;
    desk.text(ANA, "wamid.2", 10, SECRET).await;
    desk.text(ANA, "wamid.2", 10, SECRET).await;
    let message = desk.message("wamid.2").await;
    assert_eq!((&message["content"], message["deleted_at"].is_string()), (&json!(""), true));
    assert_eq!(desk.get("/conversations/search?q=4111").await.expect(200), json!([]));
    let received = desk.events("contact.message.received").await;
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(desk.app.model.prompts().len(), asked, "nobody is asked for an answer");
    let events = desk.get("/events?limit=100").await.expect(200).to_string();
    assert_absent(&events, SECRET);
    assert_eq!(
        desk.count("SELECT count(*) AS n FROM messages WHERE content LIKE '%4111%' OR detail LIKE '%4111%'")
            .await,
        0
    );
    // Neither is a later edit of it.
    desk.edit(ANA, "wamid.e", 1, "wamid.2", SECRET).await;
    assert_eq!(desk.count("SELECT count(*) AS n FROM messages WHERE content LIKE '%4111%'").await, 0);
    assert_eq!(desk.count("SELECT count(*) AS n FROM message_changes WHERE content IS NOT NULL").await, 0);
    desk.app.data.clock.advance(chrono::Duration::days(15));
    desk.app.service.jobs.run_due().await.unwrap();
    assert_eq!(desk.count("SELECT count(*) AS n FROM message_changes").await, 0);
}

#[testkit::both]
async fn files_that_were_taken_back_are_gone(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let (contact, attachment) = desk.document(&ana).await;
    let id = desk.get(&format!("/contacts/{contact}/messages")).await.expect(200);
    let document = id.as_array().unwrap().iter().find(|one| one["type"] == "document").unwrap().clone();
    desk.network.act(&ana.user_id, &simulator::Action::Revoke).unwrap();
    desk.settle().await;
    let after = desk.message(document["provider_message_id"].as_str().unwrap()).await;
    assert_eq!((&after["attachments"], after["deleted_at"].is_string()), (&json!([]), true));
    assert!(desk.is_trashed(&attachment["file_id"]).await);
    assert_eq!(desk.get(&format!("/contacts/{contact}/files")).await.expect(200), json!([]));
}

#[testkit::both]
async fn edits_have_an_order(kind: Kind) {
    let desk = Desk::open(kind).await;
    // Before its message, and in the wrong order.
    desk.edit(ANA, "wamid.e2", 20, "wamid.1", "two").await;
    desk.edit(ANA, "wamid.e1", 30, "wamid.1", "one").await;
    desk.text(ANA, "wamid.1", 60, "zero").await;
    let content = async |id: &str| desk.message(id).await["content"].clone();
    assert_eq!(content("wamid.1").await, "two");
    assert_eq!(desk.events("contact.message.received").await[0]["content"], "two");
    assert_eq!(desk.app.model.last_texts().last().unwrap(), "two");
    desk.edit(ANA, "wamid.e3", 10, "wamid.1", "three").await;
    for (id, ago, text) in [
        ("wamid.e2", 20, "two"),
        ("wamid.e1", 30, "one"),
        ("wamid.e0", 15, "late"),
        ("wamid.e3", 10, "three"),
    ] {
        desk.edit(ANA, id, ago, "wamid.1", text).await;
        assert_eq!(content("wamid.1").await, "three", "{id}");
    }
    // Of the same second.
    desk.edit(ANA, "wamid.f1", 5, "wamid.1", "four").await;
    desk.edit(ANA, "wamid.f0", 5, "wamid.1", "five").await;
    desk.edit(ANA, "wamid.f1", 5, "wamid.1", "four").await;
    assert_eq!(content("wamid.1").await, "five");
    assert!(desk.message("wamid.1").await["edited_at"].is_string());
    let found = desk.get("/conversations/search?q=five").await.expect(200);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(desk.get("/conversations/search?q=zero").await.expect(200), json!([]));
}

#[testkit::both]
async fn only_the_author_changes_a_message(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.text(BEN, "wamid.ben", 90, "hi").await;
    for target in ["wamid.1", "wamid.2"] {
        // The first is there, the second comes later.
        if target == "wamid.1" {
            desk.text(ANA, target, 60, "mine").await;
        }
        desk.edit(BEN, &format!("{target}.e"), 20, target, "not yours").await;
        desk.revoke(BEN, &format!("{target}.r"), target).await;
        desk.device(&format!("{target}.d"), "revoke", json!({ "original_message_id": target })).await;
        if target == "wamid.2" {
            desk.text(ANA, target, 60, "mine").await;
        }
        let message = desk.message(target).await;
        assert_eq!((&message["content"], &message["deleted_at"]), (&json!("mine"), &Value::Null), "{target}");
    }
    // A contact does not change what the business wrote.
    desk.device("wamid.dev", "text", json!({ "body": "ours" })).await;
    desk.edit(ANA, "wamid.x", 1, "wamid.dev", "theirs").await;
    desk.revoke(ANA, "wamid.y", "wamid.dev").await;
    assert_eq!(desk.message("wamid.dev").await["content"], "ours");
}

#[testkit::both]
async fn reactions_and_replies_wait_for_their_message(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.person_writes(
        ANA,
        "wamid.re",
        20,
        "reaction",
        json!({ "message_id": "wamid.1", "emoji": "👍" }),
        json!({}),
    )
    .await;
    desk.person_writes(
        ANA,
        "wamid.rp",
        15,
        "text",
        json!({ "body": "this one" }),
        json!({ "context": { "id": "wamid.1" } }),
    )
    .await;
    assert_eq!(desk.message("wamid.rp").await["reply_to"], Value::Null);
    desk.text(ANA, "wamid.1", 30, "look").await;
    let message = desk.message("wamid.1").await;
    assert_eq!(message["reactions"][0]["emoji"], "👍");
    assert_eq!(desk.message("wamid.rp").await["reply_to"], message["id"]);
    // Of several reactions the latest counts, whichever comes last.
    desk.person_writes(ANA, "wamid.r3", 5, "reaction", json!({ "message_id": "wamid.1" }), json!({})).await;
    desk.person_writes(
        ANA,
        "wamid.r2",
        10,
        "reaction",
        json!({ "message_id": "wamid.1", "emoji": "😀" }),
        json!({}),
    )
    .await;
    assert_eq!(desk.message("wamid.1").await["reactions"], json!([]));
    // The same for what the business writes on its own device.
    desk.person_writes(
        ANA,
        "wamid.d.re",
        4,
        "reaction",
        json!({ "message_id": "wamid.d", "emoji": "🎉" }),
        json!({}),
    )
    .await;
    desk.device(
        "wamid.d.e",
        "edit",
        json!({ "original_message_id": "wamid.d", "message": { "type": "text", "text": { "body": "new" } } }),
    )
    .await;
    desk.device("wamid.d2.r", "revoke", json!({ "original_message_id": "wamid.d2" })).await;
    desk.device("wamid.d", "text", json!({ "body": "old" })).await;
    desk.device("wamid.d2", "text", json!({ "body": SECRET })).await;
    let device = desk.message("wamid.d").await;
    assert_eq!((&device["content"], &device["reactions"][0]["emoji"]), (&json!("new"), &json!("🎉")));
    let device = desk.message("wamid.d2").await;
    assert_eq!((&device["content"], device["deleted_at"].is_string()), (&json!(""), true));
    assert_absent(&desk.get("/events?limit=100").await.expect(200).to_string(), SECRET);
    assert_eq!(
        desk.count("SELECT count(*) AS n FROM messages WHERE content = '' AND deleted_at IS NULL").await,
        1,
        "the reaction that was taken back"
    );
}

#[testkit::both]
async fn what_comes_at_once_is_in_order_too(kind: Kind) {
    let desk = Desk::open(kind).await;
    for (phone, id) in [(ANA, "wamid.a"), (BEN, "wamid.b")] {
        desk.text(phone, id, 90, "hi").await;
    }
    let message = |phone: &str, id: &str, ago: i64, kind: &str, part: Value, reply_to: Option<&str>| {
        let seconds = desk.seconds_ago(ago).to_string();
        let mut message = json!({ "from": phone, "id": id, "timestamp": seconds, "type": kind, kind: part });
        if let Some(id) = reply_to {
            message["context"] = json!({ "id": id });
        }
        json!({ "contacts": [{ "profile": { "name": "Ana" }, "wa_id": phone }], "messages": [message] })
    };
    let text = |text: &str| json!({ "body": text });
    for one in [
        message(ANA, "wamid.a.r", 5, "revoke", json!({ "original_message_id": "wamid.a2" }), None),
        message(ANA, "wamid.a3", 5, "text", text("a reply"), Some("wamid.b2")),
        message(ANA, "wamid.a4", 4, "text", text("behind it"), None),
        message(BEN, "wamid.b2", 9, "text", text("yes"), None),
        message(ANA, "wamid.a2", 20, "text", text(SECRET), None),
        message(BEN, "wamid.b3", 8, "text", text("no"), Some("wamid.b2")),
    ] {
        desk.post_change("messages", one).await;
    }
    desk.settle().await;
    let quoted = desk.message("wamid.b2").await["id"].clone();
    assert_eq!(desk.message("wamid.a3").await["reply_to"], quoted);
    assert_eq!(desk.message("wamid.b3").await["reply_to"], quoted);
    assert!(desk.message("wamid.a3").await["id"].as_i64() < desk.message("wamid.a4").await["id"].as_i64());
    assert_eq!(desk.message("wamid.a2").await["content"], "");
    assert_absent(&desk.get("/events?limit=100").await.expect(200).to_string(), SECRET);
    for prompt in desk.app.model.prompts() {
        assert!(prompt.messages.iter().all(|message| !message.content.contains(SECRET)));
    }
}

#[testkit::both]
async fn an_older_state_of_templates_and_numbers_never_wins(kind: Kind) {
    let desk = Desk::open(kind).await;
    let template = desk.template("sale", "marketing", "Today only.", &[]).await;
    let path = desk.path(&format!("/chatnet/templates/{}", template["id"]));
    desk.app.data.clock.advance(chrono::Duration::hours(1));
    let about = json!({ "message_template_id": 1, "message_template_name": "sale", "message_template_language": "en" });
    let with = |key: &str, value: &str| {
        let mut about = about.clone();
        about[key] = json!(value);
        about
    };
    desk.call_back_at("message_template_status_update", 60, with("event", "PAUSED")).await;
    desk.call_back_at("message_template_status_update", 120, with("event", "APPROVED")).await;
    // A quality is no status.
    desk.call_back_at("message_template_quality_update", 180, with("new_quality_score", "YELLOW")).await;
    let after = desk.get(&path).await.expect(200);
    assert_eq!((&after["status"], &after["quality"]), (&json!("paused"), &json!("medium")));
    desk.call_back_at("message_template_status_update", 30, with("event", "APPROVED")).await;
    assert_eq!(desk.get(&path).await.expect(200)["status"], "approved");
    let rated = |event: &str, limit: &str| json!({ "display_phone_number": "551130000000", "event": event, "current_limit": limit });
    desk.call_back_at("phone_number_quality_update", 60, rated("FLAGGED", "TIER_1K")).await;
    desk.call_back_at("phone_number_quality_update", 120, rated("UNFLAGGED", "TIER_10K")).await;
    let channel = desk.get(&desk.path("")).await.expect(200);
    assert_eq!((&channel["quality"], &channel["messaging_limit"]), (&json!("low"), &json!(1_000)));
}
