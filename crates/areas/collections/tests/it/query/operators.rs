//! Every type with every operator: the matching items, and the operators that are rejected.

use super::{create, ids, list, query};
use crate::{full, seed};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

const OPS: [&str; 9] = ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in"];

/// The cases of a type: values of two or three items (the last item has none), and for each operator the operand and
/// the indexes of the matching items. Operators without a case must be rejected.
struct Row {
    kind: &'static str,
    values: [Value; 3],
    cells: &'static [(&'static str, &'static str, &'static [usize])],
}

fn table() -> Vec<Row> {
    const TEXT: &[(&str, &str, &[usize])] = &[
        ("eq", "b", &[1]),
        ("eq", "B", &[]),
        ("eq", "", &[3]),
        ("neq", "b", &[0, 2, 3]),
        ("neq", "", &[0, 1, 2]),
        ("eq", "null", &[]),
        ("gt", "b", &[2]),
        ("gte", "b", &[1, 2]),
        ("lt", "b", &[0]),
        ("lte", "b", &[0, 1]),
        ("like", "_", &[0, 1, 2]),
        ("like", "B%", &[]),
        ("ilike", "B%", &[1]),
        ("in", "a,c,x", &[0, 2]),
    ];
    const NUMBER: &[(&str, &str, &[usize])] = &[
        ("eq", "2.0", &[1]),
        ("eq", "2e0", &[1]),
        ("eq", "", &[3]),
        ("eq", "null", &[3]),
        ("neq", "2", &[0, 2, 3]),
        ("neq", "null", &[0, 1, 2]),
        ("gt", "2", &[2]),
        ("gte", "2", &[1, 2]),
        ("lt", "2", &[0]),
        ("lte", "2", &[0, 1]),
        ("in", "-1,3", &[0, 2]),
    ];
    const PLACE: &[(&str, &str, &[usize])] = &[
        ("eq", "b", &[1]),
        ("eq", "B", &[1]),
        ("eq", "null", &[3]),
        ("neq", "b", &[0, 2, 3]),
        ("gt", "b", &[2]),
        ("gte", "b", &[1, 2]),
        ("lt", "b", &[0]),
        ("lte", "b", &[0, 1]),
        ("like", "B", &[1]),
        ("like", "b", &[]),
        ("ilike", "b", &[1]),
        ("in", "a,c", &[0, 2]),
    ];
    const SET: &[(&str, &str, &[usize])] = &[
        ("eq", "a", &[0, 1]),
        ("eq", "null", &[3]),
        ("neq", "a", &[2, 3]),
        ("neq", "", &[0, 1, 2]),
        ("in", "b,c", &[1, 2]),
    ];
    const IDS: &[(&str, &str, &[usize])] =
        &[("eq", "1", &[]), ("eq", "", &[0, 1, 2, 3]), ("neq", "1", &[0, 1, 2, 3]), ("in", "2,3", &[])];
    let text = || [json!("a"), json!("b"), json!("c")];
    let number = || [json!(-1), json!(2), json!(3)];
    vec![
        Row { kind: "text", values: text(), cells: TEXT },
        Row { kind: "long_text", values: text(), cells: TEXT },
        Row {
            kind: "email",
            values: [json!("a@x.de"), json!("b@x.de"), json!("c@x.de")],
            cells: &[
                ("eq", "b@x.de", &[1]),
                ("neq", "b@x.de", &[0, 2, 3]),
                ("gt", "b@x.de", &[2]),
                ("gte", "b", &[1, 2]),
                ("lt", "b", &[0]),
                ("lte", "b@x.de", &[0, 1]),
                ("like", "%@x.de", &[0, 1, 2]),
                ("ilike", "C@X%", &[2]),
                ("in", "a@x.de,b@x.de", &[0, 1]),
            ],
        },
        Row {
            kind: "url",
            values: [json!("https://a.de"), json!("https://b.de"), json!("https://c.de")],
            cells: &[
                ("eq", "https://b.de", &[1]),
                ("neq", "https://b.de", &[0, 2, 3]),
                ("gt", "https://b.de", &[2]),
                ("gte", "https://b.de", &[1, 2]),
                ("lt", "https://b.de", &[0]),
                ("lte", "https://b.de", &[0, 1]),
                ("like", "https://_.de", &[0, 1, 2]),
                ("ilike", "HTTPS://C%", &[2]),
                ("in", "https://a.de", &[0]),
            ],
        },
        Row {
            kind: "phone",
            values: [json!("+34600000001"), json!("+34600000002"), json!("+34600000003")],
            cells: &[
                ("eq", "+34600000002", &[1]),
                ("neq", "+34600000002", &[0, 2, 3]),
                ("gt", "+34600000002", &[2]),
                ("gte", "+34600000002", &[1, 2]),
                ("lt", "+34600000002", &[0]),
                ("lte", "+34600000002", &[0, 1]),
                ("like", "+34%3", &[2]),
                ("ilike", "+34%1", &[0]),
                ("in", "+34600000001", &[0]),
            ],
        },
        Row { kind: "number", values: number(), cells: NUMBER },
        Row { kind: "currency", values: number(), cells: NUMBER },
        Row { kind: "percent", values: number(), cells: NUMBER },
        Row { kind: "duration", values: number(), cells: NUMBER },
        Row { kind: "integer", values: number(), cells: NUMBER },
        Row {
            kind: "rating",
            values: [json!(1), json!(2), json!(3)],
            cells: &[
                ("eq", "2", &[1]),
                ("neq", "2", &[0, 2, 3]),
                ("gt", "2", &[2]),
                ("gte", "2", &[1, 2]),
                ("lt", "2", &[0]),
                ("lte", "2.5", &[0, 1]),
                ("in", "1,3", &[0, 2]),
            ],
        },
        Row {
            kind: "boolean",
            values: [json!(false), json!(true), json!(true)],
            cells: &[
                ("eq", "true", &[1, 2]),
                ("eq", "null", &[3]),
                ("neq", "true", &[0, 3]),
                ("in", "true,false", &[0, 1, 2]),
            ],
        },
        // The clock of tests stands at noon of 2026-01-15.
        Row {
            kind: "date",
            values: [json!("2026-01-08"), json!("2026-01-15"), json!("2026-02-01")],
            cells: &[
                ("eq", "today", &[1]),
                ("eq", "today-7d", &[0]),
                ("eq", "", &[3]),
                ("neq", "2026-01-15", &[0, 2, 3]),
                ("gt", "2026-01-15", &[2]),
                ("gte", "today", &[1, 2]),
                ("lt", "today", &[0]),
                ("lte", "2026-01-15", &[0, 1]),
                ("like", "2026-01%", &[0, 1]),
                ("ilike", "%-02-%", &[2]),
                ("in", "today,2026-02-01", &[1, 2]),
            ],
        },
        Row {
            kind: "datetime",
            values: [
                json!("2026-01-14T23:59:59.999Z"),
                json!("2026-01-15T09:00:00Z"),
                json!("2026-01-16T00:00:00Z"),
            ],
            cells: &[
                ("eq", "2026-01-15", &[1]),
                ("eq", "today-1d", &[0]),
                ("eq", "2026-01-15T10:00:00+01:00", &[1]),
                ("eq", "now-3h", &[1]),
                ("neq", "2026-01-15", &[0, 2, 3]),
                ("neq", "null", &[0, 1, 2]),
                ("gt", "2026-01-15", &[1, 2]),
                ("gte", "2026-01-16", &[2]),
                ("lt", "2026-01-15", &[0]),
                ("lte", "2026-01-15T09:00:00Z", &[0, 1]),
                ("in", "2026-01-15,2026-01-16", &[1, 2]),
            ],
        },
        Row {
            kind: "time",
            values: [json!("09:00"), json!("09:00:01"), json!("18:30")],
            cells: &[
                ("eq", "09:00:00", &[0]),
                ("neq", "09:00", &[1, 2, 3]),
                ("gt", "09:00", &[1, 2]),
                ("gte", "09:00", &[0, 1, 2]),
                ("lt", "18:30", &[0, 1]),
                ("lte", "09:00", &[0]),
                ("in", "18:30", &[2]),
            ],
        },
        Row { kind: "select", values: text(), cells: PLACE },
        Row { kind: "multi_select", values: [json!(["a"]), json!(["a", "b"]), json!(["c"])], cells: SET },
        // The workspace has no contacts and no team, so no item can refer to any.
        Row { kind: "contact", values: [Value::Null, Value::Null, Value::Null], cells: IDS },
        Row { kind: "user", values: [Value::Null, Value::Null, Value::Null], cells: IDS },
        Row {
            kind: "json",
            values: [json!({ "a": 1, "b": [null] }), json!([1, 2]), json!("x")],
            cells: &[
                ("eq", "{\"b\":[null],\"a\":1.0}", &[0]),
                ("eq", "\"x\"", &[2]),
                ("eq", "null", &[3]),
                ("eq", "", &[3]),
                ("neq", "[1,2]", &[0, 2, 3]),
                ("neq", "null", &[0, 1, 2]),
            ],
        },
    ]
}

