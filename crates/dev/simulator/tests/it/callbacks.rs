use crate::support::{Net, PHONE, SECRET, messages_of, statuses_of};
use chatnet::{ChannelAdapter, NetworkStatus, RefusalCode, Update};
use serde_json::Value;
use simulator::{Action, Faults};
use std::time::Duration;

fn words(net: &Net) -> Vec<String> {
    statuses_of(&net.updates()).iter().map(|status| status.status.as_str().to_owned()).collect()
}

#[tokio::test]
async fn callbacks_are_signed_and_echo_the_reference() {
    let net = Net::start().await;
    net.customer();
    let id = net.accepted("Hi", "msg_7").await;
    let statuses = net.statuses(2).await;
    for status in &statuses {
        assert_eq!((status.provider_id.as_str(), status.reference.as_deref()), (id.as_str(), Some("msg_7")));
        assert_eq!(status.recipient.phone.as_deref(), Some("+16505551234"));
    }
    for called in net.called() {
        assert!(net.adapter.verify_webhook(&["old", SECRET], called.signature.as_deref(), &called.body));
    }
    assert_eq!(words(&net), ["sent", "delivered"]);
}

#[tokio::test]
async fn what_is_not_taken_is_tried_again() {
    let net = Net::start().await;
    net.answer_next(&[500, 503]);
    net.customer();
    net.wait_for(|called| called.len() == 1).await;
    net.sim.wait_until(|sim| sim.callbacks().failed == 1).await;
    net.sim.advance(Duration::from_secs(1));
    net.sim.wait_until(|sim| sim.callbacks().failed == 2).await;
    net.sim.advance(Duration::from_secs(2));
    assert_eq!(net.messages(1).await.len(), 1);
    let called = net.called();
    assert_eq!(called.len(), 3);
    assert_eq!((&called[0].body, &called[0].signature), (&called[2].body, &called[2].signature));
}

#[tokio::test]
async fn a_callback_url_is_verified_with_a_handshake() {
    let net = Net::with(|settings| settings.callback_url = None).await;
    net.customer();
    assert!(net.sim.wait_until(|sim| sim.callbacks().unrouted == 1).await);
    let number = net.account.number_id.clone();
    let wrong = net.sim.register_callback(&number, &net.callback_url, "wrong").await.unwrap_err();
    assert_eq!(wrong.message, "The URL answered 403 and not with the challenge.");
    net.sim.register_callback(&number, &net.callback_url, "right").await.unwrap();
    net.sim.write(PHONE, "Again").unwrap();
    assert_eq!(net.messages(1).await.len(), 1);
}

async fn under(faults: Faults) -> Net {
    let net = Net::start().await;
    net.customer();
    net.messages(1).await;
    net.sim.set_faults(faults);
    net
}

