use crate::support::{Net, PHONE, text};
use chatnet::{
    InboundContent, Interactive, MessageButton, MessageList, MessageListRow, MessageListSection,
    NetworkStatus, OutboundContent, SendOutcome, Update,
};
use simulator::{Action, Behaviour, Scripted};
use std::time::Duration;

fn after(after_ms: u64, action: Action) -> Scripted {
    Scripted { after_ms, action }
}

fn says(body: &str) -> Action {
    Action::Text { body: body.to_owned(), reply_to: None }
}

#[tokio::test]
async fn customers_follow_their_script() {
    let net = Net::start().await;
    net.customer();
    let script = vec![
        after(0, says("One")),
        after(5_000, says("Two")),
        after(0, Action::VoiceNote { words: "Three".to_owned() }),
    ];
    net.sim.set_behaviour(PHONE, Behaviour { script, ..Behaviour::default() }).unwrap();
    net.accepted("a", "").await;
    net.messages(2).await;
    net.accepted("b", "").await;
    net.sim.advance(Duration::from_secs(5));
    let messages = net.messages(3).await;
    assert_eq!(messages[2].content, InboundContent::Text("Two".to_owned()));
    net.accepted("c", "").await;
    let messages = net.messages(4).await;
    assert!(matches!(&messages[3].content, InboundContent::Media(media) if media.is_voice));
    // The script has ended.
    net.accepted("d", "").await;
    net.statuses(8).await;
    assert_eq!(net.messages(4).await.len(), 4);
}

#[tokio::test]
async fn customers_read_after_a_while() {
    let net = Net::start().await;
    net.customer();
    net.sim.set_behaviour(PHONE, Behaviour { read_after_ms: Some(3_000), ..Behaviour::default() }).unwrap();
    net.accepted("Hi", "").await;
    net.statuses(2).await;
    net.sim.advance(Duration::from_secs(3));
    assert_eq!(net.statuses(3).await[2].status, NetworkStatus::Read);
}

#[tokio::test]
async fn customers_press_and_choose() {
    let net = Net::start().await;
    net.customer();
    let mut message = Interactive {
        header: None,
        body: "Ready?".to_owned(),
        footer: None,
        buttons: ["yes", "no"]
            .map(|id| MessageButton { id: id.to_owned(), title: id.to_uppercase() })
            .to_vec(),
        list: None,
    };
    let SendOutcome::Accepted { provider_id } =
        net.send(OutboundContent::Interactive(message.clone()), "").await
    else {
        panic!("not accepted")
    };
    net.sim.act(PHONE, &Action::Press { button: Some("NO".to_owned()) }).unwrap();
    let messages = net.messages(2).await;
    assert_eq!(
        messages[1].content,
        InboundContent::ButtonReply { id: "no".to_owned(), title: "NO".to_owned(), of_template: false }
    );
    assert_eq!(messages[1].reply_to.as_ref(), Some(&provider_id));
    message.buttons.clear();
    let row = MessageListRow { id: "r1".to_owned(), title: "Row".to_owned(), description: None };
    let sections = vec![MessageListSection { title: None, rows: vec![row] }];
    message.list = Some(MessageList { button: "Open".to_owned(), sections });
    net.send(OutboundContent::Interactive(message), "").await;
    net.sim.act(PHONE, &Action::Press { button: None }).unwrap();
    let messages = net.messages(3).await;
    assert_eq!(
        messages[2].content,
        InboundContent::ListReply { id: "r1".to_owned(), title: "Row".to_owned() }
    );
    net.sim.act(PHONE, &Action::Press { button: Some("Other".to_owned()) }).unwrap_err();
}

#[tokio::test]
async fn who_blocks_gets_nothing() {
    let net = Net::start().await;
    net.customer();
    net.sim.act(PHONE, &Action::Block).unwrap();
    net.accepted("Hi", "").await;
    assert_eq!(net.statuses(1).await[0].status, NetworkStatus::Sent);
    net.sim.act(PHONE, &Action::Unblock).unwrap();
    net.accepted("Hi", "").await;
    assert_eq!(net.statuses(3).await.len(), 3);
}

