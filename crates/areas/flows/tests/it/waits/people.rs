//! Flows while a person answers the contact, and contacts that are merged or deleted.

use super::shop::Shop;
use serde_json::{Value, json};
use testkit::Kind;

async fn ask(shop: &Shop, policy: &str) -> String {
    let nodes = json!({
        "size": ["ask", { "text": "Which size?", "expects": "number", "timeout_seconds": 600 }],
    });
    let settings = json!({ "settings": { "when_human_active": policy } });
    let flow = shop.flow(nodes, &["start>size"], settings).await;
    shop.start(&flow).await
}

#[testkit::both]
async fn a_question_rests_while_a_person_answers(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, "hold").await;
    shop.after(500).await;
    shop.autopilot(false).await;
    // Neither an answer counts nor does the time run out.
    shop.says("42").await;
    shop.after(3600).await;
    let waiting = shop.expect(&run, "waiting").await;
    assert_eq!(waiting["waiting_for"][0]["until"], Value::Null);
    shop.autopilot(true).await;
    shop.expect(&run, "waiting").await;
    shop.after(90).await;
    shop.says("43").await;
    assert_eq!(shop.expect(&run, "completed").await["output"]["value"], 43);
    let run = ask(&shop, "hold").await;
    shop.autopilot(false).await;
    shop.autopilot(true).await;
    shop.after(601).await;
    assert_eq!(shop.port(&run, "size").await, "completed timeout");
}

#[testkit::both]
async fn a_question_is_not_sent_before_the_conversation_is_handed_back(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.autopilot(false).await;
    let before = shop.desk.sent(&shop.ana).len();
    let run = ask(&shop, "hold").await;
    let waiting = shop.expect(&run, "waiting").await;
    assert_eq!(waiting["waiting_for"][0]["type"], "handback");
    assert_eq!(shop.desk.sent(&shop.ana).len(), before);
    shop.autopilot(true).await;
    assert_eq!(shop.last(), "Which size?");
    shop.says("42").await;
    shop.expect(&run, "completed").await;
}

#[testkit::both]
async fn other_policies_cancel_or_continue(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, "cancel").await;
    shop.autopilot(false).await;
    shop.expect(&run, "cancelled").await;
    let run = ask(&shop, "cancel").await;
    shop.expect(&run, "cancelled").await;
    let run = ask(&shop, "continue").await;
    assert_eq!(shop.last(), "Which size?");
    shop.says("42").await;
    shop.expect(&run, "completed").await;
}

#[testkit::both]
async fn runs_follow_a_contact_that_is_merged(kind: Kind) {
    let shop = Shop::open(kind).await;
    let old = shop.desk.contact("Ana at work", "+5511900000000").await;
    let wait = json!({ "wait": ["wait_for_event", { "type": "contact.updated" }] });
    let flow = shop.flow(wait, &["start>wait"], json!({})).await;
    let body = json!({ "contact_id": old });
    let run = shop.desk.post(&format!("{flow}/runs"), body).await.expect(201)["id"].clone();
    shop.settle().await;
    let merge = json!({ "source_id": old });
    shop.desk.post(&format!("/contacts/{}/merge", shop.contact), merge).await.expect(200);
    shop.settle().await;
    let change = json!({ "data": { "$name": "Ana Maria" } });
    let path = format!("/contacts/{}", shop.contact);
    shop.desk.app.patch(&path, &shop.desk.key, change).await.expect(200);
    shop.settle().await;
    let run = shop.expect(run.as_str().unwrap(), "completed").await;
    assert_eq!(run["contact_id"], shop.contact);
}

#[testkit::both]
async fn runs_end_with_a_contact_that_is_deleted(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, "hold").await;
    let secret = "My name is Ana Souza";
    let flow = shop.flow(json!({ "end": "end" }), &["start>end"], json!({})).await;
    let ended = shop.start_with(&flow, json!({ "said": secret })).await;
    shop.desk.erase(&json!(shop.contact)).await;
    shop.settle().await;
    shop.expect(&run, "cancelled").await;
    for id in [&run, &ended] {
        let run = shop.run(id).await;
        assert_eq!((&run["contact_id"], &run["input"]), (&Value::Null, &Value::Null), "{run}");
        testkit::assert_absent(&json!(shop.steps(id).await).to_string(), secret);
    }
}
