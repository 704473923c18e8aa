//! Moments.

use super::shop::Shop;
use serde_json::{Value, json};
use testkit::Kind;

async fn until(shop: &Shop, config: Value) -> String {
    let flow = shop.flow(json!({ "until": ["wait_until", config] }), &["start>until"], json!({})).await;
    shop.start(&flow).await
}

#[testkit::both]
async fn a_run_waits_for_a_moment(kind: Kind) {
    let shop = Shop::open(kind).await;
    let now = shop.desk.app.db().now();
    let at = now.plus_seconds(3600).rfc3339();
    let run = until(&shop, json!({ "time": at })).await;
    let waiting = shop.expect(&run, "waiting").await;
    assert_eq!(waiting["waiting_for"][0]["until"], at);
    shop.after(3601).await;
    shop.expect(&run, "completed").await;
    let run = until(&shop, json!({ "time": at })).await;
    assert_eq!(shop.port(&run, "until").await, "completed past");
    for time in
        [now.plus_seconds(400 * 86_400).rfc3339(), "some day".to_owned(), "{{ $input.none }}".to_owned()]
    {
        let run = until(&shop, json!({ "time": time })).await;
        assert_eq!(shop.expect(&run, "failed").await["error"]["code"], "invalid_time", "{time}");
    }
}

#[testkit::both]
async fn a_run_waits_until_the_business_opens(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = until(&shop, json!({ "business_hours": true })).await;
    shop.settle().await;
    // A business without opening hours is always open.
    shop.expect(&run, "completed").await;
}
