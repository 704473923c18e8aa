//! The options that each type of field accepts and rejects.

use super::make;
use crate::full;
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn every_type_takes_its_options_and_no_others(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let target = app.post("/collections", &key, json!({ "name": "Target" })).await.expect(201);
    let path = format!("{}/fields", make(&app, &key, json!({ "name": "C" })).await);
    let all = json!({
        "max_length": 5, "pattern": "a", "default_country": "ES", "precision": 2, "min": 1, "max": 3, "currency": "EUR",
        "time_zone": "Europe/Madrid", "choices": [{ "label": "A" }], "target_collection_id": target["id"],
        "cardinality": "one", "on_delete": "detach", "max_items": 3, "json_schema": { "type": "object" },
    });
    let all = all.as_object().unwrap();
    let numbers = &["precision", "min", "max"][..];
    let texts = &["max_length", "pattern"][..];
    let table: Vec<(&str, Vec<&str>)> = vec![
        ("text", texts.to_vec()),
        ("long_text", texts.to_vec()),
        ("email", texts.to_vec()),
        ("url", texts.to_vec()),
        ("phone", vec!["max_length", "pattern", "default_country"]),
        ("number", numbers.to_vec()),
        ("currency", vec!["precision", "min", "max", "currency"]),
        ("percent", numbers.to_vec()),
        ("rating", vec!["max"]),
        ("duration", numbers.to_vec()),
        ("integer", vec!["min", "max"]),
        ("auto_number", vec![]),
        ("boolean", vec![]),
        ("date", vec![]),
        ("datetime", vec!["time_zone"]),
        ("time", vec![]),
        ("select", vec!["choices"]),
        ("multi_select", vec!["choices"]),
        ("relation", vec!["target_collection_id", "cardinality", "on_delete"]),
        ("contact", vec!["max_items"]),
        ("user", vec!["max_items"]),
        ("file", vec!["max_items"]),
        ("json", vec!["json_schema"]),
        ("created_at", vec![]),
        ("updated_at", vec![]),
        ("created_by", vec![]),
    ];
    for (place, (name, takes)) in table.into_iter().enumerate() {
        let mut own = serde_json::Map::new();
        for option in &takes {
            own.insert((*option).to_owned(), all[*option].clone());
        }
        let field = |options: &serde_json::Map<String, Value>| json!({ "field_key": format!("f{place}"), "type": name, "options": options });
        for (option, value) in all.iter().filter(|(option, _)| !takes.contains(&option.as_str())) {
            let mut wrong = own.clone();
            wrong.insert(option.clone(), value.clone());
            let refused = app.post(&path, &key, field(&wrong)).await;
            let param = refused.expect_error(400, "validation_error");
            assert_eq!(param, Some(format!("options.{option}")), "{name}");
        }
        let made = app.post(&path, &key, field(&own)).await.expect(201);
        assert_eq!(made["type"], name);
        for option in takes {
            match option {
                "choices" => assert_eq!(made["options"][option][0]["key"], "a"),
                _ => {
                    let (found, given) = (&made["options"][option], &all[option]);
                    assert!(
                        found == given || found.as_f64() == given.as_f64() && found.is_number(),
                        "{name} {option}: {found}"
                    );
                }
            }
        }
    }
}

#[testkit::both]
async fn options_that_make_no_sense_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let path = format!("{}/fields", make(&app, &key, json!({ "name": "C" })).await);
    let many: Vec<Value> = (0..201).map(|n| json!({ "label": format!("c{n}") })).collect();
    let deep = (0..12).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    for (name, options, param) in [
        ("text", json!({ "max_length": 1001 }), "options.max_length"),
        ("text", json!({ "max_length": 0 }), "options.max_length"),
        ("long_text", json!({ "max_length": 100_001 }), "options.max_length"),
        ("text", json!({ "pattern": "a{1000}{1000}" }), "options.pattern"),
        ("text", json!({ "pattern": "(?=a)" }), "options.pattern"),
        ("text", json!({ "pattern": "x".repeat(501) }), "options.pattern"),
        ("phone", json!({ "default_country": "ZZ" }), "options.default_country"),
        ("phone", json!({ "default_country": "es" }), "options.default_country"),
        ("number", json!({ "precision": 9 }), "options.precision"),
        ("number", json!({ "min": 2, "max": 1 }), "options.max"),
        ("integer", json!({ "min": 0.5 }), "options.min"),
        ("integer", json!({ "max": 1e17 }), "options.max"),
        ("rating", json!({ "max": 11 }), "options.max"),
        ("currency", json!({ "currency": "euro" }), "options.currency"),
        ("datetime", json!({ "time_zone": "Mars/Olympus" }), "options.time_zone"),
        ("select", json!({ "choices": many }), "options.choices"),
        (
            "select",
            json!({ "choices": [{ "label": "A", "key": "x" }, { "label": "B", "key": "x" }] }),
            "options.choices[1].key",
        ),
        ("select", json!({ "choices": [{ "label": "A" }, { "label": "a" }] }), "options.choices[1].label"),
        ("select", json!({ "choices": [{ "label": "A", "key": "Ä" }] }), "options.choices[0].key"),
        ("select", json!({ "choices": [{ "label": "A", "id": 3 }] }), "options.choices[0].id"),
        ("relation", json!({}), "options.target_collection_id"),
        ("file", json!({ "max_items": 101 }), "options.max_items"),
        ("json", json!({ "json_schema": { "type": "odd" } }), "options.json_schema"),
        ("json", json!({ "json_schema": { "$ref": "https://example.com/s" } }), "options.json_schema"),
        ("json", json!({ "json_schema": deep }), "options.json_schema"),
        ("formula", json!({ "expression": "1 +" }), "options.expression"),
        ("formula", json!({ "expression": "{f} + 1" }), "options.expression"),
    ] {
        let body = json!({ "field_key": "f", "type": name, "options": options });
        let refused = app.post(&path, &key, body.clone()).await;
        let found = refused.expect_error(400, "validation_error");
        assert_eq!(found.as_deref(), Some(param), "{body}");
    }
    for (name, extra, param) in [
        ("formula", json!({ "required": true, "options": { "expression": "1" } }), "required"),
        ("json", json!({ "unique": true }), "unique"),
        ("multi_select", json!({ "unique": true }), "unique"),
        ("file", json!({ "default": [1] }), "default"),
        ("integer", json!({ "default": "1" }), "default"),
        ("integer", json!({ "default": 1, "unique": true }), "default"),
        ("select", json!({ "default": "a" }), "default"),
    ] {
        let mut body = json!({ "field_key": "f", "type": name });
        for (field, value) in extra.as_object().unwrap() {
            body[field] = value.clone();
        }
        let found = app.post(&path, &key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(found.as_deref(), Some(param), "{body}");
    }
}
