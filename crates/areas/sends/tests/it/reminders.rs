//! Reminders that send messages.

use crate::support::Desk;
use chrono::Duration;
use model::Env;
use ports::{MessageContent, MessageToSend, SentBy};
use serde_json::{Value, json};
use testkit::Kind;

async fn reminder(desk: &Desk, made: &Value) -> Value {
    let all = desk.get("/reminders").await.expect(200);
    all.as_array().unwrap().iter().find(|one| one["id"] == made["id"]).unwrap().clone()
}

/// Lets time pass, fires what is due, and sends it.
async fn wait(desk: &Desk, time: Duration) {
    desk.app.data.clock.advance(time);
    desk.app.service.jobs.run_due().await.unwrap();
    desk.settle().await;
}

/// A reminder that sends, due in so many minutes.
fn sending(desk: &Desk, contact: &Value, minutes: i64, config: Value) -> Value {
    let due_at = desk.app.db().now().plus_seconds(minutes * 60);
    let action = json!({ "type": "send_message", "config": config });
    json!({ "title": "Ask Ana", "due_at": due_at, "contact_id": contact, "action": action })
}

fn text() -> Value {
    json!({ "text": "Did the lamp arrive?" })
}

fn template(params: Value) -> Value {
    json!({ "template": { "name": "order_shipped", "language": "en", "params": params } })
}

/// Why a reminder has failed, and what Ana has been sent.
async fn failure(desk: &Desk, made: &Value) -> (String, usize) {
    let failed = reminder(desk, made).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    (failed["last_error"]["code"].as_str().unwrap().to_owned(), desk.network.transcript().len())
}

#[testkit::both]
async fn a_reminder_sends_a_message_once(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let made = desk.post("/reminders", sending(&desk, &contact, 10, text())).await.expect(201);
    assert_eq!(made["action"]["config"]["text"], "Did the lamp arrive?");
    wait(&desk, Duration::minutes(9)).await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    wait(&desk, Duration::minutes(2)).await;
    assert_eq!(desk.sent(&ana), ["ok", "Did the lamp arrive?"]);
    let fired = reminder(&desk, &made).await;
    assert_eq!((&fired["status"], &fired["last_error"]), (&json!("fired"), &Value::Null));
    let messages = desk.get(&format!("/contacts/{contact}/messages")).await.expect(200);
    assert_eq!(messages[0]["sender"], json!({ "type": "reminder", "id": made["id"].to_string() }));
    wait(&desk, Duration::minutes(2)).await;
    assert_eq!(desk.sent(&ana).len(), 2);
}

#[testkit::both]
async fn a_message_that_is_tried_again_is_sent_once(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = model::ContactId(desk.only_contact().await["id"].as_i64().unwrap());
    let message = MessageToSend {
        workspace: desk.workspace,
        key: desk.key.id.clone(),
        sender: SentBy::Reminder(model::ReminderId(7)),
        contact,
        channel: None,
        content: MessageContent::Text("Did the lamp arrive?".to_owned()),
        once: "reminder:7:1".to_owned(),
    };
    let actions = desk.app.service.pipeline.services.get::<tasks::reminders::Actions>().unwrap();
    let send = async || {
        let (messenger, message) = (actions.messenger.clone(), message.clone());
        desk.app.db().write(move |tx| messenger.0.send(tx, &message)).await.unwrap()
    };
    let (one, other) = (send().await, send().await);
    desk.settle().await;
    assert_eq!((one, desk.sent(&ana).len()), (other, 2));
}

#[testkit::both]
async fn each_date_of_a_recurrence_sends_the_template(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, your order was shipped.", &["Ana"]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let contact = json!(desk.contact("Ana", "+5511987654321").await);
    let mut body = sending(&desk, &contact, 10, template(json!({ "1": "Ana" })));
    body["recurrence"] = json!({ "type": "rrule", "rule": "FREQ=DAILY", "count": 3 });
    let made = desk.post("/reminders", body).await.expect(201);
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(desk.sent(&ana), ["template"]);
    // No window is open, and none is needed.
    wait(&desk, Duration::days(1)).await;
    assert_eq!((desk.sent(&ana).len(), &reminder(&desk, &made).await["status"]), (2, &json!("scheduled")));
    wait(&desk, Duration::days(1)).await;
    wait(&desk, Duration::days(1)).await;
    let over = reminder(&desk, &made).await;
    assert_eq!(
        (&over["status"], &over["fire_count"], &over["last_error"]),
        (&json!("fired"), &json!(3), &Value::Null)
    );
    let said: Vec<Value> =
        desk.network.transcript().into_iter().map(|sent| sent.content["name"].clone()).collect();
    assert_eq!(said, ["order_shipped", "order_shipped", "order_shipped"]);
}

