//! Items that one request creates together. Each must be as complete as one created alone, and none may be half
//! written.

use super::Shop;
use crate::{events, number, seed};
use serde_json::{Value, json};
use testkit::{Answer, Kind, TestApp};

/// Counts the rows of items in each table.
async fn traces(app: &TestApp) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in ["items", "item_keys", "item_unique", "item_search", "item_activity", "events"] {
        counts.push(number(app, &format!("SELECT COUNT(*) AS n FROM {table}")).await);
    }
    counts
}

impl Shop {
    async fn create_all(&self, rows: &[Value], mode: &str) -> Answer {
        let body = json!({ "rows": rows, "mode": mode });
        self.app.post(&self.at("/bulk-create"), &self.key, body).await
    }
}

#[testkit::both]
async fn each_of_many_is_as_complete_as_one_alone(kind: Kind) {
    let shop = Shop::open(kind).await;
    let by_category = [("category".to_owned(), false), ("price".to_owned(), true)];
    seed::index_on(&shop.app, &shop.key, shop.collection, &by_category).await;
    let data = |place: i64| {
        json!({
            "name": format!("Ball word{place}"), "sku": format!("s{place}"), "price": place, "category": "toys",
            "tags": ["new", "sale"],
        })
    };
    let alone = shop.put_up(data(0)).await;
    let rows: Vec<Value> =
        (1..=250).map(|place| json!({ "data": data(place), "external_key": format!("k{place}") })).collect();
    let report = shop.create_all(&rows, "atomic").await.expect(200);
    let ids: Vec<i64> =
        report["results"].as_array().unwrap().iter().map(|result| result["id"].as_i64().unwrap()).collect();
    assert!(ids.is_sorted() && ids.len() == 250, "{ids:?}");
    let per_item: Vec<i64> = traces(&shop.app).await.iter().map(|count| count / 251).collect();
    assert_eq!(per_item, [1, 2, 1, 1, 1, 1], "two keys, and one of all else");

    let last = shop.look(&report["results"][249]).await;
    let same = [
        "object",
        "collection_id",
        "has_more",
        "computed_errors",
        "comment_count",
        "version",
        "created_by",
        "updated_by",
    ];
    for field in same {
        assert_eq!(last[field], alone[field], "{field}");
    }
    assert_eq!((&last["data"]["number"], &last["data"]["active"]), (&json!(251), &json!(true)));
    assert_eq!((&last["title"], &last["external_key"]), (&json!("Ball word250"), &json!("k250")));
    let found = shop.app.get(&shop.at("/search?q=word250"), &shop.key).await.expect(200);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["id"]), (1, &last["id"]));
    let found =
        shop.app.get(&shop.at("?filter[category]=toys&sort=-price&limit=2"), &shop.key).await.expect(200);
    assert_eq!((&found[0]["id"], &found[1]["data"]["price"]), (&last["id"], &json!(249)));

    let published = events(&shop.app).await;
    let of_items: Vec<i64> =
        published.iter().skip(1).map(|(_, data)| data["item"]["id"].as_i64().unwrap()).collect();
    assert_eq!(of_items, ids, "in the order of the rows");
    assert!(published.iter().all(|(kind, _)| kind == "item.created"));
    assert_eq!(published[250].1["item"], last);
    let entries = shop.app.get(&shop.of(&last, "/activity"), &shop.key).await.expect(200);
    let of_alone = shop.app.get(&shop.of(&alone, "/activity"), &shop.key).await.expect(200);
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["operation_id"], report["operation_id"]);
    assert_eq!((&entries[0]["action"], &entries[0]["actor"]), (&json!("created"), &of_alone[0]["actor"]));
    let names = |entry: &Value| entry["changed"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&entries[0]), names(&of_alone[0]));
    assert_eq!(entries[0]["changed"]["sku"], json!({ "old": null, "new": "s250" }));
}

#[testkit::both]
async fn a_taken_value_leaves_nothing_half_written(kind: Kind) {
    let shop = Shop::open(kind).await;
    let first = json!([{ "data": { "name": "First", "sku": "s1" }, "external_key": "k1" }]);
    let first = shop.create_all(first.as_array().unwrap(), "atomic").await.expect(200);
    let holder = &first["results"][0]["id"];
    let row = |name: &str, sku: &str, key: &str| json!({ "data": { "name": name, "sku": sku, "price": 1 }, "external_key": key });
    for (place, (rows, param)) in [
        ([row("A", "a", "ka"), row("B", "s1", "kb"), row("C", "c", "kc")], "data.sku"),
        ([row("D", "d", "kd"), row("E", "d", "ke"), row("F", "f", "kf")], "data.sku"),
        ([row("G", "g", "kg"), row("H", "h", "k1"), row("I", "i", "ki")], "external_key"),
        ([row("J", "j", "kj"), row("K", "k", "kj"), row("L", "l", "kl")], "external_key"),
    ]
    .into_iter()
    .enumerate()
    {
        let before = traces(&shop.app).await;
        let refused = shop.create_all(&rows, "atomic").await;
        let expected = format!("rows[1].{param}");
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(expected.as_str()));
        assert_eq!(refused.body["error"]["errors"][0]["code"], "duplicate_value");
        assert_eq!(traces(&shop.app).await, before, "{expected}");

        let report = shop.create_all(&rows, "partial").await.expect(200);
        assert_eq!((&report["summary"]["created"], &report["summary"]["failed"]), (&json!(2), &json!(1)));
        let error = &report["results"][1]["error"];
        assert_eq!((&error["code"], &error["param"]), (&json!("duplicate_value"), &json!(expected)));
        let within = place % 2 == 1;
        let existing = if within { &report["results"][0]["id"] } else { holder };
        assert_eq!(&error["details"]["existing_id"], existing);
        let after = traces(&shop.app).await;
        let made: Vec<i64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        assert_eq!(made, [2, 2, 2, 2, 2, 2]);
        // A rejected item takes no number.
        let last = shop.look(&report["results"][2]).await;
        assert_eq!(last["data"]["number"], json!(3 + 2 * place));
    }
}
