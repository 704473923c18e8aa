//! Which skills a text would load.

use crate::{bare, path, skill};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

fn found<'a>(matches: &'a Value, list: &str) -> Vec<(&'a str, &'a str)> {
    let skills = matches[list].as_array().unwrap().iter();
    skills.map(|skill| (skill["name"].as_str().unwrap(), skill["reason"].as_str().unwrap())).collect()
}

#[testkit::both]
async fn a_text_finds_skills_by_their_words(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let published = async |name: &str, description: &str, more: Value| {
        let mut more = more;
        more["description"] = description.into();
        more["publish"] = true.into();
        skill(&app, &key, name, more).await
    };
    published("returns", "How customers send back boxes and shoes.", json!({})).await;
    published("shoe-sizes", "Tables of sizes.", json!({ "display_name": "Größen" })).await;
    published("greeting", "Says hello.", json!({ "activation": "always" })).await;
    published("refunds", "Pays money back for shoes.", json!({ "activation": "manual" })).await;
    let off = published("repairs", "Repairs shoes.", json!({})).await;
    app.post(&format!("{}/disable", path(&off)), &key, json!({})).await.expect(200);
    skill(&app, &key, "laces", json!({ "description": "Laces of shoes." })).await;
    let body = json!({ "text": "I want to RETURN a shoe, please" });
    let matches = app.post("/skills/match", &key, body).await.expect(200);
    assert_eq!(matches["words"], json!(["return", "shoe"]));
    assert_eq!(
        found(&matches, "skills"),
        [("greeting", "always"), ("returns", "words"), ("shoe-sizes", "words")]
    );
    let mut missing = found(&matches, "missing");
    missing.sort_unstable();
    assert_eq!(missing, [("laces", "not_published"), ("refunds", "manual"), ("repairs", "disabled")]);
    let returns = &matches["skills"][1];
    let words: Vec<(&str, &str)> = returns["words"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| (word["word"].as_str().unwrap(), word["field"].as_str().unwrap()))
        .collect();
    assert_eq!(words, [("return", "name"), ("shoe", "description")]);
    let sum: f64 =
        returns["words"].as_array().unwrap().iter().map(|word| word["score"].as_f64().unwrap()).sum();
    assert!((returns["score"].as_f64().unwrap() - sum).abs() < 0.02 && sum > 0.0);
    let named = app.post("/skills/match", &key, json!({ "text": "/refunds grossen" })).await.expect(200);
    assert_eq!(
        found(&named, "skills"),
        [("refunds", "named"), ("greeting", "always"), ("shoe-sizes", "words")]
    );
    let limited = app.post("/skills/match", &key, json!({ "text": "shoes", "limit": 1 })).await.expect(200);
    assert_eq!(
        (limited["skills"].as_array().unwrap().len(), limited["missing"].as_array().unwrap().len()),
        (1, 1)
    );
    let nothing = app.post("/skills/match", &key, json!({ "text": "to the ..." })).await.expect(200);
    assert_eq!(
        (found(&nothing, "skills"), found(&nothing, "missing")),
        (vec![("greeting", "always")], vec![])
    );
    for (body, param) in [
        (json!({}), "text"),
        (json!({ "text": " " }), "text"),
        (json!({ "text": "x".repeat(20_001) }), "text"),
        (json!({ "text": "x", "limit": 0 }), "limit"),
        (json!({ "text": "x", "limit": 101 }), "limit"),
    ] {
        let answer = app.post("/skills/match", &key, body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    let unknown = app.post("/skills/match", &key, json!({ "text": "x", "agent_id": 999 })).await;
    assert_eq!(unknown.expect_error(404, "not_found").as_deref(), Some("agent_id"));
    let agent = app.post("/agents", &key, json!({ "name": "A" })).await.expect(201);
    let body = json!({ "text": "return shoes", "agent_id": agent["id"] });
    let matches = app.post("/skills/match", &key, body).await.expect(200);
    assert_eq!(found(&matches, "skills"), []);
    assert!(found(&matches, "missing").contains(&("returns", "other_agent")), "{matches}");
}
