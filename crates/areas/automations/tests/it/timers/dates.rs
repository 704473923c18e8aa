//! Dates of contacts, items and tasks.

use super::moment;
use crate::{Shop, automation};
use serde_json::{Value, json};
use testkit::Kind;

fn of_contacts(config: Value) -> Value {
    json!({ "type": "date_field", "config": crate::with(json!({ "object": "contact", "field": "renewal" }), config) })
}

impl Shop {
    async fn renewal(&self) {
        let field = json!({ "field_key": "renewal", "type": "date" });
        self.app.post("/variables/contact-fields", &self.key, field).await.expect(201);
    }
}

#[testkit::both]
async fn a_date_of_a_contact_fires_once_for_each_value(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.renewal().await;
    let config = json!({ "offset": { "days": -3 }, "at": "09:00", "timezone": "contact" });
    let ana =
        shop.contact(json!({ "$name": "Ana", "renewal": "2026-02-10", "$timezone": "Asia/Tokyo" })).await;
    let path = shop.automation(of_contacts(config), json!({})).await;
    let bea =
        shop.contact(json!({ "$name": "Bea", "renewal": "2026-02-10", "$timezone": "America/Bogota" })).await;
    // Its time has passed.
    shop.contact(json!({ "$name": "Eva", "renewal": "2026-01-17" })).await;
    shop.contact(json!({ "$name": "Uma" })).await;
    let ids =
        async || shop.fired(&path, "contact_id").await.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    for (at, expected) in [
        ("2026-02-06T23:59Z", vec![]),
        // 9:00 in Tokyo.
        ("2026-02-07T00:00Z", vec![ana]),
        ("2026-02-07T09:00Z", vec![ana]),
        // 9:00 in Bogotá.
        ("2026-02-07T14:00Z", vec![ana, bea]),
        ("2026-02-12T00:00Z", vec![ana, bea]),
    ] {
        shop.at(moment(at)).await;
        assert_eq!(ids().await, expected, "{at}");
    }
    // The same value does not fire again, and another one does.
    for (value, expected) in [("2026-02-10", vec![ana, bea]), ("2026-02-28", vec![ana, bea, ana])] {
        shop.update_contact(ana, json!({ "renewal": value })).await;
        shop.wait(10 * 24 * 60).await;
        assert_eq!(ids().await, expected, "{value}");
    }
    let firing = shop.executions(&path).await[0].clone();
    assert_eq!(
        (
            &firing["contact_id"],
            &firing["data"]["value"],
            &firing["data"]["contact"]["id"],
            &firing["data"]["field"]
        ),
        (&json!(ana), &json!("2026-02-10"), &json!(ana), &json!("renewal"))
    );
}

#[testkit::both]
async fn a_changed_rule_does_not_fire_what_lies_behind(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.renewal().await;
    let path = shop.automation(of_contacts(json!({ "offset": { "days": 30 } })), json!({})).await;
    for day in 10..30 {
        shop.contact(json!({ "$name": "Ana", "renewal": format!("2026-01-{day}") })).await;
    }
    shop.at(moment("2026-01-25T12:00Z")).await;
    let trigger = of_contacts(json!({}));
    shop.app.patch(&path, &shop.key, json!({ "trigger": trigger })).await.expect(200);
    assert_eq!(shop.next(&path).await, Some(moment("2026-01-26T09:00Z")));
    shop.at(moment("2026-01-26T09:00Z")).await;
    assert_eq!(shop.fired(&path, "value").await, [(json!("2026-01-26"), json!("dispatched"))]);
}

#[testkit::both]
async fn many_dates_at_once_all_fire(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.renewal().await;
    let path = shop.automation(of_contacts(json!({})), json!({})).await;
    // More than one transaction fires, and contacts of other days before and after them.
    for number in 0..130 {
        let day = if number < 105 { 11 } else { 8 + number % 6 };
        shop.contact(json!({ "$name": "Ana", "renewal": format!("2026-02-{day:02}") })).await;
    }
    shop.at(moment("2026-02-11T09:00Z")).await;
    let values = shop.fired(&path, "value").await;
    assert_eq!(values.iter().filter(|(value, _)| *value == json!("2026-02-11")).count(), 105 + 5);
    assert!(values.iter().all(|(value, _)| value.as_str().unwrap() <= "2026-02-11"));
}

