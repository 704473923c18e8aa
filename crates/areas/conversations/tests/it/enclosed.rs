//! Orders, answers to forms, advertisements, and what the service does not understand.

use crate::support::Desk;
use serde_json::{Value, json};
use testkit::Kind;

const ANA: &str = "5511987654321";

#[testkit::both]
async fn orders_forms_and_ads_can_be_read(kind: Kind) {
    let desk = Desk::open(kind).await;
    let referral = json!({
        "source_id": "1202", "source_type": "ad", "source_url": "https://example.com/ad", "headline": "Espresso machines",
        "ctwa_clid": "CLICK-77",
    });
    desk.person_writes(ANA, "wamid.ad", 50, "text", json!({ "body": "hi" }), json!({ "referral": referral }))
        .await;
    let message = desk.message("wamid.ad").await;
    assert_eq!((&message["content"], &message["referral"]["click_id"]), (&json!("hi"), &json!("CLICK-77")));
    assert_eq!(
        desk.app.model.last_texts().last().unwrap(),
        "hi\n[Came from: Espresso machines – https://example.com/ad]"
    );

    let items = json!([
        { "product_retailer_id": "SKU-77", "quantity": 2, "item_price": 10.5, "currency": "EUR" },
        { "product_retailer_id": "SKU-78", "quantity": 1, "item_price": 0.1, "currency": "EUR" },
    ]);
    let order = json!({ "catalog_id": "1", "text": "Please!", "product_items": items });
    desk.person_writes(ANA, "wamid.order", 40, "order", order, json!({})).await;
    let message = desk.message("wamid.order").await;
    let readable = "Please!\n2 × SKU-77 (10.5 EUR each)\n1 × SKU-78 (0.1 EUR each)";
    assert_eq!((&message["type"], &message["content"]), (&json!("order"), &json!(readable)));
    let first = json!({ "product_id": "SKU-77", "quantity": 2, "price": "10.5", "currency": "EUR" });
    assert_eq!((&message["order"]["items"][0], &message["order"]["catalog_id"]), (&first, &json!("1")));
    assert_eq!(desk.app.model.last_texts().last().unwrap(), readable);

    let reply = json!({ "response_json": "{\"day\":\"Friday\",\"guests\":2,\"flow_token\":\"t\"}", "body": "Sent", "name": "flow" });
    let reply = json!({ "type": "nfm_reply", "nfm_reply": reply });
    desk.person_writes(ANA, "wamid.form", 30, "interactive", reply, json!({})).await;
    let message = desk.message("wamid.form").await;
    assert_eq!(
        (&message["type"], &message["content"]),
        (&json!("form_reply"), &json!("day: Friday\nguests: 2"))
    );
    assert_eq!(message["form"]["answers"], json!({ "day": "Friday", "guests": 2, "flow_token": "t" }));

    let product =
        json!({ "context": { "referred_product": { "catalog_id": "1", "product_retailer_id": "SKU-77" } } });
    desk.person_writes(ANA, "wamid.product", 20, "text", json!({ "body": "In blue?" }), product).await;
    assert_eq!(desk.message("wamid.product").await["product"]["product_id"], "SKU-77");
    assert_eq!(desk.app.model.last_texts().last().unwrap(), "In blue?\n[About the product SKU-77]");

    let events = desk.events("contact.message.received").await;
    let of = |place: usize, key: &str| events[place][key].clone();
    assert_eq!(of(0, "referral")["click_id"], "CLICK-77");
    assert_eq!(of(1, "order")["items"][1]["price"], "0.1");
    assert_eq!(of(2, "form")["answers"]["day"], "Friday");
    assert_eq!(of(3, "product")["product_id"], "SKU-77");
    let found = desk.get("/conversations/search?q=sku-78").await.expect(200);
    assert_eq!(found.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn what_is_not_understood_can_be_read_as_it_came(kind: Kind) {
    let desk = Desk::open(kind).await;
    desk.person_writes(ANA, "wamid.1", 50, "hologram", json!({ "depth": 3 }), json!({})).await;
    desk.person_writes(ANA, "wamid.2", 40, "request_welcome", Value::Null, json!({})).await;
    desk.person_writes(
        ANA,
        "wamid.3",
        30,
        "order",
        json!({ "product_items": [{ "quantity": 2 }] }),
        json!({}),
    )
    .await;
    for (id, kind, path) in [
        ("wamid.1", "hologram", "/hologram/depth"),
        ("wamid.2", "request_welcome", "/type"),
        ("wamid.3", "order", "/order/product_items/0/quantity"),
    ] {
        let message = desk.message(id).await;
        assert_eq!(
            (&message["type"], &message["content"]),
            (&json!("unsupported"), &json!(format!("[{kind}]")))
        );
        assert!(message["raw"].pointer(path).is_some(), "{message}");
    }
    let events = desk.events("contact.message.received").await;
    assert_eq!(events[0]["raw"]["hologram"]["depth"], 3);
}

#[testkit::both]
async fn places_and_cards_reach_the_agent(kind: Kind) {
    let desk = Desk::open(kind).await;
    let place =
        json!({ "latitude": -22.9, "longitude": -43.1, "name": "Centro", "address": "Av. Rio Branco" });
    desk.person_writes(ANA, "wamid.1", 50, "location", place, json!({})).await;
    assert_eq!(desk.app.model.last_texts().last().unwrap(), "Centro\n[Place: Av. Rio Branco, -22.9, -43.1]");
    let cards =
        json!([{ "name": { "formatted_name": "Barbara J." }, "phones": [{ "phone": "+1 650-555-9999" }] }]);
    desk.person_writes(ANA, "wamid.2", 40, "contacts", cards.clone(), json!({})).await;
    assert_eq!(
        desk.app.model.last_texts().last().unwrap(),
        "[Contacts]\n[Contacts: Barbara J. +1 650-555-9999]"
    );
    let events = desk.events("contact.message.received").await;
    assert_eq!((&events[0]["location"]["latitude"], &events[1]["contacts"]), (&json!(-22.9), &cards));
}
