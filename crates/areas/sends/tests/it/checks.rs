//! What may be sent to whom, and what is refused.

use crate::support::Desk;
use chrono::Duration;
use model::Env;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn free_messages_need_an_open_window(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, your order was shipped.", &["Ana"]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let send = desk.path("/chatnet/send-message");
    let text = json!({ "contact_id": id, "text": "Still there?" });
    let sent = desk.post(&send, text.clone()).await.expect(200);
    assert_eq!(
        (&sent["object"], &sent["dry_run"], &sent["checks"]),
        (&json!("send_result"), &json!(false), &json!([]))
    );
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "delivered");
    desk.app.data.clock.advance(Duration::hours(24) - Duration::seconds(1));
    let last = desk.post(&send, text.clone()).await.expect(200);
    // It closes while the message waits.
    desk.app.data.clock.advance(Duration::seconds(1));
    desk.settle().await;
    assert_eq!(
        desk.status(&last["message_id"]).await,
        ("failed".to_owned(), Some("window_closed".to_owned()))
    );
    let refused = desk.post(&send, text.clone()).await;
    refused.expect_error(409, "window_closed");
    assert_eq!(
        refused.body["error"]["details"]["approved_templates"],
        json!([{ "namespace": desk.network.connection().business_id, "name": "order_shipped", "language": "en" }])
    );
    let dry = desk.post(&format!("{send}?dry_run=true"), text).await;
    dry.expect_error(409, "window_closed");
    let checks = dry.body["error"]["details"]["checks"].as_array().unwrap();
    let failed: Vec<&Value> = checks.iter().filter(|check| check["ok"] == false).collect();
    assert_eq!(
        (checks.len() > 2, failed),
        (true, vec![&json!({ "name": "window_open", "ok": false, "code": "window_closed" })])
    );
    assert_eq!(desk.network.transcript().len(), 2);
}

#[testkit::both]
async fn templates_go_out_at_any_time(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, order {{2}} was shipped.", &["Ana", "7"]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let send = desk.path("/chatnet/send-template");
    let body = |params: Value| json!({ "to": "+55 11 98765-4321", "name": "order_shipped", "language": "en", "params": params });
    let dry = desk
        .post(&format!("{send}?dry_run=true"), body(json!({ "1": "Ana", "2": "4711" })))
        .await
        .expect(200);
    assert_eq!(
        (&dry["would_send"], &dry["message"]["body"]),
        (&json!(true), &json!("Hello Ana, order 4711 was shipped."))
    );
    assert_eq!((&dry["message_id"], &dry["recipient"]["contact_id"]), (&Value::Null, &Value::Null));
    assert_eq!(desk.get("/contacts").await.expect(200), json!([]));
    for (params, param) in [
        (json!({ "1": "Ana" }), "params.2"),
        (json!({ "1": "Ana", "2": "7", "3": "x" }), "params.3"),
        (json!({ "1": "", "2": "7" }), "params.1"),
        (json!({ "1": "a\nb", "2": "7" }), "params.1"),
    ] {
        let refused = desk.post(&send, body(params)).await;
        assert_eq!(refused.expect_error(400, "template_params_mismatch").as_deref(), Some(param));
    }
    let number = json!({ "to": "+5511987654321", "name": "order_shipped", "language": "en", "params": { "1": 7, "2": "x" } });
    assert_eq!(
        desk.post(&send, number).await.expect_error(400, "validation_error").as_deref(),
        Some("params[1]")
    );
    let sent = desk.post(&send, body(json!({ "1": "Ana", "2": "4711" }))).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "delivered");
    let transcript = desk.network.transcript();
    assert_eq!(
        (transcript[0].user_id.as_str(), &transcript[0].content["name"]),
        (ana.user_id.as_str(), &json!("order_shipped"))
    );
    assert_eq!(desk.only_contact().await["data"]["$phone"], "+5511987654321");
    let unknown = json!({ "to": "+5511987654321", "name": "order_shipped", "language": "pt_BR" });
    let error = desk.post(&send, unknown).await;
    error.expect_error(404, "template_not_found");
    assert_eq!(error.body["error"]["details"]["languages"], json!(["en"]));
    let contact = "/contacts/phone:+5511987654321/send-template".to_owned();
    let body = json!({ "name": "order_shipped", "language": "en", "namespace": "other", "params": { "1": "a", "2": "b" } });
    desk.post(&contact, body).await.expect_error(404, "template_not_found");
}

