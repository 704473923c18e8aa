//! Computed fields whose sources are deleted or converted with `force`. No item may keep a value that its sources no
//! longer give.

use crate::full;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

struct Desk {
    app: TestApp,
    key: Key,
}

impl Desk {
    async fn open(kind: testkit::Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        Self { app, key }
    }

    async fn collection(&self, name: &str, fields: Value) -> i64 {
        let body = json!({ "name": name, "fields": fields });
        self.app.post("/collections", &self.key, body).await.expect(201)["id"].as_i64().unwrap()
    }

    async fn field(&self, collection: i64, field: Value) -> i64 {
        let path = format!("/collections/{collection}/fields");
        self.app.post(&path, &self.key, field).await.expect(201)["id"].as_i64().unwrap()
    }

    async fn shown(&self, collection: i64, key: &str) -> Value {
        let fields = self.app.get(&format!("/collections/{collection}/fields"), &self.key).await.expect(200);
        fields.as_array().unwrap().iter().find(|field| field["field_key"] == key).unwrap().clone()
    }

    async fn path(&self, collection: i64, key: &str) -> String {
        format!("/collections/{collection}/fields/{}", self.shown(collection, key).await["id"])
    }

    async fn delete(&self, collection: i64, key: &str) {
        let path = self.path(collection, key).await;
        self.app.delete(&path, &self.key).await.expect_error(409, "field_in_use");
        self.app.delete(&format!("{path}?force=true"), &self.key).await.expect(200);
    }

    async fn convert(&self, collection: i64, key: &str, kind: &str) {
        let path = self.path(collection, key).await;
        let patch = json!({ "type": kind, "force": true });
        self.app.patch(&path, &self.key, patch).await.expect(200);
    }

    async fn item(&self, collection: i64, data: Value) -> i64 {
        let path = format!("/collections/{collection}/items");
        self.app.post(&path, &self.key, json!({ "data": data })).await.expect(201)["id"].as_i64().unwrap()
    }

    async fn list(&self, collection: i64, query: &str) -> Answer {
        self.app.get(&format!("/collections/{collection}/items?{query}"), &self.key).await
    }

    /// Returns the value of a field, and the reason if it has none.
    async fn value(&self, collection: i64, item: i64, key: &str) -> (Value, Value) {
        let item =
            self.app.get(&format!("/collections/{collection}/items/{item}"), &self.key).await.expect(200);
        (item["data"][key].clone(), item["computed_errors"][key].clone())
    }

    async fn work(&self) {
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
    }
}

fn number(key: &str) -> Value {
    json!({ "field_key": key, "type": "number" })
}

/// Creates shelves with a rollup of the things on them and a formula of the rollup. Returns the ids of the
/// collections and of two shelves with one thing each.
async fn shelves(desk: &Desk) -> (i64, i64, i64, i64) {
    let shelf = desk.collection("Shelves", json!([{ "field_key": "n", "type": "text" }])).await;
    let relation = json!({ "field_key": "s", "type": "relation", "options":
        { "target_collection_id": shelf, "cardinality": "one", "reverse_field_key": "things" } });
    let thing = desk.collection("Things", json!([number("v"), relation])).await;
    for (key, kind, options) in [
        ("total", "rollup", json!({ "relation": "things", "field": "v", "aggregate": "sum" })),
        ("most", "rollup", json!({ "relation": "things", "field": "v", "aggregate": "max" })),
        ("count", "rollup", json!({ "relation": "things", "aggregate": "count" })),
        ("twice", "formula", json!({ "expression": "{total} * 2" })),
        ("known", "formula", json!({ "expression": "coalesce({total}, 7)" })),
    ] {
        desk.field(shelf, json!({ "field_key": key, "type": kind, "options": options })).await;
    }
    let (one, two) =
        (desk.item(shelf, json!({ "n": "one" })).await, desk.item(shelf, json!({ "n": "two" })).await);
    desk.item(thing, json!({ "v": 5, "s": [one] })).await;
    desk.item(thing, json!({ "v": 3, "s": [two] })).await;
    assert_eq!(desk.value(shelf, two, "twice").await, (json!(6), json!(null)));
    (shelf, thing, one, two)
}

