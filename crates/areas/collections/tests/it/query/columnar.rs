//! Columnar indexes: concurrent changes, and queries that cannot use them.

use super::{create, ids, list};
use crate::{full, seed};
use ::model::{CollectionId, IndexId};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

fn plan(answer: &Answer) -> &str {
    answer.headers["x-svc-query-plan"].split(';').next().unwrap()
}

/// Creates a shop with a columnar index, and products of these prices in its segments.
async fn shop(app: &TestApp, key: &Key, prices: std::ops::Range<i64>) -> (CollectionId, IndexId, Vec<i64>) {
    let fields = json!([{ "key": "name", "type": "text" }, { "key": "price", "type": "number" }]);
    let collection = seed::collection(app, key, fields).await;
    let index = seed::columns(app, key, collection).await;
    let mut made = Vec::new();
    for price in prices {
        let item = create(app, key, collection, json!({ "name": "x", "price": price })).await;
        made.push(item["id"].as_i64().unwrap());
    }
    seed::merge(app, index).await;
    (collection, index, made)
}

#[testkit::both]
async fn with_too_many_changes_queries_do_without(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let (collection, index, made) = shop(&app, &key, 0..3).await;
    // Few items with more pending changes than a query reads. The last item is beyond them.
    app.sql(format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20001) \
         INSERT INTO item_changes (index_id, item_id) SELECT {}, {} FROM n",
        index.0, made[0]
    ))
    .await;
    let path = format!("/collections/{collection}/items/{}", made[2]);
    app.patch(&path, &key, json!({ "data": { "price": 100 } })).await.expect(200);
    let asked = async || list(&app, &key, collection, "filter[price][gte]=1&sort=-price").await;
    let answer = asked().await;
    assert_eq!((ids(&answer), plan(&answer)), (vec![made[2], made[1]], "scan"));
    seed::merge(&app, index).await;
    assert_eq!(crate::number(&app, "SELECT count(*) AS n FROM item_changes").await, 0);
    let answer = asked().await;
    assert_eq!((ids(&answer), plan(&answer)), (vec![made[2], made[1]], "columnar"));
}

#[testkit::both]
async fn sums_are_the_same_whether_few_items_fit_or_most(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let (collection, index, _) = shop(&app, &key, 0..3).await;
    app.sql(
        "WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 1499) \
         INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, \
         updated_by, created_at, updated_at) SELECT workspace_id, collection_id, \
         '{\"name\":\"x\",\"price\":' || i || '}', title, 0, 1, created_by, updated_by, created_at, updated_at \
         FROM n, (SELECT * FROM items LIMIT 1) AS one",
    )
    .await;
    app.sql(format!("INSERT INTO item_changes (index_id, item_id) SELECT {}, id FROM items", index.0)).await;
    seed::merge(&app, index).await;
    let last = create(&app, &key, collection, json!({ "name": "x", "price": 5_000 })).await;
    for (filter, count, sum, by) in [
        ("filter[price][gte]=2", 1_499, 5_000 + (2..1_500).sum::<i64>(), "columnar"),
        ("filter[price][gte]=1498", 3, 5_000 + 1_498 + 1_499, "columnar"),
        ("filter[price][gt]=5000", 0, 0, "columnar"),
        ("filter[price][lt]=3&filter[name]=x", 3, 3, "columnar"),
    ] {
        let path = format!("/collections/{collection}/items/aggregate?metrics=count,sum:price&{filter}");
        let answer = app.get(&path, &key).await;
        let values = &answer.expect(200)["groups"][0]["values"];
        let sum = if count == 0 { Value::Null } else { sum.into() };
        assert_eq!((&values["count"], &values["sum:price"]), (&json!(count), &sum), "{filter}");
        assert_eq!(plan(&answer), by, "{filter}");
        // Columns store texts in their form for comparison, so groups by text have to read the items.
        let by_rows = app.get(&format!("{path}&group_by=name"), &key).await;
        let groups = by_rows.expect(200)["groups"].clone();
        let counts: Vec<i64> = groups
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group["values"]["count"].as_i64().unwrap())
            .collect();
        assert_eq!(counts, if count == 0 { vec![] } else { vec![count] });
    }
    // Only the changed item is read, but all items count as visited.
    let path = format!("/collections/{collection}/items/aggregate?metrics=count,distinct:price");
    let answer = app.get(&path, &key).await;
    assert_eq!(answer.expect(200)["groups"][0]["values"], json!({ "count": 1_501, "distinct:price": 1_501 }));
    assert_eq!(answer.headers["x-svc-query-plan"], "columnar; visited=1501");
    // A condition on a field without a column rules out the index.
    let answer = list(&app, &key, collection, &format!("filter[id][gte]={}", last["id"])).await;
    assert_eq!((ids(&answer).len(), plan(&answer)), (1, "scan"));
}