#[tokio::test]
async fn customers_move_to_another_number() {
    let net = Net::start().await;
    let before = net.customer();
    net.sim.act(PHONE, &Action::ChangeNumber { phone: "+12195555358".to_owned() }).unwrap();
    let updates = net.until(|updates| updates.iter().any(|one| matches!(one, Update::Identity(_)))).await;
    let Some(Update::Identity(change)) = updates.last() else { panic!("{updates:?}") };
    assert_eq!(change.old.user_id.as_ref(), Some(&before.user_id));
    assert_eq!(change.old.phone.as_deref(), Some("+16505551234"));
    assert_eq!(change.new.phone.as_deref(), Some("+12195555358"));
    let user = &net.sim.users()[0];
    assert_eq!(change.new.user_id.as_ref(), Some(&user.user_id));
    // The window belongs to the customer, regardless of the number.
    assert!(matches!(net.send(text("Hi"), "").await, SendOutcome::Refused(_)));
    net.sim.write("12195555358", "It is me").unwrap();
    assert_eq!(net.messages(2).await[1].from.user_id.as_ref(), Some(&user.user_id));
}

#[tokio::test]
async fn preferences_are_called_back() {
    let net = Net::start().await;
    net.customer();
    net.sim.act(PHONE, &Action::OptOut).unwrap();
    net.sim.act(PHONE, &Action::OptIn).unwrap();
    let wants = |updates: &[Update]| -> Vec<bool> {
        let wanted = |update: &Update| match update {
            Update::Consent { wants_marketing, .. } => Some(*wants_marketing),
            _ => None,
        };
        updates.iter().filter_map(wanted).collect()
    };
    let updates = net.until(|updates| wants(updates).len() == 2).await;
    assert_eq!(wants(&updates), [false, true]);
}

#[tokio::test]
async fn the_business_writes_on_its_own_device() {
    let net = Net::start().await;
    let user = net.customer();
    let id = net.sim.echo(&net.account.number_id, PHONE, "From my phone").unwrap();
    let updates = net.until(|updates| updates.iter().any(|one| matches!(one, Update::Echo(_)))).await;
    let Some(Update::Echo(echo)) = updates.last() else { panic!("{updates:?}") };
    assert_eq!((&echo.provider_id, echo.to.user_id.as_ref()), (&id, Some(&user.user_id)));
    assert_eq!(echo.content, InboundContent::Text("From my phone".to_owned()));
}

#[tokio::test]
async fn messages_are_edited_deleted_and_reacted_to() {
    let net = Net::start().await;
    net.customer();
    let ours = net.accepted("Hi", "").await;
    let id = net.sim.write(PHONE, "Helo").unwrap();
    net.sim.act(PHONE, &Action::Edit { body: "Hello".to_owned() }).unwrap();
    net.sim.act(PHONE, &Action::React { emoji: Some("👍".to_owned()) }).unwrap();
    net.sim.act(PHONE, &Action::React { emoji: None }).unwrap();
    net.sim.act(PHONE, &Action::Revoke).unwrap();
    net.sim.act(PHONE, &Action::Unsupported).unwrap();
    let contents: Vec<_> = net.messages(7).await.into_iter().skip(2).map(|message| message.content).collect();
    assert_eq!(contents[0], InboundContent::Edited { message: id.clone(), text: "Hello".to_owned() });
    let reaction = |emoji| InboundContent::Reaction { message: ours.clone(), emoji };
    assert_eq!(contents[1], reaction(Some("👍".to_owned())));
    assert_eq!(contents[2], reaction(None));
    assert_eq!(contents[3], InboundContent::Deleted { message: id });
    assert!(matches!(&contents[4], InboundContent::Unsupported { kind, .. } if kind == "unsupported"));
}
