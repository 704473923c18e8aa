//! Recipients: skipped contacts, and merged contacts.

use crate::support::{all, open, sale};
use serde_json::json;
use testkit::Kind;
#[testkit::both]
async fn who_is_left_out_is_told_why(kind: Kind) {
    let desk = open(kind).await;
    let mut ids = Vec::new();
    for (name, place) in ["Ana", "Ben", "Cem", "Dan", "Eve", "Fay", "Gil", "Hal"].iter().zip(1..) {
        ids.push(desk.contact(name, &format!("+551198765000{place}")).await);
    }
    let nameless =
        desk.post("/contacts", json!({ "data": { "$phone": "+5511987650009" } })).await.expect(201)["id"]
            .as_i64()
            .unwrap();
    let mailed = desk
        .post("/contacts", json!({ "data": { "$name": "Max", "$email": "max@example.com" } }))
        .await
        .expect(201)["id"]
        .as_i64()
        .unwrap();
    desk.post(&format!("/contacts/{}/opt-out", ids[0]), json!({})).await.expect(200);
    desk.app
        .patch(&format!("/contacts/{}", ids[1]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    // Another broadcast has been sent to Cem.
    let first = desk.draft(json!({ "contact_ids": [ids[2], ids[3]] }), json!({})).await;
    desk.act(first, "send").await;
    desk.run().await;
    for row in desk.recipients(first, "").await {
        desk.report(&row, "sent", None).await;
    }
    let exclude = json!({ "contact_ids": [ids[4]], "filters": [{ "field": "$name", "value": "Gil" }], "filter_tree": { "field": "$name", "op": "eq", "value": "Fay" } });
    let everyone = [ids.clone(), vec![nameless, mailed]].concat();
    let mut audience = json!({ "contact_ids": everyone });
    audience["filters"] = json!([{ "field": "$name", "op": "neq", "value": "Hal" }]);
    audience["exclude"] = exclude;
    let strict = json!({
        "name": "sale", "language": "en",
        "params": { "1": { "value": "{{contact.$name}}", "fallback": "" }, "2": { "value": "x" } },
    });
    let second = desk
        .draft(audience.clone(), json!({ "template": strict, "frequency_cap": { "messages": 1, "days": 7 } }))
        .await;
    desk.act(second, "send").await;
    desk.run().await;
    let expected = [
        (ids[0], "opted_out"),
        (ids[1], "blocked"),
        (ids[2], "frequency_cap"),
        (ids[3], "frequency_cap"),
        (nameless, "missing_param"),
        (mailed, "no_address"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, reason)| (*id, (*reason).to_owned())).collect();
    assert_eq!(desk.states(second).await, expected);
    let done = desk.broadcast(second).await;
    assert_eq!((&done["status"], &done["counts"]["skipped"]), (&json!("completed"), &json!(6)));
    assert_eq!(desk.recipients(second, "skip_reason=blocked").await.len(), 1);
    // Messages other than marketing reach contacts who opted out. Recipients of the first broadcast are excluded.
    audience["exclude"] = json!({ "broadcast_id": first });
    let mut notice = sale();
    notice["name"] = json!("notice");
    let third = desk.draft(audience, json!({ "template": notice })).await;
    desk.act(third, "send").await;
    desk.run().await;
    let expected = [
        (ids[0], "claimed"),
        (ids[1], "blocked"),
        (ids[4], "claimed"),
        (ids[5], "claimed"),
        (ids[6], "claimed"),
        (nameless, "claimed"),
        (mailed, "no_address"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, reason)| (*id, (*reason).to_owned())).collect();
    assert_eq!(desk.states(third).await, expected);
}

#[testkit::both]
async fn consent_is_looked_at_again_before_sending(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(4).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    assert_eq!(desk.messages().await.len(), 1);
    desk.post(&format!("/contacts/{}/opt-out", ids[1]), json!({})).await.expect(200);
    desk.app
        .patch(&format!("/contacts/{}", ids[2]), &desk.key, json!({ "status": "blocked" }))
        .await
        .expect(200);
    // The frozen values stay as they were.
    desk.app
        .patch(&format!("/contacts/{}", ids[3]), &desk.key, json!({ "data": { "$name": "Other" } }))
        .await
        .expect(200);
    desk.seconds(4).await;
    let states: Vec<String> = desk.states(id).await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["claimed", "opted_out", "blocked", "claimed"]);
    assert_eq!(desk.messages().await[1].1, "Hi C3, 10 % off!");
}

#[testkit::both]
async fn contacts_that_are_merged_get_one_message(kind: Kind) {
    let desk = open(kind).await;
    let ids = desk.crowd(5).await;
    let id = desk.draft(all(), json!({ "throttle": { "rate_per_minute": 60 } })).await;
    desk.act(id, "send").await;
    desk.run().await;
    let outsider = desk.contact("Zoe", "+34612345678").await;
    // Merges of two recipients, of a recipient into another contact, and of a recipient that has been sent its
    // message.
    for (survivor, merged) in [(ids[1], ids[2]), (outsider, ids[3]), (ids[4], ids[0])] {
        desk.post(&format!("/contacts/{survivor}/merge"), json!({ "source_id": merged })).await.expect(200);
    }
    desk.seconds(6).await;
    let expected = [
        (ids[0], "claimed"),
        (ids[1], "claimed"),
        (ids[2], "merged"),
        (outsider, "claimed"),
        (ids[4], "merged"),
    ];
    let expected: Vec<(i64, String)> =
        expected.iter().map(|(id, state)| (*id, (*state).to_owned())).collect();
    assert_eq!(desk.states(id).await, expected);
    assert_eq!(desk.messages().await.len(), 3);
}
