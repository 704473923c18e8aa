//! A customer writes, the agent answers, a person takes over.

use crate::support::Desk;
use chrono::Duration;
use serde_json::json;
use simulator::{Action, NewUser};
use testkit::{Kind, Script};

#[testkit::both]
async fn the_agent_answers_a_customer(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.app.model.then(Script::Say("Hello Ana!".to_owned()));
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi, are you open?").await;
    assert_eq!(desk.sent(&ana), ["Hello Ana!"]);
    let contact = desk.only_contact().await;
    assert_eq!(contact["data"]["$phone"], "+5511987654321");
    assert_eq!(
        (&contact["data"]["$name"], &contact["data"]["$created_via"]),
        (&json!("Ana"), &json!("message"))
    );
    let created = desk.events("contact.created").await;
    let received = desk.events("contact.message.received").await;
    assert_eq!((created.len(), received.len()), (1, 1));
    assert_eq!(
        (&received[0]["content"], &received[0]["contact_id"], &received[0]["channel_type"]),
        (&json!("Hi, are you open?"), &contact["id"], &json!("chatnet"))
    );
    assert_eq!(received[0]["app_url"], contact["app_url"]);
    let sent = desk.events("contact.message.sent").await;
    assert_eq!((sent.len(), &sent[0]["content"]), (1, &json!("Hello Ana!")));
    assert_eq!(desk.status(&sent[0]["message_id"]).await.0, "delivered");
    // The conversation has a memory.
    desk.hear(&ana, "And tomorrow?").await;
    let texts = desk.app.model.last_texts();
    assert!(texts.iter().any(|text| text.contains("Hi, are you open?")), "{texts:?}");
    let runs = desk.get("/runs").await.expect(200);
    assert_eq!((&runs[0]["trigger"]["type"], runs.as_array().unwrap().len()), (&json!("channel"), 2));
}

#[testkit::both]
async fn a_burst_is_answered_once(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| settings.reply_debounce_ms = 1_500).await;
    let ana = desk.customer("Ana", "+5511987654321");
    for text in ["Hello", "I have a question", "about my order"] {
        desk.hear(&ana, text).await;
        desk.app.data.clock.advance(Duration::milliseconds(500));
    }
    assert_eq!(desk.sent(&ana), Vec::<String>::new());
    desk.app.data.clock.advance(Duration::milliseconds(1_500));
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    let texts = desk.app.model.last_texts();
    assert_eq!(texts.last().unwrap(), "Hello\nI have a question\nabout my order");
    // One who never pauses is answered all the same.
    for _ in 0..40 {
        desk.hear(&ana, "more").await;
        desk.app.data.clock.advance(Duration::milliseconds(500));
    }
    desk.settle().await;
    assert_eq!(desk.sent(&ana).len(), 2);
}

#[testkit::both]
async fn nothing_is_answered_while_a_person_answers(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await;
    let autopilot = format!("/contacts/{}/autopilot", contact["id"]);
    desk.app.put(&autopilot, &desk.key, json!({ "enabled": false })).await.expect(200);
    desk.hear(&ana, "I want a person").await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    let message = format!("/contacts/{}/operator-messages", contact["id"]);
    let sent = desk.post(&message, json!({ "text": "This is Bruno." })).await.expect(200);
    assert_eq!((&sent["status"], &sent["recipient"]["phone"]), (&json!("queued"), &json!("+5511987654321")));
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "This is Bruno."]);
    // What was written meanwhile is not answered later.
    desk.app.put(&autopilot, &desk.key, json!({ "enabled": true })).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.sent(&ana).len(), 2);
    desk.hear(&ana, "Thanks").await;
    assert_eq!(desk.sent(&ana).len(), 3);
    assert_eq!(desk.app.model.last_texts().last().unwrap(), "Thanks");
}

#[testkit::both]
async fn an_answer_that_was_begun_before_a_takeover_is_not_sent(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await;
    desk.app.model.then(Script::Wait("Too late".to_owned()));
    let working = desk.app.service.channels.start();
    desk.network.write(&ana.user_id, "A question").unwrap();
    let asked = async {
        while desk.app.model.prompts().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), asked).await.unwrap();
    let autopilot = format!("/contacts/{}/autopilot", contact["id"]);
    desk.app.put(&autopilot, &desk.key, json!({ "enabled": false })).await.expect(200);
    // Switching it on again does not bring the answer back.
    desk.app.put(&autopilot, &desk.key, json!({ "enabled": true })).await.expect(200);
    desk.app.model.release();
    desk.app.service.engine.idle().await;
    let closed = async {
        while desk.count("SELECT count(*) AS n FROM conversations WHERE reply_run_id IS NOT NULL").await > 0 {
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), closed).await.unwrap();
    working.stop(std::time::Duration::from_secs(5)).await;
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    let health = desk.get(&desk.path("/health")).await.expect(200);
    assert_eq!(health["last_errors"][0]["code"], "answer_superseded");
}

