//! Messages that are sent again, and quick replies.

use crate::support::Desk;
use chrono::Duration;
use serde_json::{Value, json};
use simulator::{Faults, SendFault};
use testkit::Kind;

#[testkit::both]
async fn what_failed_is_sent_again_as_the_same_message(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let send = format!("/contacts/{id}/send-message");
    desk.network.fault_next_sends([SendFault::Refuse { code: 131_026 }]);
    let sent = desk.post(&send, json!({ "text": "One" })).await.expect(200);
    desk.settle().await;
    assert_eq!(
        desk.status(&sent["message_id"]).await,
        ("failed".to_owned(), Some("undeliverable".to_owned()))
    );
    let retry = |text: &str, of: &Value| json!({ "text": text, "retry_of": of });
    let other = desk.post(&send, retry("Two", &sent["message_id"])).await;
    assert_eq!(other.expect_error(400, "validation_error").as_deref(), Some("retry_of"));
    let foreign = desk.post(&send, retry("One", &json!(999_999))).await;
    assert_eq!(foreign.expect_error(404, "not_found").as_deref(), Some("retry_of"));
    let dry = desk.post(&format!("{send}?dry_run=true"), retry("One", &sent["message_id"])).await.expect(200);
    let checks = dry["checks"].as_array().unwrap();
    assert!(checks.contains(&json!({ "name": "retry_allowed", "ok": true, "code": null })), "{checks:?}");
    assert_eq!(desk.status(&sent["message_id"]).await.0, "failed");
    let again = desk.post(&send, retry("One", &sent["message_id"])).await.expect(200);
    assert_eq!((&again["message_id"], &again["status"]), (&sent["message_id"], &json!("queued")));
    // While it waits it cannot be sent again.
    let twice = desk.post(&send, retry("One", &sent["message_id"])).await;
    assert_eq!(twice.expect_error(409, "invalid_state").as_deref(), Some("retry_of"));
    assert_eq!(twice.body["error"]["details"]["state"], "queued");
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await, ("delivered".to_owned(), None));
    assert_eq!(desk.sent(&ana), ["ok", "One"]);
    let messages = desk.get(&format!("/contacts/{id}/messages")).await.expect(200);
    let message =
        messages.as_array().unwrap().iter().find(|message| message["id"] == sent["message_id"]).unwrap();
    let history: Vec<&str> = message["status_history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["status"].as_str().unwrap())
        .collect();
    assert_eq!(history, ["failed", "sent", "delivered"], "{message}");
    let over = desk.post(&send, retry("One", &sent["message_id"])).await;
    over.expect_error(409, "invalid_state");
}

#[testkit::both]
async fn a_template_that_may_have_been_sent_is_sent_again_when_asked_for(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, your order was shipped.", &["Ana"]).await;
    let ana = desk.customer("Ana", "+5511987654321");
    let send = desk.path("/chatnet/send-template");
    let mut body = json!({ "to": "+5511987654321", "name": "order_shipped", "language": "en", "params": { "1": "Ana" } });
    desk.network.set_faults(Faults { drop: 1.0, redeliver_after_ms: 3_600_000, ..Faults::default() });
    desk.network.fault_next_sends([SendFault::GarbledAfter]);
    let sent = desk.post(&send, body.clone()).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "unknown");
    body["retry_of"] = sent["message_id"].clone();
    let again = desk.post(&send, body).await.expect(200);
    assert_eq!(again["message_id"], sent["message_id"]);
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "sent");
    assert_eq!(desk.sent(&ana).len(), 2);
}

#[testkit::both]
async fn at_least_once_is_sent_until_the_network_answers(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let send = format!("/contacts/{id}/send-message");
    desk.network.fault_next_sends([SendFault::GarbledAfter]);
    desk.network.set_faults(Faults { drop: 1.0, redeliver_after_ms: 3_600_000, ..Faults::default() });
    let body = json!({ "text": "One", "delivery": "at_least_once" });
    let sent = desk.post(&send, body).await.expect(200);
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "queued");
    desk.app.data.clock.advance(Duration::seconds(30));
    desk.settle().await;
    assert_eq!(desk.status(&sent["message_id"]).await.0, "sent");
    assert_eq!(desk.sent(&ana), ["ok", "One", "One"]);
    let wrong = desk.post(&send, json!({ "text": "x", "delivery": "twice" })).await;
    assert_eq!(wrong.expect_error(400, "validation_error").as_deref(), Some("delivery"));
}

#[testkit::both]
async fn a_quick_reply_is_sent_to_a_contact(kind: Kind) {
    let desk = Desk::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let new = json!({ "shortcode": "hours", "title": "Hours", "body": "Hi {{contact.$name}}, until {{ask.hour}}." });
    let reply = desk.post("/quick-replies", new).await.expect(201)["id"].clone();
    let send = format!("/contacts/{id}/send-message");
    let body = json!({ "quick_reply_id": reply, "answers": { "hour": "six" } });
    let dry = desk.post(&format!("{send}?dry_run=true"), body.clone()).await.expect(200);
    assert_eq!(dry["message"]["body"], "Hi Ana, until six.");
    let used = async || desk.get("/quick-replies").await.expect(200)[0]["usage_count"].clone();
    assert_eq!(used().await, 0);
    desk.post(&send, body).await.expect(200);
    desk.settle().await;
    assert_eq!(
        (desk.sent(&ana), used().await),
        (vec!["ok".to_owned(), "Hi Ana, until six.".to_owned()], json!(1))
    );
    for (body, status, code, param) in [
        (json!({ "quick_reply_id": reply }), 400, "validation_error", "answers.hour"),
        (json!({ "quick_reply_id": 999_999 }), 404, "not_found", "quick_reply_id"),
        (json!({ "quick_reply_id": reply, "text": "x" }), 400, "validation_error", "text"),
        (json!({}), 400, "validation_error", "text"),
    ] {
        assert_eq!(
            desk.post(&send, body.clone()).await.expect_error(status, code).as_deref(),
            Some(param),
            "{body}"
        );
    }
}