#[testkit::both]
async fn columns_in_memory_are_used_until_segments_are_written(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let (collection, index, made) = shop(&app, &key, 0..5).await;
    for query in [
        "filter[price][gte]=2&sort=-price",
        "filter[price][gte]=2",
        "filter[price][gte]=2&sort=-created_at,price",
    ] {
        let asked = async || {
            let answer = list(&app, &key, collection, query).await;
            assert_eq!(plan(&answer), "columnar", "{query}");
            let mut ids = ids(&answer);
            ids.sort_unstable();
            ids
        };
        for _ in 0..3 {
            assert_eq!(asked().await, made[2..], "{query}");
        }
    }
    let counted = async || {
        let path = format!("/collections/{collection}/items/aggregate?metrics=count&filter[price][gte]=2");
        app.get(&path, &key).await.expect(200)["groups"][0]["values"]["count"].as_i64().unwrap()
    };
    assert_eq!(counted().await, 3);
    // The stored segments are not read: without them the results are the same.
    app.sql("UPDATE item_columns SET column_id = column_id + 100000").await;
    let asked = async |query: &str| ids(&list(&app, &key, collection, query).await);
    assert_eq!(asked("filter[price][gte]=2&sort=-price").await, [made[4], made[3], made[2]]);
    assert_eq!(counted().await, 3);
    app.sql("UPDATE item_columns SET column_id = column_id - 100000").await;
    // A changed item is read separately until its segment is merged.
    let path = format!("/collections/{collection}/items/{}", made[0]);
    app.patch(&path, &key, json!({ "data": { "price": 9 } })).await.expect(200);
    for _ in 0..3 {
        assert_eq!(asked("filter[price][gte]=3&sort=-price").await, [made[0], made[4], made[3]]);
        seed::merge(&app, index).await;
    }
    assert_eq!(counted().await, 4);
}

#[testkit::both]
async fn columns_are_not_searched_for_what_an_index_meets_soon(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([{ "key": "name", "type": "text" }, { "key": "price", "type": "number" }]);
    let collection = seed::collection(&app, &key, fields).await;
    seed::index_on(&app, &key, collection, &[("price".to_owned(), false)]).await;
    let index = seed::columns(&app, &key, collection).await;
    for first in [0, 1_000] {
        let data = |number: i64| {
            let name = if number % 4 == 0 { "Rope" } else { "Kite" };
            json!({ "data": { "name": format!("{name} {number}"), "price": number } })
        };
        let items: Vec<Value> = (first..first + 1_000).map(data).collect();
        let path = format!("/collections/{collection}/items/bulk-create");
        app.post(&path, &key, json!({ "rows": items })).await.expect(200);
    }
    seed::merge_by(&app, index, 1_000).await;
    let asked =
        async |filter: &str| list(&app, &key, collection, &format!("{filter}&sort=price&limit=20")).await;
    let (often, never) = ("filter[name][ilike]=%25kite%25", "filter[name][ilike]=%25x%25");
    for _ in 0..3 {
        let answer = asked(often).await;
        assert_eq!((ids(&answer).len(), plan(&answer)), (20, "index(price)"));
        let answer = asked(never).await;
        assert_eq!((ids(&answer).len(), plan(&answer)), (0, "columnar"));
    }
}

#[testkit::both]
async fn a_sorted_list_reads_segments_until_it_has_enough(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([{ "key": "name", "type": "text" }, { "key": "price", "type": "number" }]);
    let collection = seed::collection(&app, &key, fields).await;
    let index = seed::columns(&app, &key, collection).await;
    let data = |number: i64| match number % 100 {
        // Each segment has an item without a price, which comes last in both directions.
        0 => json!({ "data": { "name": "Kite" } }),
        _ => json!({ "data": { "name": "Kite", "price": number } }),
    };
    let path = format!("/collections/{collection}/items/bulk-create");
    let items: Vec<Value> = (0..1_000).map(data).collect();
    app.post(&path, &key, json!({ "rows": items })).await.expect(200);
    seed::merge_by(&app, index, 100).await;
    let prices = async |sort: &str| {
        let answer =
            list(&app, &key, collection, &format!("filter[name][ilike]=%25ite&sort={sort}&limit=3")).await;
        let visited = answer.headers["x-svc-query-plan"]
            .strip_prefix("columnar; visited=")
            .unwrap()
            .parse::<i64>()
            .unwrap();
        let items = answer.body["data"].as_array().unwrap();
        (items.iter().map(|item| item["data"]["price"].as_i64()).collect::<Vec<_>>(), visited)
    };
    for _ in 0..3 {
        assert_eq!(prices("-price").await, (vec![Some(999), Some(998), Some(997)], 104));
        assert_eq!(prices("price").await, (vec![Some(1), Some(2), Some(3)], 104));
    }
    // The current value of a changed item counts, not the one in its segment.
    let first = list(&app, &key, collection, "sort=price&limit=1").await;
    let path = format!("/collections/{collection}/items/{}", ids(&first)[0]);
    app.patch(&path, &key, json!({ "data": { "price": 5_000 } })).await.expect(200);
    assert_eq!(prices("-price").await.0, [Some(5_000), Some(999), Some(998)]);
    assert_eq!(prices("price").await.0, [Some(2), Some(3), Some(4)]);
}

#[testkit::both]
async fn a_field_takes_its_values_with_it(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let (collection, _, made) = shop(&app, &key, 0..12).await;
    let path = format!("/collections/{collection}");
    let fields = app.get(&format!("{path}/fields"), &key).await.expect(200);
    let field = |name: &str| {
        fields.as_array().unwrap().iter().find(|field| field["field_key"] == name).unwrap()["id"].clone()
    };
    let price = format!("{path}/fields/{}", field("price"));
    app.patch(&price, &key, json!({ "type": "text" })).await.expect(200);
    // Numbers become texts: queries before and after the conversion.
    let asked = async || list(&app, &key, collection, "filter[price][gt]=8&sort=price").await;
    asked().await.expect(200);
    while app.service.jobs.run_due().await.unwrap() > 0 {}
    let answer = asked().await;
    assert_eq!((ids(&answer), plan(&answer)), (vec![made[9]], "columnar"));
    app.delete(&format!("{price}?force=true"), &key).await.expect(200);
    while app.service.jobs.run_due().await.unwrap() > 0 {}
    let gone = list(&app, &key, collection, "filter[price][gt]=8").await;
    assert_eq!(gone.expect_error(400, "validation_error").as_deref(), Some("filter[price]"));
    assert_eq!(ids(&list(&app, &key, collection, "filter[name]=x&sort=name&limit=50").await).len(), 12);
}
