//! The simulator's callbacks have the same keys as recorded ones, so that it cannot diverge from the network.

use crate::support::{Net, PHONE, messages_of, text};
use chatnet::{
    ChannelAdapter, Interactive, MessageButton, MessageList, MessageListRow, MessageListSection,
    OutboundContent, TemplateMessage, Update,
};
use serde_json::{Value, json};
use simulator::{Action, Behaviour, Faults, NewUser, Review};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Collects the keys with the kinds of their values, by path. Items of a list share a path.
fn shape(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| shape(field, &format!("{path}.{key}"), into));
            return;
        }
        Value::Array(items) => {
            items.iter().for_each(|item| shape(item, &format!("{path}[]"), into));
            return;
        }
        Value::String(_) => "text",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    into.insert(format!("{path}: {kind}"));
}

fn shape_of(body: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    shape(body, "", &mut keys);
    keys
}

fn fixture(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../foundation/chatnet/tests/fixtures/{name}.json"));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Lets the simulator send one callback, and compares it with the fixture.
async fn compare(net: &Net, name: &str, does: impl AsyncFnOnce(&Net)) {
    assert!(net.sim.wait_until(simulator::Simulator::is_quiet).await);
    assert!(net.sim.wait_until(|sim| sim.callbacks().delivered == net.called().len() as u64).await);
    let before = net.called().len();
    does(net).await;
    let called = net.wait_for(|called| called.len() > before).await;
    let body: Value = serde_json::from_slice(&called[before].body).unwrap();
    let (ours, theirs) = (shape_of(&body), shape_of(&fixture(name)));
    assert_eq!(ours, theirs, "{name}: {body:#}");
    // The adapter parses both to the same kinds of updates.
    let kinds = |raw: &[u8]| -> Vec<String> {
        net.adapter.parse_webhook(&net.account, raw).iter().map(kind).collect()
    };
    let theirs = fixture(name).to_string();
    assert_eq!(kinds(&called[before].body), kinds(theirs.as_bytes()), "{name}");
}

fn kind(update: &Update) -> String {
    let word = |value: &dyn std::fmt::Debug| {
        format!("{value:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
    };
    match update {
        Update::Message(message) => word(&message.content),
        Update::Status(status) => status.status.as_str().to_owned(),
        other => word(other),
    }
}

/// Returns a network with one callback per part, and a customer like that of the fixtures.
async fn net() -> Net {
    let net = Net::with(|settings| {
        settings.callback_batch = 1;
        settings.rates = false;
        settings.approve_after = None;
    })
    .await;
    net.customer();
    net.messages(1).await;
    net
}

async fn act(net: &Net, name: &str, action: Action) {
    compare(net, name, async |net: &Net| {
        net.sim.act(PHONE, &action).unwrap();
    })
    .await;
}

fn choice(is_list: bool) -> OutboundContent {
    let mut message =
        Interactive { header: None, body: "Choose".to_owned(), footer: None, buttons: vec![], list: None };
    if is_list {
        let row =
            MessageListRow { id: "1".to_owned(), title: "One".to_owned(), description: Some("d".to_owned()) };
        let sections = vec![MessageListSection { title: None, rows: vec![row] }];
        message.list = Some(MessageList { button: "Open".to_owned(), sections });
    } else {
        message.buttons = vec![MessageButton { id: "1".to_owned(), title: "One".to_owned() }];
    }
    OutboundContent::Interactive(message)
}

#[tokio::test]
async fn messages_have_the_recorded_shape() {
    let net = net().await;
    let ours = net.accepted("Hi", "msg_01").await;
    net.statuses(2).await;
    let says = |reply_to| Action::Text { body: "Hello".to_owned(), reply_to };
    act(&net, "text", says(None)).await;
    act(&net, "text_reply", says(Some(ours))).await;
    act(&net, "edit", Action::Edit { body: "Hello!".to_owned() }).await;
    act(&net, "revoke", Action::Revoke).await;
    act(&net, "image", Action::Image { caption: Some("c".to_owned()) }).await;
    act(&net, "audio_voice", Action::VoiceNote { words: "w".to_owned() }).await;
    act(&net, "location", Action::Location).await;
    act(&net, "reaction", Action::React { emoji: Some("👍".to_owned()) }).await;
    act(&net, "reaction_removed", Action::React { emoji: None }).await;
    act(&net, "unsupported", Action::Unsupported).await;
    act(&net, "user_preferences_stop", Action::OptOut).await;
    act(&net, "user_preferences_resume", Action::OptIn).await;
    net.send(choice(false), "").await;
    net.statuses(4).await;
    act(&net, "interactive_button_reply", Action::Press { button: None }).await;
    net.send(choice(true), "").await;
    net.statuses(6).await;
    act(&net, "interactive_list_reply", Action::Press { button: None }).await;
    let buttons = json!([{ "type": "QUICK_REPLY", "text": "Stop" }]);
    net.template(
        "order",
        "UTILITY",
        json!([{ "type": "BODY", "text": "x" }, { "type": "BUTTONS", "buttons": buttons }]),
    );
    let template = TemplateMessage {
        name: "order".to_owned(),
        language: "en_US".to_owned(),
        header_params: vec![],
        header_media: None,
        body_params: vec![],
        button_params: vec![],
    };
    net.send(OutboundContent::Template(template), "").await;
    net.statuses(8).await;
    act(&net, "button", Action::Press { button: None }).await;
    compare(&net, "echo", async |net: &Net| {
        net.sim.echo(&net.account.number_id, PHONE, "Hi").unwrap();
    })
    .await;
    act(&net, "number_changed", Action::ChangeNumber { phone: "12195555358".to_owned() }).await;
    let new =
        NewUser { name: Some("Lia".to_owned()), username: Some("lia.m".to_owned()), ..NewUser::default() };
    let user = net.sim.add_user(new).unwrap();
    compare(&net, "text_username_only", async |net: &Net| {
        net.sim.write(&user.user_id, "Hi").unwrap();
    })
    .await;
    let messages = messages_of(&net.updates());
    let unique: BTreeSet<_> = messages.iter().map(|message| &message.provider_id).collect();
    assert_eq!(unique.len(), messages.len());
}

#[tokio::test]
async fn statuses_have_the_recorded_shape() {
    let net = net().await;
    net.sim.set_behaviour(PHONE, Behaviour { read_after_ms: Some(1000), ..Behaviour::default() }).unwrap();
    compare(&net, "status_sent", async |net: &Net| {
        net.accepted("Hi", "msg_01").await;
    })
    .await;
    net.statuses(2).await;
    compare(&net, "status_read", async |net: &Net| net.sim.advance(Duration::from_secs(1))).await;
    net.sim.set_faults(Faults { late_refusals: true, ..Faults::default() });
    net.sim.advance(Duration::from_secs(24 * 3600));
    compare(&net, "status_failed", async |net: &Net| {
        net.send(text("Hi"), "msg_01").await;
    })
    .await;
    let delivered = net.called()[2].body.clone();
    let delivered: Value = serde_json::from_slice(&delivered).unwrap();
    assert_eq!(shape_of(&delivered), shape_of(&fixture("status_delivered")));
}

#[tokio::test]
async fn changes_of_templates_and_numbers_have_the_recorded_shape() {
    let net = net().await;
    net.template("order", "UTILITY", json!([{ "type": "BODY", "text": "x" }]));
    for (name, review) in [
        ("template_approved", Review::Approve),
        ("template_rejected", Review::Reject { reason: "INVALID_FORMAT".to_owned() }),
        ("template_paused", Review::Pause),
        ("template_disabled", Review::Disable),
        ("template_category", Review::Recategorise { category: "MARKETING".to_owned() }),
        ("template_quality", Review::Rate { quality: "YELLOW".to_owned() }),
    ] {
        compare(&net, name, async |net: &Net| net.sim.review("order", "en_US", &review).unwrap()).await;
    }
    compare(&net, "number_flagged", async |net: &Net| {
        net.sim.rate_number(&net.account.number_id, "RED", "TIER_10K").unwrap();
    })
    .await;
}
