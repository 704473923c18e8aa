use crate::support::{Net, PHONE, text};
use chatnet::{
    ChannelAdapter, Interactive, MessageButton, OutboundContent, OutboundMessage, Recipient, Refusal,
    RefusalCode, SendOutcome, TemplateMessage,
};
use serde_json::json;
use simulator::{Action, NewUser};
use std::time::Duration;

fn refusal(outcome: SendOutcome) -> Refusal {
    match outcome {
        SendOutcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_message_is_accepted_and_written_down() {
    let net = Net::start().await;
    let user = net.customer();
    let id = net.accepted("Hi", "msg_1").await;
    let transcript = net.sim.transcript();
    let [sent] = &transcript[..] else { panic!("{transcript:?}") };
    assert_eq!((sent.provider_id.as_str(), sent.reference.as_deref()), (id.as_str(), Some("msg_1")));
    assert_eq!((sent.to.as_str(), sent.user_id.as_str()), ("+16505551234", user.user_id.as_str()));
    assert_eq!((sent.kind.as_str(), &sent.content["body"]), ("text", &json!("Hi")));
    assert_eq!(net.sim.accepted(), 1);
}

#[tokio::test]
async fn the_window_closes_after_exactly_24_hours() {
    let net = Net::start().await;
    net.quiet_customer();
    let closed = refusal(net.send(text("Hi"), "").await);
    assert_eq!((closed.code, closed.provider_code), (RefusalCode::WindowClosed, Some(131_047)));
    net.sim.write(PHONE, "Hello").unwrap();
    net.sim.advance(Duration::from_secs(24 * 3600 - 1));
    net.accepted("Just in time", "").await;
    net.sim.advance(Duration::from_secs(1));
    assert_eq!(refusal(net.send(text("Late"), "").await).code, RefusalCode::WindowClosed);
    // Statuses do not open the window, but reactions do.
    net.sim.act(PHONE, &Action::Read).unwrap();
    assert_eq!(refusal(net.send(text("Late"), "").await).code, RefusalCode::WindowClosed);
    net.sim.act(PHONE, &Action::React { emoji: Some("👍".to_owned()) }).unwrap();
    net.accepted("Open again", "").await;
}

fn buttons(count: usize) -> OutboundContent {
    let button =
        |number: usize| MessageButton { id: number.to_string(), title: format!("MessageButton {number}") };
    OutboundContent::Interactive(Interactive {
        header: None,
        body: "Choose".to_owned(),
        footer: None,
        buttons: (0..count).map(button).collect(),
        list: None,
    })
}

#[tokio::test]
async fn sizes_are_the_networks() {
    let net = Net::start().await;
    net.customer();
    let is_invalid = |outcome| refusal(outcome).code == RefusalCode::InvalidMessage;
    assert!(is_invalid(net.send(text(""), "").await));
    assert!(is_invalid(net.send(text(&"é".repeat(4097)), "").await));
    net.accepted(&"é".repeat(4096), "").await;
    assert!(is_invalid(net.send(buttons(4), "").await));
    assert!(matches!(net.send(buttons(3), "").await, SendOutcome::Accepted { .. }));
    assert_eq!(net.sim.accepted(), 2);
}

fn order(values: &[&str]) -> OutboundContent {
    OutboundContent::Template(TemplateMessage {
        name: "order".to_owned(),
        language: "en_US".to_owned(),
        header_params: vec![],
        header_media: None,
        body_params: values.iter().map(|value| (None, (*value).to_owned())).collect(),
        button_params: vec![],
    })
}

#[tokio::test]
async fn templates_want_exactly_their_values() {
    let net = Net::start().await;
    net.quiet_customer();
    assert_eq!(refusal(net.send(order(&["a", "b"]), "").await).code, RefusalCode::TemplateNotFound);
    net.template("order", "UTILITY", json!([{ "type": "BODY", "text": "Hi {{1}}, order {{2}} is here." }]));
    for values in [&["a"][..], &["a", "b", "c"], &[]] {
        let refusal = refusal(net.send(order(values), "").await);
        assert_eq!(
            (refusal.code, refusal.provider_code),
            (RefusalCode::TemplateParamsMismatch, Some(132_000))
        );
    }
    for value in ["", "a\nb", "a\tb", "a     b"] {
        let refusal = refusal(net.send(order(&["a", value]), "").await);
        assert_eq!(refusal.code, RefusalCode::TemplateParamsMismatch, "{value:?}");
    }
    assert!(matches!(net.send(order(&["Ana", "7"]), "").await, SendOutcome::Accepted { .. }));
    let chat = net.sim.chat(PHONE).unwrap();
    assert_eq!(chat.last().unwrap().text, "Hi Ana, order 7 is here.");
}

#[tokio::test]
async fn who_stopped_marketing_gets_none() {
    let net = Net::start().await;
    net.quiet_customer();
    net.template("order", "MARKETING", json!([{ "type": "BODY", "text": "News" }]));
    net.sim.act(PHONE, &Action::OptOut).unwrap();
    assert_eq!(refusal(net.send(order(&[]), "").await).code, RefusalCode::RecipientOptedOut);
    net.sim.act(PHONE, &Action::OptIn).unwrap();
    assert!(matches!(net.send(order(&[]), "").await, SendOutcome::Accepted { .. }));
}

#[tokio::test]
async fn who_left_cannot_be_reached() {
    let net = Net::start().await;
    net.customer();
    net.sim.act(PHONE, &Action::Leave).unwrap();
    assert_eq!(refusal(net.send(text("Hi"), "").await).code, RefusalCode::Undeliverable);
}

#[tokio::test]
async fn a_user_without_a_number_is_written_to_by_its_id() {
    let net = Net::start().await;
    let new = NewUser { username: Some("lia.m".to_owned()), ..NewUser::default() };
    let user = net.sim.add_user(new).unwrap();
    net.sim.write(&user.user_id, "Hi").unwrap();
    let [message] = &net.messages(1).await[..] else { panic!("no message") };
    assert_eq!(message.from.user_id.as_ref(), Some(&user.user_id));
    assert_eq!((message.from.phone.as_ref(), message.from.username.as_deref()), (None, Some("lia.m")));
    let to = Recipient::UserId(user.user_id.clone());
    let message = OutboundMessage { to, reply_to: None, content: text("Hello") };
    let outcome = net.adapter.send(&net.account, &message, "r").await;
    assert!(matches!(outcome, SendOutcome::Accepted { .. }));
    let statuses = net.statuses(2).await;
    assert!(statuses.iter().all(|status| status.recipient.phone.is_none()));
    let to = Recipient::UserId("US.1".to_owned());
    let message = OutboundMessage { to, ..message };
    assert_eq!(refusal(net.adapter.send(&net.account, &message, "r").await).code, RefusalCode::Undeliverable);
}

#[tokio::test]
async fn a_recipient_gets_45_at_once_and_then_one_each_6_seconds() {
    let net = Net::start().await;
    net.customer();
    for number in 0..45 {
        net.accepted(&number.to_string(), "").await;
    }
    let refused = refusal(net.send(text("46"), "").await);
    assert_eq!((refused.code, refused.is_retryable), (RefusalCode::PairRateLimited, true));
    net.sim.advance(Duration::from_secs(6));
    net.accepted("46", "").await;
    assert_eq!(refusal(net.send(text("47"), "").await).code, RefusalCode::PairRateLimited);
}

async fn write_first(net: &Net, number: u32) -> SendOutcome {
    let to = Recipient::Phone(format!("+55119{number:08}"));
    net.adapter.send(&net.account, &OutboundMessage { to, reply_to: None, content: order(&[]) }, "").await
}

#[tokio::test]
async fn a_number_sends_80_a_second() {
    let net = Net::start().await;
    net.template("order", "UTILITY", json!([{ "type": "BODY", "text": "News" }]));
    for number in 0..80 {
        assert!(matches!(write_first(&net, number).await, SendOutcome::Accepted { .. }));
    }
    let refused = refusal(write_first(&net, 80).await);
    assert_eq!((refused.code, refused.is_retryable), (RefusalCode::RateLimited, true));
    assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
    net.sim.advance(Duration::from_secs(1));
    assert!(matches!(write_first(&net, 80).await, SendOutcome::Accepted { .. }));
}

#[tokio::test]
async fn a_number_writes_first_to_so_many_a_day() {
    let net = Net::with(|settings| settings.daily_recipients = Some(2)).await;
    net.template("order", "UTILITY", json!([{ "type": "BODY", "text": "News" }]));
    for number in [1, 2, 1, 2] {
        assert!(matches!(write_first(&net, number).await, SendOutcome::Accepted { .. }));
    }
    assert_eq!(refusal(write_first(&net, 3).await).code, RefusalCode::MessagingLimit);
    net.sim.advance(Duration::from_secs(24 * 3600));
    assert!(matches!(write_first(&net, 3).await, SendOutcome::Accepted { .. }));
}

#[tokio::test]
async fn the_oldest_of_the_transcript_are_forgotten() {
    let net = Net::with(|settings| settings.transcript_limit = 2).await;
    net.customer();
    for body in ["1", "2", "3"] {
        net.accepted(body, body).await;
    }
    let kept: Vec<_> = net.sim.transcript().into_iter().map(|sent| (sent.sequence, sent.reference)).collect();
    assert_eq!(kept, [(2, Some("2".to_owned())), (3, Some("3".to_owned()))]);
    assert_eq!(net.sim.accepted(), 3);
}

#[tokio::test]
async fn the_same_seed_makes_the_same_ids() {
    let mut made = Vec::new();
    for seed in [7, 7, 8] {
        let net = Net::with(|settings| settings.seed = seed).await;
        let user = net.customer();
        made.push((user.user_id, net.accepted("Hi", "").await));
    }
    assert_eq!(made[0], made[1]);
    assert!(made[0].0 != made[2].0 && made[0].1 != made[2].1);
}
