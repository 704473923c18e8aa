//! What expressions, templates and conditions give, and what is refused.

mod conditions;
mod generated;
mod limits;
mod templates;
mod values;

use crate::{Context, Expression, Failure, Mistake, Roots, Value};
use model::Timestamp;
use serde_json::{Map, Value as Json, json};

const ROOTS: Roots<'static> = Roots::new(&[
    "name", "price", "stock", "active", "size", "tags", "since", "sold_at", "contact", "order", "nodes",
    "vars", "big", "a", "b", "c",
])
.keyed(&["vars"]);

/// The objects of the examples in the documentation, and more.
fn scope() -> Map<String, Json> {
    let scope = json!({
        "name": "Red Shoe", "price": 0.1, "stock": 7, "active": true, "size": "Large", "tags": ["New", "Sale"],
        "since": "2024-02-29", "sold_at": "2026-11-21T23:30:00Z",
        "contact": { "$name": "Ana Souza", "email": "ana@example.com", "points": "120", "tags": ["vip", "new"], "nothing": null,
                     "seen_at": "2026-11-20T10:00:00+02:00" },
        "order": { "id": 1042, "paid": false, "items": [{ "sku": "A1", "price": 12.5 }, { "sku": "B2", "price": 3 }] },
        "nodes": { "a": { "output": { "items": [{ "price": 12.50, "a b": { "it's": 1 } }], "count": 0 } } },
        "vars": { "shop.phone": "+34 600", "limit": 5 },
        "big": 9_007_199_254_740_993_i64,
    });
    scope.as_object().unwrap().clone()
}

/// 2026-11-21T12:00:00Z.
fn now() -> Timestamp {
    Timestamp::parse("2026-11-21T12:00:00Z").unwrap()
}

fn evaluated(text: &str, strict: bool) -> Result<Value<'static>, Failure> {
    let expression =
        Expression::parse(text, &ROOTS).unwrap_or_else(|mistake| panic!("{text}: {}", mistake.message));
    let scope = scope();
    let context = Context { strict, ..Context::new(&scope, now()) };
    expression.evaluate(&context).map(Value::into_owned)
}

/// The value of an expression as JSON, or why it has none.
fn value(text: &str) -> Json {
    match evaluated(text, false).and_then(Value::into_json) {
        Ok(value) => value,
        Err(failure) => json!({ "failed": failure.code() }),
    }
}

fn mistake(text: &str) -> Mistake {
    Expression::parse(text, &ROOTS).expect_err(text)
}
