//! Tests of message templates and their review.

use serde_json::{Value, json};
use testkit::{ChannelApp, Kind};

#[testkit::both]
async fn a_template_is_reviewed_listed_and_deleted(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let path = desk.path("/chatnet/templates");
    let body = json!({
        "name": "order_arrived", "language": "en", "category": "utility",
        "components": { "body": { "text": "Order {{1}} has arrived.", "samples": ["7"] }, "footer": "Bye" },
    });
    let made = desk.post(&path, body.clone()).await.expect(201);
    assert_eq!(
        (&made["status"], &made["parameters"]),
        (&json!("pending"), &json!([{ "component": "body", "key": "1", "example": "7" }]))
    );
    let error = desk.post(&path, body).await;
    error.expect_error(409, "duplicate_value");
    assert_eq!(error.body["error"]["details"]["existing_id"], made["id"]);
    desk.network
        .review("order_arrived", "en", &simulator::Review::Reject { reason: "INVALID_FORMAT".to_owned() })
        .unwrap();
    desk.settle().await;
    let one = format!("{path}/{}", made["id"]);
    let template = desk.get(&one).await.expect(200);
    assert_eq!((&template["status"], template["rejection_reason"].is_string()), (&json!("rejected"), true));
    let listed = desk.get(&format!("{path}?status=rejected&paginate=true")).await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(desk.get(&format!("{path}?status=approved")).await.expect(200), json!([]));
    let deleted = desk.app.delete(&one, &desk.key).await.expect(200);
    assert_eq!((&deleted["deleted"], &deleted["object"]), (&json!(true), &json!("message_template")));
    desk.get(&one).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn what_the_network_would_refuse_is_refused_at_once(kind: Kind) {
    let desk = ChannelApp::open(kind).await;
    let with = |components: Value| json!({ "name": "x", "language": "en", "category": "utility", "components": components });
    for (components, param) in [
        (json!({ "body": { "text": "{{1}} hello" , "samples": ["a"] } }), "components.body.text"),
        (json!({ "body": { "text": "Hello {{1}}!" } }), "components.body.samples"),
        (json!({ "body": { "text": "Hi" }, "footer": "{{1}}" }), "components.footer"),
        (json!({ "body": { "text": "Hi" }, "header": { "format": "text" } }), "components.header.text"),
        (
            json!({ "body": { "text": "Hi" }, "buttons": [{ "type": "url", "text": "Go" }] }),
            "components.buttons[0].url",
        ),
        (
            json!({ "body": { "text": "Hi" }, "buttons": [{ "type": "url", "text": "Go", "url": "ftp://x" }] }),
            "components.buttons[0].url",
        ),
        (json!({ "body": { "text": "a".repeat(1_025) } }), "components.body.text"),
    ] {
        let refused = desk.post(&desk.path("/chatnet/templates"), with(components)).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}