#[testkit::both]
async fn customers_without_a_number_and_those_who_change_it_are_one_contact(kind: Kind) {
    let desk = Desk::open(kind).await;
    let new =
        NewUser { username: Some("carla".to_owned()), name: Some("Carla".to_owned()), ..NewUser::default() };
    let carla = desk.network.add_user(new).unwrap();
    desk.hear(&carla, "Hi").await;
    let contact = desk.only_contact().await;
    assert_eq!(
        (&contact["data"]["$chat_user_id"], &contact["data"]["$username"]),
        (&json!(carla.user_id), &json!("carla"))
    );
    assert_eq!(desk.sent(&carla), ["ok"]);
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    desk.network.act(&ana.user_id, &Action::ChangeNumber { phone: "+5511912345678".to_owned() }).unwrap();
    desk.settle().await;
    let moved =
        desk.network.users().into_iter().find(|user| user.phone.as_deref() == Some("5511912345678")).unwrap();
    desk.hear(&moved, "This is my new number").await;
    let contacts = desk.get("/contacts").await.expect(200);
    assert_eq!(contacts.as_array().unwrap().len(), 2, "{contacts}");
}

#[testkit::both]
async fn a_word_opts_out_and_another_one_in(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| {
        settings.opt_out_confirmation = Some("You will hear no more.".to_owned());
    })
    .await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "please stop sending").await;
    assert_eq!(desk.only_contact().await["opted_out"], false);
    desk.hear(&ana, "Stop!").await;
    assert_eq!(desk.only_contact().await["opted_out"], true);
    assert_eq!(desk.sent(&ana), ["ok", "You will hear no more."]);
    desk.hear(&ana, "START").await;
    assert_eq!(desk.only_contact().await["opted_out"], false);
}

#[testkit::both]
async fn who_writes_for_the_first_time_is_welcomed(kind: Kind) {
    let desk = Desk::with_settings(kind, |settings| settings.welcome = Some("Welcome!".to_owned())).await;
    let (ana, bruno) = (desk.customer("Ana", "+5511987654321"), desk.customer("Bruno", "+5511912345678"));
    desk.hear(&ana, "Hi").await;
    desk.hear(&ana, "Hi again").await;
    assert_eq!(desk.sent(&ana), ["Welcome!", "ok", "ok"]);
    desk.hear(&bruno, "STOP").await;
    assert!(desk.sent(&bruno).is_empty());
    desk.hear(&bruno, "START").await;
    desk.hear(&bruno, "Hi").await;
    assert_eq!(desk.sent(&bruno), ["ok"]);
}

#[testkit::both]
async fn what_a_blocked_contact_writes_is_kept_and_not_answered(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await;
    desk.app
        .patch(&format!("/contacts/{}", contact["id"]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    desk.hear(&ana, "Hello?").await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    assert_eq!(desk.events("contact.message.received").await.len(), 2);
    let refused =
        desk.post(&format!("/contacts/{}/send-message", contact["id"]), json!({ "text": "x" })).await;
    refused.expect_error(409, "contact_blocked");
}

#[testkit::both]
async fn merging_unites_conversations(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, old) = (desk.customer("Ana", "+5511987654321"), desk.customer("Ana", "+5511912345678"));
    desk.hear(&ana, "Hi").await;
    desk.hear(&old, "My old number").await;
    let contacts = desk.get("/contacts").await.expect(200);
    let id = |phone: &str| {
        contacts.as_array().unwrap().iter().find(|one| one["data"]["$phone"] == phone).unwrap()["id"].clone()
    };
    let (into, from) = (id("+5511987654321"), id("+5511912345678"));
    desk.post(&format!("/contacts/{into}/merge"), json!({ "source_id": from })).await.expect(200);
    assert_eq!(desk.count("SELECT count(*) AS n FROM conversations").await, 1);
    assert_eq!(desk.count(&format!("SELECT count(*) AS n FROM messages WHERE contact_id = {into}")).await, 4);
    // The old number still reaches the same conversation.
    desk.hear(&old, "Still me").await;
    assert_eq!(desk.count("SELECT count(*) AS n FROM conversations").await, 1);
}