#[testkit::both]
async fn what_is_computed_of_a_deleted_field_has_no_value(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (shelf, thing, one, two) = shelves(&desk).await;
    desk.delete(thing, "v").await;
    desk.item(thing, json!({ "s": [one] })).await;
    let three = desk.item(shelf, json!({ "n": "three" })).await;
    desk.work().await;
    for item in [one, two, three] {
        for key in ["total", "most", "twice"] {
            assert_eq!(
                desk.value(shelf, item, key).await,
                (json!(null), json!("missing_source")),
                "{item} {key}"
            );
        }
        assert_eq!(desk.value(shelf, item, "known").await, (json!(7), json!(null)));
    }
    assert_eq!(desk.value(shelf, one, "count").await, (json!(2), json!(null)));
    assert_eq!(desk.list(shelf, "filter[total][gte]=0").await.expect(200), json!([]));
    let total = desk.shown(shelf, "total").await;
    assert_eq!((&total["options"]["result_error"], &total["version"]), (&json!("missing_source"), &json!(2)));
    assert_eq!(desk.shown(shelf, "count").await["options"].get("result_error"), None);
    // The field can still be changed if nothing has to be recomputed.
    let path = desk.path(shelf, "total").await;
    let renamed = desk.app.patch(&path, &desk.key, json!({ "label": "Sum" })).await.expect(200);
    assert_eq!(
        (&renamed["label"], &renamed["options"]["result_error"]),
        (&json!("Sum"), &json!("missing_source"))
    );
    // A new field with the same key restores the values, unless it has another type.
    desk.field(thing, json!({ "field_key": "v", "type": "text" })).await;
    for item in [one, two, three] {
        assert_eq!(desk.value(shelf, item, "total").await, (json!(null), json!("invalid_source")));
        assert_eq!(desk.value(shelf, item, "twice").await, (json!(null), json!("invalid_source")));
    }
    assert_eq!(desk.value(shelf, one, "most").await, (json!(null), json!(null)));
    assert_eq!(desk.shown(shelf, "most").await["options"]["result_type"], json!("text"));
    desk.item(thing, json!({ "v": "9", "s": [one] })).await;
    assert_eq!(desk.value(shelf, one, "most").await, (json!("9"), json!(null)));
    assert_eq!(desk.list(shelf, "filter[most]=9").await.expect(200).as_array().unwrap().len(), 1);
    desk.convert(thing, "v", "number").await;
    desk.work().await;
    assert_eq!(desk.value(shelf, one, "total").await, (json!(9), json!(null)));
    assert_eq!(desk.value(shelf, one, "twice").await, (json!(18), json!(null)));
    assert_eq!(desk.value(shelf, two, "total").await, (json!(0), json!(null)));
    assert_eq!(desk.shown(shelf, "total").await["options"].get("result_error"), None);
    assert_eq!(desk.list(shelf, "filter[most][gt]=8").await.expect(200).as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn what_is_computed_along_a_deleted_relation_has_no_value(kind: Kind) {
    for end in ["things", "s"] {
        let desk = Desk::open(kind).await;
        let (shelf, thing, one, two) = shelves(&desk).await;
        desk.delete(if end == "s" { thing } else { shelf }, end).await;
        let three = desk.item(shelf, json!({ "n": "three" })).await;
        for item in [one, two, three] {
            for key in ["total", "most", "twice", "count"] {
                assert_eq!(
                    desk.value(shelf, item, key).await,
                    (json!(null), json!("missing_source")),
                    "{end} {key}"
                );
            }
        }
    }
}

#[testkit::both]
async fn sums_of_what_is_no_number_any_more_say_so(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (shelf, thing, one, two) = shelves(&desk).await;
    desk.app
        .patch(&desk.path(thing, "v").await, &desk.key, json!({ "type": "text" }))
        .await
        .expect_error(409, "field_in_use");
    desk.convert(thing, "v", "text").await;
    let three = desk.item(shelf, json!({ "n": "three" })).await;
    for item in [one, two, three] {
        assert_eq!(desk.value(shelf, item, "total").await, (json!(null), json!("invalid_source")));
        assert_eq!(desk.value(shelf, item, "twice").await, (json!(null), json!("invalid_source")));
    }
    assert_eq!(desk.value(shelf, one, "most").await, (json!("5"), json!(null)));
    assert_eq!(desk.value(shelf, two, "count").await, (json!(1), json!(null)));
    // The values return with the type.
    desk.convert(thing, "v", "number").await;
    assert_eq!(desk.value(shelf, one, "twice").await, (json!(10), json!(null)));
    assert_eq!(desk.value(shelf, three, "total").await, (json!(0), json!(null)));
}

#[testkit::both]
async fn a_lookup_has_the_type_of_its_source(kind: Kind) {
    let desk = Desk::open(kind).await;
    let a = desk.collection("A", json!([number("v")])).await;
    let relation = json!({ "field_key": "r", "type": "relation", "options": { "target_collection_id": a, "cardinality": "one" } });
    let b = desk.collection("B", json!([relation])).await;
    let lookup = json!({ "field_key": "lv", "type": "lookup", "options": { "relation": "r", "field": "v" } });
    desk.field(b, lookup).await;
    desk.field(b, json!({ "field_key": "more", "type": "formula", "options": { "expression": "{lv} + 1" } }))
        .await;
    desk.field(
        b,
        json!({ "field_key": "said", "type": "formula", "options": { "expression": "\"is \" & {lv}" } }),
    )
    .await;
    let back = json!({ "field_key": "r", "type": "relation", "options": { "target_collection_id": b, "cardinality": "many" } });
    let c = desk.collection("C", json!([back])).await;
    for (key, kind, options) in [
        ("sum", "rollup", json!({ "relation": "r", "field": "lv", "aggregate": "sum" })),
        ("list", "lookup", json!({ "relation": "r", "field": "lv" })),
        ("sums", "lookup", json!({ "relation": "r", "field": "more" })),
    ] {
        desk.field(c, json!({ "field_key": key, "type": kind, "options": options })).await;
    }
    let path = format!("/collections/{b}/indexes");
    desk.app.post(&path, &desk.key, json!({ "fields": [{ "field": "lv" }] })).await.expect(201);
    desk.work().await;
    let source = desk.item(a, json!({ "v": 5 })).await;
    let item = desk.item(b, json!({ "r": [source] })).await;
    let far = desk.item(c, json!({ "r": [item] })).await;
    assert_eq!(desk.value(c, far, "sum").await, (json!(5), json!(null)));
    assert_eq!(desk.value(c, far, "sums").await, (json!([6]), json!(null)));

    desk.convert(a, "v", "text").await;
    desk.work().await;
    assert_eq!(desk.value(b, item, "lv").await, (json!("5"), json!(null)));
    assert_eq!(desk.shown(b, "lv").await["options"]["result_type"], json!("text"));
    let schema = desk.app.get(&format!("/collections/{b}/schema"), &desk.key).await.expect(200);
    assert!(schema.to_string().contains(r#""lv":{"#), "{schema}");
    let found = desk.list(b, "filter[lv]=5").await;
    assert_eq!(found.expect(200).as_array().unwrap().len(), 1);
    assert!(
        found.headers["x-svc-query-plan"].starts_with("index(lv)"),
        "{}",
        found.headers["x-svc-query-plan"]
    );
    assert_eq!(desk.value(b, item, "more").await, (json!(null), json!("invalid_source")));
    assert_eq!(desk.value(b, item, "said").await, (json!("is 5"), json!(null)));
    assert_eq!(desk.value(c, far, "sum").await, (json!(null), json!("invalid_source")));
    assert_eq!(desk.value(c, far, "list").await, (json!(["5"]), json!(null)));
    assert_eq!(desk.value(c, far, "sums").await, (json!(null), json!("invalid_source")));

    desk.delete(a, "v").await;
    for (collection, item, key) in [
        (b, item, "lv"),
        (b, item, "more"),
        (b, item, "said"),
        (c, far, "sum"),
        (c, far, "list"),
        (c, far, "sums"),
    ] {
        assert_eq!(desk.value(collection, item, key).await, (json!(null), json!("missing_source")), "{key}");
    }
    desk.field(a, number("v")).await;
    desk.app
        .patch(&format!("/collections/{a}/items/{source}"), &desk.key, json!({ "data": { "v": 8 } }))
        .await
        .expect(200);
    desk.work().await;
    assert_eq!(desk.value(b, item, "more").await, (json!(9), json!(null)));
    assert_eq!(desk.value(c, far, "sums").await, (json!([9]), json!(null)));
    let found = desk.list(b, "filter[lv][gt]=7").await;
    assert_eq!(found.expect(200).as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn a_formula_without_its_field_says_so(kind: Kind) {
    let desk = Desk::open(kind).await;
    let fields = json!([number("p"), number("q"), { "field_key": "f", "type": "formula", "options": { "expression": "{p} + {q}" } },
        { "field_key": "g", "type": "formula", "options": { "expression": "{f} > 1" } }]);
    let c = desk.collection("C", fields).await;
    let one = desk.item(c, json!({ "p": 1, "q": 2 })).await;
    desk.delete(c, "q").await;
    let two = desk.item(c, json!({ "p": 1 })).await;
    for item in [one, two] {
        assert_eq!(desk.value(c, item, "f").await, (json!(null), json!("missing_source")));
    }
    desk.field(c, json!({ "field_key": "q", "type": "text" })).await;
    assert_eq!(desk.value(c, one, "f").await, (json!(null), json!("invalid_source")));
    desk.convert(c, "q", "number").await;
    desk.app
        .patch(&format!("/collections/{c}/items/{one}"), &desk.key, json!({ "data": { "q": 3 } }))
        .await
        .expect(200);
    assert_eq!(desk.value(c, one, "f").await, (json!(4), json!(null)));
    assert_eq!(desk.value(c, one, "g").await, (json!(true), json!(null)));
    assert_eq!(desk.value(c, two, "f").await, (json!(null), json!(null)));
}

#[testkit::both]
async fn formulas_count_days_in_the_zone_of_the_field(kind: Kind) {
    let desk = Desk::open(kind).await;
    let c = desk
        .collection(
            "C",
            json!([{ "field_key": "d", "type": "datetime", "options": { "time_zone": "Europe/Madrid" } }]),
        )
        .await;
    let item = desk.item(c, json!({ "d": "2026-11-22T00:30" })).await;
    for (key, expression, expected) in [
        ("day_of", "day_of({d})", json!("2026-11-22")),
        ("hour", "hour({d})", json!(0)),
        ("weekday", "weekday({d})", json!(7)),
        ("said", "text({d})", json!("2026-11-22T00:30:00.000+01:00")),
        ("next", "date_add({d}, 1, \"day\")", json!("2026-11-22T23:30:00.000Z")),
        ("after", "day({next})", json!(23)),
    ] {
        desk.field(
            c,
            json!({ "field_key": key, "type": "formula", "options": { "expression": expression } }),
        )
        .await;
        assert_eq!(desk.value(c, item, key).await, (expected, json!(null)), "{key}");
    }
    let groups = async |query: &str| {
        let path = format!("/collections/{c}/items/aggregate?metrics=count&{query}");
        desk.app.get(&path, &desk.key).await.expect(200)["groups"][0]["group"].clone()
    };
    assert_eq!(groups("group_by=d:day").await, json!({ "d:day": "2026-11-22" }));
    assert_eq!(groups("group_by=next:day").await, json!({ "next:day": "2026-11-23" }));
    assert_eq!(groups("group_by=d:day&time_zone=UTC").await, json!({ "d:day": "2026-11-21" }));
    // In another time zone the moment is on another day.
    let path = desk.path(c, "d").await;
    desk.app.patch(&path, &desk.key, json!({ "options": { "time_zone": "America/Lima" } })).await.expect(200);
    assert_eq!(desk.value(c, item, "day_of").await, (json!("2026-11-21"), json!(null)));
    assert_eq!(desk.value(c, item, "hour").await, (json!(18), json!(null)));
    assert_eq!(groups("group_by=d:day").await, json!({ "d:day": "2026-11-21" }));
}

#[testkit::both]
async fn options_that_the_service_determines_are_refused(kind: Kind) {
    let desk = Desk::open(kind).await;
    let a = desk.collection("A", json!([number("v")])).await;
    let path = format!("/collections/{a}/fields");
    for (field, name) in [
        (
            json!({ "field_key": "r", "type": "relation", "options": { "target_collection_id": a, "reverse_field_id": 1 } }),
            "reverse_field_id",
        ),
        (
            json!({ "field_key": "f", "type": "formula", "options": { "expression": "{v}", "result_type": "text" } }),
            "result_type",
        ),
        (
            json!({ "field_key": "f", "type": "formula", "options": { "expression": "{v}", "result_error": "missing_source" } }),
            "result_error",
        ),
        (json!({ "field_key": "f", "type": "number", "options": { "max_length": 3 } }), "max_length"),
        (json!({ "field_key": "f", "type": "number", "options": { "colour": "red" } }), "colour"),
    ] {
        let refused = desk.app.post(&path, &desk.key, field.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error"), Some(format!("options.{name}")));
        let body = json!({ "name": "B", "fields": [field] });
        let refused = desk.app.post("/collections", &desk.key, body).await;
        assert_eq!(refused.expect_error(400, "validation_error"), Some(format!("fields[0].options.{name}")));
    }
    desk.field(a, json!({ "field_key": "f", "type": "formula", "options": { "expression": "{v}" } })).await;
    let path = desk.path(a, "f").await;
    // Options that were read can be written back.
    let shown = desk.shown(a, "f").await;
    desk.app.patch(&path, &desk.key, json!({ "options": shown["options"] })).await.expect(200);
    let refused = desk.app.patch(&path, &desk.key, json!({ "options": { "result_type": "text" } })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("options.result_type"));
}

#[testkit::both]
async fn what_lost_its_source_in_an_older_version_says_so(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (shelf, thing, one, _) = shelves(&desk).await;
    desk.delete(thing, "v").await;
    // The state that older versions left.
    let forget = match kind {
        testkit::Kind::Sqlite => {
            "UPDATE collection_fields SET options = json_remove(options, '$.result_error')"
        }
        testkit::Kind::Postgres => {
            "UPDATE collection_fields SET options = (options::jsonb - 'result_error')::text"
        }
    };
    desk.app.sql(forget).await;
    desk.app.sql("UPDATE collections SET shape_version = shape_version + 1").await;
    desk.item(thing, json!({ "s": [one] })).await;
    desk.work().await;
    assert_eq!(desk.value(shelf, one, "total").await, (json!(0), json!(null)));
    let migration = match kind {
        testkit::Kind::Sqlite => include_str!("../../../../../../migrations/sqlite/0042_text_keys/up.sql"),
        testkit::Kind::Postgres => {
            include_str!("../../../../../../migrations/postgres/0042_text_keys/up.sql")
        }
    };
    for statement in migration.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        desk.app.sql(statement).await;
    }
    desk.work().await;
    for key in ["total", "twice"] {
        assert_eq!(desk.value(shelf, one, key).await, (json!(null), json!("missing_source")));
    }
    assert_eq!(desk.value(shelf, one, "count").await, (json!(2), json!(null)));
    desk.field(thing, number("v")).await;
    assert_eq!(desk.value(shelf, one, "total").await, (json!(0), json!(null)));
}
