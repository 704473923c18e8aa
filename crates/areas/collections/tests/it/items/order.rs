//! The manual order.

use super::Shop;
use crate::{event_types, full};
use futures::future::join_all;
use serde_json::{Value, json};
use testkit::Kind;

impl Shop {
    /// Returns the names of items in the manual order.
    async fn order(&self, items: &[Value]) -> Vec<String> {
        let mut places = Vec::new();
        for item in items {
            let item = self.look(item).await;
            places.push((
                item["position"].as_str().unwrap().to_owned(),
                item["title"].as_str().unwrap().to_owned(),
            ));
        }
        places.sort();
        assert!(places.is_sorted_by(|a, b| a.0 < b.0), "no two share a place: {places:?}");
        places.into_iter().map(|(_, title)| title).collect()
    }

    async fn place(&self, item: &Value, at: Value) -> Value {
        self.app.put(&self.of(item, "/position"), &self.key, at).await.expect(200)
    }
}

#[testkit::both]
async fn items_are_put_where_people_want_them(kind: Kind) {
    let shop = Shop::open(kind).await;
    let mut items = Vec::new();
    for name in ["a", "b", "c", "d"] {
        items.push(shop.put_up(json!({ "name": name })).await);
    }
    let [a, b, c, d] = items.clone().try_into().unwrap();
    assert_eq!(shop.order(&items).await, ["a", "b", "c", "d"]);
    let same = shop.place(&b, json!({ "after": a["id"] })).await;
    assert_eq!(same, b, "it is there already");
    shop.place(&d, json!({ "after": a["id"] })).await;
    assert_eq!(shop.order(&items).await, ["a", "d", "b", "c"]);
    shop.place(&a, json!({ "position": "last" })).await;
    assert_eq!(shop.order(&items).await, ["d", "b", "c", "a"]);
    shop.place(&c, json!({ "before": d["id"] })).await;
    assert_eq!(shop.order(&items).await, ["c", "d", "b", "a"]);
    shop.place(&b, json!({ "position": "first" })).await;
    assert_eq!(shop.order(&items).await, ["b", "c", "d", "a"]);
    shop.place(&a, json!({ "before": d["id"] })).await;
    assert_eq!(shop.order(&items).await, ["b", "c", "a", "d"]);
    shop.place(&a, json!({ "position": "first" })).await;
    shop.place(&b, json!({ "after": c["id"] })).await;
    assert_eq!(shop.order(&items).await, ["a", "c", "b", "d"]);
    let moved = shop.look(&b).await;
    for still in [json!({ "after": c["id"] }), json!({ "before": d["id"] })] {
        assert_eq!(shop.place(&b, still).await, moved);
    }
    // Only the moved items changed, and new items come last.
    assert_eq!(shop.look(&c).await["version"], 2);
    items.push(shop.put_up(json!({ "name": "e" })).await);
    assert_eq!(shop.order(&items).await, ["a", "c", "b", "d", "e"]);
    let kinds = event_types(&shop.app).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "item.updated").count(), 7);
}

#[testkit::both]
async fn wrong_spots_are_refused(kind: Kind) {
    let shop = Shop::open(kind).await;
    let a = shop.put_up(json!({ "name": "a" })).await;
    let b = shop.put_up(json!({ "name": "b" })).await;
    for (body, param) in [
        (json!({}), "body"),
        (json!({ "before": b["id"], "after": b["id"] }), "body"),
        (json!({ "before": null }), "before"),
        (json!({ "position": "middle" }), "position"),
        (json!({ "before": a["id"] }), "before"),
        (json!({ "below": 1 }), "below"),
    ] {
        let refused = shop.app.put(&shop.of(&a, "/position"), &shop.key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let nowhere = shop.app.put(&shop.of(&a, "/position"), &shop.key, json!({ "after": 999 })).await;
    assert_eq!(nowhere.expect_error(404, "not_found").as_deref(), Some("after"));
    let stranger = full(&shop.app).await;
    shop.app
        .put(&shop.of(&a, "/position"), &stranger, json!({ "position": "first" }))
        .await
        .expect_error(404, "not_found");
    shop.app.post(&shop.of(&a, "/lock"), &shop.key, json!({})).await.expect(200);
    shop.app
        .put(&shop.of(&a, "/position"), &shop.key, json!({ "position": "last" }))
        .await
        .expect_error(409, "item_locked");
}

#[testkit::both]
async fn many_moves_at_once_leave_an_order(kind: Kind) {
    let shop = Shop::open(kind).await;
    let mut items = Vec::new();
    for name in 0..8 {
        items.push(shop.put_up(json!({ "name": name.to_string() })).await);
    }
    let moves = (0..48).map(|step: usize| {
        let (item, other) = (&items[step % 8], &items[(step * 5 + 3) % 8]);
        let at = match step % 4 {
            0 => json!({ "position": "first" }),
            1 => json!({ "position": "last" }),
            2 if item != other => json!({ "before": other["id"] }),
            _ if item != other => json!({ "after": other["id"] }),
            _ => json!({ "position": "first" }),
        };
        shop.place(item, at)
    });
    join_all(moves).await;
    assert_eq!(shop.order(&items).await.len(), 8);
}
