//! From the outbox to the network, when things go wrong.

use crate::support::Desk;
use chrono::Duration;
use serde_json::{Value, json};
use simulator::{Faults, SendFault};

/// A customer who wrote, and the id of a message that was queued for it.
async fn queued(desk: &Desk) -> (simulator::User, Value) {
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    let sent = desk.post(&format!("/contacts/{id}/send-message"), json!({ "text": "One" })).await.expect(200);
    (ana, sent["message_id"].clone())
}

testkit::on_both! {
    async fn what_the_network_refuses_for_now_is_sent_later(kind: Kind) {
        let desk = Desk::open(kind).await;
        let (ana, message) = queued(&desk).await;
        desk.network.fault_next_sends([SendFault::RateLimited, SendFault::ServerError]);
        desk.settle().await;
        assert_eq!(desk.status(&message).await.0, "queued");
        desk.app.data.clock.advance(Duration::seconds(30));
        desk.settle().await;
        assert_eq!(desk.status(&message).await.0, "queued");
        desk.app.data.clock.advance(Duration::seconds(60));
        desk.settle().await;
        assert_eq!(desk.status(&message).await.0, "delivered");
        assert_eq!(desk.sent(&ana), ["ok", "One"]);
    }

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

    async fn statuses_never_fall_back(kind: Kind) {
        let desk = Desk::open(kind).await;
        desk.network.set_faults(Faults {
            duplicate: 0.5, reorder: 0.3, batch: 0.3, bad_signature: 0.1, early_status: 0.5, ..Faults::default()
        });
        let customers: Vec<_> = (0..20).map(|number| desk.customer("Ana", &format!("+55119876543{number:02}"))).collect();
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
}