#[testkit::both]
async fn templates_that_are_not_approved_or_not_wanted_are_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("offer", "marketing", "An offer for you today.", &[]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "STOP").await;
    let send = desk.path("/chatnet/send-template");
    let body = json!({ "to": "+5511987654321", "name": "offer", "language": "en" });
    desk.post(&send, body.clone()).await.expect_error(409, "recipient_opted_out");
    desk.network.review("offer", "en", &simulator::Review::Pause).unwrap();
    desk.settle().await;
    let error = desk.post(&send, body).await;
    error.expect_error(409, "template_not_approved");
    assert_eq!(error.body["error"]["details"]["status"], "paused");
    let updated = desk.events("channel.template.updated").await;
    assert_eq!(updated.last().unwrap()["template"]["status"], "paused");
}

#[testkit::both]
async fn buttons_and_their_answers(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let send = desk.path("/chatnet/send-interactive");
    let with =
        |buttons: Value| json!({ "contact_id": id, "interactive": { "body": "When?", "buttons": buttons } });
    let button = |id: &str| json!({ "id": id, "title": format!("At {id}") });
    let four = with(json!([button("1"), button("2"), button("3"), button("4")]));
    desk.post(&send, four).await.expect_error(400, "too_many_buttons");
    let twice = with(json!([button("1"), button("1")]));
    assert_eq!(
        desk.post(&send, twice).await.expect_error(400, "validation_error").as_deref(),
        Some("interactive.buttons[1].id")
    );
    assert_eq!(
        desk.post(&send, with(json!([]))).await.expect_error(400, "validation_error").as_deref(),
        Some("interactive.buttons")
    );
    desk.post(&send, with(json!([button("9"), button("17")]))).await.expect(200);
    desk.settle().await;
    desk.network.act(&ana.user_id, &simulator::Action::Press { button: Some("At 17".to_owned()) }).unwrap();
    desk.settle().await;
    let received = desk.events("contact.message.received").await;
    let last = received.last().unwrap();
    assert_eq!(
        (&last["type"], &last["reply_id"], &last["content"]),
        (&json!("button_reply"), &json!("17"), &json!("At 17"))
    );
}

#[testkit::both]
async fn reactions_files_and_read_marks(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let received = desk.events("contact.message.received").await;
    let message = received[0]["message_id"].clone();
    desk.post(&desk.path("/chatnet/send-reaction"), json!({ "message_id": message, "emoji": "👍" }))
        .await
        .expect(200);
    desk.settle().await;
    assert_eq!(desk.network.transcript().last().unwrap().kind, "reaction");
    let marked =
        desk.post(&desk.path("/chatnet/mark-read"), json!({ "message_id": message })).await.expect(200);
    assert_eq!(marked["unread_count"], 0);
    let unknown = desk.post(&desk.path("/chatnet/mark-read"), json!({ "message_id": 999_999 })).await;
    assert_eq!(unknown.expect_error(404, "not_found").as_deref(), Some("message_id"));
    let media = desk.path("/chatnet/send-media");
    let missing = desk.post(&media, json!({ "contact_id": id, "type": "document", "file_id": 999 })).await;
    assert_eq!(missing.expect_error(404, "not_found").as_deref(), Some("file_id"));
}

#[testkit::both]
async fn who_cannot_be_reached_is_said_before_anything_is_sent(kind: Kind) {
    let desk = Desk::open(kind).await;
    let nobody =
        desk.post("/contacts", json!({ "data": { "$name": "No number" } })).await.expect(201)["id"].clone();
    let send = format!("/contacts/{nobody}/send-message");
    desk.post(&send, json!({ "text": "x" })).await.expect_error(409, "no_channel");
    desk.post("/contacts/999999/send-message", json!({ "text": "x" })).await.expect_error(404, "not_found");
    let both = json!({ "contact_id": nobody, "to": "+5511987654321", "text": "x" });
    assert_eq!(
        desk.post(&desk.path("/chatnet/send-message"), both)
            .await
            .expect_error(400, "validation_error")
            .as_deref(),
        Some("contact_id")
    );
    let unknown = json!({ "to": "+5511987654321", "text": "x" });
    assert_eq!(
        desk.post(&desk.path("/chatnet/send-message"), unknown)
            .await
            .expect_error(404, "not_found")
            .as_deref(),
        Some("to")
    );
    let other = desk.app.bare_workspace("scale", 0).await;
    let foreign = desk.app.key(other, Env::Live, &["*"]).await;
    desk.app.get(&desk.path(""), &foreign).await.expect_error(404, "not_found");
    let contact = desk
        .app
        .post("/contacts", &foreign, json!({ "data": { "$phone": "+5511987654321" } }))
        .await
        .expect(201)["id"]
        .clone();
    let message = format!("/contacts/{contact}/send-message");
    desk.app.post(&message, &foreign, json!({ "text": "x" })).await.expect_error(409, "no_channel");
    let test = desk.app.key(desk.workspace, Env::Test, &["*"]).await;
    desk.app.post(&send, &test, json!({ "text": "x" })).await.expect_error(403, "test_mode_restricted");
}
