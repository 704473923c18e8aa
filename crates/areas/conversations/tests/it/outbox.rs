//! From the outbox to the network, when things go wrong.

use crate::support::Desk;
use chrono::Duration;
use serde_json::{Value, json};
use simulator::{Faults, SendFault};
use testkit::Kind;

/// A customer who wrote, and the id of a message that was queued for it.
async fn queued(desk: &Desk) -> (simulator::User, Value) {
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let sent = desk.post(&format!("/contacts/{id}/send-message"), json!({ "text": "One" })).await.expect(200);
    (ana, sent["message_id"].clone())
}

#[testkit::both]
async fn what_the_network_refuses_for_now_is_sent_later(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, message) = queued(&desk).await;
    desk.network.fault_next_sends([SendFault::RateLimited, SendFault::ServerError]);
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "queued");
    let metrics = desk.app.service.metrics.scrape().await.unwrap();
    assert!(metrics.contains("\nsvc_channel_messages_queued 1\n"), "{metrics}");
    desk.app.data.clock.advance(Duration::seconds(30));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "queued");
    desk.app.data.clock.advance(Duration::seconds(60));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "delivered");
    assert_eq!(desk.sent(&ana), ["ok", "One"]);
}

#[testkit::both]
async fn what_the_network_did_not_answer_is_never_sent_twice(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, message) = queued(&desk).await;
    desk.network.set_faults(Faults { drop: 1.0, redeliver_after_ms: 60_000, ..Faults::default() });
    desk.network.fault_next_sends([SendFault::GarbledAfter]);
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "unknown");
    assert_eq!(desk.sent(&ana), ["ok", "One"]);
    // A status that comes later says what happened.
    desk.app.data.clock.advance(Duration::seconds(120));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "delivered");
    assert_eq!(desk.sent(&ana).len(), 2);
}

#[testkit::both]
async fn a_window_that_closes_while_a_message_waits_fails_it(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, message) = queued(&desk).await;
    // The network asks to come back in a day.
    desk.network.set_faults(Faults { rate_limited: 1.0, retry_after_seconds: 86_400, ..Faults::default() });
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "queued");
    desk.network.set_faults(Faults::default());
    desk.app.data.clock.advance(Duration::seconds(86_399));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "queued");
    desk.app.data.clock.advance(Duration::seconds(1));
    desk.settle().await;
    assert_eq!(desk.status(&message).await, ("failed".to_owned(), Some("window_closed".to_owned())));
    assert_eq!(desk.sent(&ana), ["ok"]);
    let failed = desk.events("contact.message.failed").await;
    assert_eq!((failed.len(), &failed[0]["error"]["code"]), (1, &json!("window_closed")));
    assert_eq!(desk.count("SELECT count(*) AS n FROM message_outbox").await, 0);
}

#[testkit::both]
async fn what_the_network_has_is_not_sent_again_though_it_refused_it(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, message) = queued(&desk).await;
    desk.network.fault_next_sends([SendFault::ServerError]);
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "queued");
    // It was accepted all the same, says its status.
    let phone = ana.phone.as_deref().unwrap();
    let status = json!({
        "id": "wamid.accepted", "status": "sent", "timestamp": "1768478400", "recipient_id": phone,
        "biz_opaque_callback_data": message.to_string(),
    });
    let number = desk.network.connection().number_id;
    let value = json!({ "messaging_product": "whatsapp", "metadata": { "phone_number_id": number }, "statuses": [status] });
    let body = json!({ "object": "x", "entry": [{ "id": "1", "changes": [{ "field": "messages", "value": value }] }] });
    desk.post_callback(&format!("/callbacks/{}", desk.channel), &body.to_string()).await;
    desk.app.data.clock.advance(Duration::seconds(60));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "sent");
    assert_eq!(desk.sent(&ana), ["ok"]);
}

#[testkit::both]
async fn a_message_that_waits_for_an_answer_delays_no_other(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (_, message) = queued(&desk).await;
    let working = desk.app.service.channels.start();
    desk.network.fault_next_sends([SendFault::TimeoutBefore]);
    let sending = || async { (desk.status(&message).await.0 == "sending").then_some(()) };
    testkit::until("the network has it", sending).await;
    let ben = desk.customer("Ben", "+5511987650000");
    desk.network.write(&ben.user_id, "Hi").unwrap();
    assert!(desk.network.wait_until(|_| desk.sent(&ben) == ["ok"]).await);
    assert_eq!(desk.status(&message).await.0, "sending");
    working.stop(std::time::Duration::ZERO).await;
}

#[testkit::both]
async fn what_was_being_sent_when_a_worker_died_is_unknown(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, message) = queued(&desk).await;
    desk.app.sql("UPDATE message_outbox SET claimed_epoch = 0").await;
    desk.app.sql("UPDATE messages SET status = 'sending', status_rank = 1 WHERE status = 'queued'").await;
    desk.app.data.clock.advance(Duration::seconds(60));
    desk.settle().await;
    assert_eq!(desk.status(&message).await.0, "unknown");
    assert_eq!(desk.sent(&ana), ["ok"]);
    assert_eq!(desk.events("contact.message.failed").await.len(), 1);
}

#[testkit::both]
async fn a_revoked_token_disconnects_the_channel(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (_, message) = queued(&desk).await;
    desk.network.revoke_token(&desk.network.connection().number_id, true).unwrap();
    desk.settle().await;
    assert_eq!(desk.status(&message).await, ("failed".to_owned(), Some("credentials_invalid".to_owned())));
    let channel = desk.get(&desk.path("")).await.expect(200);
    assert_eq!(channel["status"], "disconnected");
    let id = desk.only_contact().await["id"].clone();
    let refused = desk.post(&format!("/contacts/{id}/send-message"), json!({ "text": "x" })).await;
    refused.expect_error(409, "channel_disconnected");
}

#[testkit::both]
async fn the_messages_of_a_contact_leave_in_order(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ana, _) = queued(&desk).await;
    let id = desk.only_contact().await["id"].clone();
    for text in ["Two", "Three", "Four"] {
        desk.post(&format!("/contacts/{id}/send-message"), json!({ "text": text })).await.expect(200);
    }
    desk.network.fault_next_sends([SendFault::ServerError]);
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok"]);
    desk.app.data.clock.advance(Duration::seconds(60));
    desk.settle().await;
    assert_eq!(desk.sent(&ana), ["ok", "One", "Two", "Three", "Four"]);
}

#[testkit::both]
async fn statuses_never_fall_back(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.network.set_faults(Faults {
        duplicate: 0.5,
        reorder: 0.3,
        batch: 0.3,
        bad_signature: 0.1,
        early_status: 0.5,
        ..Faults::default()
    });
    let customers: Vec<_> =
        (0..20).map(|number| desk.customer("Ana", &format!("+55119876543{number:02}"))).collect();
    for customer in &customers {
        desk.network.write(&customer.user_id, "Hi").unwrap();
    }
    for _ in 0..4 {
        desk.settle().await;
        desk.app.data.clock.advance(Duration::seconds(30));
    }
    for customer in &customers {
        assert_eq!(desk.sent(customer), ["ok"], "{customer:?}");
    }
    assert_eq!(desk.count("SELECT count(*) AS n FROM messages WHERE direction = 'inbound'").await, 20);
    assert_eq!(desk.count("SELECT count(*) AS n FROM messages WHERE status = 'delivered'").await, 20);
    assert_eq!(desk.events("contact.message.received").await.len(), 20);
}