#[tokio::test]
async fn parts_are_doubled() {
    let net = under(Faults { duplicate: 1.0, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    assert_eq!(net.statuses(4).await.len(), 4);
    let id = net.sim.write(PHONE, "Twice").unwrap();
    let messages = net.messages(3).await;
    assert_eq!(messages.iter().filter(|message| message.provider_id == id).count(), 2);
}

#[tokio::test]
async fn parts_are_overtaken() {
    let net = under(Faults::default()).await;
    net.sim.set_faults(Faults { reorder: 1.0, ..Faults::default() });
    net.sim.write(PHONE, "First").unwrap();
    // A part waits for a later one only for a limited time.
    net.messages(2).await;
    net.sim.set_faults(Faults { reorder: 0.5, ..Faults::default() });
    for number in 0..40 {
        net.sim.write(PHONE, &number.to_string()).unwrap();
    }
    let order: Vec<String> =
        net.messages(42).await.iter().skip(2).map(|message| message.provider_id.clone()).collect();
    let mut sorted = order.clone();
    sorted.sort();
    assert_ne!(order, sorted);
    sorted.dedup();
    assert_eq!(sorted.len(), 40);
}

#[tokio::test]
async fn parts_are_dropped_and_come_later() {
    let net = under(Faults { drop: 1.0, redeliver_after_ms: 60_000, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    assert!(net.sim.wait_until(|sim| sim.callbacks().dropped == 2).await);
    assert!(words(&net).is_empty());
    net.sim.advance(Duration::from_secs(60));
    assert_eq!(net.statuses(2).await.len(), 2);
}

#[tokio::test]
async fn parts_are_late() {
    let net = under(Faults { delay: 1.0, delay_ms: 5_000, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    assert!(net.sim.wait_until(simulator::Simulator::is_quiet).await);
    assert!(words(&net).is_empty());
    net.sim.advance(Duration::from_secs(5));
    assert_eq!(net.statuses(2).await.len(), 2);
}

#[tokio::test]
async fn messages_and_statuses_share_a_callback() {
    let net = under(Faults { batch: 0.5, ..Faults::default() }).await;
    for number in 0..10 {
        net.sim.write(PHONE, &number.to_string()).unwrap();
        net.accepted(&number.to_string(), "").await;
    }
    let updates =
        net.until(|updates| statuses_of(updates).len() == 20 && messages_of(updates).len() == 11).await;
    assert!(updates.iter().all(|update| !matches!(update, Update::Unknown { .. })));
    let is_mixed = |body: &[u8]| {
        let body: Value = serde_json::from_slice(body).unwrap();
        let value = &body["entry"][0]["changes"][0]["value"];
        value.get("messages").is_some() && value.get("statuses").is_some()
    };
    assert!(net.called().iter().any(|called| is_mixed(&called.body)));
}

#[tokio::test]
async fn a_wrong_signature_is_followed_by_the_right_one() {
    let net = under(Faults { bad_signature: 1.0, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    net.statuses(2).await;
    let called = net.called();
    assert_eq!(called.iter().filter(|called| !called.taken).count(), 2);
    assert!(net.sim.wait_until(|sim| sim.callbacks().delivered == 3).await);
}

#[tokio::test]
async fn a_status_can_come_before_the_answer() {
    let net = under(Faults { early_status: 1.0, ..Faults::default() }).await;
    let id = net.accepted("Hi", "").await;
    // No wait is needed, because the status was delivered before the response.
    let statuses = statuses_of(&net.updates());
    assert!(statuses.iter().any(|status| status.provider_id == id && status.status == NetworkStatus::Sent));
}

#[tokio::test]
async fn delivered_can_be_left_out() {
    let net = under(Faults { skip_delivered: 1.0, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    net.statuses(1).await;
    net.sim.act(PHONE, &Action::Read).unwrap();
    net.statuses(2).await;
    assert_eq!(words(&net), ["sent", "read"]);
}

#[tokio::test]
async fn messages_fail_after_sent_and_arrive_all_the_same() {
    let net = under(Faults { fail_after_sent: 1.0, failure_code: 131_049, ..Faults::default() }).await;
    net.accepted("Hi", "").await;
    let statuses = net.statuses(2).await;
    let error = statuses[1].error.clone().unwrap();
    assert_eq!((error.code, error.provider_code), (RefusalCode::Undeliverable, Some(131_049)));
    net.sim.set_faults(Faults { fail_after_sent: 1.0, deliver_after_failed: 1.0, ..Faults::default() });
    net.accepted("Hi", "").await;
    net.statuses(5).await;
    assert_eq!(words(&net), ["sent", "failed", "sent", "failed", "delivered"]);
    let noted: Vec<String> =
        net.sim.transcript()[1].statuses.iter().map(|status| status.status.clone()).collect();
    assert_eq!(noted, ["sent", "failed", "delivered"]);
}

#[tokio::test]
async fn a_closed_window_can_be_told_late() {
    let net = under(Faults { late_refusals: true, ..Faults::default() }).await;
    net.sim.advance(Duration::from_secs(24 * 3600));
    net.accepted("Hi", "").await;
    let [status] = &net.statuses(1).await[..] else { panic!("more than one status") };
    assert_eq!(status.error.as_ref().map(|error| error.code), Some(RefusalCode::WindowClosed));
}
