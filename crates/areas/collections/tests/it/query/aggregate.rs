//! Counts and sums in groups.

use super::create;
use crate::{full, seed};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn items_are_counted_and_summed_in_groups(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(
        &app,
        &key,
        json!([
            { "key": "name", "type": "text" },
            { "key": "price", "type": "number", "indexed": true },
            { "key": "category", "type": "select", "options": seed::choices(&["toys", "books"]) },
            { "key": "sold", "type": "datetime" },
            { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        ]),
    )
    .await;
    for data in [
        json!({ "name": "a", "price": 0.1, "category": "books", "sold": "2026-01-31T23:30:00Z", "tags": ["new", "sale"] }),
        json!({ "name": "b", "price": 0.2, "category": "toys", "sold": "2026-02-10T00:00:00Z", "tags": ["new"] }),
        json!({ "name": "c", "price": 3, "category": "toys", "sold": "2026-03-01T00:00:00Z" }),
        json!({ "name": "c", "category": "toys" }),
        json!({ "name": "e", "price": 3 }),
    ] {
        create(&app, &key, collection, data).await;
    }
    let path = format!("/collections/{collection}/items/aggregate");
    let ask = async |query: &str| app.get(&format!("{path}?{query}"), &key).await;
    let all = ask("metrics=count,sum:price,avg:price,min:price,max:name,distinct:name,distinct:tags").await;
    assert_eq!(
        all.expect(200)["groups"],
        json!([{ "group": {}, "values": {
        "count": 5, "sum:price": 6.3, "avg:price": 1.575, "min:price": 0.1, "max:name": "e", "distinct:name": 4,
        "distinct:tags": 2,
    }, "errors": {} }])
    );
    let grouped = ask("group_by=category&metrics=count,sum:price").await.expect(200);
    assert_eq!(
        grouped["groups"],
        json!([
            { "group": { "category": "toys" }, "values": { "count": 3, "sum:price": 3.2 }, "errors": {} },
            { "group": { "category": "books" }, "values": { "count": 1, "sum:price": 0.1 }, "errors": {} },
            { "group": { "category": null }, "values": { "count": 1, "sum:price": 3 }, "errors": {} },
        ])
    );
    let months = ask("group_by=sold:month&time_zone=Europe/Madrid&filter[sold][neq]=").await.expect(200);
    assert_eq!(
        months["groups"],
        json!([
            { "group": { "sold:month": "2026-02-01" }, "values": { "count": 2 }, "errors": {} },
            { "group": { "sold:month": "2026-03-01" }, "values": { "count": 1 }, "errors": {} },
        ])
    );
    let two = ask("group_by=category,name&filter[category]=toys").await.expect(200);
    assert_eq!(two["groups"].as_array().unwrap().len(), 2);
    for (query, count, plan) in [
        ("", 5, "keys(id)"),
        ("filter[price]=3", 2, "keys(price)"),
        ("filter[price][lt]=1", 2, "keys(price)"),
        ("filter[price]=3&filter[name]=c", 1, "index(price)"),
        ("filter[name]=c", 2, "scan"),
    ] {
        let answer = ask(query).await;
        assert_eq!(answer.expect(200)["groups"][0]["values"]["count"], count, "{query}");
        let plan_header = &answer.headers["x-svc-query-plan"];
        assert!(plan_header.starts_with(plan), "{query} {plan_header}");
    }
    let none = ask("filter[name]=zzz&metrics=count,sum:price,min:name,distinct:name").await.expect(200);
    let values = json!({ "count": 0, "sum:price": null, "min:name": null, "distinct:name": 0 });
    assert_eq!(none["groups"][0]["values"], values);
    assert_eq!(ask("filter[name]=zzz&group_by=name").await.expect(200)["groups"], Value::Array(vec![]));
    for (query, param) in [
        ("metrics=sum", "metrics"),
        ("metrics=sum:name", "metrics"),
        ("metrics=min:tags", "metrics"),
        ("metrics=median:price", "metrics"),
        ("metrics=count:price", "metrics"),
        ("metrics=sum:nope", "metrics"),
        ("group_by=tags", "group_by"),
        ("group_by=nope", "group_by"),
        ("group_by=price:month", "group_by"),
        ("group_by=sold:hour", "group_by"),
        ("group_by=name,price,category", "group_by"),
        ("time_zone=Mars", "time_zone"),
        ("filter[nope]=1", "filter[nope]"),
    ] {
        assert_eq!(ask(query).await.expect_error(400, "validation_error").as_deref(), Some(param), "{query}");
    }
}

#[testkit::both]
async fn sums_and_means_are_exact_or_say_why_not(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(
        &app,
        &key,
        json!([
            { "key": "name", "type": "text" },
            { "key": "price", "type": "number" },
            { "key": "stock", "type": "integer" },
        ]),
    )
    .await;
    let cent = 999_999_999_999_999_i64;
    for (name, price, stock) in [
        ("exact", json!(0.1), json!(9_007_199_254_740_992_i64)),
        ("exact", json!(0.2), json!(9_007_199_254_740_992_i64)),
        ("exact", json!(1e15), json!(-9_007_199_254_740_992_i64)),
        ("exact", json!(-1e15), json!(0)),
        ("great", json!(1e308), json!(1)),
        ("great", json!(1e308), json!(2)),
        ("precise", json!(cent), json!(9_007_199_254_740_992_i64)),
        ("precise", json!(0.01), json!(1)),
        ("thirds", json!(1), json!(2)),
        ("thirds", json!(1), json!(0)),
        ("thirds", json!(0), json!(0)),
    ] {
        create(&app, &key, collection, json!({ "name": name, "price": price, "stock": stock })).await;
    }
    let path = format!("/collections/{collection}/items/aggregate");
    let metrics = "metrics=sum:price,avg:price,max:price,sum:stock&group_by=name";
    let groups = app.get(&format!("{path}?{metrics}"), &key).await.expect(200)["groups"].clone();
    let plan_header: Vec<(&Value, &Value)> =
        groups.as_array().unwrap().iter().map(|group| (&group["values"], &group["errors"])).collect();
    let none = json!({});
    let great = json!({ "sum:price": "out_of_range" });
    let precise = json!({ "sum:price": "too_precise", "sum:stock": "too_precise" });
    assert_eq!(
        plan_header,
        [
            (
                &json!({ "sum:price": 0.3, "avg:price": 0.075, "max:price": 1_000_000_000_000_000_i64,
            "sum:stock": 9_007_199_254_740_992_i64 }),
                &none
            ),
            (&json!({ "sum:price": null, "avg:price": 1e308, "max:price": 1e308, "sum:stock": 3 }), &great),
            (
                &json!({ "sum:price": null, "avg:price": 500_000_000_000_000_i64, "max:price": cent, "sum:stock": null }),
                &precise
            ),
            (
                &json!({ "sum:price": 2, "avg:price": 0.666_666_666_666_667, "max:price": 1, "sum:stock": 2 }),
                &none
            ),
        ]
    );
}