#[testkit::both]
async fn a_template_with_a_file_is_sent(kind: Kind) {
    let desk = Desk::with_prices(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let contact = json!(desk.contact("Ana", "+5511987654321").await);
    let (file, path) = desk.upload_prices().await;
    let config =
        |media: &Value| json!({ "template": { "name": "prices", "language": "en", "media": media } });
    let refused = desk.post("/reminders", sending(&desk, &contact, 10, config(&Value::Null))).await;
    let param = Some("action.config.template.media");
    assert_eq!(refused.expect_error(400, "template_params_mismatch").as_deref(), param);
    let refused = desk.post("/reminders", sending(&desk, &contact, 10, config(&json!(999_999)))).await;
    assert_eq!(refused.expect_error(404, "not_found").as_deref(), param);
    let made = desk.post("/reminders", sending(&desk, &contact, 10, config(&file))).await.expect(201);
    assert_eq!(made["action"]["config"]["template"]["media"], file);
    let used = async || {
        let refused = desk.app.delete(&path, &desk.key).await;
        refused.expect_error(409, "file_in_use");
        refused.body["error"]["details"]["attached_to"].clone()
    };
    assert_eq!(used().await, json!([{ "type": "reminder", "id": made["id"].to_string() }]));
    // It is in use until it is sent.
    desk.app.data.clock.advance(Duration::minutes(11));
    desk.app.service.jobs.run_due().await.unwrap();
    assert_eq!(used().await[0]["type"], "message");
    desk.settle().await;
    assert_eq!((desk.sent(&ana), desk.media().len()), (vec!["template".to_owned()], 1));
    desk.app.delete(&path, &desk.key).await.expect(200);
    assert_eq!(reminder(&desk, &made).await["last_error"], Value::Null);
}

#[testkit::both]
async fn a_file_that_was_deleted_meanwhile_is_noted(kind: Kind) {
    let desk = Desk::with_prices(kind).await;
    let contact = json!(desk.contact("Ana", "+5511987654321").await);
    let (file, path) = desk.upload_prices().await;
    let config = json!({ "template": { "name": "prices", "language": "en", "media": file } });
    let made = desk.post("/reminders", sending(&desk, &contact, 10, config)).await.expect(201);
    desk.app.delete(&format!("{path}?force=true"), &desk.key).await.expect(200);
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(failure(&desk, &made).await, ("not_found".to_owned(), 0));
}

#[testkit::both]
async fn what_may_not_be_sent_then_is_noted(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("offer", "marketing", "An offer for you today.", &[]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let contact = desk.only_contact().await["id"].clone();
    let made = desk.post("/reminders", sending(&desk, &contact, 25 * 60, text())).await.expect(201);
    wait(&desk, Duration::hours(26)).await;
    assert_eq!(failure(&desk, &made).await, ("window_closed".to_owned(), 1));
    assert_eq!(desk.events("reminder.fired").await.len(), 1);
    let offer = json!({ "template": { "name": "offer", "language": "en" } });
    let made = desk.post("/reminders", sending(&desk, &contact, 10, offer)).await.expect(201);
    desk.hear(&ana, "STOP").await;
    let before = desk.network.transcript().len();
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(failure(&desk, &made).await, ("recipient_opted_out".to_owned(), before));
    // Nor is a blocked contact written to, or on behalf of a key that may not send any more.
    let made = desk.post("/reminders", sending(&desk, &contact, 10, text())).await.expect(201);
    desk.app
        .patch(&format!("/contacts/{contact}"), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(failure(&desk, &made).await, ("contact_blocked".to_owned(), before));
    desk.app
        .patch(&format!("/contacts/{contact}"), &desk.key, json!({ "status": "active" }))
        .await
        .expect(200);
    let key = desk.app.key(desk.workspace, Env::Live, &["reminders:write", "channels:send"]).await;
    let made = desk.app.post("/reminders", &key, sending(&desk, &contact, 10, text())).await.expect(201);
    desk.app.db().write(move |tx| auth::keys::revoke(tx, &key.id)).await.unwrap();
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(failure(&desk, &made).await, ("missing_scope".to_owned(), before));
}

#[testkit::both]
async fn it_goes_to_the_contact_into_which_another_was_merged(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let into = desk.only_contact().await["id"].clone();
    let from = json!(desk.contact("Ana", "+5511912345678").await);
    let merge = async |from: &Value| {
        desk.post(&format!("/contacts/{into}/merge"), json!({ "source_id": from })).await.expect(200);
    };
    desk.post("/reminders", sending(&desk, &from, 10, text())).await.expect(201);
    merge(&from).await;
    wait(&desk, Duration::minutes(11)).await;
    assert_eq!(desk.sent(&ana), ["ok", "Did the lamp arrive?"]);
    // Between the firing and the message, too.
    let from = json!(desk.contact("Ana", "+5511912345670").await);
    desk.post("/reminders", sending(&desk, &from, 10, text())).await.expect(201);
    desk.app.data.clock.advance(Duration::minutes(11));
    desk.app.db().write(|tx| tasks::reminders::fire_due(tx, 10)).await.unwrap();
    merge(&from).await;
    wait(&desk, Duration::seconds(5)).await;
    assert_eq!(desk.sent(&ana).len(), 3);
}

#[testkit::both]
async fn what_could_not_be_sent_is_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, your order was shipped.", &["Ana"]).await;
    let contact = json!(desk.contact("Ana", "+5511987654321").await);
    let body = sending(&desk, &contact, 10, text());
    let param = "action.config.channel_id";
    let elsewhere = sending(&desk, &contact, 10, json!({ "text": "x", "channel_id": 999 }));
    assert_eq!(
        desk.post("/reminders", elsewhere).await.expect_error(404, "not_found").as_deref(),
        Some(param)
    );
    let wrong = sending(&desk, &contact, 10, template(json!({})));
    let refused = desk.post("/reminders", wrong).await.expect_error(400, "template_params_mismatch");
    assert_eq!(refused.as_deref(), Some("action.config.template.params.1"));
    let unknown = json!({ "template": { "name": "order_shipped", "language": "pt_BR" } });
    let refused = desk.post("/reminders", sending(&desk, &contact, 10, unknown)).await;
    assert_eq!(refused.expect_error(404, "template_not_found").as_deref(), Some("action.config.template"));
    let test = desk.app.key(desk.workspace, Env::Test, &["*"]).await;
    desk.app.post("/reminders", &test, body.clone()).await.expect_error(403, "test_mode_restricted");
    let weak = desk.app.key(desk.workspace, Env::Live, &["reminders:write"]).await;
    let lacking = desk.app.post("/reminders", &weak, body.clone()).await.expect_error(403, "missing_scope");
    assert_eq!(lacking.as_deref(), Some("channels:send"));
    let made = desk.post("/reminders", body).await.expect(201);
    let path = format!("/reminders/{}", made["id"]);
    let bare = desk.app.patch(&path, &desk.key, json!({ "contact_id": null })).await;
    assert_eq!(bare.expect_error(400, "validation_error").as_deref(), Some("contact_id"));
    // Whoever may not send may not choose to whom it is sent either.
    let other = desk.contact("Bruno", "+5511987654322").await;
    let turned = desk.app.patch(&path, &weak, json!({ "contact_id": other })).await;
    assert_eq!(turned.expect_error(403, "missing_scope").as_deref(), Some("channels:send"));
    desk.app.patch(&path, &weak, json!({ "title": "Ask her" })).await.expect(200);
    let workspace = desk.app.bare_workspace("scale", 0).await;
    let foreign = desk.app.key(workspace, Env::Live, &["*"]).await;
    let contact = json!({ "data": { "$phone": "+5511987654321" } });
    let contact = desk.app.post("/contacts", &foreign, contact).await.expect(201)["id"].clone();
    let body = sending(&desk, &contact, 10, text());
    desk.app.post("/reminders", &foreign, body).await.expect_error(409, "no_channel");
}