async fn ask(app: &TestApp, key: &Key, path: &str, field: &str, op: &str, operand: &str) -> Answer {
    let pairs =
        [(format!("filter[{field}][{op}]"), operand.to_owned()), ("sort".to_owned(), "id".to_owned())];
    list(app, key, path, &query(&pairs)).await
}

#[testkit::both]
async fn every_type_takes_what_the_table_says(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let rows = table();
    for indexed in [false, true] {
        let fields = rows.iter().map(|row| {
            let options =
                if row.kind.contains("select") { seed::choices(&["a", "b", "c"]) } else { json!({}) };
            json!({ "key": format!("f_{}", row.kind), "type": row.kind, "options": options })
        });
        let collection = seed::collection(&app, &key, fields.collect()).await;
        for row in rows.iter().filter(|row| indexed && row.kind != "json") {
            seed::index_on(&app, &key, collection, &[(format!("f_{}", row.kind), false)]).await;
        }
        let mut made = Vec::new();
        for place in 0..4 {
            let data: serde_json::Map<String, Value> = rows
                .iter()
                .filter_map(|row| Some((format!("f_{}", row.kind), row.values.get(place)?.clone())))
                .collect();
            made.push(create(&app, &key, collection, data.into()).await["id"].as_i64().unwrap());
        }
        let path = collection.to_string();
        for row in &rows {
            let field = format!("f_{}", row.kind);
            for (op, operand, places) in row.cells {
                let expected: Vec<i64> = places.iter().map(|place| made[*place]).collect();
                let answer = ask(&app, &key, &path, &field, op, operand).await;
                assert_eq!(ids(&answer), expected, "{field} {op} {operand} indexed={indexed}");
            }
            for op in OPS.iter().filter(|op| row.cells.iter().all(|(other, ..)| other != *op)) {
                let answer = ask(&app, &key, &path, &field, op, "1").await;
                let param = answer.expect_error(400, "validation_error");
                assert_eq!(param, Some(format!("filter[{field}]")), "{op}");
                assert!(answer.text.contains("this field supports eq, neq"), "{}", answer.text);
            }
        }
    }
}

