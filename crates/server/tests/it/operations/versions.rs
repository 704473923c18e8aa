//! A change that was made for another version is refused in one way, whatever it changes.

use crate::operations::answers::seed;
use crate::operations::document::Op;
use crate::operations::sweep::Sweep;
use crate::operations::valid::address;
use serde_json::{Value, json};
use testkit::Kind;

/// A version that nothing has.
const STALE: i64 = 999_999;

#[testkit::both]
async fn a_stale_version_is_refused_in_one_way(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    let key = &sweep.keys[&(false, true)];
    let other = &sweep.app.post("/collections", key, json!({ "name": "Other" })).await.expect(201)["id"];
    let mut seen = Vec::new();
    for (document, op) in sweep.operations().filter(|(_, op)| op.takes_header("If-Match")) {
        let smallest = op.body.as_ref().map_or(json!({}), |schema| document.sample(schema, "body"));
        let properties = op.body.as_ref().map(|schema| &document.resolved(schema)["properties"]);
        let named = ["version", "expected_version"]
            .into_iter()
            .filter(|name| properties.is_some_and(|properties| properties.get(name).is_some()));
        let bodies = named.clone().map(|name| {
            let mut body = smallest.clone();
            body[name] = STALE.into();
            (None, body, name)
        });
        let path = address(&op, document, &ids);
        for (tag, body, param) in bodies.chain([(Some(STALE), smallest.clone(), "If-Match")]) {
            let body = fitting(&op, body, other);
            let mut ask = sweep.app.ask(&op.method, &path).key(sweep.key(&op, true)).json(&body);
            if let Some(tag) = tag {
                ask = ask.header("if-match", &format!("\"{tag}\""));
            }
            let refused = ask.send().await;
            let named = refused.expect_error(409, "version_conflict");
            assert_eq!(named.as_deref(), Some(param), "{}: {}", op.id, refused.text);
            let current = &refused.body["error"]["details"]["current_version"];
            assert!(current.is_i64(), "{}: {}", op.id, refused.text);
        }
        for param in named {
            let mut body = smallest.clone();
            body[param] = STALE.into();
            let body = fitting(&op, body, other);
            let ask = sweep.app.ask(&op.method, &path).key(sweep.key(&op, true)).json(&body);
            let unclear = ask.header("if-match", "\"1\"").send().await;
            assert_eq!(unclear.expect_error(400, "validation_error").as_deref(), Some(param), "{}", op.id);
        }
        seen.push(op.id);
    }
    assert!(seen.len() > 10, "{seen:?}");
}

/// The smallest body that a schema allows, as what is stored wants it.
fn fitting(op: &Op, mut body: Value, other_collection: &Value) -> Value {
    match op.id.as_str() {
        "moveItem" => body["collection_id"] = other_collection.clone(),
        "setItemField" => body["value"] = 1.into(),
        "incrementItemField" => body["field"] = "price".into(),
        _ => {}
    }
    body
}