#[testkit::both]
async fn dates_of_items_and_tasks_fire(kind: Kind) {
    let shop = Shop::open(kind).await;
    let (app, key) = (&shop.app, &shop.key);
    let fields =
        json!([{ "field_key": "name", "type": "text" }, { "field_key": "starts", "type": "datetime" }]);
    let made = app.post("/collections", key, json!({ "name": "Events", "fields": fields })).await.expect(201);
    let collection = made["id"].clone();
    let config = json!({
        "object": "item", "collection_id": collection, "field": "starts", "offset": { "hours": -2 },
    });
    let trigger = json!({ "type": "date_field", "config": config });
    let items = shop.automation(trigger, json!({ "name": "items" })).await;
    let due = json!({ "type": "task.due", "config": { "offset": { "minutes": -30 } } });
    let tasks = shop.automation(due, json!({ "name": "tasks" })).await;
    let item = json!({ "data": { "name": "Fair", "starts": "2026-01-16T14:30:00Z" } });
    let item = app.post(&format!("/collections/{collection}/items"), key, item).await.expect(201);
    let contact = shop.contact(json!({ "$name": "Ana" })).await;
    let at = format!("/workspaces/{}/tasks", key.workspace);
    let task =
        json!({ "title": "Call", "due": { "datetime": "2026-01-16T13:00:00Z" }, "contact_id": contact });
    let task = app.post(&at, key, task).await.expect(201);
    let done = json!({ "title": "Done", "due": { "datetime": "2026-01-16T13:00:00Z" } });
    let done = app.post(&at, key, done).await.expect(201);
    app.post(&format!("{at}/{}/complete", done["id"]), key, json!({})).await.expect(200);
    shop.at(moment("2026-01-16T12:29Z")).await;
    assert_eq!(shop.executions(&items).await.len() + shop.executions(&tasks).await.len(), 0);
    shop.at(moment("2026-01-16T12:30Z")).await;
    shop.wait(60).await;
    let firings = shop.executions(&items).await;
    assert_eq!(firings.len(), 1);
    assert_eq!(
        (&firings[0]["data"]["item"]["id"], &firings[0]["data"]["value"]),
        (&item["id"], &json!("2026-01-16T14:30:00.000Z"))
    );
    let firings = shop.executions(&tasks).await;
    assert_eq!(firings.len(), 1);
    assert_eq!(
        (&firings[0]["data"]["task_id"], &firings[0]["contact_id"], &firings[0]["data"]["task"]["title"]),
        (&task["id"], &json!(contact), &json!("Call"))
    );
    // Another due value fires again.
    let later = json!({ "due": { "datetime": "2026-01-17T13:00:00Z" } });
    app.patch(&format!("{at}/{}", task["id"]), key, later).await.expect(200);
    shop.at(moment("2026-01-17T12:31Z")).await;
    assert_eq!(shop.executions(&tasks).await.len(), 2);
}

#[testkit::both]
async fn dates_that_do_not_exist_are_refused(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.renewal().await;
    for (config, param) in [
        (json!({ "object": "contact", "field": "renewals" }), "trigger.config.field"),
        (json!({ "object": "contact", "field": "$name" }), "trigger.config.field"),
        (
            json!({ "object": "contact", "field": "renewal", "collection_id": 1 }),
            "trigger.config.collection_id",
        ),
        (json!({ "object": "item", "field": "renewal" }), "trigger.config.collection_id"),
        (
            json!({ "object": "item", "field": "renewal", "collection_id": 4711 }),
            "trigger.config.collection_id",
        ),
        (
            json!({ "object": "item", "field": "renewal", "collection_id": -1 }),
            "trigger.config.collection_id",
        ),
        (json!({ "object": "contact", "field": "renewal", "at": "24:00" }), "trigger.config.at"),
        (
            json!({ "object": "contact", "field": "renewal", "offset": { "days": 4000 } }),
            "trigger.config.offset.days",
        ),
        (json!({ "object": "deal", "field": "renewal" }), "trigger.config.object"),
    ] {
        let body = automation(json!({ "type": "date_field", "config": config }), json!({ "enable": false }));
        let answer = shop.app.post("/automations", &shop.key, body).await;
        answer.expect_error(400, "validation_error");
        assert_eq!(answer.body["error"]["param"], param, "{config} {}", answer.body);
    }
}