#[testkit::both]
async fn system_columns_are_filtered_too(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
    let path = format!("/collections/{collection}/items");
    let mut made = Vec::new();
    for number in 0..3 {
        let external = (number > 0).then(|| format!("k{number}"));
        let body = json!({ "data": { "name": "x" }, "external_key": external });
        made.push(app.post(&path, &key, body).await.expect(201)["id"].as_i64().unwrap());
    }
    app.patch(&format!("{path}/{}", made[1]), &key, json!({ "data": { "name": "y" } })).await.expect(200);
    let me = format!("api_key:{}", key.id);
    let second = made[1].to_string();
    for (field, op, operand, places, plan) in [
        ("id", "eq", second.as_str(), &[1][..], "ids"),
        ("id", "gte", &second, &[1, 2], "scan"),
        ("id", "lt", &second, &[0], "scan"),
        ("id", "neq", &second, &[0, 2], "scan"),
        ("version", "gt", "1", &[1], "scan"),
        ("external_key", "eq", "k2", &[2], "external_key"),
        ("external_key", "eq", "", &[0], "scan"),
        ("external_key", "like", "k%", &[1, 2], "scan"),
        ("created_by", "eq", &me, &[0, 1, 2], "scan"),
        ("created_at", "eq", "today", &[0, 1, 2], "scan"),
        ("updated_at", "gt", "now", &[], "scan"),
        ("position", "gt", "", &[0, 1, 2], "scan"),
    ] {
        let answer = ask(&app, &key, &collection.to_string(), field, op, operand).await;
        let expected: Vec<i64> = places.iter().map(|place| made[*place]).collect();
        assert_eq!(ids(&answer), expected, "{field} {op} {operand}");
        assert!(answer.headers["x-svc-query-plan"].starts_with(plan), "{:?}", answer.headers);
    }
    for (field, op, operand) in
        [("id", "eq", "1.5"), ("id", "like", "1%"), ("version", "eq", "x"), ("created_at", "eq", "noon")]
    {
        let answer = ask(&app, &key, &collection.to_string(), field, op, operand).await;
        assert_eq!(answer.expect_error(400, "validation_error"), Some(format!("filter[{field}]")));
    }
}

#[testkit::both]
async fn the_operators_can_be_looked_up(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let listed = app.get("/items/filter-operators", &key).await.expect(200);
    let of = |kind: &str| -> Vec<String> {
        let row = listed.as_array().unwrap().iter().find(|row| row["type"] == kind).unwrap();
        row["operators"].as_array().unwrap().iter().map(|op| op.as_str().unwrap().to_owned()).collect()
    };
    for row in table() {
        for op in OPS {
            let takes = row.cells.iter().any(|(other, ..)| *other == op);
            assert_eq!(of(row.kind).iter().any(|other| other == op), takes, "{} {op}", row.kind);
        }
    }
}
