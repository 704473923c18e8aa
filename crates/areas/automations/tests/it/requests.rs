//! Firing by a request, and asking whether something would fire.

use crate::Shop;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn a_request_fires_once_for_each_idempotency_key(kind: Kind) {
    let shop = Shop::open(kind).await;
    let schema =
        json!({ "type": "object", "required": ["order"], "properties": { "order": { "type": "string" } } });
    let trigger = json!({ "type": "manual", "config": { "input_schema": schema } });
    let more =
        json!({ "target": { "type": "flow", "id": 1, "input": { "number": "{{ $trigger.order }}" } } });
    let path = shop.automation(trigger, more).await;
    let fire = format!("{path}/trigger");
    let body = json!({ "data": { "order": "4711" } });
    let mut answers = Vec::new();
    for _ in 0..2 {
        let asking = shop.app.ask("POST", &fire).key(&shop.key).header("idempotency-key", "one").json(&body);
        answers.push(asking.send().await.expect(200));
    }
    assert_eq!(answers[0], answers[1]);
    shop.work().await;
    let started = shop.flows.started();
    assert_eq!((started.len(), &started[0].input), (1, &json!({ "number": "4711" })));
    assert_eq!(shop.firings(&path).await, [("dispatched".to_owned(), Value::Null)]);
    for (body, param) in [
        (json!({ "data": { "order": 1 } }), "data"),
        (json!({ "data": { "order": "1" }, "contact_id": 99 }), "contact_id"),
        (json!({ "data": {}, "held": "release" }), "held"),
    ] {
        let refused = shop.app.post(&fire, &shop.key, body).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    shop.app.post(&format!("{path}/disable"), &shop.key, json!({})).await.expect(200);
    shop.app.post(&fire, &shop.key, body).await.expect_error(409, "invalid_state");
    let none = shop.app.post(&fire, &shop.key, json!({})).await;
    none.expect_error(409, "invalid_state");
}

#[testkit::both]
async fn a_test_says_why_and_writes_nothing(kind: Kind) {
    let shop = Shop::open(kind).await;
    let ana = shop.contact(json!({ "$name": "Ana", "$country": "BR" })).await;
    let trigger = json!({ "type": "contact.updated", "config": { "fields": ["$stage"] } });
    let more = json!({
        "conditions": { "left": "$contact.country", "op": "eq", "right": "BR" },
        "policy": { "once_per_contact": "once" }, "enable": false,
        "target": { "type": "flow", "id": 1, "input": { "name": "{{ $contact.name }}" } },
    });
    let path = shop.automation(trigger, more).await;
    let test = async |data: Value| {
        shop.app.post(&format!("{path}/test"), &shop.key, json!({ "data": data })).await.expect(200)
    };
    let change = json!({ "contact_id": ana, "changed": { "$stage": { "old": "new", "new": "won" } } });
    for _ in 0..2 {
        let tried = test(change.clone()).await;
        let seen = (&tried["trigger_fits"], &tried["would_fire"], &tried["is_on"], &tried["input"]);
        assert_eq!(seen, (&json!(true), &json!(true), &json!(false), &json!({ "name": "Ana" })));
        assert_eq!(tried["evaluation"]["left_value"], "BR");
    }
    let other = test(json!({ "contact_id": ana, "changed": { "$name": { "old": "A", "new": "B" } } })).await;
    assert_eq!((&other["trigger_fits"], &other["would_fire"]), (&json!(false), &json!(false)));
    shop.update_contact(ana, json!({ "$country": "ES" })).await;
    let tried = test(change.clone()).await;
    assert_eq!((&tried["would_fire"], &tried["reason"]), (&json!(false), &json!("condition_false")));
    let gone = test(json!({ "contact_id": 999, "changed": { "$stage": {} } })).await;
    assert_eq!(gone["reason"], "contact_unavailable");
    assert_eq!(shop.firings(&path).await, []);
    let words = json!({ "name": "words", "enable": false });
    let words = shop.automation(json!({ "type": "keyword", "config": { "words": ["preço"] } }), words).await;
    for (text, fits) in [("PRECO", true), ("price", false)] {
        let body = json!({ "data": { "text": text, "contact_id": ana } });
        let tried = shop.app.post(&format!("{words}/test"), &shop.key, body).await.expect(200);
        assert_eq!((&tried["trigger_fits"], &tried["would_fire"]), (&json!(fits), &json!(fits)), "{text}");
    }
}
