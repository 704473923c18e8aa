use crate::support::{Net, text};
use chatnet::{Account, ChannelAdapter, Refusal, RefusalCode, SendOutcome};
use simulator::{Faults, SendFault};
use std::time::Duration;

async fn under(net: &Net, fault: SendFault) -> SendOutcome {
    net.sim.fault_next_sends([fault]);
    net.send(text("Hi"), "r").await
}

fn refusal(outcome: SendOutcome) -> Refusal {
    match outcome {
        SendOutcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_the_network_refuses_is_refused() {
    let net = Net::start().await;
    net.customer();
    net.sim.set_faults(Faults { retry_after_seconds: 7, ..Faults::default() });
    let limited = refusal(under(&net, SendFault::RateLimited).await);
    assert_eq!((limited.code, limited.is_retryable), (RefusalCode::RateLimited, true));
    assert_eq!(limited.retry_after, Some(Duration::from_secs(7)));
    let failed = refusal(under(&net, SendFault::ServerError).await);
    assert_eq!((failed.code, failed.is_retryable), (RefusalCode::NetworkError, true));
    for (code, meaning, is_retryable) in [
        (131_048, RefusalCode::MessagingLimit, true),
        (131_031, RefusalCode::AccountRestricted, false),
        (133_010, RefusalCode::ChannelDisconnected, false),
        (132_015, RefusalCode::TemplateNotApproved, false),
    ] {
        let refusal = refusal(under(&net, SendFault::Refuse { code }).await);
        assert_eq!(
            (refusal.code, refusal.is_retryable, refusal.provider_code),
            (meaning, is_retryable, Some(code))
        );
    }
    assert_eq!(net.sim.accepted(), 0);
}

#[tokio::test]
async fn what_nobody_answers_clearly_is_unknown() {
    let mut net = Net::start().await;
    net.customer();
    assert!(matches!(under(&net, SendFault::GatewayError).await, SendOutcome::Unknown { .. }));
    assert_eq!(net.sim.accepted(), 0);
    assert!(matches!(under(&net, SendFault::GarbledAfter).await, SendOutcome::Unknown { .. }));
    assert_eq!(net.sim.accepted(), 1);
    net.adapter = net.adapter.clone().with_patience(Duration::from_secs(1));
    assert!(matches!(under(&net, SendFault::TimeoutBefore).await, SendOutcome::Unknown { .. }));
    assert_eq!(net.sim.accepted(), 1);
    assert!(matches!(under(&net, SendFault::TimeoutAfter).await, SendOutcome::Unknown { .. }));
    assert_eq!(net.sim.accepted(), 2);
    // The echoed reference reveals the outcome.
    let statuses = net.statuses(4).await;
    assert!(statuses.iter().all(|status| status.reference.as_deref() == Some("r")));
}

#[tokio::test]
async fn what_never_left_is_refused() {
    let net = Net::start().await;
    net.customer();
    let gone = Account { base_url: "http://127.0.0.1:1/v23.0".to_owned(), ..net.account.clone() };
    let message = chatnet::OutboundMessage {
        to: chatnet::Recipient::Phone("+1".to_owned()),
        reply_to: None,
        content: text("Hi"),
    };
    let refused = refusal(net.adapter.send(&gone, &message, "").await);
    assert_eq!(refused.code, RefusalCode::NetworkError);
}

#[tokio::test]
async fn a_revoked_token_is_told_as_such() {
    let net = Net::start().await;
    net.customer();
    net.sim.revoke_token(&net.account.number_id, true).unwrap();
    let refused = refusal(net.send(text("Hi"), "").await);
    assert_eq!((refused.code, refused.is_retryable), (RefusalCode::CredentialsInvalid, false));
    assert!(net.adapter.health(&net.account).await.unwrap_err().is_unauthorized);
    net.sim.revoke_token(&net.account.number_id, false).unwrap();
    let health = net.adapter.health(&net.account).await.unwrap();
    assert_eq!(health.display_number.as_deref(), Some("15550783881"));
    assert_eq!((health.messaging_limit, health.messages_per_second), (Some(10_000), Some(80)));
}

#[tokio::test]
async fn shares_of_faults_are_the_same_under_the_same_seed() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let net = Net::with(|settings| settings.rates = false).await;
        net.customer();
        net.sim.set_faults(Faults { rate_limited: 0.2, server_error: 0.2, ..Faults::default() });
        let mut outcomes = Vec::new();
        for _ in 0..60 {
            outcomes.push(matches!(net.send(text("Hi"), "").await, SendOutcome::Accepted { .. }));
        }
        seen.push(outcomes);
    }
    assert_eq!(seen[0], seen[1]);
    let accepted = seen[0].iter().filter(|accepted| **accepted).count();
    assert!((25..52).contains(&accepted), "{accepted}");
}

#[tokio::test]
async fn marks_of_reading_are_taken() {
    let net = Net::start().await;
    let user = net.customer();
    let id = net.sim.write(&user.user_id, "Hi").unwrap();
    net.adapter.mark_read(&net.account, &id, true).await.unwrap();
    let error = net.adapter.mark_read(&net.account, "other", false).await.unwrap_err();
    assert_eq!((error.provider_code, error.is_retryable), (Some(131_009), false));
    let marks = net.sim.read_marks();
    assert_eq!(marks.len(), 1);
    assert_eq!((&marks[0].message_id, marks[0].typing), (&id, true));
}
