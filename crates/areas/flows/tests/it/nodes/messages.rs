//! Messages to the contact, over a simulated network.

use super::{Flow, act, failure, node, output};
use chrono::Duration;
use model::Env;
use serde_json::{Value, json};
use testkit::{ChannelApp, Kind};

/// A customer who has just written.
async fn heard(kind: Kind) -> (ChannelApp, simulator::User, Value) {
    let desk = ChannelApp::open(kind).await;
    let ana = desk.customer("Ana", "+5511987654321");
    desk.hear(&ana, "Hi").await;
    let id = desk.only_contact().await["id"].clone();
    (desk, ana, id)
}

#[testkit::both]
async fn a_text_its_buttons_and_its_files_reach_the_contact(kind: Kind) {
    let (desk, ana, id) = heard(kind).await;
    let run = json!({ "contact_id": id });
    let before = desk.sent(&ana).len();
    let sent = output(
        &act(
            &desk.app,
            &desk.key,
            "send_message",
            json!({ "text": "Hello {{ $contact.$name }}!" }),
            run.clone(),
        )
        .await,
    );
    assert_eq!(sent["window_open"], true);
    desk.settle().await;
    assert_eq!(desk.sent(&ana)[before..], ["Hello Ana!"]);
    let messages = desk.get(&format!("/contacts/{id}/messages")).await.expect(200);
    let message =
        messages.as_array().unwrap().iter().find(|message| message["id"] == sent["message_id"]).unwrap();
    assert_eq!(message["sender"]["type"], "flow", "{message}");
    let buttons = json!({ "text": "Really?", "buttons": [{ "id": "yes", "title": "Yes" }, { "id": "no", "title": "No" }] });
    let sent = output(&act(&desk.app, &desk.key, "send_message", buttons, run.clone()).await);
    let messages = desk.get(&format!("/contacts/{id}/messages")).await.expect(200);
    let message =
        messages.as_array().unwrap().iter().find(|message| message["id"] == sent["message_id"]).unwrap();
    assert_eq!(message["type"], "interactive", "{message}");
    let file = desk.upload().await;
    let files = json!({ "text": "See below.", "file_ids": [file] });
    output(&act(&desk.app, &desk.key, "send_message", files, run.clone()).await);
    let only = json!({ "file_ids": [file] });
    output(&act(&desk.app, &desk.key, "send_message", only, run.clone()).await);
    let run = json!({ "contact_id": id, "input": { "channel": 999_999 } });
    for (config, code) in [
        (json!({ "text": "{{ $input.nothing }}" }), "validation_error"),
        (
            json!({ "text": "a", "buttons": [{ "id": "a", "title": "A" }, { "id": "a", "title": "B" }] }),
            "validation_error",
        ),
        (json!({ "text": "a", "channel_id": "{{ $input.channel }}" }), "not_found"),
    ] {
        assert_eq!(
            failure(&act(&desk.app, &desk.key, "send_message", config.clone(), run.clone()).await),
            code,
            "{config}"
        );
    }
    assert_eq!(
        failure(&act(&desk.app, &desk.key, "send_message", json!({ "text": "a" }), json!({})).await),
        "no_contact"
    );
}

#[testkit::both]
async fn behind_a_closed_window_a_template_or_a_task_takes_its_place(kind: Kind) {
    let (desk, ana, id) = heard(kind).await;
    desk.template("order_shipped", "utility", "Hello {{1}}, order {{2}} was shipped.", &["Ana", "7"]).await;
    desk.app.data.clock.advance(Duration::hours(25));
    let run = json!({ "contact_id": id });
    let template = json!({
        "name": "order_shipped", "language": "en", "namespace": desk.network.connection().business_id,
        "params": ["{{ $contact.$name }}", 4711],
    });
    let config = |policy: &str| json!({ "text": "Your order is on its way.", "if_window_closed": policy, "template": template });
    assert_eq!(
        failure(&act(&desk.app, &desk.key, "send_message", config("fail"), run.clone()).await),
        "window_closed"
    );
    let sent = output(&act(&desk.app, &desk.key, "send_message", config("template"), run.clone()).await);
    assert_eq!(sent["window_open"], false);
    desk.settle().await;
    assert_eq!(desk.sent(&ana).last().unwrap(), "template");
    let written = output(&act(&desk.app, &desk.key, "send_message", config("task"), run.clone()).await);
    let task =
        desk.get(&format!("/workspaces/{}/tasks/{}", desk.workspace, written["task_id"])).await.expect(200);
    assert_eq!((&task["title"], &task["contact_id"]), (&json!("Write to Ana"), &id));
    let direct = output(&act(&desk.app, &desk.key, "send_template", template.clone(), run.clone()).await);
    assert!(direct["message_id"].is_i64() && direct["window_open"].is_null(), "{direct}");
    let mut wrong = template;
    wrong["params"] = json!(["Ana"]);
    let step = act(&desk.app, &desk.key, "send_template", wrong, run).await;
    assert_eq!(failure(&step), "template_params_mismatch", "{step}");
}

#[testkit::both]
async fn a_test_key_sends_nothing(kind: Kind) {
    let (desk, ana, id) = heard(kind).await;
    let test = desk.app.key(desk.workspace, Env::Test, &["*"]).await;
    let flow =
        Flow::publish(&desk.app, &desk.key, vec![node("act", "send_message", json!({ "text": "Hello!" }))])
            .await;
    let before = desk.sent(&ana).len();
    let run = flow.run_by(&test, json!({ "contact_id": id })).await;
    assert_eq!(output(&flow.step(&run, "act").await)["simulated"], true);
    desk.settle().await;
    assert_eq!(desk.sent(&ana).len(), before);
}
