//! Numbers keep all their digits or are rejected.

use crate::full;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A collection of prices, created by requests.
struct Prices {
    app: TestApp,
    key: Key,
    path: String,
}

impl Prices {
    async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let field = |key: &str, kind: &str, options: Value| json!({ "label": key, "field_key": key, "type": kind, "options": options });
        let made = app
            .post(
                "/collections",
                &key,
                json!({ "name": "Prices", "fields": [
                    field("name", "text", json!({})),
                    field("plain", "number", json!({})),
                    field("cents", "number", json!({ "precision": 2 })),
                    field("price", "currency", json!({ "currency": "EUR", "precision": 2 })),
                    field("share", "percent", json!({})),
                    field("span", "duration", json!({})),
                    field("stars", "rating", json!({})),
                    field("stock", "integer", json!({})),
                    field("extra", "json", json!({})),
                    field("gross", "formula", json!({ "expression": "plain * 1.21" })),
                    field("each", "formula", json!({ "expression": "plain / stock" })),
                    field("twice", "formula", json!({ "expression": "each * 2" })),
                ] }),
            )
            .await;
        let path = format!("/collections/{}", made.expect(201)["id"]);
        Self { app, key, path }
    }

    /// Sends a body exactly as it is spelled, digit by digit.
    async fn send(&self, method: &str, rest: &str, body: &str) -> Answer {
        let asking = self.app.ask(method, &format!("{}{rest}", self.path)).key(&self.key);
        asking.bytes("application/json", body.as_bytes()).send().await
    }

    async fn refused(&self, method: &str, rest: &str, body: &str, param: &str, code: &str) {
        let answer = self.send(method, rest, body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
        assert_eq!(answer.body["error"]["errors"][0]["code"], code, "{body}");
    }

    /// Creates an item with one value and returns its path.
    async fn item(&self, field: &str, literal: &str) -> String {
        let made = self.send("POST", "/items", &format!(r#"{{"data":{{"{field}":{literal}}}}}"#)).await;
        format!("/items/{}", made.expect(201)["id"])
    }

    async fn look(&self, item: &str) -> Value {
        self.app.get(&format!("{}{item}", self.path), &self.key).await.expect(200)
    }
}

#[testkit::both]
async fn numbers_of_bodies_are_kept_with_all_digits_or_refused(kind: Kind) {
    let prices = Prices::open(kind).await;
    for (field, literal, code) in [
        ("plain", "0.12345678901234567890", "too_precise"),
        ("plain", "0.10000000000000000001", "too_precise"),
        ("plain", "9007199254740993", "too_precise"),
        ("plain", "9007199254740993.0", "too_precise"),
        ("plain", "100000000000000000000000000001", "too_precise"),
        ("plain", "1e400", "out_of_range"),
        ("plain", "1e-400", "out_of_range"),
        ("plain", "5e-324", "out_of_range"),
        ("cents", "123.456", "too_precise"),
        ("cents", "123.45000000000000000001", "too_precise"),
        ("price", "9999999999999999.99", "too_precise"),
        ("share", "0.33333333333333333333", "too_precise"),
        ("span", "1.00000000000000000001", "too_precise"),
        ("stars", "4.9999999999999999999", "too_precise"),
        ("stock", "9007199254740993", "out_of_range"),
        ("stock", "9007199254740993.0", "too_precise"),
        ("stock", "1e400", "out_of_range"),
    ] {
        let data = format!(r#"{{"{field}":{literal}}}"#);
        prices
            .refused("POST", "/items", &format!(r#"{{"data":{data}}}"#), &format!("data.{field}"), code)
            .await;
        let row = format!(r#"{{"rows":[{{"data":{{}}}},{{"data":{data}}}]}}"#);
        prices.refused("POST", "/items/bulk-create", &row, &format!("rows[1].data.{field}"), code).await;
    }
    prices
        .refused(
            "POST",
            "/items",
            r#"{"data":{"extra":{"a":[1,0.12345678901234567890]}}}"#,
            "data.extra.a[1]",
            "too_precise",
        )
        .await;
    for (field, literal, kept) in [
        ("plain", "0.1", "0.1"),
        ("plain", "12.50", "12.5"),
        ("plain", "5.0", "5"),
        ("plain", "-0.0", "0"),
        ("plain", "123456789012.345", "123456789012.345"),
        ("plain", "9007199254740992", "9007199254740992"),
        ("plain", "1e308", "1e+308"),
        ("plain", "0.100000000000000000000", "0.1"),
        ("cents", "999999999999.99", "999999999999.99"),
        ("stock", "9007199254740992", "9007199254740992"),
        ("extra", "9223372036854775807", "9223372036854775807"),
        ("extra", "0.30000000000000004", "0.30000000000000004"),
    ] {
        let item = prices.item(field, literal).await;
        assert_eq!(prices.look(&item).await["data"][field].to_string(), kept, "{literal}");
    }
    // Texts are parsed as numbers by the same rule.
    for (field, text) in [
        ("cents", "123.456"),
        ("plain", "0.12345678901234567890"),
        ("plain", "1e400"),
        ("stock", "9007199254740993"),
    ] {
        let body = json!({ "typecast": true, "data": { field: text } });
        let answer = prices.send("POST", "/items", &body.to_string()).await;
        assert_eq!(
            answer.expect_error(400, "validation_error").as_deref(),
            Some(format!("data.{field}").as_str()),
            "{text}"
        );
    }
}

#[testkit::both]
async fn an_increment_is_exact_or_changes_nothing(kind: Kind) {
    let prices = Prices::open(kind).await;
    for (field, stored, by, state) in [
        ("cents", "1e308", "1e308", "out_of_range"),
        ("cents", "999999999999.99", "1e15", "too_precise"),
        ("plain", "1001000000000000.0", "0.1", "too_precise"),
        ("cents", "999999999999999", "0.01", "too_precise"),
        ("plain", "1e308", "1", "too_precise"),
        ("plain", "1", "1e-300", "too_precise"),
        ("plain", "9007199254740992", "1", "too_precise"),
        ("price", "9999999999999.9", "9900000000000.01", "too_precise"),
        ("stock", "9007199254740992", "1", "out_of_bounds"),
        ("stock", "-9007199254740992", "-1", "out_of_bounds"),
        ("stars", "5", "1", "out_of_bounds"),
    ] {
        let item = prices.item(field, stored).await;
        let before = prices.look(&item).await;
        let body = format!(r#"{{"field":"{field}","by":{by}}}"#);
        let answer = prices.send("POST", &format!("{item}/increment"), &body).await;
        assert_eq!(answer.expect_error(409, "invalid_state").as_deref(), Some("by"), "{stored} + {by}");
        let details = &answer.body["error"]["details"];
        assert_eq!((&details["state"], &details["field"]), (&json!(state), &json!(field)), "{stored} + {by}");
        assert_eq!(prices.look(&item).await, before, "{stored} + {by}");
    }
    for (field, stored, by, sum) in [
        ("plain", "0.1", "0.2", "0.3"),
        ("cents", "19.99", "0.01", "20"),
        ("cents", "999999999999.99", "0.01", "1000000000000"),
        ("plain", "1e308", "-1e308", "0"),
        ("plain", "9007199254740991", "1", "9007199254740992"),
        ("plain", "1e-7", "2e-7", "3e-7"),
        ("stock", "-9007199254740992", "9007199254740993", "1"),
    ] {
        let item = prices.item(field, stored).await;
        let body = format!(r#"{{"field":"{field}","by":{by}}}"#);
        let sent = prices.send("POST", &format!("{item}/increment"), &body).await;
        assert_eq!(sent.expect(200)["data"][field].to_string(), sum, "{stored} + {by}");
    }
    let item = prices.item("cents", "1").await;
    for (body, param) in [
        (r#"{"field":"cents","by":0.001}"#, "by"),
        (r#"{"field":"cents","by":0.12345678901234567890}"#, "by"),
        (r#"{"field":"cents","by":1e400}"#, "by"),
        (r#"{"field":"cents","by":1,"max":0.12345678901234567890}"#, "max"),
    ] {
        let answer = prices.send("POST", &format!("{item}/increment"), body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
}

#[testkit::both]
async fn a_refused_increment_stays_refused_when_it_is_repeated(kind: Kind) {
    let prices = Prices::open(kind).await;
    let item = prices.item("plain", "999999999999999").await;
    let path = format!("{}{item}/increment", prices.path);
    for _ in 0..2 {
        let asking = prices.app.ask("POST", &path).key(&prices.key);
        let asking = asking.header("Idempotency-Key", "once").header("If-Match", "\"1\"");
        let answer = asking.json(&json!({ "field": "plain", "by": 0.01 })).send().await;
        answer.expect_error(409, "invalid_state");
    }
    assert_eq!(prices.look(&item).await["version"], 1);
}

#[testkit::both]
async fn rules_of_fields_and_filters_have_numbers_that_are_kept(kind: Kind) {
    let prices = Prices::open(kind).await;
    let field = |rest: &str| format!(r#"{{"label":"New","type":"number",{rest}}}"#);
    for (rest, param) in [
        (r#""options":{"min":0.12345678901234567890}"#, "options.min"),
        (r#""options":{"max":9007199254740993}"#, "options.max"),
        (r#""options":{"max":1e400}"#, "options.max"),
        (r#""default":0.12345678901234567890"#, "default"),
        (r#""default":9007199254740993"#, "default"),
    ] {
        let answer = prices.send("POST", "/fields", &field(rest)).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{rest}");
    }
    prices.item("plain", "0.3").await;
    for (filter, param) in [
        ("filter[plain]=0.30000000000000000001", "filter[plain]"),
        ("filter[plain][gt]=1e400", "filter[plain]"),
        ("filter[plain][in]=1,9007199254740993", "filter[plain]"),
        (r#"filter_tree={"field":"plain","op":"eq","value":0.30000000000000000001}"#, "filter_tree.value"),
        ("filter[extra]=0.30000000000000000001", "filter[extra]"),
    ] {
        let filter = filter.replace('"', "%22");
        let path = format!("{}/items?{filter}", prices.path);
        let answer = prices.app.get(&path, &prices.key).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{filter}");
    }
    let found = prices.app.get(&format!("{}/items?filter[plain]=0.300", prices.path), &prices.key).await;
    assert_eq!(found.expect(200).as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn a_formula_is_exact_or_says_why_it_has_no_value(kind: Kind) {
    let prices = Prices::open(kind).await;
    let item = prices.item("plain", "19.99").await;
    let shown = prices.look(&item).await;
    assert_eq!((&shown["data"]["gross"], &shown["computed_errors"]), (&json!(24.1879), &Value::Null));
    for (data, gross, each, errors) in [
        (
            r#"{"plain":1.6e308,"stock":1}"#,
            json!(null),
            json!(1.6e308),
            json!({ "gross": "out_of_range", "twice": "out_of_range" }),
        ),
        (
            r#"{"plain":999999999999.99}"#,
            json!(null),
            json!(999_999_999_999.99),
            json!({ "gross": "too_precise" }),
        ),
        (
            r#"{"plain":1,"stock":0}"#,
            json!(1.21),
            json!(null),
            json!({ "each": "division_by_zero", "twice": "division_by_zero" }),
        ),
        (r#"{"stock":3}"#, json!(1.21), json!(0.333_333_333_333_333), json!(null)),
        (r#"{"plain":2}"#, json!(2.42), json!(0.666_666_666_666_667), json!(null)),
    ] {
        let changed = prices.send("PATCH", &item, &format!(r#"{{"data":{data}}}"#)).await.expect(200);
        assert_eq!(prices.look(&item).await, changed);
        assert_eq!((&changed["data"]["gross"], &changed["data"]["each"]), (&gross, &each), "{data}");
        assert_eq!(changed["computed_errors"], errors, "{data}");
    }
}

#[testkit::both]
async fn sums_of_what_was_rounded_are_rounded(kind: Kind) {
    let prices = Prices::open(kind).await;
    for plain in [1, 1, 2] {
        prices
            .send("POST", "/items", &format!(r#"{{"data":{{"plain":{plain},"stock":3}}}}"#))
            .await
            .expect(201);
    }
    let path = format!("{}/items/aggregate?metrics=sum:each,sum:plain", prices.path);
    let groups = prices.app.get(&path, &prices.key).await.expect(200)["groups"].clone();
    assert_eq!(
        groups,
        json!([{ "group": {}, "values": { "sum:each": 1.333_333_333_333_33, "sum:plain": 4 }, "errors": {} }])
    );
}

#[testkit::both]
async fn text_that_becomes_a_number_says_what_it_loses(kind: Kind) {
    let prices = Prices::open(kind).await;
    for text in ["0.5", "0.12345678901234567890", "1e400", "2.5"] {
        let body = json!({ "data": { "name": text } });
        prices.send("POST", "/items", &body.to_string()).await.expect(201);
    }
    let fields = prices.app.get(&prices.path, &prices.key).await.expect(200)["fields"].clone();
    let id =
        fields.as_array().unwrap().iter().find(|field| field["field_key"] == "name").unwrap()["id"].clone();
    let answer = prices.send("PATCH", &format!("/fields/{id}"), r#"{"type":"number","dry_run":true}"#).await;
    let report = answer.expect(200)["conversion"].clone();
    assert_eq!((&report["changed"], &report["would_be_null"]), (&json!(2), &json!(2)), "{report}");
    let forced = prices.send("PATCH", &format!("/fields/{id}"), r#"{"type":"number"}"#).await;
    assert_eq!(forced.status, 409, "{}", forced.body);
}
